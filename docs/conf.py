"""Sphinx configuration."""

from pathlib import Path

import accountant

project = "accountant"
author = "The accountant developers"
project_copyright = author
release = accountant.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx-mathjax-offline",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"accountant {release}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    # Dark and light alike need a ratio of contrast of 4.5.
    "light_css_variables": {"color-brand-primary": "#00567f", "color-brand-content": "#00567f"},
    "dark_css_variables": {"color-brand-primary": "#8accf5", "color-brand-content": "#8accf5"},
}

# Prompts and output of examples are not copied.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300

myst_enable_extensions = ["dollarmath"]
autodoc_typehints = "none"  # the numpydoc sections state types, shapes and units
autodoc_member_order = "bysource"
napoleon_google_docstring = False


# What the theme leaves out for readers who use a keyboard or a screen reader.
REPAIRS = (
    ('<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'),
    ('<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="Site">'),
    ('<aside class="toc-drawer', '<aside aria-label="This page" class="toc-drawer'),
    ("<pre>", '<pre tabindex="0">'),
    ('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'),
    ('<div class="math ', '<div tabindex="0" class="math '),
)


def repair(app, error):
    """Name and reach what scrolls, in every page that was written."""
    if error is None and app.builder.name == "html":
        for page in Path(app.outdir).rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            for old, new in REPAIRS:
                text = text.replace(old, new)
            page.write_text(text, encoding="utf-8")


def setup(app):
    app.connect("build-finished", repair)
