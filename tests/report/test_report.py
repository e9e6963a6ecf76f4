"""The privacy statement: its numbers are the library's, its words are escaped, its files whole."""

import itertools
import json
import math
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import accountant as ac
from accountant.analyses.over_steps.history import counts_at, evenly
from accountant.analyses.solvers import Solver
from accountant.bounds import Bounds
from accountant.derived import BestOfPoissonRuns, BestOfRuns
from accountant.errors import ArgumentTypeError, DomainError
from accountant.ledger import schema
from accountant.report import facts, spending, statement
from accountant.sampling import (
    CyclicBatches,
    FixedSizeSampled,
    Sampler,
    ShuffledBatches,
)

DOCS = Path(__file__).parents[2] / "docs"
ATTACK = "</title></script><script>alert(1)</script>|`*_<img src=x onerror=alert(1)>"


def dp_sgd(count=1000, **settings):
    ledger = ac.Accountant(**settings)
    ledger.step(noise_multiplier=1.1, sampling_probability=0.01, count=count, label="training")
    return ledger


def mixed():
    ledger = dp_sgd(200)
    ledger.compose(ac.Laplace(5.0), 2, label="histogram")
    return ledger


def two_runs():
    ledger = dp_sgd(200)
    ledger.compose(ac.Gaussian(5.0), 2, label="histogram")
    return ledger


def two_noises():
    ledger = ac.Accountant()
    for sigma in (1.3, 1.1):
        ledger.step(noise_multiplier=sigma, sampling_probability=0.05, count=400)
    return ledger


def evenly_spaced(history, points):
    return counts_at(history, evenly(sum(item.count for item in history), points))


def schedule(steps=1500):
    ledger = ac.Accountant()
    for k in range(steps):
        ledger.step(noise_multiplier=1.0 + k / steps, sampling_probability=0.01)
    return ledger


class Page(HTMLParser):
    """Checks that tags are balanced, and collects them."""

    VOID = ("meta", "link", "br", "input", "img")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


LEDGERS = {
    "dp-sgd": dp_sgd,
    "mixed": mixed,
    "gaussian": lambda: _of(10 * ac.Gaussian(5.0)),
    "pure": lambda: _of(3 * ac.PureDP(0.1)),
    "approximate": lambda: _of(2 * ac.ApproximateDP(0.1, delta=1e-6)),
    "renyi": lambda: _of(2 * ac.ZCDP(0.01)),
    "fixed size": lambda: _of(5 * FixedSizeSampled(2.0, batch_size=10, dataset_size=100)),
    "budget": lambda: dp_sgd(400, budget=ac.Budget(3.0, 1e-5)),
    "parallel": lambda: _of(1 * ac.parallel(ac.Gaussian(3.0), ac.Laplace(4.0))),
    "nothing": ac.Accountant,
}


def _of(composition):
    ledger = ac.Accountant()
    for mechanism, count in composition.parts:
        ledger.compose(mechanism, count)
    return ledger


@pytest.fixture(scope="module", params=LEDGERS)
def case(request):
    ledger = LEDGERS[request.param]()
    return ledger, statement(ledger)


@pytest.mark.long(keep=1)
def test_the_numbers_are_the_librarys(case):
    ledger, made = case
    for row in (made.headline, *made.table[::4]):
        bounds = ledger.epsilon_bounds(row.delta)
        # A grid answers within its tolerance, with digits that depend on what was asked before.
        assert row.epsilon_lower <= bounds.upper
        assert bounds.lower <= row.epsilon
        assert row.epsilon == pytest.approx(bounds.upper, rel=3e-6)
        assert row.epsilon_lower == pytest.approx(bounds.lower, rel=3e-6)
    assert made.total == len(ledger)
    assert [row.delta for row in made.table] == sorted((r.delta for r in made.table), reverse=True)


@pytest.mark.long(keep=1)
def test_attacks_are_bounded_and_nearly_tight(case):
    ledger, made = case
    whole = ac.Composition(ledger.counts) if len(ledger) else None
    for attack in made.attacks:
        blind = attack.false_positive_rate
        exact = 1 - whole.tradeoff(blind) if whole else blind
        # The library's own is an upper bound too, by the best ε of all; chords cost a little more.
        assert exact * (1 - 1e-6) <= attack.true_positive_rate <= 1.1 * exact + 0.02
        assert attack.true_positive_rate >= attack.false_positive_rate
    for guess in made.guesses:
        assert max(guess.prior, 1 - guess.prior) <= guess.accuracy <= 1
        assert guess.prior <= guess.posterior <= 1
    rates = [point.true_positive_rate for point in made.curve]
    assert rates == sorted(rates)


@pytest.mark.long(keep=1)
def test_steps_grow_to_the_headline(case):
    ledger, made = case
    if not made.steps:
        assert len(ledger) == 0
        return
    assert [s.releases for s in made.steps] == sorted({s.releases for s in made.steps})
    values = [s.epsilon for s in made.steps]
    assert values == sorted(values)
    assert made.steps[-1].releases == len(ledger)
    assert made.steps[-1].epsilon == made.headline.epsilon


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("make", [lambda: dp_sgd(3000), two_noises])
def test_steps_are_bounds(make):
    ledger = make()
    found = dict(evenly_spaced(ledger.history, 24))
    steps = statement(ledger).steps
    assert [step.releases for step in steps] == list(found)
    for step in steps[::6]:
        bounds = ac.Composition(found[step.releases]).epsilon_bounds(1e-5)
        assert bounds.lower <= step.epsilon <= 4.0 * bounds.upper
        assert step.epsilon_lower <= bounds.upper


def one_after_another(first, second):
    ledger = ac.Accountant()
    ledger.compose(first, 60)
    ledger.compose(second, 12)
    return ledger


@pytest.mark.long
@pytest.mark.parametrize(
    "second", [ac.Laplace(5.0), ac.ApproximateDP(0.2, delta=1e-7), ac.Gaussian(8.0)], ids=repr
)
def test_steps_are_exact_all_the_way_for_mixes(second):
    ledger = one_after_another(ac.PoissonSampled(ac.Gaussian(1.1), 0.05), second)
    steps = statement(ledger).steps
    assert len(steps) >= 10
    for step in steps:
        assert step.epsilon_lower <= step.epsilon <= step.epsilon_lower * (1 + 1e-3) + 1e-3
    # Another release costs more: nothing is flat.
    values = [step.epsilon for step in steps]
    assert all(a < b for a, b in itertools.pairwise(values))


def test_steps_of_many_kinds_are_enclosed():
    ledger = ac.Accountant()
    for k in range(30):
        ledger.step(noise_multiplier=2.0 + 0.1 * k, sampling_probability=0.3, count=20)
        if k % 10 == 0:
            ledger.compose(ac.ApproximateDP(0.02, delta=1e-7))
    steps = spending.over_steps(ledger.history, ledger.counts, Bounds(1e3, 1e3), 1e-5)
    found = evenly_spaced(ledger.history, len(steps))
    for (length, low, high), (same, counts) in zip(steps[:-1], found, strict=False):
        gaussian = [(m, n) for m, n in counts if not isinstance(m, ac.ApproximateDP)]
        alone = ac.Composition(tuple(gaussian)).epsilon_bounds(1e-5)
        assert length == same
        assert alone.lower <= high <= 1.02 * alone.upper + 0.06
        assert 0.99 * alone.lower <= low <= high


@pytest.mark.long(keep=2)
def test_looser_analyses_are_looser(case):
    _, made = case
    for one in made.comparisons:
        if one.epsilon is not None:
            assert one.epsilon >= made.headline.epsilon_lower
        else:
            assert one.note.startswith("does not apply")


def test_every_rendering_is_whole(case):
    _, made = case
    page = Page(made.html())
    assert [tag for tag, _ in page.tags].count("h1") == 1
    assert len({a["id"] for _, a in page.tags if "id" in a}) == sum("id" in a for _, a in page.tags)
    ids = {a["id"] for _, a in page.tags if "id" in a}
    for tag, attributes in page.tags:
        # Nothing is fetched; every reference within the page has its target.
        for name in ("src", "href", "action"):
            if name in attributes:
                assert attributes[name].startswith("data:") or attributes[name][1:] in ids
        for name in ("aria-labelledby", "aria-describedby", "for"):
            assert set((attributes.get(name) or "").split()) <= ids
        if tag == "svg":
            assert attributes["role"] == "img"
    values = json.loads(made.json())
    assert (values["format"], values["version"]) == ("accountant-statement", 1)
    assert set(values["statement"]) == set(made.values())
    text = made.markdown()
    for row in made.table:
        from accountant._basics.display import text_up

        if math.isfinite(row.epsilon):
            assert text_up(row.epsilon, 5) in text
    assert "NaN" not in made.html() + text + made.json()


def test_numbers_on_the_page_are_never_below(case):
    _, made = case
    cells = re.findall(r'data-delta="(.*?)" data-upper="(.*?)" data-lower="(.*?)"', made.html())
    assert len(cells) == len(made.table)
    for row, (_, upper, lower) in zip(made.table, cells, strict=True):
        high = math.inf if upper == "∞" else float(upper)
        low = math.inf if lower == "∞" else float(lower)
        assert low <= row.epsilon_lower <= row.epsilon <= high


def test_words_are_escaped_everywhere():
    ledger = ac.Accountant()
    ledger.compose(ac.Gaussian(3.0), label=ATTACK)
    made = statement(ledger, title=ATTACK, unit=ATTACK)
    text = made.html()
    assert text.count("<script") == 1
    assert "<img" not in text
    page = Page(text)
    assert "".join(page.words).count(ATTACK) >= 3
    markdown = made.markdown()
    assert "<" not in markdown.replace("<=", "")
    # A bar would end a cell: every row of a table has as many as its head.
    for line in markdown.splitlines():
        if "alert" in line and line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) == 6


def test_words_that_cannot_be_written_or_hide_others():
    ledger = ac.Accountant()
    ledger.compose(ac.Gaussian(3.0), label="a\ud800b\x1b[31mred\x00\u202eevil\u2028")
    again = ac.Accountant.from_json(ledger.to_json())
    made = statement(again, title="t\udcff\r\nu", unit="\x07")
    assert made.title == "t\ufffd u"
    assert made.releases[0].labels == ("a\ufffdb\ufffd[31mred\ufffd\ufffdevil",)
    for text in (made.html(), made.markdown(), made.json()):
        text.encode()
        assert not re.search("[\x00\x1b\x07\u202e]", text)


def test_the_policy_of_the_page_names_its_own_style_and_script():
    import base64
    import hashlib

    text = statement(dp_sgd()).html()
    for kind in ("style", "script"):
        inside = re.search(rf"<{kind}>(.*?)</{kind}>", text, re.S)[1]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in text
    assert "default-src 'none'" in text
    assert " style=" not in text


def _written():
    found = set()
    for path in DOCS.glob("theorems*.md"):
        found |= set(re.findall(r"^## ([A-Z]?\d+)\. ", path.read_text(), re.M))
    return found


def _shipped():
    found = map(schema._find, schema.names())
    return [kind for kind in found if kind.__module__.startswith("accountant.")]


def test_every_theorem_named_exists():
    known = _written()
    for kind in _shipped():
        # Of the class itself, and what its documentation cites: neither may drift.
        named = vars(kind)["theorems"]
        assert named, kind
        assert set(named) == set(re.findall(r"\b[A-Z]\d{1,2}\b", kind.__doc__)) <= known, kind
    for analysis in {kind.name for kind in _kinds(Solver) if "name" in vars(kind)}:
        assert set(facts.of_analysis(analysis)) <= known
        assert facts.of_analysis(analysis) or analysis == "nothing"
    for sampler in _kinds(Sampler):
        if theorem := vars(sampler).get("theorem"):
            assert set(theorem.split(", ")) <= known, sampler
    assert set(facts.GENERAL) <= known
    for made in (statement(two_runs()), statement(_of(2 * ac.ZCDP(0.01)))):
        assert set(made.theorems) <= known


def _kinds(base):
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)


@dataclass(frozen=True, repr=False)
class Own(ac.PureDP):
    """noise for an L2 sensitivity of one, see appendix A1"""


def test_a_mechanism_of_ones_own_cites_what_it_states_and_no_more():
    made = statement(_of(2 * Own(0.1)), certificate=False)
    assert made.releases[0].theorems == ()
    assert not {"A1", "L2"} & set(made.theorems)
    assert made.releases[0].about == "Own, defined by the caller."
    assert any("Own takes a pure ε on trust" in each for each in made.assumptions)


_STATED = """
import accountant as ac
from accountant.report import statement
ledger = ac.Accountant()
ledger.step(noise_multiplier=1.1, sampling_probability=0.01, count=1000)
ledger.compose(ac.ZCDP(0.01))
made = statement(ledger, certificate=False)
print([(row.about, row.sampler, row.theorems) for row in made.releases], made.theorems)
"""


@pytest.mark.long
def test_a_statement_is_the_same_without_docstrings():
    told = [
        subprocess.run(
            [sys.executable, *flags, "-c", _STATED], check=True, capture_output=True, text=True
        ).stdout
        for flags in ((), ("-OO",))
    ]
    assert told[0] == told[1]
    assert "A mechanism run on a Poisson sample of the records." in told[1]
    assert "M16" in told[1]


@pytest.mark.parametrize("kind", [ShuffledBatches, CyclicBatches])
def test_epochs_do_not_say_that_each_step_uses_all_records(kind):
    run = kind(dataset_size=1000, batch_size=10, epochs=3)
    made = statement(_of(1 * run.mechanism(2.0)), certificate=False)
    assert made.releases[0].sampler == facts.NO_SAMPLING
    assert "all records" not in made.releases[0].sampler
    assert "all records" not in made.markdown().split("## What was released")[1].split("##")[0]


def test_the_account_of_a_user_names_the_theorems_of_random_shifts():
    group = ac.PoissonSampled(ac.Gaussian(1.0), 0.01).group(4)
    assert {"D1", "D4", "D8"} <= set(statement(_of(300 * group)).theorems)


def test_no_two_theorems_share_a_number():
    numbers = [
        number
        for path in DOCS.glob("theorems*.md")
        for number in re.findall(r"^## ([A-Z]?\d+)\. ", path.read_text(), re.M)
    ]
    assert len(set(numbers)) == len(numbers)


def test_samplers_are_named_and_their_check_is_asked_for():
    made = statement(dp_sgd())
    assert "Poisson" in made.releases[0].sampler
    assert any("independent coin" in each for each in made.assumptions)
    plain = statement(_of(2 * ac.Gaussian(3.0)))
    assert plain.releases[0].sampler == facts.NO_SAMPLING
    assert not any("independent coin" in each for each in plain.assumptions)
    trusted = statement(_of(1 * ac.ZCDP(0.1)))
    assert any("on trust" in each for each in trusted.assumptions)


def test_only_what_data_reach_is_called_exact():
    """The bracket of the theorem's pair is [3.99, 3.99]; the best adversary found reaches 2.254."""
    search = BestOfPoissonRuns(ac.PoissonSampled(ac.Gaussian(1.0), 0.1), mean=3.0)
    made = statement(_of(1 * search), certificate=False)
    assert not made.attained
    for page in (made.html(), made.markdown()):
        assert "Exact ε" not in page
        assert "A certified upper bound on ε" in page
    step = replace(made.steps[-1], epsilon=1.0, epsilon_lower=0.99999)
    assert "Exact ε" in replace(made, attained=True, steps=(step,)).markdown()
    wide = replace(step, epsilon_lower=0.5)
    assert "Exact ε" not in replace(made, attained=True, steps=(wide,)).markdown()


def test_what_is_claimed_of_a_release_is_not_called_exact():
    """Some mechanism with the guarantee reaches it; the one that was run may not."""
    for claimed in (ac.PureDP(0.3), ac.GDP(0.5), ac.PoissonSampled(ac.PureDP(0.3), 0.1)):
        made = statement(_of(4 * claimed + ac.Gaussian(3.0)), certificate=False)
        assert not made.attained, claimed
        assert "Exact ε" not in made.markdown()
    assert statement(_of(4 * ac.Gaussian(3.0)), certificate=False).attained


@pytest.mark.long
def test_what_is_inside_counts_too():
    ledger = ac.Accountant()
    for inside in (ac.ZCDP(0.01), ac.Gaussian(2.0), ac.Laplace(2.0)):
        ledger.compose(ac.PoissonSampled(inside, 0.1))
    made = statement(ledger)
    assert any("ZCDP takes a ρ on trust" in each for each in made.assumptions)
    assert {"M3", "M5", "M12"} <= set(made.theorems)
    best = statement(_of(1 * BestOfRuns(ac.PoissonSampled(ac.Gaussian(2.0), 0.1), 0.5)))
    assert "Poisson" in best.releases[0].sampler
    assert any("independent coin" in each for each in best.assumptions)


def test_infinite_epsilon_is_said():
    made = statement(_of(1 * ac.ApproximateDP(1.0, delta=0.1)), 1e-5)
    assert made.headline.epsilon == math.inf
    assert "No finite ε is known" in made.html()
    assert "No finite ε is known" in made.markdown()
    assert json.loads(made.json())["statement"]["headline"]["epsilon"] == "inf"


@pytest.mark.long
def test_rounded_schedules_bracket_the_exact_answer():
    ledger = schedule()
    made = statement(ledger)
    assert made.rounded
    exact = ledger.epsilon_bounds(1e-5)
    assert made.headline.epsilon_lower <= exact.upper
    assert exact.lower <= made.headline.epsilon <= 1.01 * exact.upper
    assert "Theorem R2" in made.html()
    assert made.omitted_releases == 1500 - len(made.listed_releases)


def test_arguments_are_checked():
    for delta in (1.0, -1.0, math.nan):
        with pytest.raises(DomainError):
            statement(dp_sgd(), delta)
    with pytest.raises(ArgumentTypeError):
        statement(dp_sgd(), [1e-5, 1e-6])
    with pytest.raises(ArgumentTypeError):
        statement(dp_sgd(), title=3)


def test_a_page_says_how_many_of_very_many_labels_it_leaves_out():
    ledger = ac.Accountant()
    for k in range(1234):
        ledger.compose(ac.Gaussian(99.0), label=f"query {k}x")
    made = statement(ledger, certificate=False)
    assert len(json.loads(made.json())["statement"]["releases"][0]["labels"]) == 1234
    for page in (made.html(), made.markdown()):
        assert "query 99x; and 1,134 more" in page
        assert "query 100x" not in page


def test_a_histogram_says_whose_counts_it_has_and_what_becomes_of_other_keys():
    zips = ac.SparseHistogram(
        ac.DiscreteGaussian(17.5, sensitivity=2), threshold=112.0, max_partitions=5, minimum=3
    )
    ledger = ac.Accountant()
    ledger.compose(zips + ac.SparseHistogram(ac.DiscreteLaplace(2.0), threshold=40.0, max_rows=4))
    made = statement(ledger, 1e-8)
    told = " ".join(made.assumptions)
    for words in (
        "at most 5 keys and moves the count of each by at most 2",
        "noisy count is at least 112 and at least 3 units have it",
        "left out without a trace",
        "at most 4 rows, under any keys",
    ):
        assert words in told
        assert words in made.html()
    assert "each unit's own rows alone (N13)" in told
    assert "all fixed before the first of them was made (N10)" in told
    assert {"N1", "N10", "M13"} <= set(made.theorems)
    assert "It may depend on earlier outputs" in zips.adaptively().in_words()
