"""Federated averaging in NVFlare with differential privacy for clients, simulated on one machine.

Eight hospitals fit one linear model to their own rows (``federated_nvflare_client.py``). The server
clips, adds up and adds noise once, or every hospital adds its own share; the run stops when the
budgets are spent, and goes on where it was after a crash.

    python examples/federated_nvflare.py [DIRECTORY] [central|secure]     (needs nvflare)
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from federated_nvflare_client import TRUTH, rows
from nvflare.app_common.np.np_model_persistor import NPModelPersistor
from nvflare.job_config.api import FedJob
from nvflare.job_config.defs import FilterType
from nvflare.job_config.script_runner import FrameworkType, ScriptRunner

from accountant.adapters.nvflare import PrivateFedAvg, SecureSumFilter

SITES, ROUNDS, DELTA = 8, 20, 1e-3
CLIENT = Path(__file__).with_name("federated_nvflare_client.py")


def job(directory, kind="central", rounds=ROUNDS):
    """Return the job (a controller, a script for clients, perhaps a filter), and the controller."""
    made = FedJob(name=f"private-{kind}")
    # Half of the hospitals allow less, and leave before the others.
    budgets = {f"site-{i + 1}": [9.0 if i % 2 else 13.0, DELTA] for i in range(SITES)}
    noise = {"noise_multiplier": 1.0, "clipping_norm": 1.0}
    if kind == "central":
        noise["sampling_probability"] = 0.75
    else:
        noise |= {"least_survivors": 4, "levels": 2**12, "distribution": "skellam"}
    controller = PrivateFedAvg(directory, budgets, rounds, delta=DELTA, round_timeout=15, **noise)
    made.to_server(controller)
    made.to_server(NPModelPersistor(model=np.zeros(len(TRUTH)).tolist()), id="persistor")
    made.to_clients(ScriptRunner(script=str(CLIENT), framework=FrameworkType.NUMPY))
    if kind == "secure":
        own = SecureSumFilter(**noise)
        made.to_clients(own, filter_type=FilterType.TASK_RESULT, tasks=["train"])
    return made, controller


def main(directory=None, kind="central", rounds=ROUNDS):
    """Simulate; return the rounds, ε, accuracy and model."""
    directory = directory or tempfile.mkdtemp()
    made, controller = job(directory, kind, rounds)
    made.simulator_run(tempfile.mkdtemp(), n_clients=SITES, threads=SITES, log_config="concise")
    # What a server that takes over would find.
    after = controller.federation(np.zeros(len(TRUTH)))
    x, y = rows(10**6)
    told = {
        "rounds": after.rounds,
        "epsilon": after.epsilon(DELTA),
        "accuracy": float(np.mean((x @ after.model > 0) == y)),
        "model": after.model,
    }
    after.close()
    print(
        f"{told['rounds']} rounds, ε = {told['epsilon']:.4f} at δ = {DELTA:g}, accuracy"
        f" {told['accuracy']:.2f}, model {told['model'].round(2)}"
    )
    return told


if __name__ == "__main__":
    main(*sys.argv[1:3])
