"""One line for a call that must be refused, and what it must say."""

import pytest


def refused(error, says, call, *given, **named):
    """Check that a call raises an error whose message has these words."""
    with pytest.raises(error, match=says or None):
        call(*given, **named)
