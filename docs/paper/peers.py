"""Ask other accountants the questions of problems.json and store their answers in peers.json.

python docs/paper/peers.py     beside dp-accounting, Opacus and prv-accountant, some minutes

The paper's tables read the stored answers, so that building it needs none of these libraries.
"""

import datetime
import importlib.metadata
import json
import platform
import signal
import sys
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))

from comparison import libraries  # noqa: E402

LOADERS = {
    "dp-accounting, PLD": libraries._load_dp_pld,
    "Opacus, PRV": libraries._load_opacus_prv,
    "prv-accountant": libraries._load_prv_accountant,
    "Opacus, Rényi": libraries._load_opacus_rdp,
}
SECONDS = 60  # a question may take, as in benchmarks/compare.py


def _late(signum: int, frame: object) -> None:
    raise TimeoutError(f"over {SECONDS} s")


def answer(ask, problem):
    """Return an ε and the processor time, or the kind of error."""
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(SECONDS)
    began = time.process_time()
    try:
        found = float(ask(problem["q"], problem["sigma"], problem["steps"], problem["delta"]))
    except (Exception, MemoryError) as error:  # whatever a peer raises is its answer
        return {"error": type(error).__name__}
    finally:
        signal.alarm(0)
    return {"epsilon": found, "seconds": round(time.process_time() - began, 4)}


def main():
    warnings.simplefilter("ignore")
    problems = json.loads((HERE / "problems.json").read_text())
    answers = {}
    for name, load in LOADERS.items():
        ask = load()
        ask(0.01, 2.0, 10, 1e-5)  # imports and tables are no part of the time
        answers[name] = [answer(ask, each) for each in problems]
        print(name, answers[name], file=sys.stderr)
    packages = ("dp-accounting", "opacus", "prv-accountant")
    provenance = {
        "date": datetime.date.today().isoformat(),
        "python": platform.python_version(),
        "machine": "two shared cores, x86-64; processor time of one call, after one to warm up",
        "versions": {each: importlib.metadata.version(each) for each in packages},
    }
    stored = {"provenance": provenance, "problems": problems, "answers": answers}
    text = json.dumps(stored, indent=1, ensure_ascii=False, allow_nan=True)
    (HERE / "peers.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
