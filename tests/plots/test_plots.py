"""Pictures: labelled, told apart without colour, and their data are the library's numbers."""

import subprocess
import sys

import numpy as np
import pytest

import accountant as ac
from accountant.errors import ArgumentTypeError, DomainError, UnsupportedError

pytest.importorskip("matplotlib")

from accountant import plots
from support.refusals import refused

RUN = 1000 * ac.PoissonSampled(ac.Gaussian(1.1), 0.01)
DELTAS = [1e-3, 1e-5, 1e-7]


def lines(figure):
    return figure.axes[0].get_lines()


def legend(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def drawn(figure, tmp_path):
    """Labelled axes, and a picture that matplotlib can make of it."""
    axes = figure.axes[0]
    assert axes.get_xlabel()
    path = tmp_path / "picture.png"
    plots.save(figure, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    return axes


def ledger():
    book = ac.Accountant()
    book.step(noise_multiplier=1.1, sampling_probability=0.01, count=60)
    book.step(noise_multiplier=1.5, sampling_probability=0.02, count=40)
    return book


@pytest.mark.long
def test_profile(tmp_path):
    figure = plots.profile(RUN, ac.Gaussian(5.0), deltas=DELTAS)
    axes = drawn(figure, tmp_path)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("δ", "certified ε (nats)")
    assert axes.get_xscale() == "log"
    assert axes.xaxis_inverted()
    for line, mechanism in zip(lines(figure), (RUN, ac.Gaussian(5.0)), strict=True):
        assert list(line.get_xdata()) == DELTAS
        assert list(line.get_ydata()) == [mechanism.epsilon(delta) for delta in DELTAS]
    # The band is the bracket.
    band = axes.collections[0].get_paths()[0].vertices
    for delta in DELTAS:
        bounds = RUN.epsilon_bounds(delta)
        at = band[band[:, 0] == delta][:, 1]
        assert (at.min(), at.max()) == (bounds.lower, bounds.upper)
    assert legend(figure) == [repr(RUN), "Gaussian(5.0)"]


def test_profile_names_relations_that_differ():
    other = ac.Gaussian(5.0, relation=ac.NeighbouringRelation.REPLACE_ONE)
    figure = plots.profile(RUN, other, deltas=DELTAS, labels=["run", "mean"])
    assert legend(figure) == ["run (add-or-remove)", "mean (replace-one)"]


def test_epsilon_over_steps(tmp_path):
    book = ledger()
    figure = plots.epsilon_over_steps(book, 1e-5)
    axes = drawn(figure, tmp_path)
    assert axes.get_xlabel() == "releases"
    assert axes.get_ylabel() == "ε at δ = 1e-05 (nats)"
    exact, renyi = lines(figure)
    assert list(exact.get_xdata()) == list(range(1, 101))
    assert np.array_equal(exact.get_ydata(), book.epsilon_over_steps(1e-5))
    assert np.array_equal(renyi.get_ydata(), book.epsilon_over_steps(1e-5, checkpoints=0))
    assert legend(figure) == ["tightest certified bound", "Rényi divergences"]


def test_epsilon_over_steps_of_a_mix_ends_at_its_exact_composition():
    book = ac.Accountant()
    book.compose(ac.Gaussian(8.0), 6)
    book.compose(ac.RandomizedResponse(0.2, k=2), 2)
    book.compose(ac.ApproximateDP(0.1, delta=1e-7))
    drawn = lines(plots.epsilon_over_steps(book, 1e-5))
    tight, renyi = (np.array(line.get_ydata()) for line in drawn)
    assert tight[-1] <= book.epsilon(1e-5) * (1 + 1e-9) < 0.95 * renyi[-1]
    assert (tight <= renyi).all()
    assert np.isfinite(renyi).all()


@pytest.mark.long
def test_tradeoff(tmp_path):
    figure = plots.tradeoff(RUN, ac.Gaussian(2.0), labels=["run", "one"], points=6)
    axes = drawn(figure, tmp_path)
    assert "false-positive rate" in axes.get_xlabel()
    assert "true-positive rate" in axes.get_ylabel()
    first, second, blind = lines(figure)
    rates = np.linspace(0, 1, 6) ** 2
    for line, mechanism in ((first, RUN), (second, ac.Gaussian(2.0))):
        assert np.array_equal(line.get_xdata(), rates)
        assert list(line.get_ydata()) == [1 - mechanism.tradeoff(float(r)) for r in rates]
    assert list(blind.get_ydata()) == [0, 1]
    assert legend(figure) == ["run", "one", "blind guessing"]


@pytest.mark.long
def test_calibration_map(tmp_path):
    probabilities = [0.01, 0.1, 1.0]
    figure = plots.calibration_map([1.0, 3.0], 1e-5, 100, probabilities=probabilities)
    axes = drawn(figure, tmp_path)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    for line, epsilon in zip(lines(figure), (1.0, 3.0), strict=True):
        assert list(line.get_ydata()) == [
            ac.calibrate_sigma(epsilon, 1e-5, q, 100) for q in probabilities
        ]
    assert legend(figure) == ["ε = 1", "ε = 3"]
    assert "100 steps" in axes.get_title()


@pytest.mark.long
def test_samplers(tmp_path):
    table = ac.compare_samplers(
        dataset_size=100,
        batch_size=10,
        epochs=1,
        noise_multiplier=1.0,
        delta=1e-5,
        samplers=["poisson", "shuffled"],
    )
    figure = plots.samplers(table)
    axes = drawn(figure, tmp_path)
    assert "(nats)" in axes.get_xlabel()
    assert [text.get_text() for text in axes.get_yticklabels()] == [
        "Poisson\n(add-or-remove)",
        "shuffled\n(zero-out)",
    ]
    segments = axes.collections[0].get_segments()
    assert [(a[0], b[0]) for a, b in segments] == [(row.lower, row.upper) for row in table.rows]
    table.plot(tmp_path / "table.pdf")
    assert (tmp_path / "table.pdf").read_bytes().startswith(b"%PDF")


def test_lines_differ_in_colour_and_in_dashes():
    figure = plots.profile(*(ac.Gaussian(1.0 + k) for k in range(7)), deltas=DELTAS)
    styles = [
        (line.get_color(), line.get_linestyle(), line._dash_pattern) for line in lines(figure)
    ]
    for part in range(3):
        if part != 1:  # dashed patterns share the name "--"
            assert len({str(style[part]) for style in styles}) == 7


def test_into_axes_of_ones_own():
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plots.profile(RUN, deltas=DELTAS, axes=left) is figure
    assert plots.tradeoff(ac.Gaussian(2.0), points=3, axes=right) is figure
    assert (len(left.get_lines()), len(right.get_lines())) == (1, 2)


def test_refusals(tmp_path):
    refused(DomainError, "", plots.profile)
    refused(DomainError, "", plots.profile, RUN, deltas=[0.0])
    refused(DomainError, "", plots.profile, RUN, labels=["a", "b"])
    refused(DomainError, "", plots.epsilon_over_steps, ac.Accountant(), 1e-5)
    refused(DomainError, "", plots.tradeoff, RUN, points=1)
    refused(ArgumentTypeError, "", plots.tradeoff, RUN, points=5.0)
    refused(DomainError, "", plots.calibration_map, [], 1e-5, 10)
    with pytest.raises(UnsupportedError, match="not supported"):
        plots.save(plots.tradeoff(RUN, points=2), tmp_path / "x.bogus")


@pytest.mark.long
def test_no_window_system_and_no_global_state():
    code = (
        "import accountant as ac\nfrom accountant import plots\n"
        "plots.tradeoff(ac.Gaussian(2.0), points=3).savefig('/dev/null', format='png')\n"
        "import sys\nassert 'matplotlib.pyplot' not in sys.modules"
    )
    environment = {"MPLBACKEND": "TkAgg", "PATH": ""}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refused(UnsupportedError, r"dp-accountant\[plot\]", plots.profile, RUN, deltas=DELTAS)
