"""The document in a ledger file: it is read as it was written, and a doctored one is refused."""

import json
import random

import pytest

from accountant.errors import AccountantError, LedgerError
from accountant.ledger import Accountant, Budget, register
from support.toy_mechanisms import Noise, ledger_of

register(Noise)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.json"


def damaged(text):
    yield ""
    yield "{}"
    yield "[]"
    yield "null"
    yield "not JSON"
    yield "[" * 100_000
    yield text[: len(text) // 2]
    yield text[:-3]
    yield text + "{}"
    yield text.replace("[1,7,", "[1,6,")
    yield text.replace("part 1", "part l")
    yield text.replace("sha256:", "sha256:0")
    yield text.replace('"budget": null', '"budget": null, "budget": null')
    yield text.replace("[1,7,", "[1,NaN,")
    yield text.replace("[1,7,", "[1,1e999,")
    yield text.replace("[1,7,", "[1," + "9" * 5000 + ",")
    yield text.replace('"version": 1', '"version": 0')
    yield text.replace('"version": 1', '"version": true')
    yield text.replace('"version": 1', '"version": "2"')
    yield text.replace('"format": "accountant-ledger"', '"format": "ledger"')
    yield text.replace('"format"', '"surprise": 1, "format"')


@pytest.mark.parametrize("case", range(21))
def test_damaged_text_is_refused(case, path):
    ledger = ledger_of(2, 7)
    text = list(damaged(ledger.to_json()))[case]
    with pytest.raises(LedgerError):
        Accountant.from_json(text)
    path.write_text(text)
    with pytest.raises(LedgerError, match=r"ledger\.json"):
        Accountant.load(path)
    assert path.read_text() == text


@pytest.mark.long
def test_every_truncation_and_every_flipped_bit_is_refused(path):
    ledger = ledger_of(2, 7)
    ledger.save(path)
    content = path.read_bytes()
    rng = random.Random(5)
    body = content.rstrip()
    for end in range(len(body)):
        path.write_bytes(content[:end])
        with pytest.raises(LedgerError):
            Accountant.load(path)
    for _ in range(500):
        bad = bytearray(content)
        bad[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
        path.write_bytes(bad)
        try:
            again = Accountant.load(path)
        except LedgerError:
            continue
        # Only white space outside of strings may change unnoticed.
        assert again.history == ledger.history


def rewritten(ledger, change):
    """A file whose checksum is right, changed by someone who knows how."""
    from accountant.ledger import document as files

    document = json.loads(ledger.to_json())
    change(document["ledger"])
    document["checksum"] = files.checksum(document["revision"], document["ledger"])
    return json.dumps(document)


def test_all_that_a_ledger_holds_is_read():
    ledger = Accountant(Budget(2.0, 1e-5, orders=[8.0, 16.0]))
    ledger.compose(Noise(50.0), 3, label='α "],["', time=-1.5)
    ledger.compose(Noise(60.0), label=None)
    ledger.compose(Noise(50.0), 2)
    again = Accountant.from_json(rewritten(ledger, lambda body: None))
    assert again.history == ledger.history
    assert again.counts == ledger.counts
    assert again.budget == ledger.budget
    assert again.remaining() == ledger.remaining()
    assert again.to_json() == ledger.to_json()


def test_the_checksum_is_that_of_the_canonical_text():
    import hashlib

    from accountant.ledger import document as files

    for ledger in (ledger_of(*range(1, 10)), stated(), Accountant(Budget(2.0, 1e-5))):
        document = json.loads(ledger.to_json())
        whole = [document["revision"], document["ledger"]]
        canonical = json.dumps(whole, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        assert document["checksum"] == files.checksum(*whole) == f"sha256:{digest}"


OF_A_MECHANISM = (
    lambda first: first.update(mechanism="os.system"),
    lambda first: first.update(mechanism=["Noise"]),
    lambda first: first.update(mechanism="Mechanism"),
    lambda first: first["parameters"].update(extra=1),
    lambda first: first["parameters"].pop("sigma"),
    lambda first: first["parameters"].update(sigma={"number": "x"}),
    lambda first: first["parameters"].update(sigma={"eval": "1"}),
    lambda first: first["parameters"].update(relation={"relation": "definition"}),
    lambda first: first["parameters"].update(relation={"relation": ["ADD_OR_REMOVE"]}),
)
OF_A_BUDGET = (
    lambda budget: budget.clear(),
    lambda budget: budget.update(epsilon=-1.0),
    lambda budget: budget.update(extra=1),
    lambda budget: budget.pop("level"),
    lambda budget: budget.pop("kinds"),
    lambda budget: budget.update(filter="none"),
)
# Places of a record, and what must not stand there.
OF_A_RECORD = (
    *((0, value) for value in (-1, 2, True, 0.0, "0", None, [0], 2**70)),
    *((1, value) for value in (0, -1, True, 1.0, "1", None, 2**53 + 1)),
    (2, 4),
    *((3, value) for value in ("now", True, [1])),
)


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.update(extra=1),
        lambda body: body.pop("budget"),
        lambda body: body.pop("mechanisms"),
        lambda body: body.update(entries={}),
        lambda body: body.update(mechanisms={}),
        lambda body: body["mechanisms"].append(3),
        lambda body: body["mechanisms"].clear(),
        lambda body: body["entries"].append(3),
        lambda body: body["entries"].append([]),
        lambda body: body["entries"][0].append(None),
        lambda body: body["entries"][0].pop(),
        lambda body: body["entries"].__setitem__(0, {"mechanism": 0}),
        *(lambda body, each=each: body["entries"][0].__setitem__(*each) for each in OF_A_RECORD),
        *(lambda body, each=each: each(body["mechanisms"][0]) for each in OF_A_MECHANISM),
        *(lambda body, each=each: each(body["budget"]) for each in OF_A_BUDGET),
    ],
)
def test_unknown_contents_are_refused_even_with_a_right_checksum(change):
    ledger = Accountant(Budget(99.0, 1e-5))
    ledger.merge(ledger_of(2, 7))
    assert Accountant.from_json(rewritten(ledger, lambda body: None)).history == ledger.history
    with pytest.raises(LedgerError):
        Accountant.from_json(rewritten(ledger, change))


@pytest.mark.parametrize("version", [2, 4, 2**70])
def test_another_version_is_refused_by_name(version):
    text = ledger_of(1).to_json().replace('"version": 1', f'"version": {version}, "novelty": []')
    with pytest.raises(LedgerError, match=f"version must be 1; got {version}"):
        Accountant.from_json(text)


def stated():
    ledger = ledger_of(2, 7)
    for delta in (1e-5, 1e-7, 1e-5):
        ledger.note_delta(delta)
    return ledger


def test_the_deltas_at_which_a_ledger_is_stated_are_kept(path):
    ledger = stated()
    assert ledger.deltas == (1e-7, 1e-5)
    ledger.save(path)
    again = Accountant.load(path)
    assert again.deltas == ledger.deltas
    assert again.history == ledger.history
    assert again.to_json() == ledger.to_json()
    other = Accountant(Budget(99.0, 1e-6))
    other.merge(ledger)
    assert other.deltas == (1e-6, 1e-7, 1e-5)
    assert Accountant.from_json(other.to_json()).deltas == other.deltas


def test_a_noted_delta_alone_is_a_change_to_a_file(path):
    ledger_of(1).save(path)
    with Accountant.transaction(path) as ledger:
        ledger.note_delta(1e-6)
    assert Accountant.load(path).deltas == (1e-6,)
    assert len(Accountant.load(path)) == 1


@pytest.mark.parametrize("bad", [0.0, 1.0, -1e-5, 2, "1e-5", None, True, float("nan")])
def test_only_a_probability_can_be_noted(bad):
    ledger = ledger_of(1)
    with pytest.raises(AccountantError):
        ledger.note_delta(bad)
    assert ledger.deltas == ()


@pytest.mark.parametrize(
    "bad", [None, {}, "1e-5", [0.0], [1.0], [1], [True], ["1e-5"], [1e-5, 1e-7], [1e-5, 1e-5]]
)
def test_unknown_deltas_are_refused(bad):
    with pytest.raises(LedgerError):
        Accountant.from_json(rewritten(stated(), lambda body: body.update(deltas=bad)))
    with pytest.raises(LedgerError):
        Accountant.from_json(rewritten(stated(), lambda body: body.pop("deltas")))
