"""Refusals and warnings: they name the argument, and show nothing of what is private."""

import pickle
import threading
import traceback
import warnings

import numpy as np
import pytest

from accountant.errors import AccountantError
from accountant.learn import (
    Batches,
    ConvolutionalNetwork,
    LinearRegression,
    LogisticRegression,
    Noise,
    PerExampleModel,
    train_dp_sgd,
)
from accountant.learn.generation import Category, Domain, Numeric
from accountant.learn.local import KaryResponse, randomize_laplace
from accountant.learn.pate import GNMax, TeacherEnsemble, VoteStream
from accountant.learn.selection import AboveThresholdStream, report_noisy_max
from accountant.learn.validation import features, silence, targets

DOMAIN = Domain({"a": Numeric((0.0, 1.0)), "b": Category(("x", "y"))})


class Constant:
    def __init__(self, answer):
        self.answer = answer

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.full(len(X), self.answer)


def ensemble(labels):
    return TeacherEnsemble(lambda: Constant(0), 2, 3, rng=1).fit(np.zeros((5, 1)), labels)


def train(model, targets):
    return train_dp_sgd(
        model, np.zeros((len(targets), 1)), targets,
        batches=Batches(2, sampling_probability=0.1, steps=1), noise=Noise(1.0),
        clipping_norm=1.0, delta=1e-5,
    )  # fmt: skip


class NoTargets:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n


USERS = PerExampleModel(np.zeros(1), lambda w, x, y: x)

# What is called, and two private arguments that it refuses.
REFUSED = {
    "scores": (report_noisy_max, ([1.0, 71.5, np.nan], 1.0), ([np.inf, 2.0, 83.25], 1.0)),
    "an answer": (AboveThresholdStream(0.0, 1.0, 1.0).is_above, (np.nan,), (-np.inf,)),
    "values": (randomize_laplace, (np.ones((71, 2)), (0, 1), 1.0), (np.ones((9, 3)), (0, 1), 1.0)),
    "reports": (KaryResponse(1.0, 3).estimate, ([0, 7],), ([71, 1, 1, 1],)),
    "votes": (VoteStream(GNMax(1.0), 9).ask, ([3, -7],), ([-71, 2],)),
    "labels of teachers": (ensemble, (np.ones((71, 2)),), (np.ones((83, 2)),)),
    "more labels than records": (ensemble, (np.zeros(71, int),), (np.zeros(6, int),)),
    "columns of different lengths": (
        DOMAIN.encode, ({"a": [1.0] * 71, "b": ["x"]},), ({"a": [1.0], "b": ["y"] * 83},)
    ),
    "a table that is too wide": (DOMAIN.encode, (np.zeros((71, 3)),), (np.zeros((83, 3)),)),
    "targets of two columns": (
        train, (LogisticRegression(1), np.ones((71, 2))), (LogisticRegression(1), np.ones((83, 2)))
    ),
    "real targets of two columns": (
        train, (LinearRegression(1), np.ones((71, 2))), (LinearRegression(1), np.ones((83, 2)))
    ),
    "no targets of a user's model": (train, (USERS, NoTargets(71)), (USERS, NoTargets(83))),
    "a table of rows": (DOMAIN.encode, ([[71.0, "x"]],), ([[83.0, "y"], [0.5, "x"]],)),
}  # fmt: skip


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
def test_two_private_arguments_are_refused_with_the_same_words(refused):
    call, *given = refused
    seen = []
    for arguments in given:
        with pytest.raises(AccountantError) as caught:
            call(*arguments)
        text = "".join(traceback.format_exception_only(caught.value))
        seen.append((type(caught.value), text))
        assert caught.value.__context__ is None  # an earlier error would say what was given
        assert not any(digits in text for digits in ("71", "83", "nan", "inf"))
    assert seen[0] == seen[1]


def test_a_teacher_that_predicts_no_number_gives_no_warning():
    fitted = TeacherEnsemble(lambda: Constant(np.nan), 3, 2, rng=1).fit(
        np.zeros((6, 1)), np.ones(6, int)
    )
    with np.errstate(invalid="raise"):  # as RuntimeWarnings are errors here
        votes = fitted.votes(np.zeros((4, 1)))
    assert (votes.sum(axis=1) == 3).all()


def test_one_records_fraction_does_not_round_the_others_anew():
    # Of a list with a fraction NumPy makes doubles, which are no more rounded like integers.
    whole = 2**60 + 2**36 + 1
    single = np.dtype(np.float32)
    assert features([[whole]], 1, single)[0] == features([[whole], [0.5]], 1, single)[0]
    assert targets([whole], 1, 1, single)[0] == targets([whole, 0.5], 2, 1, single)[0]


def test_a_models_pickle_does_not_say_on_how_many_records_it_was_used():
    model = ConvolutionalNetwork((6, 6), 2, kernels=(2,))
    before = pickle.dumps(model)
    model.predict(np.zeros((71, 36)))
    model.input_gradient(np.zeros((71, 36)), np.zeros(71, int))
    assert len(pickle.dumps(model)) == len(before)
    assert not any("_shape" in vars(layer) for layer in model.layers)


def test_silence_ends_when_the_last_thread_leaves_it():
    before = list(warnings.filters)
    inside, leave = threading.Barrier(3), [threading.Event() for _ in "ab"]

    def wait(event):
        with silence():
            inside.wait()
            event.wait()

    threads = [threading.Thread(target=wait, args=(event,)) for event in leave]
    for thread in threads:
        thread.start()
    inside.wait()
    for event, thread in zip(leave, threads, strict=True):  # the first to enter may leave first
        with warnings.catch_warnings(record=True) as caught:
            warnings.warn("of a record", stacklevel=1)
        assert not caught
        event.set()
        thread.join()
    assert list(warnings.filters) == before
