"""Noise on pair tables: what is drawn has the simulated law, and only the centred part leaves."""

from fractions import Fraction

import numpy as np
import pytest

from audits.gates import a_budget, a_gate, asked
from covey.core.noise.integers import CoveyNoise
from covey.core.noise.pairlaw import PairLaw
from covey.core.tables.domain import Domain
from covey.engines.local import ArrayRows
from covey.entropy import Streams
from covey.methods.model import Statistic
from covey.methods.regain.measure_tables import Tables, _on_cells, measure_pairs, pair_moves
from covey.methods.regain.plan_tables import pair_law
from tests.core.tables.examples import DOMAIN, table


def nothing(batch):
    """An exact table of zeros."""
    return np.zeros((17, 17), dtype=np.int64)


def measured(X, domain, law, amount, seed, pure):
    """Noisy centred pair tables through a gate that spends so much."""
    gate = a_gate("pairs", amount=amount, pure=pure, streams=Streams.from_seed(seed))
    maps = [np.arange(c) for c in domain.sizes]
    found = asked(lambda told: measure_pairs(Tables(told, domain), maps, law), ArrayRows(X), gate)
    assert gate.book[0].scale == law.scale  # what was planned is what was drawn
    return found.values


@pytest.mark.parametrize("kind", ["gaussian", "laplace", "matrix"])
def test_measured_pairs_are_the_centred_tables_plus_the_simulated_law(kind):
    X = table(3)
    hot = np.hstack([np.eye(c)[X[:, a]] - 1 / c for a, c in enumerate(DOMAIN.sizes)])
    exact = DOMAIN.off_blocks(hot.T @ hot)
    # The budget for which this law has a standard deviation of about 20.
    moves, pure = pair_moves(DOMAIN), kind != "gaussian"
    moved = {"gaussian": moves.l2_squared / 2, "laplace": moves.l1, "matrix": moves.trace}[kind]
    scale = Fraction(400) if kind == "gaussian" else Fraction(20)
    law = PairLaw(kind, DOMAIN, scale)
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
    assert pair_law(few_large, a_budget(1)).family == "laplace"
    assert pair_law(bits, a_budget(1)).family == "matrix"
    assert pair_law(bits, a_budget(1, pure=False)).family == "gaussian"
    assert pair_law(Domain((5, 1), (False, False)), a_budget(1)).family == "none"


def test_noise_for_many_attributes_has_the_law_of_noise_for_few(monkeypatch):
    sizes = (2, 3, 2, 5, 3, 2)
    law = PairLaw("gaussian", Domain(sizes, (False,) * 6), Fraction(9))
    source, zero = CoveyNoise(np.random.default_rng(15)), Statistic.sum(nothing)
    monkeypatch.setattr("covey.core.noise.pairlaw.MANY", 3)
    budget = a_budget(1, pure=False)
    amount = (
        budget.variance(pair_moves(law.domain).l2_squared) / law.scale
    )  # what a row moves gets noise of this variance

    def draw():
        gate = a_gate("pairs", amount=amount, pure=False, source=source)
        return asked(lambda _: _on_cells(zero, None, law), ArrayRows(np.zeros((1, 6))), gate)

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
