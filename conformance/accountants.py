"""One function for each accountant: ε of the parts of a release at δ, by its documented calls.

A function raises NoAnswer where its library has no such question. To add a library, add one here.
"""

import math

MOST_OBJECTS = 1000  # OpenDP composes a list with one object for every release


class NoAnswer(Exception):  # noqa: N818 - it is an answer
    """The library has no such question."""


def only(parts, kinds):
    """Return the one part of a release if a library knows its kind."""
    if len(parts) > 1 or parts[0]["kind"] not in kinds:
        raise NoAnswer
    return parts[0]


def each(parts, makers):
    """Return what a library makes of each part, by the part's kind."""
    if any(part["kind"] not in makers for part in parts):
        raise NoAnswer
    return [makers[part["kind"]](part) for part in parts]


def response_noise(p):
    """Return the probability with which a randomised answer is drawn blindly."""
    return p["k"] / (math.exp(p["epsilon"]) + p["k"] - 1.0)


def ours(parts):
    """Return a release as this library writes it."""
    import accountant as ac
    from accountant.sampling import FixedSizeSampled

    one = ac.NeighbouringRelation.REPLACE_ONE
    makers = {
        "gaussian": lambda p: ac.Gaussian(p["sigma"]),
        "laplace": lambda p: ac.Laplace(p["scale"]),
        "randomized response": lambda p: ac.RandomizedResponse(p["epsilon"], k=p["k"]),
        "discrete laplace": lambda p: ac.DiscreteLaplace(p["scale"]),
        "discrete gaussian": lambda p: ac.DiscreteGaussian(p["sigma"]),
        "gaussian mixture": lambda p: ac.MixtureOfGaussians(
            p["sigma"], sensitivities=p["shifts"], probabilities=p["weights"]
        ),
        "fixed size gaussian": lambda p: FixedSizeSampled(
            p["sigma"], batch_size=p["batch"], dataset_size=p["records"], relation=one
        ),
    }
    made = [
        p["count"] * (ac.PoissonSampled(m, p["q"]) if "q" in p else m)
        for p, m in zip(parts, each(parts, makers), strict=True)
    ]
    return sum(made[1:], start=made[0])


def accountant(parts, delta):
    return ours(parts).epsilon(delta)


def dp_accounting_pld(parts, delta):
    from dp_accounting.pld import privacy_loss_distribution as pld

    makers = {
        "gaussian": lambda p: pld.from_gaussian_mechanism(
            p["sigma"], sampling_prob=p.get("q", 1.0)
        ),
        "laplace": lambda p: pld.from_laplace_mechanism(p["scale"], sampling_prob=p.get("q", 1.0)),
        "randomized response": lambda p: pld.from_randomized_response(response_noise(p), p["k"]),
        "discrete laplace": lambda p: pld.from_discrete_laplace_mechanism(1.0 / p["scale"]),
        "discrete gaussian": lambda p: pld.from_discrete_gaussian_mechanism(p["sigma"]),
        "gaussian mixture": lambda p: pld.from_mixture_gaussian_mechanism(
            p["sigma"], p["shifts"], p["weights"]
        ),
    }
    first, *rest = [
        m.self_compose(p["count"]) for p, m in zip(parts, each(parts, makers), strict=True)
    ]
    for other in rest:
        first = first.compose(other)
    return first.get_epsilon_for_delta(delta)


def dp_accounting_rdp(parts, delta):
    import dp_accounting as dp
    from dp_accounting import rdp

    makers = {
        "gaussian": lambda p: dp.GaussianDpEvent(p["sigma"]),
        "laplace": lambda p: dp.LaplaceDpEvent(p["scale"]),
        "randomized response": lambda p: dp.RandomizedResponseDpEvent(response_noise(p), p["k"]),
        # Noise is over what a replacement moves, which is twice the norm.
        "fixed size gaussian": lambda p: dp.SampledWithoutReplacementDpEvent(
            p["records"], p["batch"], dp.GaussianDpEvent(p["sigma"] / 2)
        ),
    }
    replaced = parts[0]["kind"] == "fixed size gaussian"
    relation = dp.NeighboringRelation["REPLACE_ONE" if replaced else "ADD_OR_REMOVE_ONE"]
    book = rdp.RdpAccountant(neighboring_relation=relation)
    for p, event in zip(parts, each(parts, makers), strict=True):
        step = dp.PoissonSampledDpEvent(p["q"], event) if "q" in p else event
        if not book.supports(step):
            raise NoAnswer
        book.compose(step, p["count"])
    return book.get_epsilon(delta)


def opacus(name):
    def epsilon(parts, delta):
        from opacus import accountants

        p = only(parts, ("gaussian", "shuffled gaussian"))
        book = getattr(accountants, name)()
        # A shuffled loader (poisson_sampling=False) is noted like a Poisson sample.
        batches = p.get("batches")
        history = (1.0 / batches, batches) if batches else (p.get("q", 1.0), p["count"])
        book.history = [(p["sigma"], *history)]
        return book.get_epsilon(delta)

    return epsilon


def prv_accountant(parts, delta):
    import prv_accountant as prv

    sampled = prv.PoissonSubsampledGaussianMechanism
    makers = {
        "gaussian": lambda p: sampled(p["q"], p["sigma"]) if "q" in p else prv.GaussianMechanism(
            p["sigma"]
        ),
        "laplace": lambda p: prv.LaplaceMechanism(1.0 / p["scale"]),
        "randomized response": lambda p: prv.PureDPMechanism(p["epsilon"]),
    }  # fmt: skip
    if any(p["kind"] == "laplace" and "q" in p for p in parts):
        raise NoAnswer
    counts = [p["count"] for p in parts]
    book = prv.PRVAccountant(
        prvs=each(parts, makers), max_self_compositions=counts, eps_error=0.1,
        delta_error=delta / 1000,
    )  # fmt: skip
    return book.compute_epsilon(delta, counts)[2]  # lower, estimate, upper


def autodp(parts, delta):
    from autodp import mechanism_zoo as zoo
    from autodp import transformer_zoo

    sampled = transformer_zoo.AmplificationBySampling(PoissonSampling=True)
    makers = {
        "gaussian": lambda p: zoo.GaussianMechanism(p["sigma"]),
        "laplace": lambda p: zoo.LaplaceMechanism(p["scale"]),
        "discrete gaussian": lambda p: zoo.DiscreteGaussianMechanism(p["sigma"]),
        "randomized response": lambda p: zoo.RandresponseMechanism(1.0 - response_noise(p) / 2.0),
    }
    if any(p.get("k", 2) > 2 for p in parts):
        raise NoAnswer
    made = [
        sampled(m, p["q"], improved_bound_flag=p["kind"] == "gaussian") if "q" in p else m
        for p, m in zip(parts, each(parts, makers), strict=True)
    ]
    return transformer_zoo.Composition()(made, [p["count"] for p in parts]).get_approxDP(delta)


def opendp(parts, delta):
    import opendp.prelude as dp

    dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
    number = int if parts[0]["kind"].startswith("discrete") else float
    domain = dp.atom_domain(T=int) if number is int else dp.atom_domain(T=float, nan=False)
    space = domain, dp.absolute_distance(T=number)
    makers = {
        "gaussian": lambda p: dp.m.make_gaussian(*space, p["sigma"]),
        "laplace": lambda p: dp.m.make_laplace(*space, p["scale"]),
        "randomized response": lambda p: dp.m.make_randomized_response(
            set(range(p["k"])), 1.0 - response_noise(p) * (1.0 - 1.0 / p["k"])
        ),
    }
    makers |= {f"discrete {name}": makers[name] for name in ("gaussian", "laplace")}
    p = only(parts, makers)
    if "q" in p or p["count"] > MOST_OBJECTS:
        raise NoAnswer
    whole = dp.c.make_composition(each(parts, makers) * p["count"])
    distance = 1 if p["kind"] == "randomized response" else number(1)
    if "gaussian" not in p["kind"]:
        return whole.map(distance)
    return dp.c.make_zCDP_to_approxDP(whole).map(distance).epsilon(delta)


def flower(parts, delta):
    from flwr import serverapp as flwr

    p = only(parts, ("gaussian", "fixed size gaussian"))
    replaced, records = "batch" in p, p.get("records", 10**15)
    method = "WITHOUT_REPLACEMENT" if replaced else "POISSON" if "q" in p else "NO_AMPLIFICATION"
    batch = p["batch"] if replaced else math.ceil(p.get("q", 1.0) * records)
    relation = flwr.NeighboringRelation["REPLACE_ONE" if replaced else "ADD_OR_REMOVE_ONE"]
    config = flwr.PrivacyConfig(delta, records, relation, flwr.SamplingMethod[method], None)
    book = flwr.RdpAccountant(config)
    book.compose(flwr.GaussianPrivacyEvent(p["sigma"], batch, records), p["count"])
    return book.get_epsilon(delta)


# Name in the table: distribution, adapter.
ADAPTERS = {
    "accountant": ("dp-accountant", accountant),
    "dp-accounting, PLD": ("dp-accounting", dp_accounting_pld),
    "dp-accounting, Rényi": ("dp-accounting", dp_accounting_rdp),
    "Opacus, PRV": ("opacus", opacus("PRVAccountant")),
    "Opacus, Rényi": ("opacus", opacus("RDPAccountant")),
    "prv-accountant": ("prv-accountant", prv_accountant),
    "autodp, Rényi": ("autodp", autodp),
    "OpenDP": ("opendp", opendp),
    "Flower": ("flwr", flower),
}
