"""Settings every test shares."""

import os
from collections import Counter

import pytest
from hypothesis import settings

# A certified call takes between microseconds and, in the rare-event corner, some twenty
# milliseconds: a deadline would only report a busy machine. The seed is fixed so that a red run
# can be run again; `--hypothesis-profile explore` draws afresh.
settings.register_profile("default", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile("default")


@pytest.fixture
def sixty_digits():
    """Give mpmath more digits than what it judges, so that oracles need no tolerance."""
    with pytest.importorskip("mpmath").workdps(60):
        yield


@pytest.hookimpl(tryfirst=True)  # before -m looks at the markers
def pytest_collection_modifyitems(items):
    """Keep the first cases of a function marked ``long(keep=...)`` in the default run."""
    seen = Counter()
    for item in items:
        mark = item.get_closest_marker("long")
        if mark is not None and mark.kwargs:
            seen[item.parent, item.originalname] += 1
            if seen[item.parent, item.originalname] <= mark.kwargs["keep"]:
                item.own_markers.remove(mark)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Fail, where this is asked for, on a file that a missing library would leave out whole."""
    report = yield
    if report.outcome == "skipped" and "NO_FILE_SKIPPED" in os.environ:
        report.outcome, report.longrepr = "failed", str(report.longrepr)
    return report
