"""Every bad argument is refused, by name, with its requirement and the value received."""

import math
from fractions import Fraction

import numpy as np
import pytest

import accountant as ac
from accountant import checks
from accountant.checks import shown

GOOD = {"q": 0.01, "sigma": 1.0, "steps": 1000, "delta": 1e-5, "epsilon": 1.0, "orders": 2.0}
GOOD |= {"target_eps": 1.0}

# Every public function, with the arguments it takes.
FUNCTIONS = {
    ac.get_epsilon: ("q", "sigma", "steps", "delta"),
    ac.epsilon_bounds: ("q", "sigma", "steps", "delta"),
    ac.get_delta: ("q", "sigma", "steps", "epsilon"),
    ac.delta_bounds: ("q", "sigma", "steps", "epsilon"),
    ac.get_rdp: ("q", "sigma", "steps", "orders"),
    ac.calibrate_sigma: ("target_eps", "delta", "q", "steps"),
    ac.calibrate_steps: ("target_eps", "delta", "q", "sigma"),
    ac.calibrate_q: ("target_eps", "delta", "sigma", "steps"),
}

OUTSIDE = {
    "q": [-1e-300, -1, 1.0 + 2**-52, 2, math.nan, math.inf, -math.inf],
    "sigma": [0.0, -0.0, 0, -1.0, math.nan, -math.inf],
    "steps": [-1, -(10**30), 2**53 + 1, 10**30, 10**5000, np.int64(-1)],
    "delta": [-1e-300, 1.0, 1, 2.0, math.nan, math.inf],
    "epsilon": [-1e-300, -1, math.nan, -math.inf],
    "orders": [1.0, 1, 0.5, -2.0, math.nan, math.inf],
    "target_eps": [0.0, 0, -1.0, math.nan, math.inf],
}

WRONG_TYPE = ["0.5", b"0.5", "", None, 0.5 + 0j, True, False, np.True_, np.complex128(0.5)]
WRONG_TYPE += [object(), {}, {0.5}, Fraction(1, 3), np.array("0.5"), np.datetime64("2020-01-01")]
WRONG_TYPE += [["a"], [None], [True], [[1, False]], [0.5 + 0j], [[0.5], [0.5, 0.5]]]
WRONG_TYPE += [np.array([True]), np.array([0.5 + 0j]), np.array([0.5], dtype=object)]

CASES = [
    pytest.param(function, name, id=f"{function.__name__}-{name}")
    for function, names in FUNCTIONS.items()
    for name in names
]


def call(function, **changed):
    return function(**{name: GOOD[name] for name in FUNCTIONS[function]} | changed)


@pytest.mark.long(keep=31)
@pytest.mark.parametrize(("function", "name"), CASES)
def test_outside_the_domain(function, name):
    for value in OUTSIDE[name]:
        with pytest.raises(ac.DomainError, match=rf"^{name} must be .*; got") as caught:
            call(function, **{name: value})
        assert shown(value) in str(caught.value), "the message shows the value received"


@pytest.mark.parametrize(("function", "name"), CASES)
def test_outside_the_domain_in_an_array(function, name):
    for value in OUTSIDE[name]:
        if isinstance(value, int) and abs(value) >= 2**63:
            continue
        array = np.array([GOOD[name], value, GOOD[name], value])
        if name == "steps":
            array = np.array([GOOD[name], value, GOOD[name], value], dtype=np.int64)
        with pytest.raises(
            ac.DomainError, match=rf"^{name} must be .*at index \(1,\) \(2 of 4 elements\)"
        ):
            call(function, **{name: array})


@pytest.mark.parametrize(("function", "name"), CASES)
def test_wrong_type(function, name):
    for value in WRONG_TYPE:
        with pytest.raises(ac.ArgumentTypeError, match=rf"^{name} must be .*; got"):
            call(function, **{name: value})
        with pytest.raises(TypeError):
            call(function, **{name: value})


@pytest.mark.parametrize(
    "steps", [10.0, 10.5, np.float64(10), np.array(10.0), np.array([10.0]), [10.0], [10, 1.5]]
)
def test_counts_are_true_integers(steps):
    with pytest.raises(ac.ArgumentTypeError, match=r"^steps must be an integer"):
        ac.get_epsilon(0.0, 1.0, steps, 1e-5)


@pytest.mark.parametrize(
    "steps", [10, np.int8(10), np.uint64(10), np.array(10), [10], (10,), np.array([10], np.uint8)]
)
def test_every_integer_type_counts(steps):
    assert ac.get_epsilon(1.0, 50.0, steps, 1e-5) == ac.get_epsilon(1.0, 50.0, 10, 1e-5)


@pytest.mark.parametrize("sigma", [2, 2.0, np.float32(2), np.float16(2), np.int64(2), np.array(2)])
def test_every_real_type_is_real(sigma):
    answer = ac.get_epsilon(1.0, sigma, 10, 1e-5)
    assert type(answer) is float
    assert answer == ac.get_epsilon(1.0, 2.0, 10, 1e-5)


def test_what_no_double_holds_is_refused_rather_than_rounded():
    for epsilon in (2**53 + 1, 10**400, np.longdouble(1) / 3):
        with pytest.raises(ac.DomainError, match=r"epsilon must be .* float64"):
            ac.get_delta(1.0, 1.0, 1, epsilon)
    with pytest.raises(ac.DomainError, match="no float64"):
        ac.get_delta(1.0, 1.0, 1, np.array([2**53 + 1]))
    with pytest.raises(ac.ArgumentTypeError):
        ac.get_delta(1.0, 1.0, 1, np.array([1], dtype=np.longdouble))


def test_mismatched_shapes_are_named():
    with pytest.raises(ac.DomainError, match=r"q \(2,\), sigma \(3,\), steps \(\), delta \(\)"):
        ac.get_epsilon([0.1, 0.2], [1.0, 2.0, 3.0], 10, 1e-5)
    with pytest.raises(ac.DomainError, match=r"target_eps \(2,\), delta \(3,\)"):
        ac.calibrate_sigma([1.0, 2.0], [1e-5, 1e-6, 1e-7])


@pytest.mark.parametrize("method", ["EXACT", "moments", "", None, 1, ["exact"]])
def test_unknown_methods(method):
    with pytest.raises(ac.DomainError, match="method must be one of 'exact', 'rdp'; got"):
        ac.get_epsilon(0.01, 1.0, 1000, 1e-5, method=method)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_workers(function):
    for workers in (0, -1):
        with pytest.raises(ac.DomainError, match=r"^workers must be"):
            call(function, workers=workers)
    for workers in (1.0, "2", True, [1]):
        with pytest.raises(ac.ArgumentTypeError, match=r"^workers must be"):
            call(function, workers=workers)


def test_the_fast_lane_admits_only_what_the_checks_admit():
    good = (0.01, 1.0, 1000, 1e-5, 1, None)
    assert checks.in_fast_lane(*good)
    for position, name in enumerate(("q", "sigma", "steps", "delta")):
        for value in OUTSIDE[name] + WRONG_TYPE:
            assert not checks.in_fast_lane(*good[:position], value, *good[position + 1 :])


def message(call, *arguments, error=ac.DomainError):
    with pytest.raises(error) as caught:
        call(*arguments)
    return str(caught.value)


def test_a_float_count_is_called_a_float():
    advice = "Pass an int. It counts releases; round epochs / q up to an int"
    for steps, got in (
        (1000.0, "the float 1000.0"),
        (np.float64(10.0), f"the float64 {np.float64(10.0)!r}"),
        (np.array([10.0]), "an array of float64"),
        ([10.0], "a list of float64 values"),
    ):
        said = message(ac.get_epsilon, 0.01, 1.0, steps, 1e-5, error=ac.ArgumentTypeError)
        assert said == f"steps must be an integer in [0, 2**53]; got {got}. {advice}"
    for steps in (True, np.True_):
        said = message(ac.get_epsilon, 0.01, 1.0, steps, 1e-5, error=ac.ArgumentTypeError)
        assert f"got the {type(steps).__name__} " in said, "no array was given"


def test_values_that_look_swapped_say_so():
    assert message(ac.get_epsilon, 5.0, 0.01, 1000, 1e-5).endswith("were q and sigma swapped?")
    assert message(ac.get_epsilon, [0.1, 5.0], 0.01, 1000, 1e-5).endswith("q and sigma swapped?")
    said = message(ac.get_epsilon, 0.01, 1.0, 1e-5, 1000, error=ac.ArgumentTypeError)
    assert said.endswith("were steps and delta swapped?")
    assert message(ac.get_epsilon, 0.01, 1.0, 1000, 3.0).endswith("is it another argument?")
    assert message(ac.calibrate_sigma, 1e-5, 2.0).endswith("were epsilon and delta swapped?")
    assert message(ac.PoissonSampled, ac.Gaussian(0.1), 1.5).endswith("the noise multiplier?")
    # A value on the other side of the domain was not swapped, but is wrong.
    assert "swapped" not in message(ac.get_epsilon, -5.0, 0.01, 1000, 1e-5)
    assert "swapped" not in message(ac.calibrate_sigma, 2.0, -1.0)


def test_one_number_is_no_array():
    assert checks.number(checks.Q, np.array(0.5)) == 0.5
    assert checks.whole(checks.STEPS, np.array(5)) == 5
    assert type(checks.whole(checks.STEPS, np.int8(5))) is int
    for check, argument, value, kind in (
        (checks.number, checks.Q, [0.5, 0.1], "number"),
        (checks.whole, checks.STEPS, [5, 6], "integer"),
    ):
        said = message(check, argument, value, error=ac.ArgumentTypeError)
        assert said.startswith(f"{argument.name} must be one {kind}; got an array of shape (2,)")


@pytest.mark.parametrize("value", [3, 7, 2**60, 4.0, True, "5", None])
def test_integers_between_two(value):
    wrong = ac.DomainError if type(value) is int else ac.ArgumentTypeError
    said = message(checks.integer, "k", value, 4, 6, error=wrong)
    assert said.startswith("k must be an integer in [4, 6]; got ")
    assert [checks.integer("k", good, 4, 6) for good in (4, 5, 6)] == [4, 5, 6]


def test_words_flags_functions_and_types():
    assert checks.choice("form", "a", ("a", "b")) == "a"
    assert "'a', 'b'; got 'c'" in message(checks.choice, "form", "c", ("a", "b"))
    assert checks.flag("exact", True) is True
    assert checks.flag("exact", False) is False
    for value in (0, 1, None, "True", np.True_):
        said = message(checks.flag, "exact", value, error=ac.ArgumentTypeError)
        assert said.startswith("exact must be True or False; got the ")
    assert checks.function("curve", max, "the order") is max
    said = message(checks.function, "curve", 3, "the order", "Write one", error=TypeError)
    assert said == "curve must be a function of the order; got the int 3. Write one"
    assert checks.instance("budget", None, (float, type(None)), "a float or None") is None
    said = message(checks.instance, "title", 3, str, "a str", error=ac.ArgumentTypeError)
    assert said == "title must be a str; got the int 3"
    for good in ([1], (1,), np.array([1])):
        assert checks.sequence("masses", good) is good
    for bad in (1, "12", {1}, np.array(1), np.eye(2), iter([1])):
        message(checks.sequence, "masses", bad, error=ac.ArgumentTypeError)


def test_relations():
    add, replace = ac.NeighbouringRelation.ADD_OR_REMOVE, ac.NeighbouringRelation.REPLACE_ONE
    assert checks.relation(add) is add
    said = message(checks.relation, "ADD_OR_REMOVE", error=ac.ArgumentTypeError)
    assert said.startswith("relation must be a NeighbouringRelation")
    assert checks.supported_relation("a sampler", add, [add]) is add
    said = message(
        checks.supported_relation, "a sampler", replace, [add], error=ac.UnsupportedError
    )
    assert repr(replace) in said
    assert repr(add) in said


def test_a_batch_fits_the_data():
    assert checks.batch_size(10, 10) == 10
    assert "at most dataset_size = 10; got 11" in message(checks.batch_size, 11, 10)


def test_a_renamed_argument_has_the_same_domain():
    renamed = checks.Q.renamed("rate")
    assert message(checks.number, renamed, 2.0).startswith("rate must be a sampling probability")
    assert "swapped" not in message(checks.number, renamed, 2.0), "a hint names other arguments"
    assert message(checks.number, checks.Q.renamed("rate", "Halve it"), 2.0).endswith("Halve it")
