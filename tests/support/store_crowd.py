"""Many clients of one store behind a barrier, killed at random and started again."""

import contextlib
import random
import subprocess
import sys
import time
from pathlib import Path

CLIENT = Path(__file__).with_name("store_client.py")


class Client:
    """A process that charges; what it wrote down is in a file, which outlives it."""

    def __init__(self, url, number, charges, directory):
        self.url, self.number, self.charges = url, number, charges
        self.notes = directory / f"client-{number}"
        self.notes.touch()
        self.process = None
        self.start()

    def decisions(self):
        """Return what was acknowledged: k -> admitted; a line may be cut off."""
        lines = self.notes.read_text().splitlines(keepends=True)
        words = [line.split() for line in lines if line.endswith("\n") and line != "ready\n"]
        return {int(k): sign == "+" for k, sign in words}

    def start(self):
        done = self.decisions()
        first = max(done, default=-1) + 1  # charged, perhaps, and not acknowledged
        text = self.notes.read_text()
        if text and not text.endswith("\n"):
            with self.notes.open("r+") as notes:
                notes.truncate(len(text[: text.rfind("\n") + 1].encode()))
        self.process = subprocess.Popen(
            [sys.executable, CLIENT, self.url, str(self.number), str(first), str(self.charges)],
            stdin=subprocess.PIPE,
            stdout=self.notes.open("a"),
            stderr=subprocess.PIPE,
        )

    def go(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(b"go\n")
            self.process.stdin.close()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()


def run(url, clients, charges, directory, *, kills, server=None, server_kills=0, seed=0):
    """Let ``clients`` make ``charges`` each; return what each of them was told."""
    rng = random.Random(seed)
    crowd = [Client(url, number, charges, directory) for number in range(clients)]
    while any("ready" not in each.notes.read_text() for each in crowd):
        for each in crowd:
            assert each.process.poll() is None, each.process.stderr.read().decode()[-2000:]
        time.sleep(0.02)
    for each in crowd:
        each.go()
    plan = ["client"] * kills + ["server"] * server_kills
    rng.shuffle(plan)
    total = clients * charges
    pause = total / 100_000  # reading the notes of all takes time from them
    while True:
        running = [each for each in crowd if each.process.poll() is None]
        for each in crowd:
            if each.process.poll() not in (None, 0):
                raise AssertionError(each.process.stderr.read().decode()[-2000:])
        if not running:
            break
        done = sum(len(each.decisions()) for each in crowd)
        # Spread the kills over the run: the k-th after k parts of all charges.
        if plan and done >= total * (kills + server_kills - len(plan)) / (kills + server_kills + 1):
            if plan.pop() == "server":
                server.kill()
                time.sleep(rng.random() * 0.1)
                server.start()
            else:
                victim = rng.choice(running)
                victim.kill()
                victim.start()
                victim.go()
        time.sleep(rng.random() * pause)
    return [each.decisions() for each in crowd]
