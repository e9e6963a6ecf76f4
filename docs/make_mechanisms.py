"""Writes docs/mechanisms.md: every mechanism under every sampler, relation and analysis."""

from pathlib import Path

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant import PoissonSampled
from accountant._basics.display import text_up
from accountant.mechanisms import DominatedBy, ShuffledResponses, SmoothSensitivityGaussian

MECHANISMS = [
    ac.Gaussian(3.0),
    ac.GDP(0.3),
    ac.Laplace(5.0),
    ac.DiscreteGaussian(3.0),
    ac.DiscreteGaussianVector(3.0),
    ac.DiscreteGaussianSum(0.3, contributors=100),
    ac.Skellam(9.0),
    ac.DiscreteLaplace(5.0),
    ac.MixtureOfGaussians(3.0, sensitivities=(0.0, 1.0, 2.0), probabilities=(0.5, 0.25, 0.25)),
    ac.PureDP(0.2),
    ac.ApproximateDP(0.2, delta=1e-6),
    ac.RandomizedResponse(0.2, k=4),
    ac.ExponentialMechanism(0.2),
    ac.ReportNoisyMax(10.0, "exponential"),
    ac.AboveThreshold(10.0, query_scale=40.0),
    ac.SparseHistogram(ac.Gaussian(12.0), threshold=70.0, max_partitions=5),
    ac.BestOfRuns(ac.Gaussian(10.0), 0.25),
    ac.BestOfPoissonRuns(ac.Gaussian(10.0), 4.0),
    SmoothSensitivityGaussian(20.0, smoothness=0.005),
    ShuffledResponses(1.0, dataset_size=10_000),
    DominatedBy(ac.Gaussian(3.0)),
    ac.DominatingPMFs((0.55, 0.45), (0.45, 0.55)),
    ac.ZCDP(0.05),
    ac.TruncatedCDP(0.05, omega=20.0),
    ac.RenyiCurve.from_table((2.0, 4.0, 8.0, 16.0), (0.1, 0.2, 0.4, 0.8)),
]
COUNT, DELTA, ORDER, Q = 10, 1e-4, 4.0, 0.1


def cell(question):
    try:
        return text_up(question(), 5)
    except ac.UnsupportedError as refusal:
        return reason(str(refusal))


def reason(text):
    for words, short in (
        ("no theorem", "no theorem"),
        ("does not imply", "not implied"),
        ("no Rényi curve", "no curve"),
        ("no Gaussian mechanism", "none known"),
        ("no ρ", "none known"),
    ):
        if words in text:
            return short
    return text


def rows():
    for mechanism in MECHANISMS:
        for sampler in ("all records", f"Poisson {Q:g}"):
            for relation in Relation:
                name = relation.name.lower().replace("_", "-")
                try:
                    one = mechanism.under(relation)
                    whole = COUNT * (one if sampler == "all records" else PoissonSampled(one, Q))
                except ac.UnsupportedError as refusal:
                    why = reason(str(refusal))
                    yield mechanism, sampler, name, why, why, why, why, why
                    continue
                analysis = whole.profile().solvers()[0].name
                yield (
                    mechanism,
                    sampler,
                    name,
                    analysis,
                    cell(lambda whole=whole: whole.epsilon(DELTA)),
                    cell(lambda whole=whole: whole.rdp(ORDER)),
                    cell(lambda whole=whole: whole.rho()),
                    cell(lambda whole=whole: whole.mu()),
                )


def page():
    """Return the page's lines."""
    lines = [
        "# Mechanisms",
        "",
        "`docs/make_mechanisms.py` writes this table of every mechanism under every sampler,",
        "neighbouring relation and analysis. To use a mechanism that is not in the table, see",
        "[a mechanism of your own](own_mechanism.md).",
        "",
        f"Each row is {COUNT} releases. It shows ε at δ = {DELTA:g}, the Rényi divergence",
        f"of order {ORDER:g}, ρ of zCDP and μ of GDP. All are upper bounds in nats. Under",
        "replace-one, Poisson samples are bounded by Theorem E7 for Gaussian noise and by",
        "[Theorem E2](theorems_adapters.md) for other noise on bounded contributions.",
        "",
        "- *No theorem*: no known theorem covers the case, so the package refuses it. For example,",
        "  a bound under replace-one says nothing about a record that is not in the sample.",
        "- *None known*: there is no such bound, or none is known.",
        "",
        "The statements are in [Theorems: mechanisms](theorems_mechanisms.md).",
        "",
        "| mechanism | sampler | relation | analysis | ε | D₄ | ρ | μ |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for mechanism, *rest in rows():
        lines.append(f"| `{mechanism!r}` | " + " | ".join(rest) + " |")
    return lines


if __name__ == "__main__":
    text = "\n".join(page()) + "\n"
    Path(__file__).with_name("mechanisms.md").write_text(text, encoding="utf-8")
