"""Rounds of a federation: what they release, what they charge, and what a crash leaves."""

import json
import math
import os
import shutil
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import accountant as ac
from accountant import errors, store
from accountant.adapters import _federated_state as memory
from accountant.adapters._federated_noise import clipped
from accountant.adapters.federated import CentralNoise, FederatedRounds, SecureSumNoise
from accountant.errors import DomainError
from accountant.learn import AdaptiveQuantile
from accountant.ledger import Budget
from accountant.noise import Grid, SecureGenerator
from accountant.report import statement
from support.refusals import refused

NAMES = [f"hospital-{i:03d}" for i in range(40)]
DELTA = 1e-5
ROOMY = Budget(50.0, DELTA)
CENTRAL = CentralNoise(1.0, 0.5, sampling_probability=0.25)
SECURE = SecureSumNoise(6.0, 1.0, least_survivors=30, levels=2**12)
SKELLAM = SecureSumNoise(6.0, 1.0, least_survivors=30, levels=2**9, distribution="skellam")
MOVING = AdaptiveQuantile(1.0, count_noise=4.0)


def made(place, noise=CENTRAL, budgets=None, length=3, rounds=12, seed=1):
    return FederatedRounds(
        place,
        noise,
        dict.fromkeys(NAMES, ROOMY) if budgets is None else budgets,
        model=np.zeros(length),
        rounds=rounds,
        generator=SecureGenerator(seed),
    )


def sent(one, asked, length=3):
    """Return what honest clients send: half the way to a target of their own."""
    targets = {name: np.full(length, 0.1 * (i % 7)) for i, name in enumerate(NAMES)}
    half = {name: 0.5 * (targets[name] - one.model) for name in asked.participants}
    if isinstance(one.noise, SecureSumNoise):
        norm = asked.clipping_norm
        return {n: one.noise.message(u, SecureGenerator(7), norm) for n, u in half.items()}
    return half


def charged(place):
    """Return how many releases the store holds for each client."""
    with store.open(f"sqlite:///{place / 'budgets.db'}") as budgets:
        return {block.address.split("/")[-1]: block.releases for block in budgets.blocks()}


def test_a_round_costs_what_its_mechanism_costs(tmp_path):
    one = made(tmp_path)
    assert one.epsilon(DELTA) == 0.0
    for number in range(1, 4):
        before = one.epsilon(DELTA, ahead=1)
        asked = one.begin()
        assert asked.number == number
        one.release(sent(one, asked))
        assert one.epsilon(DELTA) == before == ac.get_epsilon(0.25, 1.0, number, DELTA)
    assert set(charged(tmp_path).values()) == {3}
    assert one.rounds == 3


def test_every_client_has_its_own_coin(tmp_path):
    one = made(tmp_path, rounds=400)
    drawn = [set(one.begin().participants) for _ in range(1)]
    coins = SecureGenerator(5)
    sizes = [len(coins.subset(len(NAMES), 0.25)) for _ in range(2000)]
    assert drawn[0] < set(NAMES)
    assert np.mean(sizes) == pytest.approx(10.0, abs=0.3)


VECTORS = [
    np.array([3.0, 4.0]),
    np.full(1000, 1e-3),
    np.array([1e300, -1e300]),
    np.array([5e-324, 1e-310]),
    np.array([1e-18]),
    np.array([math.nan, 1.0]),
    np.array([math.inf, 0.0]),
    np.random.default_rng(1).normal(size=10_000),
    np.random.default_rng(2).standard_cauchy(size=999),
]


@pytest.mark.long(keep=30)
@pytest.mark.parametrize("norm", [1e-18, 0.3, 1.0, 1e18])
@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v.size}-{v[0]:g}")
def test_what_a_client_adds_is_never_longer_than_the_norm(vector, norm):
    kept, inside = clipped(vector, norm)
    assert sum(Fraction(x) ** 2 for x in kept.tolist()) <= Fraction(norm) ** 2
    step = Grid.at_most(norm / 2**20).step
    whole = [int(x) for x in np.trunc(kept / step)]
    assert sum(x * x for x in whole) * Fraction(step) ** 2 <= Fraction(norm) ** 2
    if np.all(np.isfinite(vector)) and np.max(np.abs(vector)) < 1e150:
        assert inside == (sum(Fraction(x) ** 2 for x in vector.tolist()) <= Fraction(norm) ** 2)
    secure = SecureSumNoise(1.0, norm, 10, levels=2**10)
    noise = SecureGenerator(3).discrete_gaussian(vector.size, secure.scale)
    alone = [int(x) for x in secure.message(vector, SecureGenerator(3)) - noise]
    assert sum(x * x for x in alone) <= 2**20
    # With a count the message has one more number; whatever norm the server told.
    rule = AdaptiveQuantile(norm, count_noise=3.0)
    counted = SecureSumNoise(1.0, rule, 10, levels=2**10)
    noise = SecureGenerator(3).discrete_gaussian(vector.size + 1, counted.scale)
    for told in (norm, 1e-18, 1e18):
        alone = [int(x) for x in counted.message(vector, SecureGenerator(3), told) - noise]
        farthest = Fraction(counted.mechanism(vector.size).mechanism.parts[0][0].sensitivity)
        assert sum(x * x for x in alone) <= farthest**2
        assert sum(x * x for x in alone[:-1]) <= 2**20


@pytest.mark.parametrize(
    "vector",
    [
        np.full(300, 100.0, dtype=np.float16),
        np.full(3, 1e-3, dtype=np.float16),
        np.linspace(-1.0, 1.0, 999, dtype=np.float32),
        np.full(7, 2**32),
        np.full(7, 2**31 - 1, dtype=np.int32),
    ],
    ids=lambda v: str(v.dtype),
)
def test_updates_of_other_types_are_clipped_in_doubles(vector):
    """Squares of integers wrapped around, and halves left the integers they are cast to."""
    noise = SecureSumNoise(1.0, 1.0, 2 * 10**6, levels=2**30)
    none = SecureGenerator(3).discrete_gaussian(vector.size, noise.scale)
    alone = [int(x) for x in noise.message(vector, SecureGenerator(3)) - none]
    assert 0 < sum(x * x for x in alone) <= 2**60
    kept, _ = clipped(vector, 1.0)
    assert kept.dtype == np.float64
    assert sum(Fraction(x) ** 2 for x in kept.tolist()) <= 1


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("noise", [CENTRAL, SECURE, SKELLAM], ids=["central", "secure", "Skellam"])
def test_one_client_moves_the_sum_by_the_norm_at_most(noise, tmp_path):
    rng = np.random.default_rng(0)
    for trial in range(5):
        seen = []
        everybody = dict(zip(NAMES, rng.normal(scale=2.0, size=(len(NAMES), 3)), strict=True))
        for blank in (False, True):
            one = made(tmp_path / f"{trial}{blank}", noise, seed=trial)
            asked = one.begin()
            updates = {name: everybody[name] for name in asked.participants}
            last = asked.participants[-1]
            if noise is CENTRAL:
                if blank:
                    del updates[last]
                divisor = 0.25 * len(NAMES)
            else:
                updates[last] = updates[last] * (0.0 if blank else 1.0)
                divisor = len(NAMES)
                updates = {
                    name: noise.message(update, SecureGenerator(i))
                    for i, (name, update) in enumerate(updates.items())
                }
            seen.append(one.release(updates))
            one.close()
        moved = np.linalg.norm(seen[0] - seen[1]) * divisor
        assert 0.0 < moved <= noise.clipping_norm * (1 + 1e-9)


def test_the_noise_has_the_deviation_that_is_charged():
    flat = CentralNoise(2.0, 0.5)
    noise, _ = flat.release([], 50_000, 1, flat.rule, SecureGenerator(1))
    assert np.std(noise) == pytest.approx(1.0, rel=0.02)
    adaptive = CentralNoise(2.0, AdaptiveQuantile(0.5, count_noise=2.0))
    noise, _ = adaptive.release([], 50_000, 1, adaptive.rule, SecureGenerator(1))
    assert np.std(noise) == pytest.approx((2.0**-2 - 4.0**-2) ** -0.5 * 0.5, rel=0.02)
    # Of the secure sum the least number of survivors has it, without those who collude.
    secure = SecureSumNoise(2.0, 0.5, least_survivors=20, colluding=4, levels=2**14)
    total = sum(secure.message(np.zeros(4000), SecureGenerator(i)) for i in range(16))
    assert np.std(total) * 0.5 / 2**14 == pytest.approx(1.0, rel=0.05)
    assert secure.mechanism(4000).epsilon(DELTA) == pytest.approx(
        ac.Gaussian(2.0).epsilon(DELTA), rel=1e-3
    )


def test_skellam_noise_has_the_deviation_that_is_charged():
    secure = SecureSumNoise(
        2.0, 0.5, least_survivors=20, colluding=4, levels=2**10, distribution="skellam"
    )
    total = sum(secure.message(np.zeros(4000), SecureGenerator(i)) for i in range(16))
    assert np.std(total) * 0.5 / 2**10 == pytest.approx(1.0, rel=0.05)
    cost = (100 * secure.mechanism(4000)).epsilon(DELTA)
    assert cost == pytest.approx((100 * ac.Gaussian(2.0)).epsilon(DELTA), rel=5e-3)
    # What the account counts is what was drawn: sixteen honest clients of this variance.
    unit = secure.mechanism(4000).mechanism
    drawn = math.sqrt(16) * secure.scale / secure.levels
    assert unit.noise_multiplier / unit.sensitivity <= drawn * (1 + 1e-12)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("distribution", ["discrete gaussian", "skellam"])
def test_the_norm_of_a_secure_sum_moves_by_a_count_that_is_paid_for(distribution, tmp_path):
    noise = SecureSumNoise(
        6.0, replace(MOVING, clipping_norm=10.0), 30, levels=2**8, distribution=distribution
    )
    assert noise.mechanism(3).epsilon(DELTA) == pytest.approx(
        ac.Gaussian(6.0).epsilon(DELTA), rel=2e-3
    )
    # The count has the deviation that was asked for.
    votes = [
        sum(int(noise.message(np.zeros(3), SecureGenerator(40 * t + i))[-1]) for i in range(30))
        for t in range(200)
    ]
    assert np.std(votes) / (2 * noise._vote) == pytest.approx(4.0, rel=0.2)
    one = made(tmp_path, noise)
    for turn in range(8):
        asked = one.begin()
        one.release({
            name: noise.message(np.full(3, 0.1), SecureGenerator(9**turn + i), asked.clipping_norm)
            for i, name in enumerate(NAMES)
        })  # fmt: skip
    asked = one.begin()
    assert asked.clipping_norm < 7.0
    one.close()
    again = made(tmp_path, noise)
    assert again.begin().clipping_norm == asked.clipping_norm
    # A message without the count is no message.
    assert np.array_equal(again.release({n: np.zeros(3) for n in NAMES}), one.model)


def test_clients_leave_when_their_own_budget_is_spent(tmp_path):
    budgets = {name: Budget([5.0, 8.0, 1e-3][i % 3], DELTA) for i, name in enumerate(NAMES)}
    one = made(tmp_path, budgets=budgets, rounds=30)
    places = []
    while one.affordable():
        asked = one.begin()
        places.append(asked.clients)
        assert set(asked.participants) <= set(one.paying())
        one.release(sent(one, asked))
    refused(ac.BudgetExceeded, "no client can pay for round", one.begin)
    assert places == sorted(places, reverse=True)
    assert places[0] == sum(b.epsilon > 1.0 for b in budgets.values())
    one.close()
    with store.open(f"sqlite:///{tmp_path / 'budgets.db'}") as spent:
        for name, budget in budgets.items():
            ledger = spent.ledger(f"federation/clients/{name}")
            assert ledger.epsilon(DELTA) <= budget.epsilon
            more = len(ledger) + 1
            assert more > 30 or ac.get_epsilon(0.25, 1.0, more, DELTA) > budget.epsilon


@pytest.mark.long(keep=5)
@pytest.mark.parametrize(
    "strange",
    ["text", None, [1.0], np.zeros(4), np.zeros((3, 1)), [math.nan] * 3, [1e400, 0, 0], [1j] * 3,
     [10**400, 0, 0], [None] * 3, {"a": 1}],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("noise", [CENTRAL, SECURE], ids=["central", "secure sum"])
def test_what_a_client_sends_cannot_stop_a_round(strange, noise, tmp_path):
    results = []
    for answer in ("strange", "nothing"):
        one = made(tmp_path / answer, noise)
        asked = one.begin()
        honest = sent(one, asked)
        first = asked.participants[0]
        del honest[first]
        if answer == "strange":
            honest |= {first: strange, "uninvited": np.ones(3)}
        results.append(one.release(honest))
        one.close()
    assert np.array_equal(*results)
    assert np.all(np.isfinite(results[0]))


def test_a_sum_of_too_few_is_not_opened_and_is_charged(tmp_path):
    one = made(tmp_path, SECURE)
    messages = sent(one, one.begin())
    few = dict(list(messages.items())[:29])
    assert np.array_equal(one.release(few), np.zeros(3))
    assert one.rounds == 0
    assert set(charged(tmp_path).values()) == {1}
    assert one.epsilon(DELTA) == SECURE.mechanism(3).epsilon(DELTA)
    one.release(sent(one, one.begin()))
    assert one.rounds == 1


def test_the_norm_moves_and_is_remembered(tmp_path):
    noise = CentralNoise(1.0, AdaptiveQuantile(10.0, count_noise=1.0), sampling_probability=0.5)
    one = made(tmp_path, noise)
    for _ in range(6):
        one.release(sent(one, one.begin()))
    asked = one.begin()
    assert asked.clipping_norm < 7.0
    one.close()
    again = made(tmp_path, noise)
    assert again.begin().clipping_norm == asked.clipping_norm


def died_in(place, where, noise):
    """Let a child make two rounds, and die in the third, at ``where``."""
    child = os.fork()
    if child:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        return
    try:
        one = made(place, noise)
        for _ in range(2):
            one.release(sent(one, one.begin()))
        if where == "before recording":
            os._exit(9)
        write = memory.write
        if where == "recorded":
            memory.write = SecureGenerator.subset = lambda *_: os._exit(9)
        asked = one.begin()
        if where == "asked":
            os._exit(9)
        if where == "half written":
            memory.files.replace = lambda *_: os._exit(9)
        if where == "written":
            memory.write = lambda *given: (write(*given), os._exit(9))
        one.release(sent(one, asked))
    finally:
        os._exit(1)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("noise", [CENTRAL, SECURE], ids=["central", "secure sum"])
@pytest.mark.parametrize(
    "where", ["before recording", "recorded", "asked", "half written", "written"]
)
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_crash_loses_nothing_and_charges_nothing_twice(where, noise, tmp_path):
    died_in(tmp_path, where, noise)
    one = made(tmp_path, noise)
    released = 3 if where == "written" else 2
    assert one.rounds == released
    before = one.model
    # Noise that was sent into a secure sum may have been seen, so it is paid for.
    seen = noise is SECURE and where in ("asked", "half written")
    for _ in range(4 - released):
        one.release(sent(one, one.begin()))
    assert one.rounds == 4
    assert not np.array_equal(one.model, before)
    assert set(charged(tmp_path).values()) == {4 + seen}
    assert one.epsilon(DELTA) == ((4 + seen) * one.mechanism).epsilon(DELTA)


def test_a_directory_is_for_one_server_and_is_kept_whole(tmp_path):
    one = made(tmp_path / "a")
    refused(errors.LedgerConflict, "another server", made, tmp_path / "a")
    one.release(sent(one, one.begin()))
    shutil.copy(tmp_path / "a/released.npz", tmp_path / "old.npz")
    for _ in range(2):
        one.release(sent(one, one.begin()))
    one.close()
    refused(errors.DomainError, "3 numbers of the model", made, tmp_path / "a", length=5)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    shutil.copy(tmp_path / "old.npz", tmp_path / "b/released.npz")
    refused(errors.LedgerError, "older than the charges", made, tmp_path / "b")
    (tmp_path / "b/released.npz").unlink()
    refused(errors.LedgerError, "is missing, and rounds were charged", made, tmp_path / "b")
    (tmp_path / "b/released.npz").write_bytes(b"PK\x03\x04 and so on")
    refused(errors.LedgerError, "is damaged", made, tmp_path / "b")
    assert made(tmp_path / "a").rounds == 3


def test_what_did_not_reach_the_disk_is_not_shown(tmp_path, monkeypatch):
    one = made(tmp_path)
    asked = one.begin()

    def full(*_):
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(memory, "write", full)
        refused(OSError, "no space", one.release, sent(one, asked))
    assert one.rounds == 0
    assert np.array_equal(one.model, np.zeros(3))
    one.release(sent(one, one.begin()))
    assert set(charged(tmp_path).values()) == {1}


def test_a_client_that_is_new_joins_with_a_later_round(tmp_path):
    early = dict.fromkeys(NAMES[:10], ROOMY)
    one = made(tmp_path, budgets=early)
    one.release(sent(one, one.begin()))
    one.close()
    one = made(tmp_path)  # and all the others
    clients = []
    for _ in range(3):
        asked = one.begin()
        clients.append(asked.clients)
        one.release(sent(one, asked))
    assert clients == [10, 40, 40]
    found = charged(tmp_path)
    assert found[NAMES[0]] == 4
    assert found[NAMES[-1]] == 2


def test_mistakes_are_told():
    refused(DomainError, "must be a noise multiplier > 0", CentralNoise, 0.0, 1.0)
    refused(DomainError, "sampling_probability", CentralNoise, 1.0, 1.0, 0.0)
    refused(DomainError, "clipping_norm", CentralNoise, 1.0, math.inf)
    refused(DomainError, "count_noise", CentralNoise, 9.0, AdaptiveQuantile(1.0, count_noise=1.0))
    refused(DomainError, "least_survivors", SecureSumNoise, 1.0, 1.0, 0)
    refused(DomainError, "must be finite; got inf", SecureSumNoise, math.inf, 1.0, 5)
    refused(DomainError, "below least_survivors = 5", SecureSumNoise, 1.0, 1.0, 5, colluding=5)
    refused(DomainError, "distribution", SecureSumNoise, 1.0, 1.0, 5, distribution="gaussian")
    coarse, skellam = SecureSumNoise(1.0, 1.0, 100, levels=1), {"distribution": "skellam"}
    refused(ac.UnsupportedError, "Use fewer levels", SecureSumNoise, 4.0, 1.0, 4, **skellam)
    # Too coarse for the sum to be smooth.
    refused(ac.UnsupportedError, "finer unit", coarse.mechanism, 1000)


def test_mistakes_of_a_run_are_told(tmp_path):
    planned = {"model": np.zeros(2), "rounds": 1}
    flat = planned | {"model": np.zeros((2, 2))}
    refused(DomainError, "model must be flat", FederatedRounds, tmp_path, CENTRAL, {}, **flat)
    refused(
        DomainError, "rounds", FederatedRounds, tmp_path, CENTRAL, {}, **planned | {"rounds": 0}
    )
    wrong = errors.ArgumentTypeError
    refused(wrong, "noise must be", FederatedRounds, tmp_path, 1.0, {}, **planned)
    one = made(tmp_path / "one")
    refused(errors.LedgerError, r"call begin\(\) before", one.release, {})
    with pytest.raises(ac.BudgetExceeded):
        made(tmp_path / "nobody", budgets={}).begin()


LOUD, RARE = CentralNoise(10.0, 0.5, 0.25), CentralNoise(10.0, 0.5, 0.01)


def rounds_of(one, count):
    for _ in range(count):
        asked = one.begin()
        one.release({} if isinstance(one.noise, CentralNoise) else sent(one, asked))
    return one.epsilon(DELTA)


@pytest.mark.parametrize("noise", [LOUD, RARE], ids=["louder", "louder and rarer"])
def test_rounds_keep_the_price_of_the_noise_they_were_made_with(noise, tmp_path):
    """Five rounds at 11.48 were told as .82, or .0053, when the noise was another later."""
    whole = CentralNoise(1.0, 0.5)
    one = made(tmp_path, whole, rounds=5)
    before = rounds_of(one, 5)
    assert before == pytest.approx(11.480, abs=1e-3)
    one.close()
    one = made(tmp_path, noise)
    assert one.epsilon(DELTA) == before
    told = one.epsilon(DELTA, ahead=2)
    both = ac.Composition(((ac.Gaussian(1.0), 5), (noise.mechanism(3), 2)))
    assert rounds_of(one, 2) == told == both.epsilon(DELTA) > before
    one.close()
    # What the store was charged is what is told.
    with store.open(f"sqlite:///{tmp_path / 'budgets.db'}") as spent:
        ledger = spent.ledger(f"federation/clients/{NAMES[0]}")
    assert ledger.epsilon(DELTA) == pytest.approx(told)
    one = made(tmp_path, whole, rounds=5)
    assert one.epsilon(DELTA) == told
    assert not one.paying()  # the rounds planned with this noise are made


def test_other_noise_is_paid_beside_the_plan_and_within_the_budget(tmp_path):
    budget = Budget(6.0, DELTA)
    full, roomy = dict.fromkeys(NAMES, budget), {"roomy": ROOMY}
    one = made(tmp_path, budgets=full | roomy, rounds=10**6)
    rounds_of(one, 2)
    one.close()
    one = made(tmp_path, LOUD, budgets=full | roomy | {"new": budget}, rounds=3)
    # Plans of all that a budget allows are charged in full, so that only who is new can pay.
    assert one.paying() == ("new",)
    rounds_of(one, 3)
    assert one.affordable() == 0
    one.close()
    one = made(tmp_path, budgets=full | roomy, rounds=10**6)
    assert len(one.paying()) == len(NAMES) + 1
    rounds_of(one, 1)
    assert charged(tmp_path) == dict.fromkeys([*NAMES, "roomy"], 3) | {"new": 3}
    one.close()
    with store.open(f"sqlite:///{tmp_path / 'budgets.db'}") as spent:
        assert spent.ledger("federation/clients/new").counts == ((LOUD.mechanism(3), 3),)
        assert spent.ledger("federation/clients/roomy").counts == ((CENTRAL.mechanism(3), 3),)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_an_unfinished_round_is_charged_where_the_next_server_has_other_noise(tmp_path):
    died_in(tmp_path, "asked", CENTRAL)
    one = made(tmp_path, LOUD)
    assert one.epsilon(DELTA) == (3 * CENTRAL.mechanism(3)).epsilon(DELTA)
    rounds_of(one, 2)
    one.close()
    one = made(tmp_path)
    told = rounds_of(one, 1)
    both = ac.Composition(((CENTRAL.mechanism(3), 4), (LOUD.mechanism(3), 2)))
    assert told == both.epsilon(DELTA)
    assert set(charged(tmp_path).values()) == {6}


def test_a_server_that_ended_while_it_planned_stops_no_other(tmp_path, monkeypatch):
    budgets = dict.fromkeys(NAMES, Budget(6.0, DELTA))
    with monkeypatch.context() as patched:
        patched.setattr(memory, "write", lambda *_: 1 / 0)
        refused(ZeroDivisionError, "", made, tmp_path, budgets=budgets, rounds=10**6)
    one = made(tmp_path, CentralNoise(1.0, 0.5), budgets=budgets, rounds=3)
    assert not one.paying()  # all that they have is planned with the first noise
    one.close()
    one = made(tmp_path, budgets=budgets, rounds=5)
    told = rounds_of(one, 5)
    assert told == (5 * CENTRAL.mechanism(3)).epsilon(DELTA)
    assert charged(tmp_path) == dict.fromkeys(NAMES, 5)


@pytest.mark.parametrize("after_restart", [False, True])
def test_who_joins_when_all_others_are_spent_can_pay(after_restart, tmp_path):
    """The next charge had nobody to pay for it, and so it was the next one for ever."""
    one = made(tmp_path, budgets=dict.fromkeys(NAMES[:3], ROOMY), rounds=2)
    rounds_of(one, 2)
    refused(ac.BudgetExceeded, "all 3 have made the rounds, of the 2 planned", one.begin)
    one.close()
    if after_restart:
        made(tmp_path, budgets={}, rounds=2).close()
    one = made(tmp_path, budgets={**dict.fromkeys(NAMES[:3], ROOMY), NAMES[9]: ROOMY}, rounds=2)
    assert one.affordable() == 2
    assert one.begin().clients == 1
    one.release({})
    rounds_of(one, 1)
    assert charged(tmp_path) == dict.fromkeys((*NAMES[:3], NAMES[9]), 2)
    assert one.epsilon(DELTA) == (2 * CENTRAL.mechanism(3)).epsilon(DELTA)


def test_what_a_directory_was_begun_with_is_kept(tmp_path):
    one = made(tmp_path)
    rounds_of(one, 1)
    one.close()
    refused(errors.DomainError, "neighbouring relation of earlier rounds", made, tmp_path, SECURE)
    with pytest.raises(errors.DomainError, match=r"is there already, with Budget\(50"):
        made(tmp_path, budgets=dict.fromkeys(NAMES, Budget(0.5, DELTA)))
    assert made(tmp_path).rounds == 1


@pytest.mark.long
def test_a_seed_is_told_by_the_ledger_and_the_statement(tmp_path):
    one = made(tmp_path)
    assert one.reasons == ()
    rounds_of(one, 1)
    assert one.reasons == (SecureGenerator(1).why_not_private,)
    one.begin()
    one.close()
    one = FederatedRounds(
        tmp_path, CENTRAL, dict.fromkeys(NAMES, ROOMY), model=np.zeros(3), rounds=12
    )
    rounds_of(one, 1)
    assert len(one.reasons) == 1  # what was released stays so
    one.close()
    with store.open(f"sqlite:///{tmp_path / 'budgets.db'}") as spent:
        ledger = spent.ledger(f"federation/clients/{NAMES[0]}")
    assert [(each.label, each.count) for each in ledger.history] == [(one.reasons[0], 2), (None, 1)]
    told = statement(ledger, certificate=False)
    assert told.not_private == one.reasons
    for page in (told.html(), told.markdown().replace("\\", "")):
        assert "Marked as not private" in page
        assert one.reasons[0] in page


def test_a_server_of_secure_sums_draws_nothing(tmp_path):
    one = made(tmp_path, SECURE)
    rounds_of(one, 1)
    assert one.reasons == ()


def test_a_file_that_does_not_say_what_its_rounds_cost_is_refused(tmp_path):
    made(tmp_path).close()
    told = {"format": "accountant-federation-0", "rounds": 0, "charges": 0, "clients": {}}
    with (tmp_path / "released.npz").open("wb") as stream:
        np.savez(stream, model=np.zeros(3), told=np.array(json.dumps(told)))
    refused(errors.LedgerError, "the only one that this release reads", made, tmp_path)


def test_a_state_that_unpacks_to_more_than_itself_is_refused_unread(tmp_path, monkeypatch):
    path = tmp_path / "state.npz"
    np.savez_compressed(path, model=np.zeros(10**6), told=np.array("{}"))
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("it was unpacked"))
    refused(errors.LedgerError, "bytes unpacked", memory.read, path)
