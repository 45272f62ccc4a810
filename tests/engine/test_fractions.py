"""Numbers that people and files write are read exactly, and within bounds: nothing that is written takes hours to read."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from covey.engine.fractions import amount, exact, written
from covey.errors import ArgumentError, ParameterError
from covey.workflow import PrivateOrder, as_words, from_words

ENDLESS = ["1e9999999", "1e99999999999", "1e-9999999", "9" * 10**6, "0." + "9" * 10**5, "1/" + "9" * 10**5]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.1", Fraction(1, 10)),
        ("1e-9", Fraction(1, 10**9)),
        (" 3 ", 3),
        ("1/3", Fraction(1, 3)),
        ("-.5", Fraction(-1, 2)),
    ],
)
def test_what_is_written_is_read_exactly(text, number):
    assert written(text, "epsilon") == number


UNREAD = [*ENDLESS, "1/0", "nan", "inf", "1_000", "", "one", "1e", "٣", "1,5", None, 3, [], True]


@pytest.mark.parametrize("text", UNREAD, ids=lambda text: str(text)[:20])
def test_what_is_no_number_of_ordinary_size_is_refused_by_name(text):
    for read in (written, amount):
        with pytest.raises(ArgumentError, match=r"^epsilon must be (a number|below 1e300)") as refusal:
            read(text, "epsilon")
        assert len(str(refusal.value)) < 200


@pytest.mark.parametrize("digits", [400, 5000])
def test_numbers_of_python_are_bounded_too(digits):
    for number in (10**digits, -(10**digits), Fraction(1, 10 ** (12 * digits)), np.longdouble("1e400"), float("inf")):
        with pytest.raises(ArgumentError, match=r"^delta must be "):
            exact(number, "delta")


@pytest.mark.parametrize("number", [True, None, "0.1", Decimal("0.1"), 1j])
def test_what_is_no_number_of_python_is_refused(number):
    with pytest.raises(ArgumentError, match=r"^delta must be a number, got "):
        exact(number, "delta")


def test_numbers_of_python_mean_what_their_owner_would_write():
    assert exact(0.1, "epsilon") == Fraction(1, 10)
    assert exact(np.float64(0.1), "epsilon") == Fraction(1, 10)
    assert exact(np.int64(3), "epsilon") == exact(3, "epsilon") == 3


def test_what_was_paid_is_not_negative():
    assert amount("0", "a charge") == 0
    with pytest.raises(ArgumentError, match="a charge must not be negative, got '-1/3'"):
        amount("-1/3", "a charge")


def test_an_order_is_written_down_and_read_with_the_same_bounds(tmp_path):
    order = PrivateOrder(tmp_path / "t.csv", None, tmp_path / "b", epsilon=0.1, delta=Fraction(1, 10**9), dataset="d")
    words = as_words(order)
    assert from_words(words).epsilon == Fraction(1, 10)  # and not the float's own fraction
    for wrong in ENDLESS:
        with pytest.raises(ParameterError, match="delta must be"):
            from_words(words | {"delta": wrong})
