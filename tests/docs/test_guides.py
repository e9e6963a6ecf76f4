"""The guides run, every page is in the contents, and the reference has every public name."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

import accountant as ac
from accountant import mechanisms as m
from support.public_packages import PACKAGES
from support.scripts import script

DOCS = Path(__file__).parents[2] / "docs"
GUIDES = ("how_it_works.md", "own_mechanism.md", "textbook.md", "tutorial.md")
# Pages speak of these without listing every name.
IN_THE_TEXT = {f"accountant.{name}" for name in ("composition", "plots", "report")}
IN_THE_TEXT.add("accountant.adapters.torch_batches")


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("page", GUIDES)
def test_examples_in_guides(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = doctest.testfile(str(DOCS / page), module_relative=False)
    assert results.attempted > 8
    assert results.failed == 0


def directives():
    """Yield the full names that directives of all pages name."""
    for page in sorted(DOCS.glob("*.md")):
        text, module = page.read_text(), ""
        for kind, target, options in re.findall(
            r"^\.\. (\w+):: (\S+)\n((?:   .*\n)*)", text, re.MULTILINE
        ):
            if kind in ("currentmodule", "automodule"):
                module = target
                listed = re.search(r":members:((?:.|\n)*)", options)
                names = listed.group(1).replace("\n", " ").split(",") if listed else []
                if listed and not listed.group(1).strip():
                    names = importlib.import_module(target).__all__
                yield from (f"{target}.{name.strip()}" for name in names)
            elif kind in ("autoclass", "autofunction", "autoexception", "autodata"):
                yield target if target.startswith("accountant.") else f"{module}.{target}"


def resolved(name):
    """Return what a full name means, or None where its library is not installed."""
    package, attribute = name.rsplit(".", 1)
    try:
        return getattr(importlib.import_module(package), attribute)
    except ModuleNotFoundError as error:
        if not (error.name or "accountant").startswith("accountant"):
            return None
        raise


@pytest.fixture(scope="module")
def documented():
    return {id(resolved(name)): name for name in directives()}


@pytest.mark.parametrize("package", sorted({*PACKAGES} - IN_THE_TEXT))
def test_every_public_name_is_in_the_reference(package, documented):
    module = importlib.import_module(package)
    values = {name: getattr(module, name) for name in module.__all__}
    missing = [n for n, v in values.items() if id(v) not in documented and callable(v)]
    assert not missing


def test_links_and_pictures_lead_somewhere():
    root = DOCS.parent
    for page in (root / "README.md", *DOCS.glob("*.md")):
        for target in re.findall(r"\]\(([^)#:\s]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def drawer(name):
    """Return a script of docs/ as a module."""
    pytest.importorskip("matplotlib")
    return script(DOCS / f"{name}.py")


def cells(line):
    """Return a row's cells, numbers as numbers."""
    found = [cell.strip() for cell in line.strip("|").split(" |")]
    return [float(cell) if re.fullmatch(r"[\d.]+(e-?\d+)?|inf", cell) else cell for cell in found]


@pytest.mark.long
def test_the_table_of_mechanisms_is_what_the_package_says():
    made = drawer("make_mechanisms")
    kinds = {getattr(m, name) for name in m.__all__ if not name.endswith("Pair")}
    kinds = {kind for kind in kinds if isinstance(kind, type) and issubclass(kind, m.Mechanism)}
    kinds |= {ac.BestOfRuns, ac.BestOfPoissonRuns}
    # A loss distribution is given by functions; the abstract class is none.
    assert kinds - {m.LossDistribution, m.Mechanism} == {type(each) for each in made.MECHANISMS}
    written = (DOCS / "mechanisms.md").read_text().splitlines()
    page = made.page()
    assert len(page) == len(written)
    for found, stated in zip(page, written, strict=True):
        assert cells(found) == [
            pytest.approx(cell, rel=2e-3) if isinstance(cell, float) else cell
            for cell in cells(stated)
        ]


@pytest.mark.long
def test_the_pictures_of_the_contour_show_what_the_page_says():
    drawn = drawer("make_contour_figure")
    order = drawn.saddle()
    lower, upper = ac.delta_bounds(drawn.Q, drawn.SIGMA, drawn.STEPS, drawn.EPSILON)
    errors = [drawn.trapezoid(order, dy, 60)[-1] - lower for dy in (0.6, 0.9, 1.5, 2.2)]
    assert errors == sorted(errors)
    assert errors[0] > 0.0
    assert abs(drawn.trapezoid(order, 0.3, 60)[-1] / upper - 1.0) < 1e-8
    assert {name for name, _ in drawn.figures()} == {"contour_line", "contour_sum"}


def test_the_picture_of_the_readme_can_be_drawn():
    drawn = drawer("make_readme_figure")
    drawn.COUNTS = drawn.COUNTS[::12]
    (axes,) = drawn.figure().axes
    classical, optimal, exact, limit = (line.get_ydata() for line in axes.lines)
    assert (classical > optimal).all()
    assert (optimal > exact).all()
    assert (exact > limit).all()
