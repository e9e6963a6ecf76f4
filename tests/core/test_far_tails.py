"""Brackets of δ next to the least doubles, against contour integrals in ball arithmetic."""

import functools
import math
import operator

import mpmath
import pytest
from flint import arb
from mpmath import mpf

import accountant as ac
from accountant._core import answers as core
from support.oracle import losses, psg, shift_compositions

# q, sigma, steps, δ: few steps of large losses, losses of moderate size, large shifts.
ONE_SHIFT = [
    (0.7316, 2.8, 4, 1e-306),
    (0.3613, 0.612, 3, 1e-200),
    (0.4357, 1.49, 2, 1e-300),
    (0.6139, 0.46, 6, 1e-250),
    (0.1, 0.8, 100, 1e-300),
    (0.3, 2.0, 5, 3e-308),
]
# The same of two steps, where the transform decays slowly.
RARE = [
    (0.01, 1.0, 1e-290),
    (0.05, 0.4, 1e-180),
    (0.0002, 0.81, 8e-90),
    (0.0083, 1.5, 9e-101),
    (0.031, 3.4, 2e-229),
]
# q, sigma, steps, δ of rare events, and how wide a bracket may be: the first of one line found from
# another guess only, the others of transforms whose integrals are tiny.
RARE_WIDTHS = [
    (0.0008598115083710923, 4.068669819885311, 125, 5.617061756119971e-227, 3e-9),
    (0.0012522426216489302, 1.0865910395468006, 3580, 1.6687714288701459e-220, 1e-10),
    (7.295101704498601e-05, 1.8263514758815558, 3607888, 3.609576557118821e-188, 1e-7),
    (0.000722333022491355, 2.2899642933285844, 22938, 7.1617620404475675e-174, 2e-6),
    (3.875965e-05, 1.288, 2802000, 1.2e-171, 1e-6),
]
# q, sigma, steps, ε and how wide a bracket of δ may be: saddle points of the window for what is
# likely lead to no line at all there.
FAR_DELTAS = [
    # Of δ = 2e-66 and 9e-113 no more than a valid bracket is promised.
    (3.704060243628962e-07, 0.4519691738059675, 54, 25.668879839635657, math.inf),
    (2.448901448539835e-07, 7.187765061873398, 3, 1.1864583757530473e-06, 2e-2),
    (5.8537015779430855e-08, 0.21271586426956168, 57739, 233.4811897629059, math.inf),
]
MIXED = [
    (((1.0, (1.0, 2.0), (0.2, 0.05), 20), (2.0, (), (), 3)), 1e-300),
    (((0.9, (1.0,), (0.1,), 50), (1.5, (1.0, 3.0), (0.3, 0.1), 10)), 1e-280),
]


def check(truth, found, width):
    assert not truth < arb(found[0])
    assert not truth > arb(found[1])
    assert found[1] - found[0] <= width * found[1]


@pytest.mark.parametrize(("q", "sigma", "steps", "delta"), ONE_SHIFT)
def test_far_tails_of_one_shift_are_narrow(q, sigma, steps, delta):
    bracket = core.epsilon_bounds(q, sigma, steps, delta, core.REMOVE)
    assert bracket[1] - bracket[0] <= 1e-10 * bracket[1]
    below, above = (
        psg.profile(q, sigma, steps, epsilon, "remove", methods=("line",))[0] for epsilon in bracket
    )
    assert not below < arb(delta)
    assert not above > arb(delta)
    check(above, core.delta_bounds(q, sigma, steps, bracket[1], core.REMOVE), 1e-7)


def two_steps(q, sigma, epsilon):
    """H(epsilon): the closed form of one step, integrated over the noise of the other."""
    q, s, eps = mpf(q), mpf(sigma), mpf(epsilon)

    def inner(x):
        lost = 1 - q + q * mpmath.exp((x - mpf(1) / 2) / s**2)
        density = (1 - q) * mpmath.npdf(x, 0, s) + q * mpmath.npdf(x, 1, s)
        return density * losses.sampled_step(q, s, eps - mpmath.log(lost), True)

    far = eps - mpmath.log(1 - q)
    edge = s * s * mpmath.log((mpmath.expm1(far) + q) / q) + mpf(1) / 2
    # the other step's threshold leaves its range at the edge, as a logarithm: pieces that shrink
    near = [s * s * mpf(2) ** -k for k in range(-4, 50)]
    lattice = [edge + k * s / 2 for k in range(-int(2 * (edge / s + 45)), 90)]
    pieces = {*lattice, *(edge + sign * d for d in near if d < 40 * s for sign in (-1, 1))}
    return mpmath.quad(inner, sorted(pieces), method="gauss-legendre", maxdegree=4)


@pytest.mark.long
@pytest.mark.parametrize(("q", "sigma", "delta"), RARE)
def test_far_tails_of_two_rare_steps_are_narrow(q, sigma, delta):
    bracket = core.epsilon_bounds(q, sigma, 2, delta, core.REMOVE)
    assert bracket[1] - bracket[0] <= 1e-9 * bracket[1]
    with mpmath.workdps(30):
        below, above = (two_steps(q, sigma, epsilon) for epsilon in bracket)
        assert above <= mpf(delta) <= below


@pytest.mark.parametrize(("q", "sigma", "steps", "delta", "width"), RARE_WIDTHS)
def test_far_tails_of_many_rare_steps_are_narrow(q, sigma, steps, delta, width):
    lower, upper = core.epsilon_bounds(q, sigma, steps, delta, core.EITHER)
    assert upper - lower <= width * upper


def shifted(sigma, shifts, weights):
    rest = 1.0 - math.fsum(weights)
    return ac.MixtureOfGaussians(
        sigma, sensitivities=(0.0, *shifts), probabilities=(rest, *weights)
    )


@pytest.mark.long
@pytest.mark.parametrize(("parts", "delta"), MIXED)
def test_far_tails_of_compositions_are_narrow(parts, delta):
    release = functools.reduce(
        operator.add,
        (
            steps * (shifted(sigma, shifts, weights) if shifts else ac.Gaussian(sigma))
            for sigma, shifts, weights, steps in parts
        ),
    )
    bracket = release.epsilon_bounds(delta)
    assert bracket.upper - bracket.lower <= 1e-9 * bracket.upper
    truth = [shift_compositions.line(parts, float(epsilon), True) for epsilon in bracket]
    assert not truth[0] < arb(delta)
    assert not truth[1] > arb(delta)


def test_a_group_at_the_least_delta_takes_no_grid():
    bracket = ac.epsilon_bounds(0.01, 1.0, 2000, 1e-290, user_records=4)
    assert bracket.upper - bracket.lower <= 1e-9 * bracket.upper


@pytest.mark.parametrize("delta", [1e-290, 1e-300, 3e-308, 1e-315, 5e-324])
def test_no_delta_turns_a_bracket_around(delta):
    for q, sigma, steps in [
        (0.01, 1.0, 1000),
        (0.3, 0.5, 2),
        (0.9, 3.0, 10**6),
        (1e-9, 1.0, 10**9),
    ]:
        lower, upper = core.epsilon_bounds(q, sigma, steps, delta, core.EITHER)
        least, most = core.epsilon_bounds(q, sigma, steps, 1e-280, core.EITHER)
        assert least <= upper
        assert 0.0 <= lower <= upper < math.inf
        assert most > 0.0


@pytest.mark.parametrize(
    ("q", "sigma", "steps", "epsilon"),
    [
        (6.579141841633757e-07, 0.013186415559724825, 2, 1160.9802233076507),
        (0.15561476300792998, 0.011127061186227588, 5, 496.26462191059693),
        (8.66255180089609e-06, 0.012732351764046291, 3, 128.06294852517965),
        (0.00021838202373709588, 0.013356612065426344, 10**9, 388.4477170812373),
    ],
)
def test_masses_that_underflow_bound_nothing(q, sigma, steps, epsilon):
    """More steps never have a smaller profile, and that of one step is a closed form."""
    lower, upper = core.delta_bounds(q, sigma, steps, epsilon, core.REMOVE)
    assert lower <= upper
    assert upper >= core.delta_bounds(q, sigma, 1, epsilon, core.REMOVE)[0]


def test_the_last_point_of_a_line_is_found_at_any_scale():
    """The search for it had no end where points squared leave the doubles."""
    q, steps = 1.557261309170454e-182, 5
    lower, upper = core.delta_bounds(
        q, 0.5239638497422254, steps, 1.8790446253857206e-156, core.REMOVE
    )
    assert lower <= upper <= steps * q * (1.0 + 1e-15)


@pytest.mark.parametrize(("q", "sigma", "steps", "epsilon", "width"), FAR_DELTAS)
def test_far_deltas_without_a_line_at_the_first_guess(q, sigma, steps, epsilon, width):
    lower, upper = core.delta_bounds(q, sigma, steps, epsilon, core.REMOVE)
    assert lower <= upper < 1e-7
    assert width == math.inf or upper <= lower * (1.0 + width)


@pytest.mark.slow
def test_a_far_delta_without_a_line_at_the_first_guess_is_right():
    q, sigma, steps, epsilon, width = FAR_DELTAS[0]
    truth = psg.profile(q, sigma, steps, epsilon, "remove")[0]
    check(truth, core.delta_bounds(q, sigma, steps, epsilon, core.REMOVE), width)
