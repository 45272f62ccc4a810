from fractions import Fraction

import numpy as np
import pytest

from covey.errors import ParameterError
from covey.privacy.budget import Charge, PrivacyStatement, check_epsilon, exact, split


def test_numbers_are_what_a_person_wrote():
    assert exact(0.1, "x") == Fraction(1, 10)
    assert check_epsilon(np.float32(0.5)) == Fraction(1, 2)
    assert check_epsilon(2) == 2
    assert check_epsilon(Fraction(1, 3)) == Fraction(1, 3)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), "abc", None, True, 1e-13, [1]])
def test_impossible_epsilons_are_refused_by_name(wrong):
    with pytest.raises(ParameterError, match="epsilon"):
        check_epsilon(wrong)


def test_a_split_adds_up_exactly():
    charges = split(Fraction(1, 10), {"a": 0.3, "b": 0.7})
    assert sum(c.epsilon for c in charges.values()) == Fraction(1, 10)
    thirds = split(Fraction(1), {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})
    assert sum(c.epsilon for c in thirds.values()) == 1


@pytest.mark.parametrize("shares", [(0.5, 0.6), (0.5, 0.4), (-0.5, 1.5), ("x", 1), (float("nan"), 1)])
def test_a_split_that_does_not_sum_to_one_is_refused(shares):
    with pytest.raises(ParameterError):
        split(Fraction(1), dict(zip("ab", shares, strict=True)))


def test_a_statement_cannot_spend_more_than_it_promises():
    with pytest.raises(ParameterError, match="more than"):
        PrivacyStatement(Fraction(1), (Charge("a", Fraction(2)),), 10, "m", seeded=False)
