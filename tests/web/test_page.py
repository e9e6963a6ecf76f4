"""The page in a real Chromium: a person with a mouse, one with a keyboard, one with a phone."""

import base64
import json
import math
import time

import pytest

import accountant as ac
import dp_verifier
from support.browser import axe, browser, installed, violations
from support.web import PAGE

pytestmark = [
    pytest.mark.skipif(installed() is None, reason="no Chromium is installed"),
    pytest.mark.skipif(not PAGE.exists(), reason="the web page is not built (make -C web)"),
]

RUN = "#records=60000&batch=256&epochs=60&delta=1e-5&noise=1.1"
DONE = (
    "document.querySelector('#results').getAttribute('aria-busy') === 'false'"
    " && !document.querySelector('#results').hidden"
    " && document.querySelector('#status').textContent === ''"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def opened(page, link=RUN, width=1280):
    page.open("about:blank")
    page.open(PAGE.as_uri() + link, width=width)
    page.wait(DONE)
    return page


def text(page, selector):
    return page.ask(f"document.querySelector('{selector}').textContent")


def numbers(page):
    return [text(page, f"#{name}") for name in ("noise-answer", "answer", "bracket", "sentence")]


def download(page, folder, button, name):
    """Press a button that saves, and return the file."""
    page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    page.click(button)
    path = folder / name
    deadline = time.monotonic() + 30.0
    while not (path.exists() and path.stat().st_size):
        assert time.monotonic() < deadline, "no file was saved"
        time.sleep(0.02)
    return path


def saved(page, folder):
    return json.loads(download(page, folder, "#save-json", "privacy.json").read_text())


@pytest.mark.parametrize("width", [1280, 390])
def test_target_noise_curve_link_reload_json(page, tmp_path, width):
    opened(page, "", width)
    page.click("#know-epsilon")
    for name, typed in (("records", "50000"), ("batch", "500"), ("epochs", "40")):
        page.write(f"#{name}", typed)
    page.write("#epsilon", "2.5")
    page.wait(f"location.hash.includes('epsilon=2.5') && {DONE}")
    first = numbers(page)
    sigma = ac.calibrate_sigma(2.5, delta=1e-5, q=0.01, steps=4000)
    assert float(first[0].split()[-1]) == pytest.approx(sigma, rel=1e-9)
    assert first[1] == "ε ≤ 2.5 at δ = 1e-5"
    # The curve: one line from the left to the right, of which the table below has numbers.
    page.click("#steps-table-summary")
    assert page.ask("document.querySelector('#steps-table').offsetHeight") > 0
    line = page.ask("document.querySelector('#steps-chart .line.first').getAttribute('d')")
    assert line.count("L") > 150
    cells = "document.querySelectorAll('#steps-table tbody tr:last-child *')"
    last = page.ask(f"[...{cells}].map(cell => cell.textContent)")
    assert last[0] == "4,000"
    assert last[2] == "2.5"
    link = page.ask("location.href")
    opened(page, link.removeprefix(PAGE.as_uri()), width)
    assert numbers(page) == first
    found = saved(page, tmp_path)
    assert found["noise_multiplier"] == float(first[0].split()[-1])
    assert found["settings"]["epsilon"] == 2.5
    assert found["sentence"] == first[3]
    assert page.complaints() == []


def test_saved_brackets_overlap_those_of_python(page, tmp_path):
    opened(page)
    found = saved(page, tmp_path)
    q, steps = found["q"], found["steps"]
    assert q == 256 / 60_000
    assert steps == 60 * 235
    assert len(found["curves"]["overSteps"]) == len(found["curves"]["overDelta"]) == 200
    asked = [(steps, 1e-5, found["epsilon"])]
    asked += [(one["steps"], 1e-5, one) for one in found["curves"]["overSteps"][::40]]
    asked += [(steps, one["delta"], one) for one in found["curves"]["overDelta"][::40]]
    for count, delta, bracket in asked:
        expected = ac.epsilon_bounds(q, 1.1, count, delta)
        assert bracket["lower"] <= expected.upper
        assert expected.lower <= bracket["upper"] <= expected.upper * (1 + 1e-6)
    full = ac.epsilon_bounds(1.0, 1.1, 60, 1e-5)
    assert found["samplers"]["full"]["upper"] == pytest.approx(full.upper, rel=1e-9)
    allocated = found["samplers"]["allocation"]["upper"]
    assert found["epsilon"]["upper"] / 2 < allocated < full.upper
    assert found["samplers"]["shuffled"]["lower"] > found["epsilon"]["upper"]
    others = {row["name"]: row for row in found["others"]}
    assert others["moments"]["epsilon"] == pytest.approx(
        ac.get_epsilon(q, 1.1, steps, 1e-5, method="rdp"), rel=1e-9
    )
    mu = q * math.sqrt(steps * math.expm1(1.1**-2))
    assert others["limit"]["epsilon"] == pytest.approx(ac.Gaussian(1 / mu).epsilon(1e-5), rel=1e-9)
    assert others["limit"]["verdict"] == others["rule"]["verdict"] == "low"
    assert others["moments"]["verdict"] == "high"


def test_a_certificate_is_made_shown_saved_and_passes(page, tmp_path):
    opened(page)
    page.click("#certify")
    page.wait("!document.querySelector('#certificate').hidden")
    path = download(page, tmp_path, "#save-certificate", "certificate.json")
    assert path.read_text() == text(page, "#certificate")
    dp_verifier.check(path.read_text())
    claim = json.loads(path.read_text())["claim"]
    assert claim["epsilon"] == pytest.approx(
        ac.get_epsilon(256 / 60_000, 1.1, 14_100, 1e-5), rel=1e-8
    )
    # Another question takes it away.
    page.write("#epochs", "2")
    page.wait(
        "location.hash.includes('epochs=2&') && document.querySelector('#certificate').hidden"
    )


def test_nobody_is_asked(page):
    opened(page)
    page.click("#check")
    page.wait("!document.querySelector('#check-result').hidden", 60.0)
    assert text(page, "#check-words").startswith("All is well.")
    assert " 0 are apart" in text(page, "#check-words")
    # The browser resolves no name at all, so this was offline.
    assert [asked for asked in page.requests() if not asked.startswith(("data:", "blob:"))] == [
        PAGE.as_uri()
    ]
    assert page.complaints() == []


@pytest.mark.skipif(axe() is None, reason="axe-core is not installed (npm install axe-core)")
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (390, "dark"), (1280, "light")])
def test_axe_finds_no_violation(page, width, scheme):
    page.scheme(scheme)
    opened(page, RUN.replace("noise=1.1", "epsilon=3"), width)
    page.ask("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    if width == 390:
        page.click("#certify")
        page.wait("!document.querySelector('#certificate').hidden")
        page.click("#check")
        page.wait("!document.querySelector('#check-result').hidden", 60.0)
    assert violations(page) == []
    page.write("#epsilon", "-1")
    page.wait("document.querySelector('#epsilon').hasAttribute('aria-invalid')")
    assert violations(page) == []
    page.scheme("light")


@pytest.mark.parametrize("width", [320, 1280])
def test_nothing_sticks_out(page, width):
    opened(page, RUN, width)
    page.ask("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    assert page.ask("document.documentElement.scrollWidth") <= width


WRONG = [
    ("records", "0", "Number of records must be a whole number from 1"),
    ("batch", "70000", "Batch size must be at most the number of records, 60000."),
    ("epochs", "1.5", "Epochs must be a whole number"),
    ("delta", "1", "δ must be a number"),
    ("delta", "", "δ must be a number"),
    ("noise", "<b>1</b>", "Noise multiplier must be a number"),
    ("noise", "Infinity", "Noise multiplier must be a number"),
]


def test_a_wrong_entry_is_named_and_has_no_answer(page):
    opened(page)
    for field, typed, said in WRONG:
        right = page.ask(f"document.querySelector('#{field}').value")
        page.write(f"#{field}", typed)
        page.wait(f"document.querySelector('#{field}-wrong').textContent")
        assert text(page, f"#{field}-wrong").startswith(said)
        assert page.ask("document.querySelector('#results').hidden") is True
        assert (
            page.ask(f"document.querySelector('#{field}').getAttribute('aria-invalid')") == "true"
        )
        page.write(f"#{field}", right)
        page.wait(f"document.querySelector('#{field}-wrong').textContent === ''")


@pytest.mark.parametrize("link", ["#noise=<script>&records=5", "#%%"])
def test_a_broken_link_shows_the_example(page, link):
    opened(page, link)
    assert page.ask("document.querySelector('#records').value") == "60000"
    assert page.complaints() == []


def test_typing_on_ends_with_the_last_question(page):
    opened(page)
    for epochs in ("1", "20", "300", "61"):
        page.write("#epochs", epochs)
        page.ask("document.querySelector('#form').requestSubmit()")
    page.wait(f"location.hash.includes('epochs=61') && {DONE}")
    page.wait("document.querySelector('#sentence').textContent.includes('61 epochs')")
    assert text(page, "#run").split()[0] == "14,335"


def test_keyboard_and_names(page):
    opened(page)
    page.ask("document.activeElement.blur()")
    page.press("Tab", 9)
    assert page.ask("document.activeElement.className") == "skip"
    page.press("Tab", 9)
    assert page.ask("document.activeElement.id") == "records"
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    named = [
        (node["role"]["value"], node.get("name", {}).get("value"))
        for node in nodes
        if not node["ignored"]
    ]
    pictures = [name for role, name in named if role in ("image", "img")]
    assert len(pictures) == 2
    assert all(name.startswith("ε ") for name in pictures)
    assert {"Number of records", "Batch size, expected", "Epochs"} <= {
        name for role, name in named if role == "textbox"
    }
    assert page.ask("document.documentElement.lang") == "en"


def test_the_sentence_can_be_copied_and_the_page_printed(page):
    opened(page)
    sentence = text(page, "#sentence")
    assert "60,000 records" in sentence
    assert "certified upper bound" in sentence
    page.call("Emulation.setEmulatedMedia", media="print")
    assert page.ask("getComputedStyle(document.querySelector('.buttons')).display") == "none"
    page.call("Emulation.setEmulatedMedia", media="")
    paper = base64.b64decode(page.call("Page.printToPDF", printBackground=True)["data"])
    assert paper.startswith(b"%PDF")


def test_without_script_the_page_says_what_it_needs(page):
    page.open("about:blank")
    page.open(PAGE.as_uri(), script=False)
    assert "needs JavaScript" in page.ask("document.body.innerText")
