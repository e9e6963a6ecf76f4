"""Ten questions of a reviewer who has never seen the library, answered by the page alone."""

import html
import re
from fractions import Fraction

import pytest

import accountant as ac
from accountant._basics.display import percent, text_up
from accountant.report import Deployment, statement

TOLD = Deployment(
    title="Readmission model",
    unit="one visit",
    records=60_000,
    user_records=5,
    tuning="The learning rate was chosen on public data.",
    outside="The number of visits is published.",
)


@pytest.fixture(scope="module")
def made():
    ledger = ac.Accountant(ac.Budget(3.0, 1e-6))
    ledger.step(noise_multiplier=1.1, sampling_probability=0.01, count=1000, label="training")
    ledger.compose(ac.Gaussian(20.0), 2, label="histogram")
    return ledger, statement(ledger, deployment=TOLD, checksum="sha256:abc")


def words(page):
    """Return what a reader sees, without tags, figures and scripts."""
    body = page[page.index("<body") :]
    for tag in ("script", "svg"):
        body = re.sub(rf"<{tag}\b.*?</{tag}>", " ", body, flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


def _person(ledger):
    whole = ac.Composition(ledger.counts).group(5)
    return text_up(float(whole.epsilon(1e-6)), 5)


QUESTIONS = {
    "What is the ε, at which δ?": lambda b: f"ε ≤ {text_up(b.epsilon(1e-6), 5)} at δ = 1e-6",
    "Is that large or small?": lambda b: "Moderate. A real guarantee, weaker than the strong one",
    "Whose data is protected, and what about it?": lambda b: (
        "the presence of one record: one visit"
    ),
    "What if one person has several records?": lambda b: f"such a person ε ≤ {_person(b)}",
    "Whom must I trust?": lambda b: "central: one party holds the records and runs the mechanisms",
    "Is δ small enough for this many records?": lambda b: (
        "Small enough: δ times the 60,000 records"
    ),
    "What does q mean here?": lambda b: "each record with probability 0.01, some 600 of the 60,000",
    "Was anything tuned on the data, and who paid?": lambda b: "chosen on public data",
    "What else was published that this does not cover?": lambda b: "number of visits is published",
    "How do I check the number myself?": lambda b: (
        "accountant show LEDGER --delta 1e-6 prints it again, where LEDGER is the file with the"
        " checksum sha256:abc"
    ),
    "Could more be released without anybody noticing?": lambda b: (
        "The ledger refuses every release beyond ε = 3 at δ = 1e-6"
    ),
    "What could the best attacker do?": lambda b: "No attack does better than this",
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_page_alone_answers(made, question):
    ledger, one = made
    answer = QUESTIONS[question](ledger)
    assert answer in words(one.html()), question
    told = re.sub(r"\\(.)", r"\1", re.sub(r"\s+", " ", one.markdown().replace("**", "")))
    assert answer in html.unescape(told), question


@pytest.mark.long
def test_what_nobody_said_is_not_claimed():
    ledger = ac.Accountant()
    ledger.step(noise_multiplier=1.1, sampling_probability=0.01, count=10)
    text = words(statement(ledger).html())
    assert text.count("Not stated") >= 3
    assert "The ledger enforces none" in text
    assert "The number of records was not stated" in text


def test_a_delta_of_one_record_is_called_too_large():
    ledger = ac.Accountant()
    ledger.compose(ac.Gaussian(3.0))
    page = statement(ledger, 1e-3, deployment=Deployment(records=1000)).html()
    assert "Too large: δ times the 1,000 records is 1" in words(page)


def test_a_person_without_a_theorem_gets_no_number():
    from accountant.sampling import FixedSizeSampled

    ledger = ac.Accountant()
    ledger.compose(FixedSizeSampled(2.0, batch_size=10, dataset_size=100))
    one = statement(ledger, deployment=Deployment(user_records=3))
    assert one.user.epsilon is None
    assert "No ε is known for such a person" in words(one.html())


def test_pure_ledgers_say_so_without_any_delta():
    ledger = ac.Accountant()
    ledger.compose(ac.Laplace(5.0), 3)
    assert "0.60001 at δ = 0 (pure differential privacy)" in words(statement(ledger).html())
    pure = statement(ledger, 0.0)
    assert pure.headline.epsilon == ledger.epsilon(0.0)
    assert "δ is 0: the bound on ε holds without exception" in words(pure.html())
    assert pure.gaussian is None


def test_a_search_over_runs_is_named_as_paid_for():
    from accountant.derived import BestOfRuns

    ledger = ac.Accountant()
    ledger.compose(BestOfRuns(ac.Gaussian(3.0), 0.5))
    assert "1 searches over private runs" in words(statement(ledger).html())


def test_shares_are_rounded_up():
    for share in (1 / 3, 0.5, 0.9996, 0.1234, 0.00123456, 0.7, 1e-9):
        shown = Fraction(percent(share).removesuffix(" %")) / 100
        assert Fraction(share) <= shown <= Fraction(share) * Fraction(101, 100)
    assert percent(1.0) == percent(1.5) == "100 %"
