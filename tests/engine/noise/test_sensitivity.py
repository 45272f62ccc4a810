"""Sensitivities against brute force over all pairs of neighbouring records."""

from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest

from covey.engine.codes.domain import Domain, dependence, pair_matrix
from covey.engine.noise.sensitivity import (
    ball_sensitivity,
    dependence_sensitivity,
    odd_subsets,
    pair_table_sensitivity,
    parity_sensitivity,
    simplex_radius_squared,
)


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "weights", [{1: 3, 2: 1}, {2: 1}, {1: Fraction(1, 2), 2: 1, 3: Fraction(2, 7), 4: Fraction(1, 3)}]
)
def test_parity_sensitivity_is_exact(p, weights):
    def statistic(x):
        z = 2 * np.array(x) - 1
        return [float(w) ** 0.5 * z[list(s)].prod() for d, w in weights.items() for s in combinations(range(p), d)]

    vectors = np.array([statistic(x) for x in product((0, 1), repeat=p)])
    worst = max((np.sum((a - b) ** 2) for a in vectors for b in vectors), default=0.0)
    claimed = parity_sensitivity(p, {d: Fraction(w) for d, w in weights.items()})
    assert float(claimed) == pytest.approx(worst)


def test_odd_subsets_by_listing():
    for p, d, f in product(range(1, 7), range(1, 5), range(7)):
        if f <= p:
            listed = sum(len(set(s) & set(range(f))) % 2 for s in combinations(range(p), d))
            assert odd_subsets(p, d, f) == listed


@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 2), (2, 3, 4), (5, 1, 2, 3), (2, 2, 2, 2, 2), (1, 1), (4,)])
@pytest.mark.parametrize("one_way", [False, True])
def test_pair_table_sensitivity_is_exact(sizes, one_way):
    """Of pairs alone, and beside one-way tables of several weights."""
    weights = [Fraction(one_way * (3 + 2 * a), 4) for a in range(len(sizes))]

    def statistic(x):
        z = [np.eye(c)[v] - 1 / c for v, c in zip(x, sizes, strict=True)]
        parts = [np.outer(z[a], z[b]).ravel() for a, b in combinations(range(len(sizes)), 2)]
        return np.concatenate([*parts, *(own * float(w) ** 0.5 for own, w in zip(z, weights, strict=True))])

    vectors = np.array([statistic(x) for x in product(*(range(c) for c in sizes))])
    worst = max(np.sum((a - b) ** 2) for a in vectors for b in vectors)
    assert float(pair_table_sensitivity(sizes, weights)) == pytest.approx(worst)
    assert one_way or pair_table_sensitivity(sizes) == pair_table_sensitivity(sizes, weights)


def test_centred_coding_costs_less_than_one_hot():
    adult = [85, 9, 100, 16, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42]
    assert 100 < pair_table_sensitivity(adult) < 182
    assert simplex_radius_squared([2, 4]) == Fraction(5, 4)


@pytest.mark.parametrize("w", [0.0, 0.3, 1.0])
def test_ball_sensitivity_holds_and_is_nearly_attained(w):
    generator = np.random.default_rng(0)
    p, worst = 12, 0.0
    i, j = np.triu_indices(p, 1)
    for trial in range(4000):
        u = generator.standard_normal(p)
        v = -w * u + (generator.standard_normal(p) * trial % 7) if trial % 2 else generator.standard_normal(p)
        u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
        move = w * np.sum((u - v) ** 2) + np.sum((u[i] * u[j] - v[i] * v[j]) ** 2)
        worst = max(worst, move)
    limit = float(ball_sensitivity(Fraction(1), Fraction(w)))
    assert worst <= limit + 1e-12
    assert worst > 0.6 * limit


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3, 2), (4, 2)])
def test_one_row_moves_the_distance_from_independence_as_far_as_is_proved_at_most(sizes):
    """All tables of up to four rows and all neighbours of both kinds: the bounds hold, and smaller ones would not.

    Margins that are forgotten give 2 for a replaced row and 1 for an added one.
    """
    most, q, replaced, added = 4, len(sizes), 0, 0
    rows, domain = list(product(*map(range, sizes))), Domain(sizes, (False,) * len(sizes))

    def distance(table):
        codes = np.array(table, dtype=np.int64).reshape(len(table), q)
        return int(dependence(pair_matrix(codes, sizes), domain)[0])

    tables = {table: distance(table) for n in range(most + 1) for table in combinations_with_replacement(rows, n)}
    for table, own in tables.items():
        fewer = [(*table[:i], *table[i + 1 :]) for i in range(len(table))]
        others = [tables[tuple(sorted((*rest, row)))] for rest in fewer for row in rows]
        replaced = max([replaced, *(abs(own - other) for other in others)])
        added = max([added, *(abs(own - tables[rest]) for rest in fewer)])
    pairs = q * (q - 1) // 2
    assert 2 * pairs < replaced <= dependence_sensitivity(q)
    assert pairs < added <= dependence_sensitivity(q, added=True)


def test_one_more_row_attains_nearly_all_of_its_bound_and_large_tables_do_not_overflow():
    """A row with other categories in all columns than all others. With 2³² rows squares of n do not fit 64 bits."""
    sizes = (2, 3, 2)
    domain, one = Domain(sizes, (False,) * 3), pair_matrix(np.array([[1, 2, 1]]), sizes)
    for n in (100, 2**32):
        many = n * pair_matrix(np.array([[0, 0, 0]]), sizes)
        assert dependence(many, domain) == [0]
        assert dependence(many + one, domain) == [3 * 3]  # 4n/(n + 1), rounded down, for each of three tables
    # Independent columns have no distance, and equal ones the largest.
    flags = Domain((2, 2), (False, False))
    for rows, distance in (([[0, 0], [0, 1], [1, 0], [1, 1]], 0), ([[0, 0], [1, 1]], 0.5)):
        assert dependence(pair_matrix(np.array(rows), (2, 2)), flags) / (2 * 2) == [distance]
