from fractions import Fraction

import dp_accounting
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant

from covey.errors import ParameterError
from covey.privacy.budget import (
    Charge,
    PrivacyStatement,
    check_delta,
    check_epsilon,
    delta_of,
    exact,
    make_budget,
    rho_for,
    split,
)


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
    assert sum(c.amount for c in charges.values()) == Fraction(1, 10)
    thirds = split(Fraction(1), {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})
    assert sum(c.amount for c in thirds.values()) == 1


@pytest.mark.parametrize("shares", [(0.5, 0.6), (0.5, 0.4), (-0.5, 1.5), ("x", 1), (float("nan"), 1)])
def test_a_split_that_does_not_sum_to_one_is_refused(shares):
    with pytest.raises(ParameterError):
        split(Fraction(1), dict(zip("ab", shares, strict=True)))


def test_a_statement_cannot_spend_more_than_it_promises():
    with pytest.raises(ParameterError, match="more than"):
        PrivacyStatement(make_budget(1), (Charge("a", Fraction(2)),), 10, "m", seeded=False)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1, 1e-9), (10, 1e-9), (0.5, 1e-5), (3, 1e-3)])
def test_zcdp_conversion_agrees_with_googles_accountant(epsilon, delta):
    """Google's dp-accounting, over a dense grid of orders, finds the same ε for the Gaussian with our ρ."""
    rho = float(make_budget(epsilon, delta).amount)
    accountant = RdpAccountant(orders=(1 + np.exp(np.linspace(np.log(1e-3), np.log(1e6), 3000))).tolist())
    accountant.compose(dp_accounting.GaussianDpEvent(1 / np.sqrt(2 * rho)))
    assert accountant.get_epsilon(delta) == pytest.approx(epsilon, rel=1e-4)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-9), (1e-12, 1e-9), (10, 1e-300), (0.01, 0.4)])
def test_the_conversion_never_gives_less_privacy_than_asked(epsilon, delta):
    """The δ proved at the returned ρ, in 60-digit arithmetic over many orders, is at most the δ asked for."""
    from mpmath import log as mplog
    from mpmath import mp, mpf

    mp.dps = 60
    rho = rho_for(Fraction(repr(float(epsilon))), Fraction(repr(float(delta))))
    orders = [1 + mpf(10) ** (mpf(k) / 400) for k in range(-2400, 6000)]
    proved = min(
        (a - 1) * (a * mpf(rho.numerator) / rho.denominator - mpf(epsilon)) + a * mplog(1 - 1 / a) - mplog(a - 1)
        for a in orders
    )
    assert proved <= mplog(mpf(delta)) + mpf("0.02")
    assert rho >= 0
    assert delta_of(0.01, 1.0, 20.0) == pytest.approx(19 * (0.2 - 1) + 20 * np.log1p(-1 / 20) - np.log(19))


def test_several_rows_per_person_pay_as_group_privacy_demands():
    one, five = make_budget(1.0), make_budget(1.0, rows_per_person=5)
    assert five.amount == one.amount / 5
    one, five = make_budget(1.0, 1e-9), make_budget(1.0, 1e-9, rows_per_person=5)
    assert five.amount == one.amount / 25
    assert "person with 5 rows" in str(PrivacyStatement(five, (), 10, "m", seeded=False))


@pytest.mark.parametrize(("delta", "n"), [(-0.1, None), (1, None), (float("nan"), None), ("x", None), (0.01, 100)])
def test_impossible_deltas_are_refused(delta, n):
    with pytest.raises(ParameterError, match="delta"):
        check_delta(delta, n)
