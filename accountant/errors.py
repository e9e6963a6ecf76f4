"""The exceptions that this package raises.

::

    AccountantError
     ├── DomainError        (ValueError)       an argument outside its domain; an unreachable target
     ├── ArgumentTypeError  (TypeError)        an argument of the wrong type
     ├── UnsupportedError   (TypeError)        a combination no theorem covers; names what works
     ├── PrecisionError     (ArithmeticError)  no certified number was reached, so none is returned
     ├── BudgetExceeded                        a charge that a privacy budget does not allow
     └── LedgerError        (ValueError)       a ledger file that is damaged, unknown or too new
          └── LedgerConflict                   a ledger file that someone else changed or holds

Each also inherits from the builtin that fits, so ``except ValueError`` and
``except AccountantError`` both catch what their readers expect.
"""

__all__ = [
    "AccountantError",
    "ArgumentTypeError",
    "BudgetExceeded",
    "DomainError",
    "LedgerConflict",
    "LedgerError",
    "PrecisionError",
    "UnsupportedError",
]


class AccountantError(Exception):
    """The root of every exception this package raises on purpose."""


class DomainError(AccountantError, ValueError):
    """An argument lies outside its domain, or a target cannot be reached."""


class ArgumentTypeError(AccountantError, TypeError):
    """An argument has the wrong type; nothing is converted silently."""


class UnsupportedError(AccountantError, TypeError):
    """No theorem covers this combination; the message names the nearest thing that works."""


class PrecisionError(AccountantError, ArithmeticError):
    """No certified answer was reached; nothing is returned rather than a number too small."""


class BudgetExceeded(AccountantError):  # noqa: N818 (a refusal, not a malfunction)
    """A charge would exceed a privacy budget; nothing was charged."""

    def as_dict(self) -> dict[str, object]:
        """Return what the refusal says, for JSON."""
        return {"refused": str(self)}


class LedgerError(AccountantError, ValueError):
    """A ledger file is damaged, unknown or of another version; nothing was read or recorded."""


class LedgerConflict(LedgerError):  # noqa: N818 (a refusal, not a malfunction)
    """A ledger file was changed, or is held, by someone else; nothing was written."""
