"""Noise on tables against its law, by enumeration, and against samplers that are slightly wrong."""

from collections import Counter
from fractions import Fraction
from itertools import product
from math import comb, factorial
from unittest.mock import patch

import numpy as np
import pytest
from scipy.stats import chisquare

from covey.engine.noise import integers as knorm
from covey.engine.noise.integers import (
    body_moment,
    grouped,
    knorm_deviation,
    knorm_deviations,
    knorm_noise,
    loose_deviations,
)

DRAWS = 6_000


def points(sizes, loose, reach):
    """All points up to a norm, with their norms, table by table: half the largest ℓ1 norm if they sum to 0, or all of it."""
    found = {(): 0}
    for c in sizes:
        tables = [x for x in product(range(-reach, reach + 1), repeat=c) if loose or sum(x) == 0]
        own = [(x, sum(map(abs, x)) // (1 if loose else 2)) for x in tables]
        own = [(x, r) for x, r in own if r <= reach]
        found = {y + x: max(q, r) for y, q in found.items() for x, r in own if not y or sum(y[: sizes[0]]) == sum(x)}
    return found


def p_value(seen, law, scale):
    """Chi-square of draws against P(x) ∝ e^{−‖x‖/scale}: frequent points one by one, all others together."""
    weight = {x: np.exp(-r / scale) for x, r in law.items()}
    whole = sum(weight.values())
    expected = {x: DRAWS * w / whole for x, w in weight.items()}
    often = [x for x in expected if expected[x] >= 8]
    f, g = [seen[x] for x in often], [expected[x] for x in often]
    return chisquare([*f, DRAWS - sum(f)], [*g, DRAWS - sum(g)]).pvalue


CASES = [
    ((2, 2), False, 9),
    ((2, 3), False, 8),
    ((4,), False, 9),
    ((2, 2), True, 10),
    ((3,), True, 12),
    ((1, 2), True, 12),
]


def draw(sizes, loose, scale, seed):
    generator = np.random.default_rng(seed)
    pool = iter(knorm.geometric(scale, 150 * DRAWS, generator).tolist())  # in bulk, which is quicker
    with patch.object(knorm, "geometric", lambda scale, size, generator: [next(pool) for _ in range(size)]):
        return _draws(sizes, loose, scale, generator)


def _draws(sizes, loose, scale, generator):
    return Counter(tuple(np.concatenate(knorm_noise(sizes, scale, generator, loose)).tolist()) for _ in range(DRAWS))


@pytest.mark.parametrize(("sizes", "loose", "far"), CASES)
def test_the_noise_has_its_law_and_a_scale_10_percent_off_is_seen(sizes, loose, far):
    scale = Fraction(3, 4)  # small, so that few points lie beyond those enumerated
    law = points(sizes, loose, far)
    seen = draw(sizes, loose, scale, 1)
    assert p_value(seen, law, float(scale)) > 1e-4
    assert p_value(seen, law, 1.1 * float(scale)) < 1e-4


@pytest.mark.parametrize(("sizes", "loose", "far"), [CASES[1], CASES[4]])
def test_wrong_samplers_are_rejected(sizes, loose, far):
    """Proposals that are always taken, and points of which one number of positive entries is as likely as another."""
    law = points(sizes, loose, far)
    with patch.object(knorm, "_points", lambda sizes, k, m: 10**40):
        assert p_value(draw(sizes, loose, 0.75, 2), law, 0.75) < 1e-6
    with patch.object(knorm, "_compositions", lambda total, parts: int(0 < parts <= total or total == parts)):
        assert p_value(draw(sizes, loose, 0.75, 3), law, 0.75) < 1e-6


@pytest.mark.parametrize("c", [1, 2, 3, 4])
def test_points_are_counted_and_proposals_dominate_them(c):
    for k, m in product(range(5), repeat=2):
        reach = range(-m, k + 1)
        own = [x for x in product(reach, repeat=c) if sum(x) == k - m and sum(v for v in x if v > 0) <= k]
        assert knorm._inside(c, k, m) == len(own)
        n = c - 1
        assert len(own) * factorial(n) <= sum(
            comb(n, j) ** 2 * factorial(j) * factorial(n - j) * comb(k + j, j) * comb(m + n - j, n - j)
            for j in range(c)
        )
        if k == m:
            assert len(own) <= comb(2 * n, n) * comb(k + n, n)


def tails(size, d):
    """Excess kurtosis of an entry."""
    radius = (d + 3) * (d + 4) / ((d + 1) * (d + 2))
    return float(radius * body_moment(size, 4) / body_moment(size, 2) ** 2) - 3


@pytest.mark.parametrize(("sizes", "d"), [((2, 2, 2), 3), ((3, 5), 6), ((8,), 7)])
def test_deviation_and_tails_are_those_of_the_noise(sizes, d):
    scale, generator = 64, np.random.default_rng(4)
    drawn = [knorm_noise(sizes, scale, generator) for _ in range(1500)]
    for a, c in enumerate(sizes):
        x = np.array([noise[a] for noise in drawn]) / scale
        sd = knorm_deviation(c, d) * (1 - 1 / c) ** 0.5
        assert x.std() == pytest.approx(sd, rel=0.05)
        assert x.std() != pytest.approx(1.15 * sd, rel=0.05)
        assert np.mean(x**4) / x.var() ** 2 - 3 == pytest.approx(tails(c, d), abs=0.7)


@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 5), (1, 2, 9, 4)])
def test_deviations_for_a_row_added_or_removed_are_those_of_contrasts_and_of_the_sum(sizes):
    scale, generator = 64, np.random.default_rng(4)
    drawn = [knorm_noise(sizes, scale, generator, loose=True) for _ in range(1500)]
    own, total = loose_deviations(tuple(sorted(sizes)))
    sums = np.array([[table.sum() for table in noise] for noise in drawn]) / scale
    assert (sums == sums[:, :1]).all()
    assert sums[:, 0].std() == pytest.approx(total, rel=0.06)
    for a, c in enumerate(sizes):
        if c > 1:
            x = np.array([noise[a] for noise in drawn]) / scale
            sd = np.sqrt(((x - x.mean(axis=1)[:, None]) ** 2).sum(axis=1).mean() / (c - 1))
            assert sd == pytest.approx(own[c], rel=0.05)
            assert sd != pytest.approx(knorm_deviation(c, sum(sizes) - len(sizes)), rel=0.3)  # of replaced rows


def test_one_table_of_a_row_added_or_removed_has_laplace_noise_and_flags_have_a_sixth():
    for c in (2, 5, 40):
        own, total = loose_deviations((c,))
        assert own[c] == pytest.approx(np.sqrt(2))
        assert total == pytest.approx(np.sqrt(2 * c))
    own, total = loose_deviations((2,) * 10)  # radius² = 12·13; a uniform sum, and a contrast of ∫(4/3·τ³ − s²/2)
    assert own[2] == pytest.approx(np.sqrt(12 * 13 / 6))
    assert total == pytest.approx(np.sqrt(12 * 13 / 3))


def test_one_flag_is_laplace_noise_and_many_are_uniform():
    assert tails(2, 1) == pytest.approx(3)
    assert tails(2, 10**6) == pytest.approx(-1.2, abs=1e-4)
    assert knorm_deviation(2, 1) == pytest.approx(2)
    assert knorm_deviation(1, 1) == 0
    assert body_moment(2, 2) == Fraction(1, 3)
    assert body_moment(1, 2) == 0


def test_tables_of_one_category_stay_as_they_are_unless_the_number_of_rows_is_secret():
    assert [x.tolist() for x in knorm_noise((1, 1), 5, np.random.default_rng(5))] == [[0], [0]]
    one, two = knorm_noise((1, 1), 5000, np.random.default_rng(5), loose=True)
    assert one == two != 0


def loss(groups, sizes, loose):
    """Σ c·sd at ε = 1, for groups and what they are worth."""
    whole = sum(worth for _, worth in groups)
    return sum(costs(members, sizes, loose) * whole / worth for members, worth in groups)


def costs(members, sizes, loose):
    own = [sizes[a] for a in members]
    return np.dot(own, knorm_deviations(own, loose))


def partitions(items):
    """All ways to part a list."""
    if not items:
        yield []
        return
    first, *rest = items
    for parts in partitions(rest):
        yield [[first], *parts]
        for k, part in enumerate(parts):
            yield [*parts[:k], [first, *part], *parts[k + 1 :]]


@pytest.mark.parametrize("loose", [False, True])
@pytest.mark.parametrize("sizes", [(2, 2, 3, 20, 9), (2, 40), (5, 5, 5), (2, 3, 6, 12, 24, 48)])
def test_groups_are_the_best_of_all_partitions_and_share_epsilon_best(sizes, loose):
    found = grouped(sizes, [1.0] * len(sizes), loose)
    assert sorted(a for members, _ in found for a in members) == list(range(len(sizes)))
    own = loss(found, sizes, loose)
    for parts in partitions(list(range(len(sizes)))):
        worth = [costs(part, sizes, loose) ** 0.5 for part in parts]
        assert own <= loss(list(zip(parts, worth, strict=True)), sizes, loose) * (1 + 1e-12)
    uneven = [(members, worth * (1.2 if k else 1)) for k, (members, worth) in enumerate(found)]
    assert len(found) == 1 or own < loss(uneven, sizes, loose)


def test_a_weight_moves_epsilon_to_a_table():
    """In one group all have one ε: a table that counts nine times as much gets a draw of its own, or a larger share."""
    plain, pulled = ({a: w for members, w in grouped((4, 30), w) for a in members} for w in ([1, 1], [9, 1]))
    assert pulled[0] / pulled[1] > 2 * plain[0] / plain[1]
