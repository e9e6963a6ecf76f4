"""Beside other libraries, where installed, on ordinary problems where theirs are sound.

Known differences, stated rather than tested: peers leave floating-point round-off out of their
bounds, and so fall below the truth where δ nears 1e-12 or q is tiny; here δ >= 1e-8 and q >= 1e-3.
Their grids and error budgets make them wider, which is what the slack in each test is.
"""

import math

import pytest

import accountant as ac

# q, sigma, steps, delta
ORDINARY = [
    (256 / 60000, 1.1, 14063, 1e-5),
    (0.01, 1.0, 1000, 1e-5),
    (0.01, 0.8, 2000, 1e-6),
    (0.05, 2.0, 500, 1e-5),
    (0.1, 3.0, 500, 1e-6),
    (0.001, 0.7, 5000, 1e-8),
    (0.5, 8.0, 200, 1e-5),
    (1.0, 5.0, 10, 1e-5),
]
problems = pytest.mark.parametrize(("q", "sigma", "steps", "delta"), ORDINARY)


def agree(one, other, tolerance):
    return math.isclose(one, other, rel_tol=tolerance)


def dp_accounting_event(q, sigma, steps):
    import dp_accounting

    step = dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma))
    return dp_accounting.SelfComposedDpEvent(step, steps)


@problems
def test_dp_accounting_pld(q, sigma, steps, delta):
    # A pessimistic and an optimistic discretisation of the same two directions: the truth lies
    # between them, up to the round-off of their convolutions (seen: 1e-9).
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    ends = [
        pld.from_gaussian_mechanism(sigma, sampling_prob=q, pessimistic_estimate=pessimistic)
        .self_compose(steps)
        .get_epsilon_for_delta(delta)
        for pessimistic in (False, True)
    ]
    lower, upper = ac.epsilon_bounds(q, sigma, steps, delta)
    assert ends[0] * (1 - 1e-7) <= upper
    assert lower <= ends[1] * (1 + 1e-7)
    assert agree(upper, ends[1], 1e-2)


@problems
def test_dp_accounting_rdp(q, sigma, steps, delta):
    # The same conversion over a fixed list of orders: never below the minimum over all orders.
    rdp = pytest.importorskip("dp_accounting.rdp")
    theirs = rdp.RdpAccountant().compose(dp_accounting_event(q, sigma, steps)).get_epsilon(delta)
    ours = ac.get_epsilon(q, sigma, steps, delta, method="rdp")
    assert ours <= theirs * (1 + 1e-9)
    assert agree(ours, theirs, 5e-2)


@problems
def test_opacus_prv(q, sigma, steps, delta):
    # Upper end of a bracket with an absolute error of 0.01 in ε. At q = 1 it divides by 1 - q.
    if q == 1.0:
        pytest.skip("not defined at q = 1")
    accountants = pytest.importorskip("opacus.accountants")
    theirs = accountants.PRVAccountant()
    theirs.history = [(sigma, q, steps)]
    lower, upper = ac.epsilon_bounds(q, sigma, steps, delta)
    assert lower <= theirs.get_epsilon(delta, eps_error=0.01) <= upper + 0.03


@problems
def test_opacus_rdp(q, sigma, steps, delta):
    # A fixed list of orders again.
    accountants = pytest.importorskip("opacus.accountants")
    theirs = accountants.RDPAccountant()
    theirs.history = [(sigma, q, steps)]
    ours = ac.get_epsilon(q, sigma, steps, delta, method="rdp")
    assert ours <= theirs.get_epsilon(delta) * (1 + 1e-9)


@problems
@pytest.mark.parametrize("order", [1.5, 2.0, 4.7, 16.0, 63.0])
def test_opacus_rdp_values(q, sigma, steps, delta, order):
    # The same number where log A is not small: they work with log A, which loses the relative
    # accuracy of A - 1.
    analysis = pytest.importorskip("opacus.accountants.analysis.rdp")
    theirs = analysis.compute_rdp(q=q, noise_multiplier=sigma, steps=steps, orders=order)
    assert agree(ac.get_rdp(q, sigma, steps, order), float(theirs), 1e-7)


@problems
def test_prv_accountant(q, sigma, steps, delta):
    # A bracket of the same truth: it must overlap ours.
    dpsgd = pytest.importorskip("prv_accountant.dpsgd")
    peer = dpsgd.DPSGDAccountant(
        noise_multiplier=sigma,
        sampling_probability=q,
        max_steps=steps,
        eps_error=0.05,
        delta_error=delta / 1000,
    )
    low, _, high = peer.compute_epsilon(delta, steps)
    lower, upper = ac.epsilon_bounds(q, sigma, steps, delta)
    assert lower <= high
    assert low <= upper
    assert high - upper <= 0.15


# Anything else: (ours, theirs), built when dp-accounting is there. Differences:
# - their Laplace, Gaussian and discrete pairs lie on a fixed grid of 1e-4 in ε, so each composition
#   may cost them up to that much; ours choose the grid for a relative 1e-6;
# - their discrete Gaussian is truncated, and adds the tail to the mass at infinity;
# - their randomised response of k answers has the noise parameter p = k / (e^ε + k - 1).
GRID = 1e-4


def peer_mixes():
    from dp_accounting.pld import privacy_loss_distribution as pld

    def response(epsilon, answers):
        noise = answers / (math.exp(epsilon) + answers - 1.0)
        return pld.from_randomized_response(noise, answers, value_discretization_interval=GRID)

    def grid(make, parameter, **more):
        return make(parameter, value_discretization_interval=GRID, **more)

    laplace, gaussian = pld.from_laplace_mechanism, pld.from_gaussian_mechanism
    sampled = grid(gaussian, 1.1, sampling_prob=0.01)
    return {
        "laplace": (30 * ac.Laplace(3.0), grid(laplace, 3.0).self_compose(30)),
        "sampled laplace": (
            200 * ac.PoissonSampled(ac.Laplace(1.5), 0.05),
            grid(laplace, 1.5, sampling_prob=0.05).self_compose(200),
        ),
        "discrete laplace": (
            20 * ac.DiscreteLaplace(2.0),
            grid(pld.from_discrete_laplace_mechanism, 0.5).self_compose(20),
        ),
        "discrete gaussian": (
            10 * ac.DiscreteGaussian(3.0),
            grid(pld.from_discrete_gaussian_mechanism, 3.0).self_compose(10),
        ),
        "randomised response": (50 * ac.RandomizedResponse(0.2), response(0.2, 2).self_compose(50)),
        "response of four": (
            10 * ac.RandomizedResponse(0.5, k=4),
            response(0.5, 4).self_compose(10),
        ),
        "pure and approximate": (
            8 * ac.PureDP(0.3) + 2 * ac.ApproximateDP(0.2, delta=1e-8),
            pld.from_privacy_parameters(common().DifferentialPrivacyParameters(0.3, 0.0))
            .self_compose(8)
            .compose(
                pld.from_privacy_parameters(
                    common().DifferentialPrivacyParameters(0.2, 1e-8)
                ).self_compose(2)
            ),
        ),
        "a run and releases": (
            1000 * ac.PoissonSampled(ac.Gaussian(1.1), 0.01) + ac.Gaussian(4.0) + ac.Laplace(2.0),
            sampled.self_compose(1000).compose(grid(gaussian, 4.0)).compose(grid(laplace, 2.0)),
        ),
    }


def common():
    from dp_accounting.pld import common as module

    return module


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
@pytest.mark.parametrize(
    "name",
    [
        "laplace",
        "sampled laplace",
        "discrete laplace",
        "discrete gaussian",
        "randomised response",
        "response of four",
        "pure and approximate",
        "a run and releases",
    ],
)
def test_dp_accounting_on_other_mechanisms(name, delta):
    pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    ours, theirs = peer_mixes()[name]
    bounds = ours.epsilon_bounds(delta)
    other = theirs.get_epsilon_for_delta(delta)
    # Pessimistic, so never below the truth, and above it by the grid at most.
    assert bounds.lower <= other * (1.0 + 1e-7)
    assert other <= bounds.upper + 2e-3 * max(1.0, bounds.upper)
    epsilon = 0.5 * bounds.upper
    at = ours.delta_bounds(epsilon)
    assert at.lower <= theirs.get_delta_for_epsilon(epsilon) * (1.0 + 1e-6)
    assert math.isclose(theirs.get_delta_for_epsilon(epsilon), at.upper, rel_tol=0.05)
