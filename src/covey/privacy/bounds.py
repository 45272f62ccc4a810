"""The right-hand side of each theorem of the paper, as a number.

Where the paper hides an absolute constant behind ≲, its proof often shows one: then the bound returned here carries
that explicit constant and holds as it stands. Where even the proof hides it, `explicit` is False and the value is the
expression with constant 1: a rate to compare runs with, not a promise.

Rows are scaled into the unit ball; k counts groups, m synthetic rows, d the degree of the marginals.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import e, exp, isqrt, log, pi, sqrt

from covey.errors import ParameterError


@dataclass(frozen=True)
class Bound:
    """A number, whether it holds as it stands, and what it bounds."""

    value: float
    explicit: bool
    statement: str

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        kind = "explicit" if self.explicit else "up to an absolute constant that the paper does not give"
        return f"{self.statement} ≤ {self.value:.4g} ({kind})"


def proposition_3_7(t: int, alpha: float) -> Bound:
    """At most ((1/α + 1/2)·√(2eπ))ᵗ lattice points, for every α > 0; for α < 1 that is at most (7/α)ᵗ."""
    _check(t >= 0 and alpha > 0, f"need t ≥ 0 and alpha > 0, got {t} and {alpha}")
    # Beyond the largest float there is nothing to compare with.
    exponent = t * log((1 / alpha + 0.5) * sqrt(2 * e * pi))
    return Bound(exp(exponent) if exponent < 700 else float("inf"), True, "number of points of the covering")


def theorem_1_2(k: int) -> Bound:
    """Covariance loss of the best partition into at most k sets: 4α² + 1/√t with the choices (3.4) of t and α."""
    _check(k >= 3, f"need k ≥ 3, got {k}")
    return Bound(_covariance_loss(k), True, "‖Σ_X − Σ_Y‖₂, partition into k sets")


def theorem_1_2_equal(k: int) -> Bound:
    """The same for k sets of equal probability (section 3.6): the bound at ⌊√k⌋ plus 1/√k for the merged residuals."""
    _check(k >= 1, f"need k ≥ 1, got {k}")
    root = isqrt(k)
    value = 1.0 if root < 3 else min(1.0, _covariance_loss(root) + 1 / sqrt(k))
    return Bound(value, True, "‖Σ_X − Σ_Y‖₂, k groups of equal size")


def _covariance_loss(k: int) -> float:
    alpha = (log(log(k)) / log(k)) ** 0.25
    t = int(log(k) / log(7 / alpha))
    # The loss is at most E‖X‖² ≤ 1 for any partition, so a larger bound says nothing.
    return 1.0 if t == 0 else min(1.0, 4 * alpha**2 + 1 / sqrt(t))


def theorem_3_10(d: int) -> Bound:
    """Tensorization: ‖E X^{⊗d} − E Y^{⊗d}‖₂ is at most this factor times the covariance loss."""
    _check(d >= 2, f"need d ≥ 2, got {d}")
    return Bound(2.0 ** (d - 2) * (2.0**d - d - 1), True, "ratio of the degree-d moment loss to the covariance loss")


def proposition_3_14(k: int) -> Bound:
    """Optimality: some X in dimension p > 16·ln(2k) loses at least 1/(80·√ln(2k)) under every partition into k sets."""
    _check(k >= 1, f"need k ≥ 1, got {k}")
    return Bound(1 / (80 * sqrt(log(2 * k))), True, "a LOWER bound: least covariance loss of the separated set")


def theorem_4_1(k: int, d: int) -> Bound:
    """Anonymous microaggregation into k equal groups. Means (d = 1) are kept exactly."""
    _check(d >= 1, f"need d ≥ 1, got {d}")
    value = 0.0 if d == 1 else theorem_3_10(d).value * theorem_1_2_equal(k).value
    return Bound(value, True, "‖mean x^{⊗d} − mean y^{⊗d}‖₂")


def theorem_4_4(k: int, m: int, d: int) -> Bound:
    """Anonymous data of custom size: the squares add up because bootstrapping is unbiased (Lemma 4.3)."""
    _check(m >= 1, f"need m ≥ 1, got {m}")
    return Bound(theorem_4_1(k, d).value ** 2 + 1 / m, True, "E ‖mean x^{⊗d} − mean u^{⊗d}‖₂²")


def theorem_4_6(k: int, m: int, d: int, p: int) -> Bound:
    """Anonymous Boolean data, d ≤ p/2: rounding adds another 1/m, and Lemma 2.1 the factor 2ᵈ."""
    _check(2 * d <= p, f"need d ≤ p/2, got d = {d}, p = {p}")
    return Bound(2.0**d * (theorem_4_4(k, m, d).value + 1 / m), True, "E δ_d²")


def theorem_5_6(alpha: float, tail: float, d: int) -> Bound:
    """Microaggregation with more control; tail is ‖(I−P)S(I−P)‖₂."""
    return Bound(4.0**d * (4 * alpha**2 + tail), True, "‖mean x^{⊗d} − Σ w_j y_j^{⊗d}‖₂")


def theorem_5_9(  # the symbols of the theorem
    alpha: float, tail: float, d: int, *, s: int, b: float, n: int, weight_noise: float, point_noise: float
) -> Bound:
    """Damped, noisy microaggregation; weight_noise is ‖ρ‖₁ and point_noise is Σ w_j‖r_j‖₂."""
    value = theorem_5_6(alpha, tail, d).value + 2 * d * s * b / n + 2 * weight_noise + 2 * d * point_noise
    return Bound(value, True, "‖mean x^{⊗d} − Σ w̄_j ȳ_j^{⊗d}‖₂")


def theorem_5_13(n: int, p: int, d: int, epsilon: float, kappa: float) -> Bound:
    """Privacy and accuracy of the weighted output. The paper hides an absolute constant."""
    return Bound(16.0**d * _private_rate(n, p, epsilon, kappa), False, "E ‖mean x^{⊗d} − Σ w̄_j ȳ_j^{⊗d}‖₂²")


def theorem_5_14(n: int, p: int, d: int, epsilon: float, kappa: float, m: int) -> Bound:
    """Private data of custom size. The paper hides an absolute constant."""
    _check(m >= 1, f"need m ≥ 1, got {m}")
    return Bound(theorem_5_13(n, p, d, epsilon, kappa).value + 1 / m, False, "E ‖mean x^{⊗d} − mean u^{⊗d}‖₂²")


def theorem_5_15(n: int, p: int, d: int, epsilon: float, kappa: float, m: int) -> Bound:
    """Private Boolean data, d ≤ p/2. The paper hides an absolute constant."""
    _check(2 * d <= p and m >= 1, f"need d ≤ p/2 and m ≥ 1, got d = {d}, p = {p}, m = {m}")
    return Bound(32.0**d * (_private_rate(n, p, epsilon, kappa) + 1 / m), False, "E δ_d²")


def _private_rate(n: int, p: int, epsilon: float, kappa: float) -> float:
    _check(n >= 3 and p >= 1 and epsilon > 0 and 0 < kappa < 1, "need n ≥ 3, p ≥ 1, epsilon > 0 and 0 < kappa < 1")
    return log(log(n)) / (kappa * log(n)) + p / (exp((1 - kappa) * log(n)) * epsilon)


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ParameterError(what + ".")
