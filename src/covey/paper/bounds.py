"""The right-hand side of each theorem of the paper, as a number that holds as it stands.

Where the paper hides an absolute constant behind ≲, the number here carries the constant of its proof; where the proof hides
one too (PVEC, and with it Theorems 5.13 to 5.15), the constant of ours (docs/proofs/pvec.md). `constants="improved"` takes the
smaller constants of docs/proofs/constants.md: the same statements, proved with less waste.

Rows are scaled into the unit ball; k counts groups, m synthetic rows, d the degree of the marginals. Functions ending in
`_measured` take what a run measured (within cells, outside the subspace) where the theorem has a worst case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, e, exp, factorial, inf, isqrt, log, pi, sqrt
from typing import Literal

from covey.errors import ParameterError
from covey.paper.covering import LatticeCovering

Constants = Literal["paper", "improved"]
COUNTED = 1e9  # coverings of at most about so many points are counted rather than bounded


@dataclass(frozen=True)
class Bound:
    """A number and what it bounds."""

    value: float
    statement: str
    sign: Literal["≤", "≥"] = "≤"

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.statement} {self.sign} {self.value:.4g}"


# Section 1


def markov(mean_square: float, tolerance: float, share: float) -> Bound:
    """The remark after (1.2): with E δ_d² small, most marginals are close with high probability."""
    sizes_fit = mean_square >= 0 and tolerance > 0 and 0 < share <= 1
    _check(sizes_fit, "need mean_square ≥ 0, tolerance > 0 and 0 < share ≤ 1")
    value = min(1.0, mean_square / (tolerance**2 * share))
    return Bound(value, f"probability that more than {share:.3g} of the marginals are off by more than {tolerance:.3g}")


def variance_loss(k: int) -> Bound:
    """(1.3): a variable in [−1, 1], averaged over the k intervals of length 2/k into which it falls."""
    _check(k >= 1, f"need k ≥ 1, got {k}")
    return Bound(4 / k**2, "Var X − Var Y, k intervals of equal length")


# Section 2


def lemma_2_1(p: int, d: int, constants: Constants = "paper") -> Bound:
    """Mean square over d-subsets against the sum over off-diagonal entries: (2/p)ᵈ, exactly 1/(p(p−1)⋯(p−d+1))."""
    _check(1 <= 2 * d <= p, f"need d ≤ p/2, got d = {d}, p = {p}")
    value = (2 / p) ** d if constants == "paper" else 1 / (comb(p, d) * factorial(d))
    return Bound(value, "ratio of the mean square over subsets to ‖P_off X‖₂²")


# Section 3


def lemma_3_2(within: float, tail: float) -> Bound:
    """Covariance loss in two terms: within is E‖PX − PY‖₂², tail is ‖(I−P)S(I−P)‖₂."""
    return Bound(within + tail, "‖Σ_X − Σ_Y‖₂")


def lemma_3_3(t: int, constants: Constants = "paper") -> Bound:
    """The second moment beyond its t leading eigenvectors: 1/√t, and 1/(2√t) when the eigenvalues are counted twice."""
    _check(t >= 1, f"need t ≥ 1, got {t}")
    return Bound((1 if constants == "paper" else 0.5) / sqrt(t), "‖(I−P)S(I−P)‖₂")


def lemma_3_6(alpha: float) -> Bound:
    """No record is further than this from its group's mean inside the subspace."""
    _check(alpha > 0, f"need alpha > 0, got {alpha}")
    return Bound(2 * alpha, "‖PX − PY‖₂")


def within_cells(alpha: float, constants: Constants = "paper") -> float:
    """E‖PX − PY‖₂²: the square of Lemma 3.6, or α² because a mean is the best of all centres of its cell."""
    return (4 if constants == "paper" else 1) * alpha**2


def proposition_3_7(t: int, alpha: float) -> Bound:
    """At most ((1/α + 1/2)·√(2eπ))ᵗ lattice points, for every α > 0; for α < 1 that is at most (7/α)ᵗ."""
    _check(t >= 0 and alpha > 0, f"need t ≥ 0 and alpha > 0, got {t} and {alpha}")
    return Bound(_exp(t * log((1 / alpha + 0.5) * sqrt(2 * e * pi))), "number of points of the covering")


def theorem_1_2(k: int, constants: Constants = "paper") -> Bound:
    """Covariance loss of a lattice partition into at most k sets: 4α² + 1/√t with the choices (3.4) of t and α.

    Improved: α² + 1/(2√t), and the best t for which Proposition 3.7 allows k cells.
    """
    _check(k >= 3, f"need k ≥ 3, got {k}")
    return Bound(min(1.0, _covariance_loss(k, constants)), "‖Σ_X − Σ_Y‖₂, partition into k sets")


def theorem_1_2_equal(k: int, constants: Constants = "paper") -> Bound:
    """The same for k sets of equal probability (section 3.6): the bound at ⌊√k⌋ plus 1/√k for the merged residuals."""
    _check(k >= 1, f"need k ≥ 1, got {k}")
    root = isqrt(k)
    value = 1.0 if root < 3 else min(1.0, _covariance_loss(root, constants) + exp(-log(k) / 2))
    return Bound(value, "‖Σ_X − Σ_Y‖₂, k groups of equal size")


def _covariance_loss(k: int, constants: Constants) -> float:
    # The loss is at most E‖X‖² ≤ 1 for any partition, so a larger bound says nothing.
    if constants == "paper":
        alpha = (log(log(k)) / log(k)) ** 0.25
        t = int(log(k) / log(7 / alpha))
        return 1.0 if t == 0 else within_cells(alpha) + lemma_3_3(t).value
    t, alpha = best_lattice(k)
    return 1.0 if t == 0 else within_cells(alpha, constants) + lemma_3_3(t, constants).value


def best_lattice(k: int) -> tuple[int, float]:
    """t and α for which α² + 1/(2√t) is least while Proposition 3.7 allows k cells at most; t = 0 where no choice beats 1."""
    _check(k >= 1, f"need k ≥ 1, got {k}")
    best, chosen = 1.0, (0, 1.0)
    for t in range(1, int(log(k)) + 1):
        inverse = exp(log(k) / t) / sqrt(2 * e * pi) - 0.5
        loss = inf if inverse <= 1 else inverse**-2 + 0.5 / sqrt(t)
        if loss < best:
            best, chosen = loss, (t, 1 / inverse)
    return chosen


def median_tree(k: int) -> Bound:
    """2^L ≤ k equal groups by median cuts along principal directions lose at most √(4/√27)·L^(−1/4): docs/proofs/tree.md."""
    _check(k >= 2, f"need k ≥ 2, got {k}")
    return Bound(sqrt(4 / sqrt(27)) * (k.bit_length() - 1) ** -0.25, "‖Σ_X − Σ_Y‖₂, median tree with k groups")


def theorem_3_10(d: int, constants: Constants = "paper") -> Bound:
    """Tensorization: ‖E X^{⊗d} − E Y^{⊗d}‖₂ is at most this factor times the covariance loss.

    Improved: each of the C(d, r) terms with r factors X − Y keeps its own 2^(r−2), (3ᵈ − 2d − 1)/4 in all.
    """
    _check(d >= 2, f"need d ≥ 2, got {d}")
    value = 2.0 ** (d - 2) * (2.0**d - d - 1) if constants == "paper" else (3.0**d - 2 * d - 1) / 4
    return Bound(value, "ratio of the degree-d moment loss to the covariance loss")


def corollary_3_12(k: int, d: int, constants: Constants = "paper") -> Bound:
    """Theorem 1.2 for moments of every degree. Means (d = 1) are kept exactly."""
    return Bound(_factor(d, constants) * theorem_1_2(k, constants).value, "‖E X^{⊗d} − E Y^{⊗d}‖₂, k sets")


def remark_3_13(d: int, constants: Constants = "paper") -> Bound:
    """Tensorization of the centred moments E (X − EX)^{⊗d}: X − EX has norm at most 2, which costs 2^(d−2) more."""
    factor = theorem_3_10(d, constants).value
    return Bound(2.0 ** (d - 2) * factor, "ratio of the centred degree-d moment loss to the covariance loss")


def proposition_3_14(k: int) -> Bound:
    """Optimality: some X in dimension p > 16·ln(2k) loses at least 1/(80·√ln(2k)) under every partition into k sets."""
    _check(k >= 1, f"need k ≥ 1, got {k}")
    return Bound(1 / (80 * sqrt(log(2 * k))), "‖Σ_X − Σ_Y‖₂ of the separated set, every partition into k sets", "≥")


# Section 4


def theorem_4_1(k: int, d: int, constants: Constants = "paper") -> Bound:
    """Anonymous microaggregation into k equal groups. Means (d = 1) are kept exactly."""
    value = _factor(d, constants) * theorem_1_2_equal(k, constants).value
    return Bound(value, "‖mean x^{⊗d} − mean y^{⊗d}‖₂")


def lemma_4_3(m: int) -> Bound:
    """Bootstrapping: m independent draws from points of the unit ball."""
    _check(m >= 1, f"need m ≥ 1, got {m}")
    return Bound(1 / m, "E ‖mean Y_i^{⊗d} − E Y^{⊗d}‖₂²")


def theorem_4_4(k: int, m: int, d: int, constants: Constants = "paper") -> Bound:
    """Anonymous data of custom size: the squares add up because bootstrapping is unbiased (Lemma 4.3)."""
    value = theorem_4_1(k, d, constants).value ** 2 + lemma_4_3(m).value
    return Bound(value, "E ‖mean x^{⊗d} − mean u^{⊗d}‖₂²")


def theorem_4_6(k: int, m: int, d: int, p: int, constants: Constants = "paper") -> Bound:
    """Anonymous Boolean data, d ≤ p/2: rounding adds another 1/m, and Lemma 2.1 the factor 2ᵈ."""
    subsets = lemma_2_1(p, d, constants).value * float(p) ** d
    return Bound(min(1.0, subsets * (theorem_4_4(k, m, d, constants).value + 1 / m)), "E δ_d²")


# Section 5


def lemma_5_1(q: int) -> Bound:
    """PVEC in dimension q loses at most √(q(q+1)/2) − 1 ≤ 0.733·(q − 1) of λ₁, whatever A: docs/proofs/pvec.md."""
    _check(q >= 1, f"need q ≥ 1, got {q}")
    return Bound(sqrt(q * (q + 1) / 2) - 1, "E[λ₁(A) − ⟨Av, v⟩] for v from PVEC(A)")


def lemma_5_2(largest: float, q: int) -> Bound:
    """λ₁² − E⟨Av, v⟩² for v from PVEC(A): ⟨Av, v⟩ ≤ λ₁, so at most 2λ₁ times the loss of Lemma 5.1."""
    _check(largest >= 0, f"need a largest eigenvalue of 0 or more, got {largest}")
    return Bound(min(largest**2, 2 * largest * lemma_5_1(q).value), "λ₁(A)² − E⟨Av, v⟩² for v from PVEC(A)")


def lemma_5_3(t: int, beta: float) -> Bound:
    """Privacy of PROJ where A moves by β in spectral norm: β for each numerator and β for each normalising constant."""
    _check(t >= 0 and beta >= 0, f"need t ≥ 0 and beta ≥ 0, got {t} and {beta}")
    return Bound(2 * t * beta, "log-ratio of the densities of PROJ(A, t) and PROJ(B, t)")


def lemma_5_5(eigenvalues: Sequence[float], t: int) -> Bound:
    """Accuracy of PROJ(A, t), given A's eigenvalues: what PCA leaves, plus a loss of PVEC in each of t dimensions."""
    values = sorted((float(value) for value in eigenvalues), reverse=True)
    _check(bool(values) and values[-1] >= 0, "need at least one eigenvalue and none below 0")
    _check(0 <= t <= len(values), f"need t between 0 and {len(values)}, got {t}")
    left = sum(value**2 for value in values[t:])
    value = left + sum(lemma_5_2(values[0], len(values) - step).value for step in range(t))
    return Bound(value, "E ‖(I−P)A(I−P)‖₂² for P from PROJ(A, t)")


def theorem_5_6(alpha: float, tail: float, d: int, constants: Constants = "paper") -> Bound:
    """Microaggregation with more control; tail is ‖(I−P)S(I−P)‖₂."""
    factor = 4.0**d if constants == "paper" else _factor(d, constants)
    return Bound(factor * (within_cells(alpha, constants) + tail), "‖mean x^{⊗d} − Σ w_j y_j^{⊗d}‖₂")


def theorem_5_6_measured(within: float, tail: float, d: int) -> Bound:
    """Theorem 5.6 after the fact; within is the measured E‖PX − PY‖₂², which is at most α²."""
    return Bound(_factor(d, "improved") * lemma_3_2(within, tail).value, "‖mean x^{⊗d} − Σ w_j y_j^{⊗d}‖₂")


def theorem_5_9(  # the symbols of the theorem
    alpha: float, tail: float, d: int, *, s: int, b: float, n: int, weight_noise: float, point_noise: float
) -> Bound:
    """Damped, noisy microaggregation; weight_noise is ‖ρ‖₁ and point_noise is Σ w_j‖r_j‖₂. The letters are the theorem's."""
    value = theorem_5_6(alpha, tail, d).value + 2 * d * s * b / n + 2 * weight_noise + 2 * d * point_noise
    return Bound(value, "‖mean x^{⊗d} − Σ w̄_j ȳ_j^{⊗d}‖₂")


def theorem_5_9_measured(
    within: float, tail: float, d: int, *, small: float, weight_noise: float, point_noise: float
) -> Bound:
    """Theorem 5.9 after the fact; small is the share of the rows in blocks of fewer than b, at most sb/n."""
    value = theorem_5_6_measured(within, tail, d).value + 2 * d * small + 2 * weight_noise + 2 * d * point_noise
    return Bound(value, "‖mean x^{⊗d} − Σ w̄_j ȳ_j^{⊗d}‖₂")


def lemma_5_10(b: float, norm: float) -> Bound:
    """One row more or less moves a damped mean by at most this, norm being the longest row's."""
    _check(b > 0 and norm >= 0, f"need b > 0 and norm ≥ 0, got {b} and {norm}")
    return Bound(2 * norm / b, "‖D(I) − D(I ∖ {i})‖")


# The seven arguments of the last three are the theorems' own letters, and whose constants are meant.


def theorem_5_13(n: int, p: int, d: int, epsilon: float, kappa: float, constants: Constants = "paper") -> Bound:
    """Privacy and accuracy of the weighted output of Algorithm 4: the expectation of Theorem 5.9 (docs/proofs/pvec.md)."""
    square = _private_error(n, p, d, epsilon, kappa, constants) ** 2
    return Bound(min(4.0, square), "E ‖mean x^{⊗d} − Σ w̄_j ȳ_j^{⊗d}‖₂²")


# The symbols of Theorem 5.14.
def theorem_5_14(n: int, p: int, d: int, epsilon: float, kappa: float, m: int, constants: Constants = "paper") -> Bound:
    """Private data of custom size: bootstrapping adds 1/m, being unbiased."""
    value = theorem_5_13(n, p, d, epsilon, kappa, constants).value + lemma_4_3(m).value
    return Bound(min(4.0, value), "E ‖mean x^{⊗d} − mean u^{⊗d}‖₂²")


# The symbols of Theorem 5.15.
def theorem_5_15(n: int, p: int, d: int, epsilon: float, kappa: float, m: int, constants: Constants = "paper") -> Bound:
    """Private Boolean data, d ≤ p/2. Improved: the cube needs half the noise on means (docs/proofs/damping.md)."""
    subsets = lemma_2_1(p, d, constants).value * float(p) ** d
    error = _private_error(n, p, d, epsilon, kappa, constants, halved=constants == "improved")
    return Bound(min(1.0, subsets * (error**2 + 2 * lemma_4_3(m).value)), "E δ_d²")


def private_rate(n: int, p: int, epsilon: float, kappa: float) -> float:
    """log log n/(κ log n) + p/(n^(1−κ) ε): the rate that Theorems 5.13 to 5.15 state, with constant 1."""
    _check_private(n, p, epsilon, kappa)
    return log(log(n)) / (kappa * log(n)) + p * exp((kappa - 1) * log(n)) / epsilon


def _private_error(  # the symbols of Theorem 5.13
    n: int, p: int, d: int, epsilon: float, kappa: float, constants: Constants, halved: bool = False
) -> float:
    """Root mean square error of Algorithm 4 with the theorem's t, α and b."""
    _check_private(n, p, epsilon, kappa)
    alpha = log(n) ** -0.25
    t = min(int(kappa * log(n) / log(7 / alpha)), p)
    b = exp((log(p) + (1 - kappa) * log(n) - log(epsilon)) / 2)
    s = _cells(t, alpha)
    factor = 4.0**d if constants == "paper" else _factor(d, constants)
    subspace = _expected_tail(n, p, t, epsilon, constants) + (within_cells(alpha, constants) if t else 0.0)
    point_noise = sqrt(2 * p) * (6 if halved else 12) * sqrt(p) / (b * epsilon)
    weight_noise = sqrt(s) * sqrt(s + 1) * 6 * exp(-log(n)) / epsilon
    return factor * subspace + 2 * d * s * exp(log(b) - log(n)) + 2 * weight_noise + 2 * d * point_noise


def _expected_tail(n: int, p: int, t: int, epsilon: float, constants: Constants) -> float:
    """The root of E‖(I−P)S(I−P)‖₂², P from PROJ(cnS, t), by Lemma 5.5 divided by (cn)²; ‖S‖ ≤ 1."""
    if t in (0, p):
        return 0.0 if t == p else 1.0
    share = epsilon / 3
    scale = share / (2 * t) if constants == "paper" else share / (t + 1)
    losses = 2 * sum(lemma_5_1(p - step).value for step in range(t))
    return min(1.0, sqrt(lemma_3_3(t, constants).value ** 2 + losses * exp(-log(n)) / scale))


def _cells(t: int, alpha: float) -> float:
    bound = proposition_3_7(t, alpha).value
    return LatticeCovering(t, alpha).size if bound <= COUNTED else bound


def _factor(d: int, constants: Constants) -> float:
    _check(d >= 1, f"need d ≥ 1, got {d}")
    return 0.0 if d == 1 else theorem_3_10(d, constants).value


def _exp(exponent: float) -> float:
    # Beyond the largest float there is nothing to compare with.
    return exp(exponent) if exponent < 700 else inf


def _check_private(n: int, p: int, epsilon: float, kappa: float) -> None:
    _check(n >= 3 and p >= 1 and epsilon > 0 and 0 < kappa < 1, "need n ≥ 3, p ≥ 1, epsilon > 0 and 0 < kappa < 1")


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ParameterError(what + ".")
