"""Workers of data-parallel runs: forked by a process that has imported torch once.

An import of torch with Opacus or Transformers costs seconds, far more than the runs.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import accountant as ac


def started(module, numbers, folder, seconds=300):
    """Start ``module`` as a program; return, by the number of workers, what each worker reports."""
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork processes")
    paths = [str(Path(each).parents[1]) for each in (ac.__file__, __file__)]
    environment = os.environ | {
        "GLOO_SOCKET_IFNAME": "lo",
        "PYTHONPATH": os.pathsep.join(paths),
        "OMP_NUM_THREADS": "1",  # a process with threads is not forked
        "OPENBLAS_NUM_THREADS": "1",
    }
    with subprocess.Popen(
        [sys.executable, module.__file__, str(folder), *map(str, numbers)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment,
        start_new_session=True,
    ) as launcher:  # fmt: skip
        try:
            told = launcher.communicate(timeout=seconds)[1]
        finally:
            _kill(launcher.pid)
    assert launcher.returncode == 0, told
    return {
        number: [json.loads(_report(folder, number, rank).read_text()) for rank in range(number)]
        for number in numbers
    }


def serve(work):
    """Be the program: call ``work(rank, number, port, folder)`` in the workers of each number."""
    folder, *numbers = sys.argv[1:]
    for number in map(int, numbers):
        port = _free_port()
        running = {_forked(work, rank, number, port, folder) for rank in range(number)}
        while running:
            worker, status = os.wait()
            running.discard(worker)
            if status != 0:  # the others would wait for it
                for each in running:
                    os.kill(each, signal.SIGKILL)
                sys.exit(f"a worker of {number} ended with status {status}")


def begin(rank, number, port):
    """Be one of the workers of torch, without its warnings."""
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(number)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.distributed.init_process_group("gloo")


def _forked(work, rank, number, port, folder):
    pid = os.fork()
    if pid != 0:
        return pid
    status = 1
    try:
        _report(folder, number, rank).write_text(json.dumps(work(rank, number, port, folder)))
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(status)


def _report(folder, number, rank):
    return Path(folder) / f"{number}-{rank}.json"


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _kill(group):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
