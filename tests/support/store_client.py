"""A client of a store that is killed at any moment: run as a program, by store_crowd.

``python store_client.py URL NUMBER FIRST LAST``: waits for a line, then charges with the keys
FIRST to LAST - 1 of client NUMBER in turn, and writes down each decision when it is made. Every
third charge is a reservation that is committed in part.
"""

import sys
import time

import accountant as ac
from accountant import store
from accountant.errors import LedgerConflict

BLOCKS = ["kill/data/1", "kill/data/2"]
STEP = ac.Gaussian(50.0)


def charge(shared, number, k):
    """Make one charge, of one release in the end; return whether it was admitted."""
    key = f"{number}-{k}"
    blocks = BLOCKS if k % 2 else BLOCKS[:1]
    try:
        if k % 3:
            shared.charge(blocks, STEP, key=key)
        else:
            shared.reserve(blocks, STEP, 2, key=key)
            shared.commit(key, 1)
    except store.BlockExceeded:
        return False
    except LedgerConflict as error:
        # It was killed after the commit: what was given back is not reserved again.
        if "was committed: 1 of 2" not in str(error):
            raise
    return True


def main():
    url, number, first, last = sys.argv[1], *map(int, sys.argv[2:5])
    with store.open(url, timeout=120.0) as shared:
        print("ready", flush=True)
        sys.stdin.readline()
        for k in range(first, last):
            while True:
                try:
                    admitted = charge(shared, number, k)
                    break
                except LedgerConflict as error:
                    if "could not be used" not in str(error):
                        raise
                    time.sleep(0.1)
            print(f"{k} {'+' if admitted else '-'}", flush=True)


if __name__ == "__main__":
    main()
