"""Trees of events run on small data sets: the laws of their outputs, written out.

An interpreter that shares nothing with the package evaluates a tree on a list of records, each a
number in {-1, 0, 1} or a bucket, and returns the exact law of what is seen. Our account must cover
every pair of neighbours under the relation it states.
"""

import itertools
import math
import random
from fractions import Fraction

import pytest

dp = pytest.importorskip("dp_accounting")
events = pytest.importorskip("dp_accounting.dp_event")
from accountant.adapters import dp_events as adapter  # noqa: E402
from support.dp_event_names import Flip  # noqa: E402

AddRemove = dp.NeighboringRelation.ADD_OR_REMOVE_ONE
Replace = dp.NeighboringRelation.REPLACE_ONE
Special = dp.NeighboringRelation.REPLACE_SPECIAL
RECORDS = 3
EPSILONS = (0.0, 0.05, 0.2, 0.5, 1.0, 1.7, 3.0)


def merged(pairs):
    law = {}
    for key, p in pairs:
        law[key] = law.get(key, 0.0) + p
    return law


def geometric(rate, total, reach=4):
    a = math.exp(-rate)
    law = {x: (1 - a) / (1 + a) * a ** abs(x - total) for x in range(-reach, reach + 1)}
    law[reach] = a ** (reach - total) / (1 + a)
    law[-reach] = a ** (reach + total) / (1 + a)
    return law


def product(laws):
    return merged(
        (tuple(k for k, _ in row), math.prod(p for _, p in row))
        for row in itertools.product(*(law.items() for law in laws))
    )


def samples(event, data):
    """Yield (probability, sample) of a sampling event."""
    places = range(len(data))
    if isinstance(event, events.PoissonSampledDpEvent):
        q = event.sampling_probability
        for coins in itertools.product((0, 1), repeat=len(data)):
            chance = math.prod(q if coin else 1 - q for coin in coins)
            yield chance, [data[i] for i in places if coins[i]]
    else:
        chosen = list(itertools.combinations(places, event.sample_size))
        for batch in chosen:
            yield 1 / len(chosen), [data[i] for i in batch]


def best(law, event):
    """Return the law of the largest output of a random number of runs."""
    mean, shape = event.mean, event.shape

    def generating(x):
        if shape == math.inf:
            return math.exp(mean * (x - 1))
        gamma = 1 / mean  # geometric
        return gamma * x / (1 - (1 - gamma) * x)

    below, found = 0.0, {}
    for key in sorted(law, key=repr):
        here = min(below + law[key], 1.0)
        found[key] = generating(here) - generating(below)
        below = here
    # No run at all, in this very search.
    found[repr(event)] = generating(0.0)
    return found


def law(event, data):
    """Return the law of what an event releases about the data."""
    if isinstance(event, events.DiscreteLaplaceDpEvent):
        return geometric(event.noise_parameter, sum(data))
    if isinstance(event, events.RandomizedResponseDpEvent):
        # Of the first record; a blank gives a uniform answer.
        p, k = event.noise_parameter, event.num_buckets
        bucket = data[0] + 1
        blank = data[0] == 0
        return {x: 1 / k if blank else p / k + (1 - p) * (x == bucket) for x in range(k)}
    if isinstance(event, events.ComposedDpEvent):
        return product([law(part, data) for part in event.events])
    if isinstance(event, events.SelfComposedDpEvent):
        return product([law(event.event, data)] * event.count)
    if isinstance(event, events.RepeatAndSelectDpEvent):
        return best(law(event.event, data), event)
    return merged(
        (key, chance * p)
        for chance, sample in samples(event, data)
        for key, p in law(event.event, sample).items()
    )


def neighbours(relation, answers, records):
    """Yield pairs of neighbouring data sets: values, with 0 the blank where there is one."""
    values = (-1, 1) if answers else (-1, 0, 1)
    for others in itertools.combinations_with_replacement((-1, 1), records - 1):
        for value in values:
            if relation is AddRemove:
                yield [value, *others], [*others]
            elif relation is Special:
                yield [value, *others], [0, *others]
            else:
                for other in values:
                    yield [value, *others], [other, *others]


def hockey(p, q, epsilon):
    scale = math.exp(epsilon)
    return math.fsum(max(p.get(k, 0.0) - scale * q.get(k, 0.0), 0.0) for k in {*p, *q})


def check(event, relation, answers=False, records=RECORDS):
    ours = adapter.ExactAccountant(relation)
    assert ours.supports(event)
    ours.compose(event)
    bounds = {epsilon: ours.get_delta(epsilon) for epsilon in EPSILONS}
    largest = 0.0
    for one, other in neighbours(relation, answers, records):
        p, q = law(event, one), law(event, other)
        assert math.fsum(p.values()) == pytest.approx(1.0)
        for epsilon in EPSILONS:
            truth = max(hockey(p, q, epsilon), hockey(q, p, epsilon))
            assert truth <= bounds[epsilon] * (1 + 1e-9) + 1e-11, (epsilon, one, other)
            largest = max(largest, truth)
    assert largest > 0.0
    return bounds, largest


def noise(rng):
    return events.DiscreteLaplaceDpEvent(rng.choice([0.2, 0.5, 1.0]), 1)


def tree(rng, relation, depth, room=2):
    """Return a random tree that releases at most ``room`` noisy sums."""
    kind = rng.choice(["leaf", "compose", "repeat", "poisson", "fixed", "best"])
    if depth == 0 or kind == "leaf":
        return noise(rng)
    if kind == "compose" and room >= 2:
        parts = [tree(rng, relation, depth - 1, 1) for _ in range(2)]
        return events.ComposedDpEvent(parts)
    if kind == "repeat" and room >= 2:
        return events.SelfComposedDpEvent(tree(rng, relation, depth - 1, 1), 2)
    inner = tree(rng, relation, depth - 1, room)
    if kind == "best":
        mean, shape = rng.choice([(3.0, 1.0), (2.0, math.inf), (1.5, 1.0)])
        return events.RepeatAndSelectDpEvent(inner, mean, shape)
    if kind == "fixed" and relation is not AddRemove and not has_fixed(inner):
        return events.SampledWithoutReplacementDpEvent(RECORDS, 2, inner)
    if not has_fixed(inner):
        return events.PoissonSampledDpEvent(rng.choice([0.1, 0.5, 0.9]), inner)
    return inner


def has_fixed(event):
    """Tell whether a tree states the size of the data."""
    if isinstance(event, events.SampledWithoutReplacementDpEvent):
        return True
    inside = [*getattr(event, "events", ()), *filter(None, [getattr(event, "event", None)])]
    return any(map(has_fixed, inside))


@pytest.mark.parametrize("relation", [AddRemove, Replace, Special], ids=lambda one: one.name)
@pytest.mark.parametrize("seed", range(2))
def test_random_trees_cost_no_less_than_they_do(seed, relation):
    rng = random.Random(f"{seed} {relation.name}")
    check(tree(rng, relation, 3), relation)


@pytest.mark.slow
@pytest.mark.parametrize("relation", [AddRemove, Replace, Special], ids=lambda one: one.name)
@pytest.mark.parametrize("seed", range(2, 60))
def test_many_more_random_trees(seed, relation):
    rng = random.Random(f"{seed} {relation.name}")
    check(tree(rng, relation, 4), relation)


@pytest.mark.parametrize("relation", [AddRemove, Replace, Special], ids=lambda one: one.name)
def test_plain_noise_is_attained(relation):
    event = events.DiscreteLaplaceDpEvent(0.5, 1)
    bounds, largest = check(event, relation)
    assert bounds[0.0] == pytest.approx(largest, rel=1e-9)


@pytest.mark.parametrize("relation", [Replace, Special], ids=lambda one: one.name)
@pytest.mark.parametrize(("p", "k"), [(0.5, 3), (0.1, 4), (0.9, 3)])
def test_randomized_response_is_attained(p, k, relation):
    event = events.RandomizedResponseDpEvent(p, k)
    bounds, largest = check(event, relation, answers=True)
    assert bounds[0.0] == pytest.approx(largest, rel=1e-9)
    check(events.SelfComposedDpEvent(event, 2), relation, answers=True)


def test_one_sample_for_several_releases_is_attained():
    inner = events.ComposedDpEvent([events.DiscreteLaplaceDpEvent(0.5, 1)] * 2)
    event = events.PoissonSampledDpEvent(0.3, inner)
    bounds, largest = check(event, AddRemove, records=1)
    assert largest <= bounds[0.0] <= largest * 1.02  # chords


def flips(scores, base):
    """Return the exact law of permute-and-flip with coins base**(largest score - score)."""
    coins = [base ** (max(scores) - score) for score in scores]
    law = [Fraction(0)] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = Fraction(1, len(orders))
        for one in order:
            law[one] += left * coins[one]
            left *= 1 - coins[one]
    return law


@pytest.mark.parametrize("relation", [AddRemove, Replace, Special], ids=lambda one: one.name)
def test_permute_and_flip_never_costs_more_than_laplace_noise(relation):
    rng = random.Random(relation.name)
    # Two candidates that change places attain it at one epsilon each.
    runs = [([0, -gap], [-2, 2]) for gap in range(5)]
    for candidates, moved in [(2, 5), (3, 2), (3, 4), (4, 2), (4, 3)]:
        steps = [rng.choice([-moved, moved]) for _ in range(candidates)]
        runs.append(([rng.randint(-2 * moved, 0) for _ in steps], steps))
    tight = 0
    for scores, steps in runs:
        base = Fraction(rng.choice([3, 6, 9, 19]), 20)
        # A difference of two scores moves twice as far as one.
        reach = 2 * abs(steps[0])
        ours = adapter.ExactAccountant(relation)
        ours.compose(Flip(-reach * math.log(base) * (1 + 2.0**-48)))
        p, q = flips(scores, base), flips([a + b for a, b in zip(scores, steps, strict=True)], base)
        for power in range(reach):
            truth = sum(max(a - b / base**power, 0) for a, b in zip(p, q, strict=True))
            bound = ours.get_delta(-power * math.log(base) * (1 - 2.0**-48))
            assert truth <= Fraction(bound)
            tight += 0.0 < bound <= truth * (1 + Fraction(1, 10**9))
    assert tight >= 2
