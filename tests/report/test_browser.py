"""The statement in a real browser: rendered, quiet, reachable by keyboard, fine without script."""

import io

import numpy as np
import pytest

import accountant as ac
from accountant.report import statement
from support.browser import axe, browser, installed, violations

pytestmark = pytest.mark.skipif(installed() is None, reason="no Chromium is installed")

ATTACK = "<script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"


@pytest.fixture(scope="module")
def made():
    ledger = ac.Accountant()
    ledger.step(noise_multiplier=1.1, sampling_probability=0.01, count=10_000, label=ATTACK)
    return statement(ledger, title=ATTACK, unit=ATTACK)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def url(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(made.html())
    return path.as_uri()


def test_it_renders_quietly_and_asks_for_nothing(page, url, made):
    page.open(url)
    assert page.complaints() == []
    assert [asked for asked in page.requests() if not asked.startswith("data:")] == [url]
    # The words of the ledger are words: they have run nothing and made no elements.
    assert page.ask("document.title") == ATTACK
    assert page.ask("document.querySelectorAll('img').length") == 0
    assert page.ask("document.querySelectorAll('script').length") == 1
    assert ATTACK in page.ask("document.querySelector('#released tbody').innerText")
    assert page.ask("document.querySelectorAll('svg').length") == 3
    assert page.ask("document.querySelector('#headline').textContent").startswith("ε ≤ 5.19")


def test_the_control_moves_epsilon_by_keyboard(page, url, made):
    page.open(url)
    rows = made.table
    place = next(k for k, row in enumerate(rows) if row.delta == 1e-5)
    assert page.ask("document.querySelector('#control').hidden") is False
    before = page.ask("document.querySelector('#answer').textContent")
    assert "δ = 1e-5" in before
    assert "5.19" in before
    spot = page.ask("document.querySelector('#dot').getAttribute('cx')")
    page.ask("document.querySelector('#delta').focus()")
    page.press("ArrowRight", 39)
    after = page.ask("document.querySelector('#answer').textContent")
    assert f"δ = {rows[place + 1].delta!r}".replace("e-0", "e-") in after
    shown = float(after.split("≤")[1].split()[0])
    assert rows[place + 1].epsilon <= shown <= rows[place + 1].epsilon * 1.001
    assert page.ask("document.querySelector('#dot').getAttribute('cx')") > spot
    assert page.ask("document.querySelector('tr.chosen td').textContent") in after
    assert page.ask("document.querySelector('#delta').getAttribute('aria-valuetext')") == after
    page.press("End", 35)
    assert "1e-10" in page.ask("document.querySelector('#answer').textContent")
    assert page.complaints() == []


def test_without_script_everything_but_the_control_is_there(page, url, made):
    page.open(url, script=False)
    assert page.ask("getComputedStyle(document.querySelector('#control')).display") == "none"
    texts = page.ask("document.body.innerText")
    assert "5.1926" in texts
    assert "What a reviewer must check" in texts
    assert page.ask("document.querySelectorAll('#table tbody tr').length") == len(made.table)
    assert page.complaints() == []


@pytest.mark.parametrize("width", [320, 900])
def test_nothing_sticks_out(page, url, width):
    page.open(url, width=width)
    assert page.ask("document.documentElement.scrollWidth") <= width
    cut = page.ask(
        "[...document.querySelectorAll('td.n, h1, h2, p, li')]"
        ".filter(e => e.scrollWidth > e.clientWidth + 1).length"
    )
    assert cut == 0


def test_the_picture(page, url):
    image = pytest.importorskip("matplotlib.image")
    page.open(url)
    pixels = image.imread(io.BytesIO(page.screenshot()), format="png")[..., :3]
    boxes = page.ask(
        "[...document.querySelectorAll('svg')].map(e => {const b = e.getBoundingClientRect();"
        " return [b.left + scrollX, b.top + scrollY, b.width, b.height]})"
    )
    blue = np.array([0x00, 0x72, 0xB2]) / 255
    for left, top, width, height in boxes:
        part = pixels[int(top) : int(top + height), int(left) : int(left + width)]
        close = np.abs(part - blue).max(axis=2) < 0.02
        rows, columns = np.nonzero(close)
        # The line is there and crosses most of its chart, from left to right.
        assert close.sum() > 200
        assert np.ptp(columns) > 0.7 * width
        assert np.ptp(rows) > 0.3 * height
    # Paper stays white: nothing is drawn where nothing is.
    assert (pixels[:, :5] > 0.98).all()


def luminance(colour):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_contrast_and_names(page, url):
    page.open(url)
    pairs = page.ask(
        "[...document.querySelectorAll('body *')].filter(e => e.innerText && e.offsetParent)"
        ".map(e => {let b = e; const clear = 'rgba(0, 0, 0, 0)';"
        " while (b && getComputedStyle(b).backgroundColor === clear) b = b.parentElement;"
        " return [getComputedStyle(e).color,"
        " b ? getComputedStyle(b).backgroundColor : 'rgb(255, 255, 255)']})"
    )
    assert len(pairs) > 100
    for pair in {tuple(pair) for pair in pairs}:
        ink, paper = (
            luminance([int(c) / 255 for c in text.strip("rgba()").split(",")[:3]]) for text in pair
        )
        high, low = max(ink, paper), min(ink, paper)
        assert (high + 0.05) / (low + 0.05) >= 4.5, pair
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    named = [
        (node["role"]["value"], node.get("name", {}).get("value"))
        for node in nodes
        if not node["ignored"]
    ]
    pictures = [name for role, name in named if role in ("image", "img", "graphics-document")]
    assert len(pictures) == 3
    assert all(pictures)
    assert ("slider", "Move δ:") in named
    assert page.ask("document.documentElement.lang") == "en"


def test_it_prints(page, url):
    import base64

    page.open(url)
    paper = base64.b64decode(page.call("Page.printToPDF", printBackground=True)["data"])
    assert paper.startswith(b"%PDF")
    assert 2 <= paper.count(b"/Type /Page\n") + paper.count(b"/Type/Page\n") <= 9


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_no_violation(page, url, scheme, width):
    if axe() is None:
        pytest.skip("axe-core is not installed (npm install axe-core)")
    page.scheme(scheme)
    page.open(url, width=width)
    assert violations(page) == []
    page.scheme("light")


def test_a_dark_page_is_dark_and_prints_light(page, url):
    page.scheme("dark")
    page.open(url)
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.ask(colour) == "rgb(21, 24, 27)"
    page.call("Emulation.setEmulatedMedia", media="print")
    assert page.ask(colour) == "rgb(255, 255, 255)"
    page.call("Emulation.setEmulatedMedia", media="")
    page.scheme("light")


def test_figures_are_readable_on_a_phone(page, url):
    page.open(url, width=390)
    sizes = page.ask(
        "[...document.querySelectorAll('svg text')].map(e => e.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 9
    cut = page.ask(
        "[...document.querySelectorAll('svg')].filter(s => {const b = s.getBoundingClientRect();"
        " return [...s.querySelectorAll('text')].some(t => {const c = t.getBoundingClientRect();"
        " return c.left < b.left - 1 || c.right > b.right + 1 || c.bottom > b.bottom + 1})}).length"
    )
    assert cut == 0
