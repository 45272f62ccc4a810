"""How far one replaced row can move a statistic: exact, from public sizes alone. Proofs: docs/proofs/sensitivity.md."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb


def odd_subsets(p: int, d: int, f: int) -> int:
    """How many d-subsets of p columns meet a fixed set of f columns in an odd number of places."""
    return sum(comb(f, j) * comb(p - f, d - j) for j in range(1, d + 1, 2))


def parity_sensitivity(p: int, weights: dict[int, Fraction]) -> Fraction:
    """Squared L2 sensitivity of √w_d·Σ(products of d signs), over all d-subsets and all degrees d in `weights`.

    A replaced row that flips f of its p signs changes exactly the products that meet those f columns an odd number of
    times, each by 2: the square is 4·max_f Σ_d w_d·odd_subsets(p, d, f), attained.
    """
    return 4 * max(
        (sum((w * odd_subsets(p, d, f) for d, w in weights.items()), Fraction(0)) for f in range(p + 1)),
        default=Fraction(0),
    )


def added_parities(p: int, weights: dict[int, Fraction]) -> Fraction:
    """The same for a row that is added or removed: every product is 1 or −1."""
    return sum((w * comb(p, d) for d, w in weights.items()), Fraction(0))


def ball_sensitivity(radius_squared: Fraction, weight: Fraction) -> Fraction:
    """Squared L2 sensitivity of (√w·Σu_i, Σu_i u_j for i < j) for rows of norm at most R, w ≤ R²: (R² + w)².

    With c = ⟨u, v⟩ the square is at most w(2R² − 2c) + (2R⁴ − 2c²)/2, largest at c = −w.
    """
    return (radius_squared + weight) ** 2


def added_in_ball(radius_squared: Fraction, weight: Fraction) -> Fraction:
    """The same for a row that is added or removed: w‖u‖² + Σ_{i<j} (u_i u_j)² ≤ wR² + R⁴/2."""
    return weight * radius_squared + radius_squared**2 / 2


def pair_table_sensitivity(sizes: Sequence[int], weights: Sequence[Fraction] | None = None) -> Fraction:
    """Squared L2 sensitivity of all centred pair tables Σ z_a z_bᵀ, a < b, z_a = e_x − 1/c_a, beside √w_a·(one-way tables).

    If the attributes F change, a pair with one end in F moves by 2(1 − 1/c_b), b the other end, and a pair inside F by
    2(1 − 1/c_a − 1/c_b), squared; summed: Σ_F g_a − f(f − 1) with g_a = 2[(q − 1) − Σ_b 1/c_b + 1/c_a] and f = |F|. For each f
    the largest g_a win. One-way tables of attributes in F move by 2w_a more. An attribute with one category has z = 0 and cannot
    change.
    """
    weights = weights or [Fraction(0)] * len(sizes)
    live = [(Fraction(1, int(c)), w) for c, w in zip(sizes, weights, strict=True) if c > 1]
    q, total = len(live), sum((x for x, _ in live), Fraction(0))
    g = sorted((2 * (q - 1 - total + x + w) for x, w in live), reverse=True)
    best = running = Fraction(0)
    for f, value in enumerate(g, 1):
        running += value
        best = max(best, running - f * (f - 1))
    return best


def added_pair_tables(sizes: Sequence[int]) -> Fraction:
    """The same for a row that is added or removed: Σ_{a<b} ‖z_a‖²‖z_b‖², whatever the row is."""
    lengths = [1 - Fraction(1, int(c)) for c in sizes]
    total = sum(lengths, Fraction(0))
    return (total**2 - sum((x * x for x in lengths), Fraction(0))) / 2


def simplex_radius_squared(sizes: Sequence[int]) -> Fraction:
    """‖z‖² = Σ(1 − 1/c_a), the same for every record in centred coding."""
    return sum((1 - Fraction(1, int(c)) for c in sizes), Fraction(0))


def dependence_sensitivity(q: int, added: bool = False) -> int:
    """How far one replaced row, or one added, moves `engine.codes.domain.dependence` of q attributes: 6 a table, or 4."""
    return (4 if added else 6) * (q * (q - 1) // 2)
