"""Gaussian differential privacy: what μ is worth in ε and δ, and what ε and δ buy in μ, never less private than asked.

A mechanism is μ-GDP if telling two neighbouring tables apart is no easier than telling N(0, 1) from N(μ, 1) (Dong, Roth and Su
2022). The Gaussian mechanism with μ = Δ₂/σ is exactly that, adaptive steps add their μ², and μ-GDP is (ε, δ)-DP for every ε at

    δ(ε) = Φ(−a) − e^ε·Φ(−b),  a = ε/μ − μ/2,  b = ε/μ + μ/2  (Balle and Wang 2018, Theorem 8)

and for no smaller δ. Since φ(a) = e^ε·φ(b) this is φ(a)·(m(a) − m(b)) with Mills' ratio m(x) = Φ(−x)/φ(x), which neither
overflows nor vanishes. It is computed in decimal arithmetic of 80 digits between proved bounds. Budgets are kept as ρ = μ²/2,
which adds.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, log, sqrt
from statistics import NormalDist

DIGITS = 80  # of decimal arithmetic: twenty beyond the ERROR that bounds allow for
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")
# What is computed below is right to 10^-66 of the terms that are added; bounds allow for a million times as much.
ERROR = Decimal(10) ** -60
FAR = 6  # from here on the continued fraction is used
SIGNIFICANT = 40  # binary digits of ρ
EXACT_PURE = 100  # up to this ε a pure charge is converted exactly: e^ε stays a number that floats and decimals hold


def delta_above(rho: Fraction, epsilon: Fraction) -> Fraction:
    """A bound above δ(ε) for μ² = 2ρ, larger by less than one part in 10^30 wherever δ exceeds 10^-30 of its terms."""
    with localcontext() as context:
        context.prec = DIGITS
        return Fraction(_delta(_decimal(rho), _decimal(epsilon)))


@lru_cache(maxsize=1024)
def rho_within(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest ρ = μ²/2, cut to 40 binary digits, for which μ-GDP proves (ε, δ)-DP.

    A root of log δ as a function of log μ is found in floating point; the cut ρ is then checked with the bound, and moved by
    its last digit until it is the last that passes.
    """
    log_mu = _root(epsilon, delta)
    guess = Fraction(exp(2 * log_mu)) / 2
    shift = SIGNIFICANT - (guess.numerator.bit_length() - guess.denominator.bit_length())
    unit = Fraction(1, 1 << shift) if shift >= 0 else Fraction(1 << -shift)
    rho = guess // unit * unit
    while delta_above(rho + unit, epsilon) <= delta:
        rho += unit
    while delta_above(rho, epsilon) > delta:
        rho -= unit
    return rho


@lru_cache(maxsize=1024)
def epsilon_above(rho: Fraction, delta: Fraction, unit: Fraction = Fraction(1, 10**9)) -> Fraction:
    """The least multiple of the unit at which μ-GDP with μ² = 2ρ proves (ε, δ)-DP; 0 if ε = 0 does."""
    low, high = -1, 1
    while delta_above(rho, high * unit) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if delta_above(rho, middle * unit) > delta else (low, middle)
    return high * unit


@lru_cache(maxsize=1024)
def rho_of_pure(epsilon: Fraction) -> Fraction:
    """A ρ = μ²/2 for which every ε-DP mechanism is μ-GDP: the least one, up to 10^-30, where ε ≤ 100.

    That is μ = 2Φ⁻¹(e^ε/(1 + e^ε)) (docs/proofs/filter.md). Beyond, ρ = 4ε: Φ(−z) ≤ e^{−z²/2}/2 at z² = 2ε.
    """
    if epsilon > EXACT_PURE:
        return 4 * epsilon
    with localcontext() as context:
        context.prec = DIGITS
        tail = 1 / (1 + _decimal(epsilon).exp())
        z = Decimal(-NormalDist().inv_cdf(float(tail)))
        for _ in range(4):  # Newton's steps: a float has eight digits or more of z, or z is below 10^-8
            z += (_tail(z) - tail) / ((-z * z / 2).exp() / (2 * PI).sqrt())
        quecto = ceil(Fraction(2 * z * z) * 10**30)
        while _tail((_decimal(Fraction(quecto, 10**30)) / 2).sqrt()) * (1 + ERROR) > tail * (1 - ERROR):
            quecto += 1
        return Fraction(quecto, 10**30)


@lru_cache(maxsize=1024)
def pure_within(rho: Fraction, unit: Fraction = Fraction(1, 10**9)) -> Fraction:
    """The largest multiple of the unit that, as pure ε, counts as no more than ρ: `rho_of_pure`, turned round."""
    epsilon = rho / 4
    if rho < 4 * EXACT_PURE:
        with localcontext() as context:
            context.prec = DIGITS
            tail = _tail((_decimal(rho) / 2).sqrt())
            epsilon = min(Fraction((1 / tail - 1).ln()), Fraction(EXACT_PURE))
    steps = epsilon // unit
    while steps > 0 and rho_of_pure(steps * unit) > rho:
        steps -= 1
    return steps * unit


def mu_above(rho: Fraction, digits: int = 4) -> Decimal:
    """√(2ρ), rounded up to so many significant digits: what a statement says."""
    with localcontext() as context:
        context.prec = DIGITS
        root = _decimal(2 * rho).sqrt() * (1 + ERROR)
        context.prec, context.rounding = digits, "ROUND_CEILING"
        return +root


def _root(epsilon: Fraction, delta: Fraction) -> float:
    """log μ with δ(ε) = δ, in floating point."""
    from scipy.optimize import brentq  # a ledger of charges that add up does not wait for it

    target = _log(delta)

    def excess(log_mu: float) -> float:
        return _log(delta_above(Fraction(exp(2 * log_mu)) / 2, epsilon)) - target

    # Two beginnings: the tail Φ(−a) alone, and δ(0) ≈ μ/√(2π).
    z, e = sqrt(max(2 * -target, 0.0)), float(epsilon)
    left = right = log(max(2 * e / (z + sqrt(z * z + 2 * e)), 2 * float(delta), 1e-150))
    step = 0.1
    while excess(left) > 0:
        left, step = left - step, 2 * step
    while excess(right) <= 0:
        right, step = right + step, 2 * step
    return float(brentq(excess, left, right, xtol=1e-15, rtol=1e-14))


def _delta(rho: Decimal, epsilon: Decimal) -> Decimal:
    """A bound above δ(ε), at the precision of the context."""
    mu = (2 * rho).sqrt()
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    density = (-a * a / 2).exp() / (2 * PI).sqrt()
    second = _mills(b)
    if a >= 0:
        first = _mills(a)
        return density * (first - second + (first + second) * ERROR) * (1 + ERROR)
    # Φ(−a) = 1 − Φ(a) below zero.
    return 1 - density * (_mills(-a) + second) + ERROR


def _mills(x: Decimal) -> Decimal:
    """Φ(−x)/φ(x) for x ≥ 0, right to 10^-66 of itself.

    Near zero by √(π/2)·e^{x²/2} − Σ x^{2n+1}/(2n+1)!!, which loses ten digits at x = 6; beyond by Laplace's continued fraction
    1/(x + 1/(x + 2/(x + …))), whose convergents lie on alternating sides.
    """
    if x >= FAR:
        depth = 256
        while True:
            low, high = (_continued(x, n) for n in (depth, depth + 1))
            if abs(high - low) <= high * Decimal(10) ** -72:
                return high
            depth *= 2
    term = total = x
    n = 1
    while term > total * Decimal(10) ** -85:
        n += 2
        term *= x * x / n
        total += term
    return (PI / 2).sqrt() * (x * x / 2).exp() - total


def _tail(x: Decimal) -> Decimal:
    """Φ(−x) for x ≥ 0, right to 10^-66 of itself."""
    return (-x * x / 2).exp() / (2 * PI).sqrt() * _mills(x)


def _continued(x: Decimal, depth: int) -> Decimal:
    """A convergent of Laplace's continued fraction."""
    value = x
    for k in range(depth, 0, -1):
        value = x + k / value
    return 1 / value


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def _log(x: Fraction) -> float:
    """Natural logarithm of a fraction that may be far below the floats."""
    with localcontext() as context:
        context.prec = 30
        return float(_decimal(x).ln())
