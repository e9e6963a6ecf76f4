"""Deliberately broken variants of the shipped code, and the checks that must notice them."""

from support.planted import accounts, adapters, named, releases, run_accounts, runs

BUGS = (*runs.BUGS, *run_accounts.BUGS, *releases.BUGS, *accounts.BUGS)
NAMED = (*named.BUGS, *adapters.BUGS)
