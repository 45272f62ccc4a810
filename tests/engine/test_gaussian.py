"""Gaussian differential privacy against 400-digit arithmetic and Google's accountant."""

from decimal import Decimal, localcontext
from fractions import Fraction

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
from mpmath import erfc, exp, mpf, pi, sqrt, workdps

from covey.engine.gaussian import (
    DIGITS,
    _mills,
    delta_above,
    epsilon_above,
    mu_above,
    pure_within,
    rho_of_pure,
    rho_within,
)


def number(x):
    return mpf(x.numerator) / x.denominator


def true_delta(rho, epsilon):
    """Balle and Wang's δ(ε), by the formula as it is printed; 400 digits bear its cancellations."""
    mu, e = sqrt(2 * number(rho)), number(epsilon)
    first, second = (erfc(x / sqrt(mpf(2))) / 2 for x in (e / mu - mu / 2, e / mu + mu / 2))
    return first - exp(e) * second


CASES = [
    ("1", "1e-9"),
    ("0.1", "1e-9"),
    ("10", "1e-9"),
    ("1e-12", "1e-9"),
    ("10", "1e-300"),
    ("1e-12", "1e-300"),
    ("0.01", "0.4"),
    ("1e-12", "0.9"),
    ("1e6", "1e-3"),
    ("1e6", "0.999999"),
    ("3", "1e-400"),
]


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_the_conversion_never_gives_less_privacy_than_asked_and_little_more(epsilon, delta):
    e, d = Fraction(epsilon), Fraction(delta)
    rho = rho_within(e, d)
    with workdps(1200 if delta == "1e-400" else 400):
        assert true_delta(rho, e) <= number(d)
        assert true_delta(rho * (1 + Fraction(1, 10**9)), e) > number(d)
        bound = delta_above(rho, e)
        assert true_delta(rho, e) <= number(bound) <= true_delta(rho, e) * (1 + mpf(10) ** -40)
    # 40 binary digits, whatever the size: the ledger writes it down exactly.
    assert rho.denominator & (rho.denominator - 1) == 0
    assert (rho.numerator // (rho.numerator & -rho.numerator)).bit_length() <= 41


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1, 1e-9), (10, 1e-9), (0.5, 1e-5), (3, 1e-3)])
def test_google_agrees(epsilon, delta):
    """dp-accounting's privacy loss distribution of the Gaussian mechanism, within its discretisation."""
    rho = float(rho_within(Fraction(str(epsilon)), Fraction(str(delta))))
    sigma = 1 / np.sqrt(2 * rho)
    found = from_gaussian_mechanism(sigma, value_discretization_interval=1e-4 * epsilon)
    assert found.get_epsilon_for_delta(delta) == pytest.approx(epsilon, rel=2e-3)
    loose = from_gaussian_mechanism(sigma * 0.97, value_discretization_interval=1e-4 * epsilon)
    assert loose.get_epsilon_for_delta(delta) > epsilon * 1.01  # 3% less noise is seen
    assert dp_accounting.get_epsilon_gaussian(sigma, delta) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("x", ["0", "1e-30", "0.5", "5.999999", "6", "6.5", "40", "1e4"])
def test_mills_ratio(x):
    with workdps(150), localcontext() as context:
        context.prec = DIGITS
        found = _mills(Decimal(x))
        exact = erfc(mpf(x) / sqrt(mpf(2))) / 2 * sqrt(2 * pi) * exp(mpf(x) ** 2 / 2)
        assert abs(mpf(str(found)) / exact - 1) < mpf(10) ** -66


def test_epsilon_is_rounded_up_to_its_unit():
    d = Fraction(1, 10**9)
    rho = rho_within(Fraction(1), d)
    assert epsilon_above(rho, d) == 1
    assert epsilon_above(rho / 4, d) < Fraction(1, 2)
    assert delta_above(rho / 4, epsilon_above(rho / 4, d)) <= d
    assert delta_above(rho / 4, epsilon_above(rho / 4, d) - Fraction(1, 10**9)) > d
    assert epsilon_above(Fraction(1, 10**24), d) == 0  # ε = 0 is enough


def test_mu_is_rounded_up():
    for rho in (Fraction(1, 2), Fraction(1, 3), Fraction(12345, 7), Fraction(1, 10**20)):
        mu = mu_above(rho)
        assert Fraction(mu) ** 2 >= 2 * rho
        assert Fraction(mu) ** 2 <= 2 * rho * (1 + Fraction(3, 1000))
    assert mu_above(Fraction(2)) == Decimal("2.001")  # never less than it is, whatever the root's rounding


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-4", "0.869", "1", "5", "40", "100"])
def test_pure_epsilon_is_the_mu_that_nothing_smaller_covers(epsilon):
    """Total variation decides: (e^ε − 1)/(e^ε + 1) for randomised response, 2Φ(μ/2) − 1 = δ(0) for Gaussians."""
    e = Fraction(epsilon)
    rho = rho_of_pure(e)
    with localcontext() as context:
        context.prec = 100
        spread = 1 / (1 + (-Decimal(epsilon)).exp()) - 1 / (1 + Decimal(epsilon).exp())
    assert delta_above(rho, Fraction(0)) >= Fraction(spread) > delta_above(rho * (1 - Fraction(1, 10**10)), Fraction(0))
    assert pure_within(rho) == e
    assert pure_within(rho - Fraction(1, 10**30)) == e - Fraction(1, 10**9)
    for other in (Fraction(1, 10), e / 2, e, 2 * e):  # and so at every ε, not only at 0
        assert float(delta_above(rho, other)) >= (1 - 1e-12) * max(0, pure_delta(float(e), float(other)))


def pure_delta(epsilon, other):
    """The δ of randomised response of ε at another ε."""
    return (exp(epsilon) - exp(other)) / (1 + exp(epsilon))


def test_a_large_pure_epsilon_counts_as_no_less_than_it_is():
    for e in (Fraction(101), Fraction(700), Fraction(10**9)):
        assert rho_of_pure(e) == 4 * e > rho_of_pure(Fraction(100))
        assert pure_within(rho_of_pure(e)) == e
    assert pure_within(Fraction(390)) == 100
    assert pure_within(Fraction(0)) == 0
