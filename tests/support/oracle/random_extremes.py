"""Random mechanisms at the ends of the doubles, with bounds on their profiles in ball arithmetic.

Problem number k is drawn from k alone. Each has a profile below the truth, which no upper end may
undercut, and one above, which no lower end may exceed; where the law is known both are the truth.
Shares no code with the package. Parameters are doubles, taken to be exact.
"""

import math
import random
from typing import NamedTuple

from flint import arb, fmpz

import accountant as ac
from accountant import sampling
from support.draws import between
from support.oracle import compositions as laws
from support.oracle import monotone_ratio as ratios
from support.oracle.composed import laplace, precision

REPLACE = ac.NeighbouringRelation.REPLACE_ONE
EITHER = ac.NeighbouringRelation.ADD_OR_REMOVE
ZERO, ONE = arb(0), arb(1)
BITS = (192, 1024, 4096)
BEYOND = 1 << 2000  # no double is as large

EPSILONS = [0.0, 5e-324, 1e-308, 1e-200, 1e-17, 1e-9, 1.0, 30.0, 700.0, 709.9, 745.2, 1e5]
DELTAS = [5e-324, 1e-320, 2.3e-308, 1e-300, 1e-295, 1e-200, 1e-17, 0.5, 0.9, 1.0 - 2.0**-53]
RATES = [5e-324, 1e-308, 1e-300, 1e-200, 2.0**-53, 1e-9, 0.5, 1.0 - 2.0**-30, 1.0 - 2.0**-53]
NOISES = [1e-154, 1e-100, 1e-8, 1e-3, 0.04, 1.0, 30.0, 1e3, 1e8, 1e15, 1e100, 1e154]
COUNTS = [1, 1, 1, 2, 3, 1000, 10**9, 2**53]


class Case(NamedTuple):
    """What is asked, the profile below the truth and the one above."""

    ask: object  # ask(question, at) returns the bracket
    name: str
    low: object
    high: object


def epsilon(rng):
    return rng.choice([rng.choice(EPSILONS), between(rng, 1e-320, 1e5), between(rng, 1e-3, 60.0)])


def delta(rng):
    return rng.choice([rng.choice(DELTAS), between(rng, 5e-324, 0.9), between(rng, 1e-20, 0.9)])


def rate(rng):
    return rng.choice([rng.choice(RATES), between(rng, 1e-323, 1.0), rng.random()]) or 0.5


def noise(rng):
    return rng.choice([rng.choice(NOISES), between(rng, 1e-20, 1e20), between(rng, 0.1, 30.0)])


def _asked(mechanism, low, high=None):
    def ask(question, at):
        return getattr(mechanism, question)(at)

    return Case(ask, repr(mechanism), low, low if high is None else high)


def _worse(a, b):
    return lambda e: a(e).max(b(e))


def _of_law(mechanism, law):
    back = laws.reverse(law)
    return _asked(
        mechanism, _worse(lambda e: laws.profile(law, e), lambda e: laws.profile(back, e))
    )


def _sampled_law(mechanism, law, share):
    ways = [laws.sampled(law, share, False), laws.sampled(laws.reverse(law), share, True)]
    return _asked(
        ac.PoissonSampled(mechanism, share),
        _worse(*(lambda e, way=way: laws.profile(way, e) for way in ways)),
    )


def gaussians(rng):
    """Equal and different plain Gaussian releases, GDP among them."""
    whole, square = None, ZERO
    for _ in range(rng.randint(1, 2)):
        s, n, sensitivity = noise(rng), rng.choice(COUNTS), rng.choice([1.0, 1.0, 1e-3, 1e3])
        if rng.random() < 0.3 and 1e-300 < 1.0 / s < 1e300:
            made, each = ac.GDP(1.0 / s), arb(1.0 / s)
        else:
            made, each = ac.Gaussian(s, sensitivity=sensitivity), arb(sensitivity) / arb(s)
        whole = n * made if whole is None else whole + n * made
        square += n * each**2
    return _asked(whole, ratios.gaussian(square.sqrt()))


def concentrated(rng):
    """A curve that Gaussian noise attains: its profile is below whatever is claimed."""
    rho = rng.choice([between(rng, 1e-300, 1e6), between(rng, 1e-4, 10.0)])
    made = rng.choice([ac.ZCDP(rho), ac.TruncatedCDP(rho, omega=1e300)])
    n = rng.choice([1, 1, 2, 1000])
    return _asked(n * made, ratios.gaussian((2 * n * arb(rho)).sqrt()), lambda e: ONE)


def response(rng):
    """Stated guarantees and randomised response, several times and sampled."""
    e, d, n = epsilon(rng), delta(rng), rng.choice([1, 1, 1, 2, 3])
    kind, k = rng.randrange(4), rng.choice([2, 2, 3, 10**6])
    if kind == 0 and e > 0.0:
        made, law = ac.RandomizedResponse(e, k=k), laws.response(e, k)
    elif kind == 1:
        made, law = ac.PureDP(e), laws.response(e)
    else:
        made, law = ac.ApproximateDP(e, delta=d), laws.response(e, 2, d)
    if rng.random() < 0.4:
        share = rate(rng)
        if 0.0 < share < 1.0:
            if n == 1:
                return _sampled_law(made, law, share)
            ways = [laws.sampled(law, share, False), laws.sampled(laws.reverse(law), share, True)]
            ways = [laws.power(way, n) for way in ways]
            return _asked(
                n * ac.PoissonSampled(made, share),
                _worse(*(lambda e, way=way: laws.profile(way, e) for way in ways)),
            )
    return _of_law(n * made, laws.power(law, n))


def two_guarantees(rng):
    e, d, f, g = epsilon(rng), delta(rng), epsilon(rng), delta(rng)
    made = ac.ApproximateDP(e, delta=d) + ac.ApproximateDP(f, delta=g)
    return _of_law(made, laws.product([laws.response(e, 2, d), laws.response(f, 2, g)]))


def failing(rng):
    """What only fails, any number of times: 1 - (1 - δ)^n."""
    d, n = delta(rng), rng.choice(COUNTS)
    every = 1 - (n * (-arb(d)).log1p()).exp()
    return _asked(n * ac.ApproximateDP(0.0, delta=d), lambda e: every)


def failing_beside_gaussian(rng):
    d, n, s = delta(rng), rng.choice([1, 2, 1000]), noise(rng)
    left = (n * (-arb(d)).log1p()).exp()
    h = ratios.gaussian(1 / arb(s))
    made = ac.Gaussian(s) + n * ac.ApproximateDP(0.0, delta=d)
    return _asked(made, lambda e: 1 - left + left * h(e))


def laplaces(rng):
    b = rng.choice([noise(rng), between(rng, 0.05, 1e3)])
    n, bits = rng.choice([1, 1, 1, 2]), BITS[-1]
    if n == 2 and not 0.01 < b < 1e4:
        n = 1
    return _asked(n * ac.Laplace(b), lambda e: laplace(arb(b), n, e, bits))


def sampled_laplace(rng):
    """One sampled release: the profile of the mechanism at another ε (an affine change of it)."""
    b, share = rng.choice([noise(rng), between(rng, 0.05, 1e3)]), rate(rng)
    if not 0.0 < share < 1.0:
        return laplaces(rng)
    low, q = arb(b), arb(share)

    def removed(e):  # H(e) = q H_base(log(1 + (e^ε - 1)/q))
        return q * laplace(low, 1, (e.expm1() / q).log1p(), BITS[-1])

    def added(e):  # (P - e^ε((1-q)P + qQ)) = (1 - e^ε(1-q)) P - e^ε q Q
        rest = 1 - e.exp() * (1 - q)
        if not rest > 0:
            return ZERO
        return rest * laplace(low, 1, e + (q / rest).log(), BITS[-1])

    made = ac.PoissonSampled(ac.Laplace(b), share)
    return _asked(made, lambda e: removed(e).max(added(e)))


def discrete_laplace(rng):
    b, s = rng.choice([between(rng, 0.003, 1e3), between(rng, 1e-3, 1e15)]), rng.randint(1, 3)
    law, share = laws.discrete_laplace(b, s), rate(rng)
    made = ac.DiscreteLaplace(b, sensitivity=s)
    if rng.random() < 0.4 and 0.0 < share < 1.0:
        return _sampled_law(made, law, share)
    n = rng.choice([1, 2, 3])
    return _of_law(n * made, laws.power(law, n))


def discrete_gaussian(rng):
    """One release; what is left out of the law is below all that is compared."""
    s = between(rng, 0.02, 3.0)
    reach = math.ceil(s * s * 60.0 + 45.0 * s) + 4
    law, share = laws.discrete_gaussian(s, 1, reach), rate(rng)
    if rng.random() < 0.4 and 0.0 < share < 1.0:
        remove = laws.sampled(law, share, False)
        add = laws.sampled(laws.reverse(law), share, True)
        made = ac.PoissonSampled(ac.DiscreteGaussian(s), share)
    else:
        remove, add, made = law, laws.reverse(law), ac.DiscreteGaussian(s)
    low = _worse(lambda e: laws.profile(remove, e), lambda e: laws.profile(add, e))
    rest = (-(arb(reach - 1) ** 2) / (2 * arb(s) ** 2)).exp() * 4
    return _asked(made, low, lambda e: low(e) + rest)


def mixture(rng):
    """One release of Gaussian noise with a random shift, a group's or that of draws."""
    s, kind = noise(rng), rng.randrange(3)
    if kind == 0:
        q, size = rate(rng), rng.randint(2, 6)
        if not 0.0 < q < 1.0:
            return gaussians(rng)
        made = ac.PoissonSampled(ac.Gaussian(s), q).group(size)
        weights, unit = _binomial(size, arb(q)), 1
    elif kind == 1:
        batch, total = rng.randint(1, 6), rng.choice([2, 3, 1000, 10**9, 2**53])
        made = sampling.WithReplacementSampled(s, batch_size=batch, dataset_size=total)
        weights, unit = _binomial(batch, ONE / total), 2
    else:
        size = rng.randint(1, 4)
        bits = rng.choice([8, 30, 45])
        cuts = sorted(rng.sample(range(1, 2**bits), size))
        given = [(b - a) / 2.0**bits for a, b in zip([0, *cuts], [*cuts, 2**bits], strict=True)]
        shifts = sorted(rng.choice([1e-3, 1.0, 1e3, 1e-100]) * rng.random() for _ in given)
        if rng.random() < 0.7:
            shifts[0] = 0.0
        made = ac.MixtureOfGaussians(s, sensitivities=shifts, probabilities=given)
        return _asked(made, _worse(*ratios.shifted(arb(s), map(arb, shifts), map(arb, given))))
    shifts = [arb(unit * k) for k in range(len(weights))]
    return _asked(made, _worse(*ratios.shifted(arb(s), shifts, weights)))


def _binomial(size, q):
    return [arb(fmpz(math.comb(size, k))) * q**k * (1 - q) ** (size - k) for k in range(size + 1)]


def sampled_gaussian(rng):
    """One step, or several: these cost at least one and at most the unsampled ones."""
    s, q, n = noise(rng), rate(rng), rng.choice(COUNTS)
    if not 0.0 < q <= 1.0:
        return gaussians(rng)
    one = _worse(*ratios.sampled(s, q))
    plain = ratios.gaussian(arb(n).sqrt() / arb(s))

    def high(e):
        return one(e) if n == 1 else plain(e).min(n * arb(q))

    if rng.random() < 0.5:
        return _asked(n * ac.PoissonSampled(ac.Gaussian(s), q), one, high)
    quick = {"delta_bounds": ac.delta_bounds, "epsilon_bounds": ac.epsilon_bounds}

    def ask(question, at):
        return ac.Bounds(*(float(end) for end in quick[question](q, s, n, at)))

    return Case(ask, f"({q!r}, {s!r}, {n})", one, high)


def sampled_users(rng):
    """Several steps of several records: at least one step, at most all records in all steps."""
    s, q, n, size = noise(rng), rate(rng), rng.choice(COUNTS[2:]), rng.randint(2, 5)
    if not 0.0 < q < 1.0:
        return gaussians(rng)
    one = _worse(*ratios.shifted(arb(s), map(arb, range(size + 1)), _binomial(size, arb(q))))
    plain = ratios.gaussian(size * arb(n).sqrt() / arb(s))
    made = n * ac.PoissonSampled(ac.Gaussian(s), q).group(size)
    return _asked(made, one, lambda e: one(e) if n == 1 else plain(e).min(n * size * arb(q)))


def replaced(rng):
    """Poisson samples under replace-one, one step or several."""
    s, q, n = noise(rng), rate(rng), rng.choice(COUNTS)
    if not 0.0 < q < 1.0:
        return gaussians(rng)
    one = ratios.replaced(arb(s), arb(q))
    plain = ratios.gaussian(2 * arb(n).sqrt() / arb(s))
    made = n * ac.PoissonSampled(ac.Gaussian(s, relation=REPLACE), q)
    return _asked(made, one, lambda e: one(e) if n == 1 else plain(e).min(n * arb(q)))


def draws_replaced(rng):
    """Draws with replacement under replace-one: at most all draws are of the record."""
    s, n, batch = noise(rng), rng.choice(COUNTS), rng.randint(1, 12)
    total = rng.choice([2, 10, 1000, 10**9])
    one = sampling.WithReplacementSampled(s, batch_size=batch, dataset_size=total, relation=REPLACE)
    plain = ratios.gaussian(2 * batch * arb(n).sqrt() / arb(s))
    # The record drawn once or never, the rest of the batch known: two neighbours of one step.
    low = ratios.one_draw(arb(s), ONE / total) if batch == 1 else lambda e: ZERO
    return _asked(n * one, low, lambda e: plain(e).min(n * batch * ONE / total))


# The last cost the package up to seconds at the ends of the doubles, where it tries every line.
CHEAP = [gaussians, response, two_guarantees, failing, failing_beside_gaussian, laplaces]
CHEAP += [response, discrete_laplace, concentrated, gaussians, response, laplaces]
COSTLY = [sampled_laplace, discrete_gaussian, mixture, mixture, sampled_gaussian, sampled_gaussian]
COSTLY += [sampled_users, replaced, draws_replaced]
KINDS = 4 * CHEAP + COSTLY


def _tests(case, question, at, found):
    """What must hold, as (profile, ε, δ, side): the side on which the profile may not be of δ."""
    if question == "delta_bounds":
        if found.upper < 1.0:
            yield case.low, at, found.upper, 1
        if found.lower > 0.0:
            yield case.high, at, found.lower, -1
        return
    if found.upper < math.inf:
        yield case.low, found.upper, at, 1
    if found.lower > 0.0:
        # An infinite end claims that no ε will do.
        yield case.high, min(found.lower, BEYOND), at, -1


def _wrong(profile, epsilon, delta, side):
    """Whether a profile is certainly off: asked at ever higher precision, None if none decides."""
    for bits in BITS:
        with precision(bits):
            gap = side * (profile(arb(epsilon)) - arb(delta))
            if gap > 0:
                return True
            if gap <= 0:
                return False
    return None


UNDECIDED = []  # what no precision decided, most of it equal


def _unchanged(found):
    return found


def violation(number, change=None):
    """Return what is wrong with the package's answer to problem ``number``, or None.

    ``change`` may alter the answer before it is judged.
    """
    rng = random.Random(number)
    with precision(BITS[-1]):
        case = rng.choice(KINDS)(rng)
    ask_delta = rng.random() < 0.5
    question = "delta_bounds" if ask_delta else "epsilon_bounds"
    at = epsilon(rng) if ask_delta else delta(rng)
    try:
        found = (change or _unchanged)(case.ask(question, at))
    except ac.PrecisionError:
        return None
    shown = f"{number}: ({case.name}).{question}({at!r}) = {found}"
    if not 0.0 <= found.lower <= found.upper:
        return "no bracket: " + shown
    for test in _tests(case, question, at, found):
        wrong = _wrong(*test)
        if wrong is None:
            UNDECIDED.append(shown)
        if wrong:
            return shown
    return None
