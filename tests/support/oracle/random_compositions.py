"""Random compositions with their laws: the problems of the sweep, and the judge of an answer.

Problem number k is drawn from k alone. The laws are written out by ``compositions``, which shares
no code with the package. Most ask a coarse grid, whose brackets must enclose the truth as those of
a fine one, in a few milliseconds; the rest ask the questions as a user does.
"""

import math
import random
from itertools import pairwise
from typing import NamedTuple

from flint import arb

import accountant as ac
from accountant.analyses import pld
from accountant.composition.problems import problems_of
from accountant.pairs.base import has_pld
from support.draws import between
from support.oracle import compositions as laws
from support.oracle import monotone_ratio as ratios
from support.oracle.composed import laplace, precision

REPLACE = ac.NeighbouringRelation.REPLACE_ONE
BITS = 256
MOST = 400  # outcomes of a composition
MOST_BESIDE_DENSITY = 24
FARTHEST = 1e6  # an ε beyond which the profile is asked no more


class Part(NamedTuple):
    """A mechanism, its laws in both directions, and whether its own pair is attained."""

    mechanism: ac.Mechanism
    remove: list
    add: list
    attained: bool = True
    left_out: float = 0.0  # mass that the laws do not list


class Density(NamedTuple):
    """A mechanism whose loss has a density, with the profiles of both directions."""

    mechanism: ac.Mechanism
    remove: object
    add: object
    attained: bool = True


class Problem(NamedTuple):
    """A composition, its exact profile, and whether that is attained or a bound from below."""

    mechanism: ac.Mechanism
    profile: object
    attained: bool
    left_out: float


def _one(mechanism, law, **more):
    return Part(mechanism, law, laws.reverse(law), **more)


def response(rng, relation):
    e, k = between(rng, 1e-5, 8.0), rng.choice([2, 2, 3, 5, 1000])
    return _one(ac.RandomizedResponse(e, k=k, relation=relation), laws.response(e, k))


def pure(rng, relation):
    e = rng.choice([0.0, between(rng, 1e-8, 8.0)])
    return _one(ac.PureDP(e, relation=relation), laws.response(e))


def approximate(rng, relation):
    e, d = rng.choice([0.0, between(rng, 1e-5, 6.0)]), between(rng, 1e-15, 0.3)
    return _one(ac.ApproximateDP(e, delta=d, relation=relation), laws.response(e, 2, d))


def given_masses(rng, relation):
    """Two mass functions of dyadic masses, whose sums are exactly one."""
    bits, size = rng.choice([8, 16, 40]), rng.randint(2, 4)
    infinite = rng.random() < 0.3

    def column():
        cuts = sorted(rng.randint(1, 2**bits - 1) for _ in range(size - 1))
        ends = [0, *cuts, 2**bits]
        found = [(b - a) / 2.0**bits for a, b in pairwise(ends)]
        if rng.random() < 0.3:  # one outcome is rare
            tiny = 2.0 ** -rng.randint(20, 45)
            found[0], found[-1] = tiny, found[-1] + (found[0] - tiny)
        return found

    p, q = column(), column()
    if infinite:
        p, q = [*p[:-1], p[-1] / 2, p[-1] / 2], [*q, 0.0]
    if min(p) <= 0.0 or min(q[:size]) <= 0.0 or math.fsum(p) != 1.0 or math.fsum(q) != 1.0:
        return response(rng, relation)
    made = ac.DominatingPMFs(p, q, infinite_loss=infinite, relation=relation)
    return _one(made, laws.masses(p, q), attained=relation is not REPLACE)


def discrete_laplace(rng, relation):
    b, s = between(rng, 0.2, 20.0), rng.randint(1, 3)
    distance = 2 * s if relation is REPLACE else s
    made = ac.DiscreteLaplace(b, sensitivity=s, relation=relation)
    return _one(made, laws.discrete_laplace(b, distance))


def discrete_gaussian(rng, relation):
    sigma = rng.uniform(0.4, 1.2)
    distance = 2 if relation is REPLACE else 1
    law = laws.discrete_gaussian(sigma, distance, math.ceil(16.0 * sigma) + 2)
    return _one(ac.DiscreteGaussian(sigma, relation=relation), law, left_out=1e-50)


def selection(rng, relation):
    """The exponential mechanism on two candidates, which attains no more than its bound."""
    e, share = between(rng, 1e-3, 6.0), rng.random()
    odds = (-arb(e)).exp()
    p = arb(share) if 0.0 < share < 1.0 else arb(0.5)
    q = p * odds / (p * odds + (1 - p))
    made = ac.ExponentialMechanism(e, relation=relation)
    return _one(made, [(p, q), (1 - p, 1 - q)], attained=False)


def only_failing(rng, relation):
    d = between(rng, 1e-15, 0.1)
    return _one(ac.ApproximateDP(0.0, delta=d, relation=relation), laws.response(0.0, 2, d))


FINITE = [response, pure, approximate, given_masses, given_masses, discrete_laplace, selection]
RARE = [discrete_gaussian]
# A selection has a density, and under replace-one the pair of given masses and its reverse have a
# joint one: these take longer.
CHEAP = dict.fromkeys(ac.NeighbouringRelation, FINITE[:-1])
CHEAP[REPLACE] = [kind for kind in FINITE[:-1] if kind is not given_masses]


def finite(rng, relation, kinds=None):
    """Draw a part of finitely many outcomes, sampled or not."""
    part = rng.choice(RARE if rng.random() < 0.03 else kinds or FINITE)(rng, relation)
    if relation is REPLACE or rng.random() < 0.6:
        return part
    rate = rng.choice([1e-12, between(rng, 1e-9, 1.0), rng.random(), 1.0 - 2.0**-30])
    if not 0.0 < rate < 1.0:
        return part
    return part._replace(
        mechanism=ac.PoissonSampled(part.mechanism, rate),
        remove=laws.sampled(part.remove, rate, False),
        add=laws.sampled(part.add, rate, True),
    )


def exact_gaussians(rng, relation):
    return gaussians(rng, relation, 0.85)


def gaussians(rng, relation, kinds=1.0):
    """Several Gaussian releases, which merge into one, or a curve that one attains."""
    whole, square, attained = None, arb(0), True
    for _ in range(rng.randint(1, 3)):
        sigma, n = between(rng, 0.3, 100.0), rng.randint(1, 6)
        kind = kinds * rng.random()
        if kind < 0.7:
            made = ac.Gaussian(sigma, relation=relation)
            each = (2 if relation is REPLACE else 1) / arb(sigma)
        elif kind < 0.85:
            made, each = ac.GDP(1.0 / sigma, relation=relation), arb(1.0 / sigma)
        else:
            rho = 0.5 / sigma**2
            made, each, attained = ac.ZCDP(rho, relation=relation), (2 * arb(rho)).sqrt(), False
        whole = n * made if whole is None else whole + n * made
        square += n * each**2
    h = ratios.gaussian(square.sqrt())
    return Density(whole, h, h, attained)


def laplaces(rng, relation):
    scale, n = between(rng, 0.5, 10.0), rng.choice([1, 1, 2])
    b = scale / 2.0 if relation is REPLACE else scale

    def h(epsilon):
        return laplace(b, n, epsilon)

    return Density(n * ac.Laplace(scale, relation=relation), h, h)


def sampled_gaussian(rng, relation):
    if relation is REPLACE:
        return exact_gaussians(rng, relation)
    sigma, rate = between(rng, 0.3, 20.0), rng.choice([between(rng, 1e-8, 1.0), rng.random()])
    if not 0.0 < rate < 1.0:
        return exact_gaussians(rng, relation)
    return Density(
        ac.PoissonSampled(ac.Gaussian(sigma, relation=relation), rate), *ratios.sampled(sigma, rate)
    )


def shifted_gaussian(rng, relation):
    if relation is REPLACE:
        return laplaces(rng, relation)
    sigma, bits = between(rng, 0.5, 5.0), 20
    first = rng.randint(1, 2**bits - 1)
    second = rng.randint(1, 2**bits - first) if first < 2**bits - 1 else 0
    weights = [n / 2.0**bits for n in (first, second, 2**bits - first - second)]
    shifts = [0.0, rng.uniform(0.2, 1.0), rng.uniform(1.0, 2.0)]
    if min(weights) <= 0.0:
        return sampled_gaussian(rng, relation)
    made = ac.MixtureOfGaussians(
        sigma, sensitivities=shifts, probabilities=weights, relation=relation
    )
    return Density(made, *ratios.shifted(arb(sigma), map(arb, shifts), map(arb, weights)))


DENSITIES = [gaussians] * 12 + [sampled_gaussian] * 10 + [laplaces] * 2 + [shifted_gaussian]


def drawn(rng, density, parts, kinds=None):
    """Draw a composition of some finite parts under a relation that all have."""
    relation = rng.choice([*ac.NeighbouringRelation])
    density = density and rng.choice(density)(rng, relation)
    most = MOST if density is None else MOST_BESIDE_DENSITY
    whole = None if density is None else density.mechanism
    counted, size = [], 1
    for _ in range(parts):
        part = finite(rng, relation, kinds and kinds[relation])
        n = rng.randint(1, 6)
        outcomes = math.comb(n + len(part.remove) - 1, n)
        if size * outcomes > most:
            n, outcomes = 1, len(part.remove)
        if size * outcomes > most and whole is not None:
            continue
        size *= outcomes
        counted.append((part, n))
        whole = n * part.mechanism if whole is None else whole + n * part.mechanism
    return _problem(whole, counted, density)


def _problem(whole, counted, density):
    ways = []
    for add in (False, True):
        law = laws.product(laws.power(part.add if add else part.remove, n) for part, n in counted)
        ways.append((law, density and (density.add if add else density.remove)))

    def profile(epsilon):
        found = [laws.profile(law, epsilon, h) for law, h in ways]
        return found[0].max(found[1])

    attained = all(part.attained for part, _ in counted) and (density is None or density.attained)
    return Problem(whole, profile, attained, sum(n * part.left_out for part, n in counted))


def equal(rng):
    """One kind of release, several times, on a coarse grid."""
    return drawn(rng, None, 1, CHEAP), _coarsely


def asked(rng):
    """One kind of release, several times, as a user asks it."""
    return drawn(rng, None, 1, CHEAP), as_a_user


def several(rng):
    """Two or three kinds on a coarse grid, and sometimes a loss that has a density."""
    dense = [sampled_gaussian, laplaces] if rng.random() < 0.1 else None
    return drawn(rng, dense, rng.randint(1 if dense else 2, 3), CHEAP), _coarsely


def native(rng):
    """Gaussian noise alone, or with parts that only fail."""
    failing = {relation: [only_failing] for relation in ac.NeighbouringRelation}
    kinds = [sampled_gaussian, exact_gaussians]
    return drawn(rng, kinds, rng.choice([0, 0, 1]), failing), as_a_user


def anything(rng):
    """Whatever there is, as a user asks it."""
    dense = DENSITIES if rng.random() < 0.3 else None
    return drawn(rng, dense, rng.randint(1, 3)), as_a_user


# How many of every two hundred.
SHARES = {equal: 160, several: 18, asked: 10, native: 11, anything: 1}
CATEGORIES = [category for category, share in SHARES.items() for _ in range(share)]


def as_a_user(mechanism, question, at):
    return getattr(mechanism, question)(at)


def _coarsely(mechanism, question, at):
    """Ask a grid of a coarse tolerance in each direction, and take the larger."""
    lower = upper = 0.0
    for parts in problems_of(mechanism):
        if not all(has_pld(pair) for pair, _ in parts):
            return as_a_user(mechanism, question, at)
        try:
            found = getattr(pld, question)(parts, at, tolerance=0.1)
        except ac.PrecisionError as error:
            found = getattr(error, "known", None)
        if found is None:  # nothing was claimed
            return ac.Bounds(0.0, math.inf)
        lower, upper = max(lower, found.lower), max(upper, found.upper)
    return ac.Bounds(lower, upper)


def violation(number, ask=None):
    """Return what is wrong with the package's answer to problem ``number``, or None."""
    rng = random.Random(number)
    with precision(BITS):
        one, how = CATEGORIES[number % 200](rng)
        how = ask or how
        if rng.random() < 0.5:
            at = rng.choice([0.0, between(rng, 1e-6, 20.0), rng.uniform(0.0, 3.0)])
            question, found = "delta_bounds", how(one.mechanism, "delta_bounds", at)
            truth = one.profile(at)
            low = one.attained and arb(found.lower) > truth + one.left_out
            wrong = arb(found.upper) < truth or low
        else:
            at = rng.choice([between(rng, 1e-14, 0.9), between(rng, 1e-6, 0.1)])
            question, found = "epsilon_bounds", how(one.mechanism, "epsilon_bounds", at)
            wrong = found.upper < math.inf and one.profile(found.upper) > arb(at)
            if one.attained and found.lower > 0.0:
                below = one.profile(min(found.lower, FARTHEST)) + one.left_out
                wrong = wrong or below < arb(at)
    return f"{number}: ({one.mechanism!r}).{question}({at!r}) = {found}" if wrong else None
