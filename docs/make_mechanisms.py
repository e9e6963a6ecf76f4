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


NONE = "–"


def cell(question):
    """Return the rounded answer, or a dash where no theorem gives one."""
    try:
        return text_up(question(), 5)
    except ac.UnsupportedError:
        return NONE


def epsilon(mechanism, relation, sampled):
    one = mechanism.under(relation)
    return (COUNT * (PoissonSampled(one, Q) if sampled else one)).epsilon(DELTA)


def rows():
    for mechanism in MECHANISMS:
        whole = COUNT * mechanism
        yield (
            mechanism,
            *(
                cell(lambda r=relation, s=sampled, m=mechanism: epsilon(m, r, s))
                for sampled in (False, True)
                for relation in Relation
            ),
            whole.profile().solvers()[0].name,
            cell(lambda whole=whole: whole.rdp(ORDER)),
            cell(lambda whole=whole: whole.rho()),
            cell(lambda whole=whole: whole.mu()),
        )


def page():
    """Return the page's lines."""
    names = [relation.name.lower().replace("_", "-") for relation in Relation]
    sampled = [f"sampled, {name}" for name in names]
    heads = ["mechanism", *names, *sampled, "analysis", "D₄", "ρ", "μ"]
    lines = [
        "# Mechanisms",
        "",
        f"Each row is {COUNT} releases. The table shows ε at δ = {DELTA:g} under every",
        f"neighbouring relation, for all records and on a Poisson sample (q = {Q:g}). It also",
        f"shows the analysis, the Rényi divergence of order {ORDER:g}, ρ of zCDP and μ of GDP,",
        "under the relation that the mechanism has by itself. All are upper bounds in nats.",
        "",
        f"A dash ({NONE}) means that no theorem is known, so the package refuses the question.",
        "For example, a bound under replace-one says nothing about a record that is not in the",
        "sample. The statements are in [the theorems](theorems_mechanisms.md). To use a mechanism",
        "that is not in the table, see [a mechanism of your own](own_mechanism.md).",
        "",
        "|" + " |".join(heads) + "|",
        "|" + "---|" * len(heads),
    ]
    for mechanism, *rest in rows():
        lines.append(f"|`{mechanism!r}` |" + " |".join(rest) + "|")
    lines += ["", "`docs/make_mechanisms.py` writes this page."]
    return lines


if __name__ == "__main__":
    text = "\n".join(page()) + "\n"
    Path(__file__).with_name("mechanisms.md").write_text(text, encoding="utf-8")
