"""The certificate in a statement: the checker passes it, and the page says what it claims."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

import accountant as ac
from accountant.errors import ArgumentTypeError, DomainError
from accountant.report import Deployment, contents, statement


def of(*releases):
    ledger = ac.Accountant()
    for mechanism, count in releases:
        ledger.compose(mechanism, count)
    return ledger


def sampled(sigma, probability):
    return ac.PoissonSampled(ac.Gaussian(sigma), probability)


LEDGERS = {
    "dp-sgd": of((sampled(1.1, 0.01), 1000)),
    "two kinds": of((sampled(1.1, 0.01), 200), (ac.Gaussian(5.0), 2)),
    "on a grid": of((ac.Laplace(3.0), 20)),
    "pure": of((ac.PureDP(0.1), 3)),
}


class Page(HTMLParser):
    """Collects the link that saves the certificate, its text, and the ε that is claimed."""

    def __init__(self, text):
        super().__init__()
        self.inside, self.words, self.link = None, {"certificate": "", "claim": ""}, {}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.inside = found.get("id")
        if self.inside == "save":
            self.link = found

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside in self.words:
            self.words[self.inside] += data


@pytest.fixture(scope="module", params=LEDGERS)
def made(request):
    return statement(LEDGERS[request.param], 1e-5)


@pytest.mark.long(keep=1)
def test_the_checker_passes_what_the_page_encloses(made):
    pytest.importorskip("flint")
    from dp_verifier import Refused, check

    page = Page(made.html())
    text = base64.b64decode(page.link["href"].split("base64,")[1]).decode()
    claim, _ = check(text)
    assert page.link["download"] == "certificate.json"
    assert page.words["certificate"] == text == made.certificate.text
    document = json.loads(text)
    claimed = document["claim"]["epsilon"]
    assert float(claim.epsilon) == claimed == float(page.words["claim"])
    assert made.headline.epsilon_lower <= claimed
    # A grid answers within its tolerance, with digits that depend on what was asked before.
    assert claimed == pytest.approx(made.headline.epsilon, rel=3e-6)
    larger = claimed / made.headline.epsilon - 1
    assert made.certificate.larger == pytest.approx(max(larger, 0.0), abs=1e-15)
    assert document["claim"]["delta"] == made.headline.delta
    assert document["claim"]["relation"] == made.relation
    document["claim"]["epsilon"] = 0.99 * made.headline.epsilon_lower
    with pytest.raises(Refused):
        check(json.dumps(document))


def test_every_format_has_the_same_certificate(made):
    text = made.certificate.text
    digest = hashlib.sha256(text.encode()).hexdigest()
    told = json.loads(made.json())["statement"]["certificate"]
    assert (told["text"], told["digest"], told["reason"]) == (text, digest, "")
    assert re.search(r"```json\n(.*?)```", made.markdown(), re.S)[1] == text
    for page in (made.html(), made.markdown()):
        assert digest in page
        assert "dp-verify certificate.json" in page
        assert "accountant certify --ledger LEDGER --delta 1e-5 -o certificate.json" in page
        assert ("This is larger than" in page) == (made.certificate.larger > 1e-8)


NONE = {
    "another mechanism": (of((ac.ZCDP(0.1), 3)), 1e-5, "a certificate is for Gaussian noise"),
    "nothing": (ac.Accountant(), 1e-5, "nothing was released"),
    "pure privacy": (of((ac.PureDP(0.1), 3)), 0.0, "a δ above 0"),
    "no guarantee": (of((ac.ApproximateDP(1.0, delta=0.1), 1)), 1e-5, "no finite ε is known"),
    "many kinds": (
        of(*((ac.Gaussian(3.0 + k / 100), 1) for k in range(contents.MOST_KINDS + 1))),
        1e-5,
        "51 kinds of releases",
    ),
}


@pytest.mark.parametrize("name", NONE)
def test_a_page_without_one_says_why(name):
    ledger, delta, reason = NONE[name]
    made = statement(ledger, delta)
    assert reason in made.certificate.reason
    assert made.certificate.text is None
    for page in (made.html(), made.markdown()):
        assert "encloses no certificate: " in page
        assert "dp-verify certificate.json" not in page
    assert reason in made.html()


def test_one_that_is_not_asked_for_is_not_made(monkeypatch):
    monkeypatch.setattr(contents, "certificate", None)
    made = statement(LEDGERS["pure"], certificate=False)
    assert made.certificate.reason == "none was asked for"
    assert "encloses no certificate: none was asked for" in made.html()


def test_one_that_is_too_long_or_fails_leaves_the_page(monkeypatch):
    monkeypatch.setattr(contents, "MOST_BYTES", 100)
    assert "bytes" in statement(LEDGERS["pure"]).certificate.reason

    def fails(ledger, delta):
        raise OverflowError("out of range\x1b")

    monkeypatch.setattr(contents, "certificate", fails)
    assert statement(LEDGERS["pure"]).certificate.reason == "out of range\ufffd"


@pytest.mark.parametrize(
    ("values", "error", "says"),
    [
        ({"records": 0}, DomainError, "records"),
        ({"user_records": 2_000_000}, DomainError, "user_records"),
        ({"model": "trusted"}, DomainError, "model"),
        ({"title": 3}, ArgumentTypeError, "title"),
        ({"documentation": "javascript:alert(1)"}, DomainError, "https://"),
        ({"registry": 3}, ArgumentTypeError, "registry"),
        ({"colour": "blue"}, DomainError, "'colour'"),
    ],
)
def test_bad_values_are_named(values, error, says):
    with pytest.raises(error, match=says):
        Deployment.of(values)
