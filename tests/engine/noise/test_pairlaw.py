"""Noise on pair tables: what is drawn has the simulated law, and only the centred part leaves."""

from fractions import Fraction

import numpy as np
import pytest

from audits.gates import a_budget, a_gate, asked
from covey.engine.codes.domain import Domain, pair_matrix
from covey.engine.entropy import Streams
from covey.engine.model import Ask
from covey.engine.models.tables.measure_tables import PairCells, measure_pairs, pair_sensitivity
from covey.engine.models.tables.plan_tables import pair_law
from covey.engine.models.tables.table_counts import TableCounts
from covey.engine.noise import pairlaw
from covey.engine.noise.integers import CLAMP, CoveyNoise
from covey.engine.noise.law import GAUSSIAN, LAPLACE, LAWS, MATRIX, UNMEASURED
from covey.engine.noise.pairlaw import PairLaw, contrast_weights, contrasts, from_contrasts
from covey.engine.noise.sensitivity import simplex_radius_squared
from covey.engine.statistic import Statistic
from covey.engine.units.local import ArrayRows
from tests.engine.codes.examples import DOMAIN, table


def nothing(batch):
    """An exact table of zeros."""
    return np.zeros((17, 17), dtype=np.int64)


def measured(X, domain, law, amount, seed, pure):
    """Noisy centred pair tables through a gate that spends so much."""
    gate = a_gate("pairs", amount=amount, pure=pure, streams=Streams.from_seed(seed))
    maps = [np.arange(c) for c in domain.sizes]
    found = asked(lambda setting: measure_pairs(TableCounts(setting, domain), maps, law), ArrayRows(X), gate)
    assert gate.book[0].scale == law.scale  # what was planned is what was drawn
    return found.values


@pytest.mark.parametrize("kind", ["gaussian", "laplace", "matrix"])
def test_measured_pairs_are_the_centred_tables_plus_the_simulated_law(kind):
    X = table(3)
    hot = np.hstack([np.eye(c)[X[:, a]] - 1 / c for a, c in enumerate(DOMAIN.sizes)])
    exact = DOMAIN.off_blocks(hot.T @ hot)
    # The budget for which this law has a standard deviation of about 20.
    sensitivity, pure = pair_sensitivity(DOMAIN), kind != "gaussian"
    moved = {"gaussian": sensitivity.l2_squared / 2, "laplace": sensitivity.l1, "matrix": sensitivity.trace}[kind]
    scale = Fraction(400) if kind == "gaussian" else Fraction(20)
    law = PairLaw(LAWS[kind], DOMAIN, scale)
    generator = np.random.default_rng(4)
    errors = np.array([measured(X, DOMAIN, law, moved / scale, i, pure) - exact for i in range(300)])
    simulated = np.array([law.simulate(generator) for _ in range(300)])
    assert np.abs(errors.mean(axis=0)).max() < 6 * law.sd / np.sqrt(300)
    block = (DOMAIN.block(0), DOMAIN.block(2))
    ratio = errors[:, block[0], block[1]].std() / simulated[:, block[0], block[1]].std()
    assert ratio == pytest.approx(1, abs=0.06)
    assert np.abs(np.array([DOMAIN.sum_blocks(e) for e in errors[:3]])).max() < 1e-6  # only the centred part leaves


def test_the_law_is_chosen_by_public_sizes():
    few_large = Domain((100,) * 6, (False,) * 6)
    bits = Domain((2,) * 30, (False,) * 30)
    assert pair_law(few_large, a_budget(1)).family is LAPLACE
    assert pair_law(bits, a_budget(1)).family is MATRIX
    assert pair_law(bits, a_budget(1, pure=False)).family is GAUSSIAN
    assert pair_law(Domain((5, 1), (False, False)), a_budget(1)).family is UNMEASURED


def test_noise_for_many_attributes_has_the_law_of_noise_for_few(monkeypatch):
    sizes = (2, 3, 2, 5, 3, 2)
    law = PairLaw(GAUSSIAN, Domain(sizes, (False,) * 6), Fraction(9))
    source, zero = CoveyNoise(np.random.default_rng(15)), Statistic.sum(nothing)
    monkeypatch.setattr(pairlaw, "MANY", 3)
    budget = a_budget(1, pure=False)
    # What a row moves gets noise of this variance.
    amount = budget.variance(pair_sensitivity(law.domain).l2_squared) / law.scale

    def cells(_):
        pair_cells = PairCells(law.domain, law.places, pure=False)
        return pair_cells.matrix(
            (yield [Ask("pairs", pair_cells.components(zero, None), pair_sensitivity(law.domain))])
        )

    def draw():
        gate = a_gate("pairs", amount=amount, pure=False, source=source)
        return asked(cells, ArrayRows(np.zeros((1, 6))), gate)

    drawn = np.array([draw() for _ in range(1000)])
    assert (drawn == drawn.transpose(0, 2, 1)).all()
    d = law.domain
    assert (drawn[:, d.same_block] == 0).all()
    expected = 9.0 * np.outer(d.counts[d.block_of], d.counts[d.block_of]) ** 2
    spread = drawn.var(axis=0)[~d.same_block] / expected[~d.same_block]
    assert spread == pytest.approx(np.ones(len(spread)), abs=0.25)
    upper = np.triu_indices(d.total, 1)
    flat = drawn[:, *upper][:, ~d.same_block[upper]].astype(float)
    assert np.abs(np.corrcoef(flat.T) - np.eye(flat.shape[1])).max() < 0.17


SIZES = (3, 1, 4, 2, 7)
UNEVEN = Domain(SIZES, (False,) * 5)


def codes(n, seed=0, sizes=SIZES):
    return np.random.default_rng(seed).integers(0, sizes, (n, len(sizes)))


def vector(row, sizes=SIZES):
    """h of one record, by its definition."""
    return np.array([1 if x < j else -j if x == j else 0 for x, c in zip(row, sizes, strict=True) for j in range(1, c)])


def test_contrasts_are_the_sums_of_their_definition():
    X = codes(200)
    h = np.array([vector(row) for row in X])
    assert (contrasts(pair_matrix(X, SIZES), UNEVEN) == h.T @ h).all()


def test_tables_come_back():
    X = codes(300, 1)
    hot = np.hstack([np.eye(c)[X[:, a]] - 1 / c for a, c in enumerate(SIZES)])
    h = np.array([vector(row) for row in X])
    assert from_contrasts((h.T @ h).astype(float), UNEVEN) == pytest.approx(hot.T @ hot, abs=1e-9)


def test_weighted_contrasts_never_leave_the_radius_that_is_paid_for():
    """Exactly, for every record; one weight that is rounded down would break it."""
    w = contrast_weights(UNEVEN)
    radius = simplex_radius_squared(SIZES)
    for row in np.ndindex(*SIZES):
        length = sum((Fraction(int(h)) ** 2 / x**2 for h, x in zip(vector(row), w, strict=True)), Fraction(0))
        assert length <= radius
        assert length > radius * (1 - Fraction(1, 2**40))
    large = contrast_weights(Domain((600,), (False,)))
    assert all(x * x >= j * (j + 1) for j, x in enumerate(large, 1))
    assert all(x * x <= j * (j + 1) * (1 + Fraction(1, 2**48)) for j, x in enumerate(large, 1))


def test_six_hundred_categories_fit_the_machine_word_and_lose_nothing():
    """n·c² at its largest allowed, 4·c²·n < 2^61, with all records in one cell: the extreme of every contrast."""
    sizes = (600, 600)
    domain = Domain(sizes, (False, False))
    n = (1 << 61) // (4 * 600**2) - 1
    for x, y in ((599, 599), (0, 599), (300, 1)):
        counts = np.zeros((1200, 1200), dtype=np.int64)
        for i in (x, 600 + y):
            for j in (x, 600 + y):
                counts[i, j] = n
        S = contrasts(counts, domain)
        h = vector((x, y), sizes)
        assert (n * np.outer(h, h) == S).all()
        assert np.abs(S).max() < CLAMP
        centred = from_contrasts(S.astype(float), domain)[:600, 600:] / n
        exact = np.outer(np.eye(600)[x] - 1 / 600, np.eye(600)[y] - 1 / 600)
        assert np.abs(centred - exact).max() < 1e-12


def test_noise_that_no_table_could_outweigh_is_not_drawn():
    domain = Domain((3,) * 60, (False,) * 60)
    assert PairLaw(MATRIX, domain, Fraction(2**30)).drawable
    assert not PairLaw(MATRIX, domain, Fraction(2**36)).drawable
