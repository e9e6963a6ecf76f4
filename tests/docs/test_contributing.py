"""CONTRIBUTING's picture of the layers is the contract, and its recipes name files that exist."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()


def picture():
    (block,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    return [set(re.split(r"\s{3,}", line)[0].split()) for line in block.splitlines()]


def test_the_picture_shows_the_layers():
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    layers = tools["importlinter"]["contracts"][0]["layers"]
    assert picture() == [set(layer.split(" | ")) for layer in layers if layer != "__main__"]


def test_the_recipes_name_files_that_exist():
    recipes = PAGE[PAGE.index("## Recipes") : PAGE.index("## Rules")]
    names = set(re.findall(r"`([\w./]+\.(?:py|pyx|pyi|md|txt|c|h))`", recipes))
    names = {name for name in names if "NAME" not in name and "/" in name}
    assert len(names) > 20
    homes = (ROOT, ROOT / "accountant")
    assert not {name for name in names if not any((home / name).exists() for home in homes)}


def test_a_recipe_touches_at_most_four_files_beside_tests_and_documentation():
    recipes = re.split("\n### ", PAGE[PAGE.index("## Recipes") : PAGE.index("## Rules")])
    assert len(recipes) == 6
    for recipe in recipes[1:]:
        assert 2 <= len(re.findall(r"^\d\. ", recipe, re.M)) <= 4, recipe.splitlines()[0]
