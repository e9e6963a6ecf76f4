"""Choices by score, votes of teachers, blocks, local reports: each release against its price."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from accountant import NeighbouringRelation as Relation
from accountant.learn.blocks import block_estimates, private_block_mean, private_block_median
from accountant.learn.local import KaryResponse, Rappor, randomize_gaussian, randomize_laplace
from accountant.learn.pate import (
    GNMax,
    LNMax,
    TeacherEnsemble,
    VoteStream,
    release_data_dependent_epsilon,
    train_student,
)
from accountant.learn.selection import (
    AboveThresholdStream,
    permute_and_flip,
    report_noisy_max,
    select_best,
    select_exponential,
)
from accountant.mechanisms import Gaussian
from accountant.noise import SecureGenerator
from support.twins import pairs
from support.twins.comparison import Charge
from support.twins.pairs import Pair
from support.twins.registry import case
from support.twins.tape import Tape

EXTREMES = (0.0, 1.0, -1.0, 1e30, -1e30, 1.7e308, 5e-324, 1e16, 0.1)
SENSITIVITIES = (1.0, 0.1, 1e-30, 1e30, 3e300)


def _pair(name, left, right):
    return Pair(name, left, right, (), (), 0, "add or remove")


def _scores(monotonic):
    """Scores that one record moves by the sensitivity, computed exactly and rounded inwards."""

    def found():
        for unit in SENSITIVITIES:
            base = np.array([unit * v if abs(v) < 1e8 else v for v in EXTREMES])
            for seed in range(2):
                signs = np.random.default_rng(seed).choice([-1.0, 1.0], len(base))
                moved = [
                    _inwards(b, unit * (1.0 if monotonic else s))
                    for b, s in zip(base, signs, strict=True)
                ]
                yield _pair(f"sensitivity {unit:g}, {seed}", (base, unit), (np.array(moved), unit))

    return found


def _inwards(base, by):
    """Return the double nearest to ``base + by`` that is no farther away than ``by``."""
    with np.errstate(over="ignore"):
        moved = float(base + by)
    while not (
        np.isfinite(moved) and abs(Fraction(moved) - Fraction(float(base))) <= abs(Fraction(by))
    ):
        moved = float(np.nextafter(moved, base))
    return moved


def _price(epsilon, factor=Fraction(1)):
    return lambda result, pair: [Charge(1, pure=Fraction(epsilon) * factor)]


for monotonic in (False, True):
    case(
        name=f"select_exponential, monotonic={monotonic}",
        run=lambda data, m=monotonic: select_exponential(
            data[0], 0.7, sensitivity=data[1], monotonic=m, rng=1
        ),
        pairs=_scores(monotonic),
        charges=_price(0.7),
    )
    case(
        name=f"permute_and_flip, monotonic={monotonic}",
        run=lambda data, m=monotonic: permute_and_flip(
            data[0], 0.7, sensitivity=data[1], monotonic=m, rng=1
        ),
        # The rates of the coins: their logarithms, best score taken off, move by ε in all.
        pairs=_scores(monotonic),
        charges=lambda result, pair: [Charge(1, pure=Fraction(0.7))],
    )


def _gumbel_price(result, pair):
    # Scale b: exponents are scores over b, whose range moves by 2Δ/b.
    return [Charge(1, pure=Fraction(2) * Fraction(pair.left[1]) / Fraction(pair.left[1] * 3.0))]


for noise in ("gumbel", "exponential"):
    case(
        name=f"report_noisy_max, {noise}",
        run=lambda data, noise=noise: report_noisy_max(
            data[0], 3.0 * data[1], noise=noise, sensitivity=data[1], rng=1
        ),
        pairs=_scores(False),
        charges=_gumbel_price,
    )
case(
    name="report_noisy_max, laplace",
    run=lambda data: (
        report_noisy_max(
            data[0], 3.0 * data[1], noise="laplace", sensitivity=data[1], rng=1
        ).mechanism
    ),
    pairs=_scores(False),
    # Every score by itself: Δ / b each.
    charges=lambda result, pair: [
        Charge(1, pure=len(EXTREMES) * Fraction(pair.left[1]) / Fraction(3.0 * pair.left[1]))
    ],
    replays=False,
)


def _gaussian_price(result, pair):
    mechanism = result.mechanism
    assert isinstance(mechanism, Gaussian)
    ratio = Fraction(mechanism.distance) / Fraction(mechanism.noise_multiplier)
    # The mechanism's own sensitivity, of which the noise is a multiple.
    return [Charge(1, squared=ratio**2)]


case(
    name="report_noisy_max, gaussian",
    run=lambda data: report_noisy_max(
        data[0], 3.0 * data[1], noise="gaussian", sensitivity=data[1], rng=1
    ),
    pairs=_scores(False),
    charges=_gaussian_price,
)


def _stream(data):
    answers, unit = data
    stream = AboveThresholdStream(
        0.0, 2.0 * unit, 4.0 * unit, sensitivity=unit, positives=99, rng=1
    )
    for answer in answers:
        stream.is_above(answer)
    return stream.mechanism


def _stream_price(result, pair):
    unit = Fraction(pair.left[1])
    first = Charge(1, pure=unit / Fraction(2.0 * pair.left[1]))
    return [first] + [Charge(1, pure=unit / Fraction(4.0 * pair.left[1]))] * len(pair.left[0])


case(
    name="AboveThresholdStream",
    run=_stream,
    pairs=_scores(False),
    charges=_stream_price,
    replays=False,
)


def _search(data):
    return select_best(
        lambda setting: setting, [1, 2, 3], float, mechanism=Gaussian(3.0), delta=1e-5, rng=1
    )


case(
    name="select_best",
    run=_search,  # what is private about it is in ``train``, which the caller pays for
    pairs=lambda: [_pair("no data", (), ())],
)


class Nearest:
    """A teacher: the class whose mean is nearest; fails on what it has not seen twice."""

    def fit(self, X, y):
        if len(y) < 2:
            raise ValueError(f"too few records: {y!r}")
        self.means = [X[y == k].mean(axis=0) if (y == k).any() else None for k in (0, 1, 2)]
        return self

    def predict(self, X):
        gaps = [np.inf if m is None else np.abs(X - m).sum(axis=1) for m in self.means]
        return np.argmin(np.column_stack(np.broadcast_arrays(*gaps, X[:, 0])[:3]), axis=1) + 0.0


QUERIES = pairs.features(6, 3, seed=2)


def _student(aggregator):
    def run(data):
        with np.errstate(all="ignore"):
            ensemble = TeacherEnsemble(Nearest, 7, 3, rng=1).fit(*data)
            return train_student(
                ensemble, QUERIES, lambda X, where, names: (where, names), aggregator, delta=1e-5,
                rng=2,
            )  # fmt: skip

    return run


def _classes(X):
    return np.arange(len(X)) % 3


def _votes_price(result, pair):
    vote = result.stream.aggregator
    answer = Fraction(vote.answer_mechanism.distance) / Fraction(vote.sigma)
    found = []
    test = vote.test_mechanism
    answered = set(result.answered.tolist())
    for query in range(result.queries):
        if test is not None:
            found.append(
                Charge(1, squared=(Fraction(test.distance) / Fraction(vote.threshold_sigma)) ** 2)
            )
        if query in answered:
            found.append(Charge(1, squared=answer**2))
    return found


def _records():
    return pairs.add_or_remove(3, _classes)


for vote in (GNMax(2.0), GNMax(2.0, 4, 1.5), GNMax(1e-12)):
    case(
        name=f"train_student, {vote!r}",
        covers=(
            "accountant.learn.pate.train_student",
            "accountant.learn.pate.TeacherEnsemble",
            "accountant.learn.pate.assign_shards",
            "accountant.learn.pate.GNMax",
            "accountant.learn.pate.VoteStream",
        ),
        run=_student(vote),
        pairs=_records,
        charges=_votes_price,
        without=frozenset({"stream"}),
    )
case(
    name="train_student, LNMax",
    covers=("accountant.learn.pate.LNMax",),
    run=_student(LNMax(3.0)),
    pairs=_records,
    # Two counts move by one: 2 / scale for every answer.
    charges=lambda result, pair: [Charge(1, pure=2 / Fraction(3.0))] * result.queries,
    without=frozenset({"stream"}),
)
case(
    name="train_student, a record replaced",
    run=_student(GNMax(2.0, relation=Relation.REPLACE_ONE)),
    pairs=lambda: pairs.replacements(3, _classes),
    charges=_votes_price,
    without=frozenset({"stream"}),
)

VOTES = ([5, 1, 1], [3, 2, 2], [7, 0, 0], [0, 0, 7])


def _vote_pairs():
    for votes in VOTES:
        other = list(votes)
        other[int(np.argmax(votes))] -= 1
        other[(int(np.argmax(votes)) + 1) % 3] += 1
        yield _pair(f"votes {votes}", (votes,), (other,))


def _ask(data):
    stream = VoteStream(GNMax(2.0, 4, 1.5), 1, max_queries=1, rng=1)
    answer = stream.ask(data[0], prediction=[0.5, 0.3, 0.2])
    return answer, stream.answers


def _ask_price(result, pair):
    test, answer = Fraction(1.5) ** -2, 2 * (1 + Fraction(2) ** -50) / Fraction(2.0) ** 2
    return [Charge(1, squared=test), *([Charge(1, squared=answer)] * result[1])]


case(name="VoteStream, interactive", run=_ask, pairs=_vote_pairs, charges=_ask_price)


def _bound_price(result, pair):
    """The logarithm of the sensitivity has its own mechanism; the value's noise is added later."""
    parts = [part for part, _ in result.mechanism.parts]
    plain = next(part for part in parts if type(part) is Gaussian)
    ratio = Fraction(plain.distance) / Fraction(plain.noise_multiplier)
    return [Charge(1, squared=ratio**2), Charge(1, squared=Fraction(0))]


def _many_votes():
    for seed in range(4):
        random = np.random.default_rng(seed)
        votes = random.multinomial(50, random.dirichlet(np.ones(3)), size=9)
        other = votes.copy()
        for row in other:  # one teacher changes its mind wherever it has one
            row[np.flatnonzero(row)[0]] -= 1
            row[random.integers(3)] += 1
        yield _pair(f"votes, {seed}", (votes,), (other,))


for order, smoothness in ((20.0, 0.01), (5.0, 1e-4), (2.0, 0.1)):
    case(
        name=f"release_data_dependent_epsilon, order {order:g}",
        run=lambda data, order=order, smoothness=smoothness: release_data_dependent_epsilon(
            data[0], GNMax(8.0), delta=1e-5, order=order, smoothness=smoothness, rng=1
        ),
        pairs=_many_votes,
        charges=_bound_price,
        # What is published is the bound plus noise scaled to it: P11 and P12 are about that.
        without=frozenset({"rdp", "epsilon"}),
    )


def _blocks(release):
    def run(data):
        with np.errstate(all="ignore"):
            estimates = block_estimates(data[0], lambda block: block[:, 0].mean(), 8, (0.0, 1.0))
        return release(estimates)

    return run


def _tables():
    return pairs.add_or_remove(2, None)


case(
    name="private_block_median",
    covers=(
        "accountant.learn.blocks.private_block_median",
        "accountant.learn.blocks.block_estimates",
    ),
    run=_blocks(lambda found: private_block_median(found, (0.0, 1.0), 0.9, candidates=64, rng=1)),
    pairs=_tables,
    charges=_price(0.9),
)


def _mean(noise):
    def release(estimates):
        found = private_block_mean(estimates, (0.0, 1.0), noise=noise, noise_multiplier=2.0, rng=1)
        # The noise is left out, bounds and number are dyadic: this is what it would be added to.
        assert Tape.current is not None
        last = Tape.current.entries[-1]
        Tape.current.entries[-1] = replace(last, private=[int(found.value * 8 * 2**20)])
        return found.mechanism

    return _blocks(release)


for noise, power in (("gaussian", 2), ("laplace", 1)):
    case(
        name=f"private_block_mean, {noise}",
        run=_mean(noise),
        pairs=_tables,
        charges=lambda result, pair, power=power: [
            Charge(1, **{"squared" if power == 2 else "pure": Fraction(2) ** -power})
        ],
        replays=False,
        quiet=True,
    )


def _local_price(result, pair):
    return [Charge(1, pure=Fraction(0.9))]


def _values():
    for a, b in ((0.0, 1.0), (1e308, -1e308), (5e-324, 0.7), (0.1, 0.3)):
        left, right = np.array([a, 0.5]), np.array([b, 0.5])
        yield Pair(f"{a:g} or {b:g}", (left,), (right,), (0, 1), (0, 1), 0, "replace one")


case(
    name="randomize_laplace",
    run=lambda data: randomize_laplace(data[0], (0.1, 0.9), 0.9, rng=1).mechanism,
    pairs=_values,
    charges=_local_price,
    replays=False,
)
case(
    name="randomize_gaussian",
    run=lambda data: randomize_gaussian(data[0], (0.1, 0.9), 0.7, rng=1).mechanism,
    pairs=_values,
    charges=lambda result, pair: [Charge(1, squared=1 / Fraction(0.7) ** 2)],
    replays=False,
    quiet=True,
)


def _consumption(randomize):
    def run(data):
        generator = SecureGenerator(1)
        shape = randomize(data[0], generator).shape
        return shape, generator._block, generator._spare.size

    return run


def _categories():
    for a, b in ((0, 4), (3, 2)):
        left, right = np.array([a, 1, 4, 0]), np.array([b, 1, 4, 0])
        yield Pair(f"{a} or {b}", (left,), (right,), (0, 1, 2, 3), (0, 1, 2, 3), 0, "replace one")


RAPPOR = Rappor(5, 0.4, 0.25, 0.75)
for name, randomize in {
    "KaryResponse": lambda values, rng: KaryResponse(1.0, 5).randomize(values, rng=rng),
    "Rappor": lambda values, rng: RAPPOR.report(RAPPOR.permanent(values, rng=rng), rng=rng),
}.items():
    case(
        name=f"{name}, random words",  # its law, coin by coin, is the subject of test_local
        run=_consumption(randomize),
        pairs=_categories,
    )
