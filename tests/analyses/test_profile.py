"""The worst of several problems: how few of them are solved in full."""

from accountant.analyses import profile
from accountant.bounds import Bounds


class Problem:
    """Knows its answer, a quick bound on it, and how often it was asked."""

    def __init__(self, answer, slack):
        self.answer, self.slack, self.asked = answer, slack, 0
        self.parts = ()

    def ask(self):
        self.asked += 1
        return Bounds(self.answer * (1.0 - 1e-6), self.answer)

    def quick(self):
        return self.answer * (1.0 + self.slack)


def worst(problems):
    return profile._worst(problems, lambda one: one.ask(), lambda one: one.quick())


def test_the_worst_of_many_problems_is_solved_first_and_most_others_are_not():
    problems = [Problem(1.0 + i / 100.0, 1e-3) for i in range(30)]
    assert worst(problems).upper == 1.29
    assert sum(one.asked for one in problems) == 1


def test_a_quick_bound_that_decides_nothing_leaves_all_of_them():
    problems = [Problem(1.0 + i / 100.0, 1.0) for i in (2, 0, 1)]
    assert worst(problems) == Bounds(1.02 * (1.0 - 1e-6), 1.02)
    assert [one.asked for one in problems] == [1, 1, 1]
