"""Forks, threads, workers and instruction sets: the numbers are the same, the noise is not."""

import os
import pickle
import shutil
import signal
import threading

import numpy as np
import pytest

import accountant as ac
from accountant._core import answers as core
from accountant.noise import SecureGenerator, generator
from support.native import SOURCES, Core, core_file
from support.threads import together


def forked(work):
    """Return what ``work`` returns in a forked process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with open(write, "wb") as out:
            pickle.dump(work(), out)
        os._exit(0)
    os.close(write)
    with open(read, "rb") as result:
        value = pickle.load(result)
    os.waitpid(child, 0)
    return value


DRAWS = {
    "words": lambda g: g.words(4).tobytes(),
    "normals": lambda g: g.rounded_normal(16, 2.0**30).tobytes(),
    "integers": lambda g: g.discrete_gaussian(32, 2**20).tobytes(),
    "subset": lambda g: g.subset(2000, 0.5).tobytes(),
    "state": lambda g: g.state(),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("resumed", [False, True])
def test_children_and_grandchildren_draw_different_noise(draw, resumed):
    own = SecureGenerator()
    if resumed:
        own = SecureGenerator()._continued(own.state())
    own.words(3)  # some are left over, and must not be handed out twice

    def family():
        return [forked(lambda: [draw(own)]), [draw(own)]]

    drawn = [forked(family), forked(family), [[draw(own)], [draw(own)]]]
    flat = [noise for pair in drawn for part in pair for noise in part]
    if draw is DRAWS["state"]:
        flat.pop()  # asked twice without a draw between, it is the same
    assert len(set(flat)) == len(flat)


def test_a_child_that_got_its_grandparents_number_draws_afresh(monkeypatch):
    own = SecureGenerator()
    number = os.getpid()
    mine = own.state()

    def child():
        monkeypatch.setattr(os, "getpid", lambda: number)
        return own.state()

    assert forked(child) != mine


def test_a_child_forked_while_a_thread_draws_does_not_wait_for_it():
    own = SecureGenerator()
    own._lock.acquire()  # as a thread of the parent would hold it
    try:
        thread = threading.Thread(target=lambda: results.append(forked(lambda: own.words(1)[0])))
        results = []
        thread.start()
        thread.join(10.0)
        assert len(results) == 1
    finally:
        own._lock.release()


def test_threads_that_share_a_generator_get_no_word_twice():
    own, drawn = SecureGenerator(), []

    def work():
        mine = [own.words(size) for size in (1, 3, 8, 17) * 300]
        drawn.append(np.concatenate(mine))

    together(*[work] * 6)
    words = np.concatenate(drawn)
    assert words.size == 6 * 300 * 29
    assert np.unique(words).size == words.size


@pytest.mark.long
def test_threads_that_share_a_generator_get_no_noise_twice():
    own, drawn = SecureGenerator(), []

    def work():
        mine = [own.rounded_normal(64, 2.0**39) for _ in range(200)]
        drawn.append(np.concatenate(mine))

    together(*[work] * 4)
    noise = np.concatenate(drawn)
    # 51,200 numbers among some 2^40: repeating a whole draw would repeat 64.
    assert np.unique(noise).size >= noise.size - 8


def test_noise_does_not_depend_on_the_number_of_threads(monkeypatch):
    size = 5 * generator.PIECE
    drawn = []
    for threads in (1, 2, 4):
        monkeypatch.setattr(generator, "THREADS", threads)
        drawn.append(SecureGenerator(7).rounded_normal(size, 1e6))
    assert all(np.array_equal(drawn[0], other) for other in drawn)


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_results_do_not_depend_on_workers(workers):
    rng = np.random.default_rng(4)
    q = 10.0 ** rng.uniform(-4, 0, 24)
    sigma = 10.0 ** rng.uniform(-0.3, 1, 24)
    steps = rng.integers(1, 5000, 24)
    for call, last in ((ac.get_epsilon, 1e-6), (ac.get_delta, 1.0), (ac.get_rdp, 8.5)):
        alone = call(q, sigma, steps, last)
        assert np.array_equal(alone, call(q, sigma, steps, last, workers=workers))
        singly = [call(a, b, int(n), last) for a, b, n in zip(q, sigma, steps, strict=True)]
        assert np.array_equal(alone, singly)


CLONES = '#define ACCT_CLONES ACCT_CLONES_FOR("avx2", "avx512f")'
ELSEWHERE = {
    "baseline": "#define ACCT_CLONES",
    "vectors of 256 bits": '#define ACCT_CLONES ACCT_CLONES_FOR("avx2")',
    "tuned for Intel": '#define ACCT_CLONES ACCT_CLONES_FOR("arch=skylake-avx512")',
}


@pytest.mark.long
@pytest.mark.parametrize("name", ELSEWHERE)
@pytest.mark.parametrize("count", [40, pytest.param(3000, marks=pytest.mark.slow)])
def test_other_instruction_sets_agree_within_the_brackets(tmp_path, name, count):
    sources = shutil.copytree(SOURCES, tmp_path / "src")
    text = core_file("clones.h", sources).read_text()
    assert text.count(CLONES) == 1
    core_file("clones.h", sources).write_text(text.replace(CLONES, ELSEWHERE[name]))
    other = Core(tmp_path, sources)
    for q, sigma, steps, epsilon, delta in problems(count):
        for function, last in (("delta_bounds", epsilon), ("epsilon_bounds", delta)):
            mine = getattr(core, function)(q, sigma, steps, last, core.EITHER)
            theirs = getattr(other, function)(q, sigma, steps, last, other.EITHER)
            assert max(mine[0], theirs[0]) <= min(mine[1], theirs[1]), (function, q, sigma, steps)


def problems(count):
    rng = np.random.default_rng(8)
    for _ in range(count):
        yield (
            float(10.0 ** rng.uniform(-6, 0)),
            float(10.0 ** rng.uniform(-0.5, 1.5)),
            float(round(10.0 ** rng.uniform(0, 6))),
            float(10.0 ** rng.uniform(-2, 1.5)),
            float(10.0 ** rng.uniform(-15, -1)),
        )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_waits_for_no_lock_of_its_parents_threads():
    from accountant.analyses.pld import upper
    from accountant.pairs import atoms

    with atoms._lock, upper._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            found = (2 * ac.DiscreteGaussian(3.0)).delta(0.1)
            os._exit(not 0.0 < found < 1.0)
        assert os.waitpid(child, 0)[1] == 0
