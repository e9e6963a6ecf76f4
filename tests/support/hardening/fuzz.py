"""Fuzz the public entries, with ``PYTHONPATH=tests``.

``python -m support.hardening.fuzz TARGET|all SECONDS [SEED]``

Guided by coverage where atheris is installed and one target is named, else by chance. An input
that finds something is printed in hexadecimal; with ``TARGET 0 HEX`` it is run again.
"""

import faulthandler
import random
import signal
import sys
import time
import traceback
import warnings

SECONDS = 30.0  # of the processor: an entry that takes longer hangs


def too_slow(*_):
    raise TimeoutError(f"no answer in {SECONDS:.0f} s")


def by_chance(name, seconds, seed):
    """Run random inputs for so long; return how many kinds of findings there were."""
    from support.hardening.entries import TARGETS, Draw

    generator, began, count = random.Random(f"{name} {seed}"), time.monotonic(), 0
    slowest, findings = (0.0, ""), set()
    while time.monotonic() - began < seconds:
        draw, start = Draw(generator.randbytes(400)), time.monotonic()
        faulthandler.dump_traceback_later(300.0, exit=True)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            TARGETS[name](draw)
        except Exception as error:
            kind = repr(traceback.extract_tb((error.__cause__ or error).__traceback__)[-1])
            if kind not in findings:
                findings.add(kind)
                print(f"{name}: {error}\n  {kind}\n  {draw.used}", flush=True)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
        slowest = max(slowest, (time.monotonic() - start, draw.used))
        count += 1
    faulthandler.cancel_dump_traceback_later()
    print(f"{name}: {count} inputs in {seconds:.0f} s, {len(findings)} findings,"
          f" the slowest took {slowest[0]:.1f} s {slowest[1] if slowest[0] > 5 else ''}",
          flush=True)  # fmt: skip
    return len(findings)


def by_coverage(name, seconds, seed):
    """Run inputs that reach new lines of the package; ends the process, at the first finding."""
    import atheris

    with atheris.instrument_imports(include=["accountant"]):
        from support.hardening.entries import TARGETS, Draw

    options = ["-max_len=400", "-len_control=0", "-timeout=120", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], f"-max_total_time={seconds:.0f}", f"-seed={seed + 1}", *options],
                  lambda data: TARGETS[name](Draw(data)))  # fmt: skip
    atheris.Fuzz()


def main():
    warnings.simplefilter("error", RuntimeWarning)
    signal.signal(signal.SIGPROF, too_slow)
    name, seconds, seed = sys.argv[1], float(sys.argv[2]), (sys.argv[3:] or ["0"])[0]
    if seconds == 0.0:
        from support.hardening.entries import TARGETS, Draw

        TARGETS[name](Draw(bytes.fromhex(seed)))
        return 0
    if name != "all":
        try:
            by_coverage(name, seconds, int(seed))
        except ModuleNotFoundError:
            return by_chance(name, seconds, int(seed)) > 0
    from support.hardening.entries import TARGETS

    each = seconds / len(TARGETS)
    return sum(by_chance(target, each, int(seed)) for target in TARGETS) > 0


if __name__ == "__main__":
    sys.exit(main())
