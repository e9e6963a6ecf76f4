"""Deliberately broken variants of the shipped code, and the checks that must notice them."""

from support.planted import accounts, adapters, named, releases, run_accounts, runs
from support.planted.registry import Bug

BUGS: tuple[Bug, ...] = (*runs.BUGS, *run_accounts.BUGS, *releases.BUGS, *accounts.BUGS)
NAMED: tuple[Bug, ...] = (*named.BUGS, *adapters.BUGS)
