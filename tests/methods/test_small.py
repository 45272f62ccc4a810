"""Small tables: whether pairs are looked at, which law one-way tables have, and that a look decides by its noisy number alone."""

from fractions import Fraction

import numpy as np
import pytest

import covey
from covey.core.numbers.grid import Category, NumberGrid
from covey.methods.regain.important import Important
from covey.methods.regain.plan_tables import TOGETHER, TablePlan
from covey.privacy.budget import make_budget
from covey.privacy.gate import Gate

pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
SIZES = (2, 3, 2, 4, 2, 2, 3)
ATTRIBUTES = tuple(map(Category, SIZES))


def tied(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2, (n, 1)) * (np.array(SIZES) - 1)


def loose(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2, (n, len(SIZES)))


def charges(table, *budget, **options):
    made = covey.PrivateSynthesizer(*budget, domain=SIZES, seed=1, **options).fit(table)
    return {charge.purpose: charge.amount for charge in made.privacy.charges}, made


@pytest.mark.parametrize(("n", "way"), [(300, "margins"), (1500, "look"), (50_000, "pairs")])
def test_more_rows_take_a_table_from_margins_over_a_look_to_pairs(n, way):
    assert TablePlan(ATTRIBUTES).way(n, make_budget(1)) == way


@pytest.mark.parametrize(
    "plan",
    [
        TablePlan((*ATTRIBUTES, NumberGrid(100))),
        TablePlan(ATTRIBUTES, important=Important.of([(0, 1)], 6, pure=True)),
        TablePlan(ATTRIBUTES, important=Important(triples=2)),
        TablePlan(ATTRIBUTES, totals=False),
        TablePlan(ATTRIBUTES, looks=False),
        TablePlan(ATTRIBUTES[:1]),
    ],
)
def test_what_has_a_plan_of_its_own_is_not_looked_at(plan):
    assert plan.way(1500, make_budget(1)) == "pairs"


def test_charges_of_every_way_sum_to_what_the_certificate_leaves():
    for n in (300, 1500, 50_000):
        for delta in (0, 1e-9):
            shares = TablePlan(ATTRIBUTES).shares(n, make_budget(1, delta), Fraction(19, 20))
            parts = TablePlan(ATTRIBUTES).parts(n, make_budget(1, delta), Fraction(19, 20))
            assert sum(shares.values()) == sum(parts.values()) == Fraction(19, 20)
            assert {"histograms", "pairs"} <= set(parts)


def test_a_look_finds_tied_columns_and_leaves_independent_ones_alone():
    """One charge pays for one-way tables and pairs, whatever the look says, and all of it is spent."""
    spent, pairs, laws = [], [], []
    for table in (tied(1500), loose(1500)):
        found, made = charges(table, 1.0)
        spent.append(found)
        pairs.append(made.measurements.pairs().kept)
        laws.append({m.law for m in made.measurements.found if m.kept and m.query.degree == 1})
    assert pairs == [True, False]
    assert laws == [{"knorm"}, {"knorm"}]
    assert (
        spent[0]
        == spent[1]
        == {"look": Fraction(95, 1000), TOGETHER: Fraction(855, 1000), "certificate": Fraction(1, 20)}
    )
    assert {m.purpose for m in made.measurements.found} == {TOGETHER}


def test_only_the_noisy_number_of_a_look_decides(monkeypatch):
    """Tied columns whose look came out as zero are released as independent ones."""
    real = Gate.measure

    def hiding(self, purpose, exact, *rest):
        found = real(self, purpose, exact, *rest)
        return (
            covey.privacy.gate.Measured(0 * found.values, found.sd, found.law, found.charge)
            if purpose == "look"
            else found
        )

    monkeypatch.setattr(Gate, "measure", hiding)
    assert not charges(tied(1500), 1.0)[1].measurements.pairs().kept


def test_margins_alone_are_released_as_independent_columns():
    found, made = charges(tied(300), 0.5)
    assert set(found) == {"histograms", "certificate"}
    drawn = made.sample(4000)
    both, own = np.mean(drawn[:, 0] * drawn[:, 2]), drawn.mean(axis=0)
    assert both == pytest.approx(own[0] * own[2], abs=0.03)
    assert both != pytest.approx(own[0], abs=0.05)


@pytest.mark.parametrize("sizes", [(2, 3, 2), (2, 9, 40)])
def test_predicted_deviations_are_those_of_the_measurements(sizes):
    plan = TablePlan(tuple(map(Category, sizes)))
    made = covey.PrivateSynthesizer(0.1, domain=sizes, seed=1, certificate_share=0).fit(np.zeros((300, 3), dtype=int))
    said = plan.deviations(make_budget(0.1))
    for a in range(3):
        (own,) = made.measurements.holding((a,))
        assert np.allclose(own.sds((a,)) * 300, said[a])


def test_attributes_share_draws_only_where_that_has_less_noise_and_an_important_one_gets_more():
    """Σ c·sd against that of Laplace noise on each; beyond 64 categories it is Laplace's."""
    sizes = (2, 2, 3, 5, 9, 100)
    plan = TablePlan(tuple(map(Category, sizes)))
    draws = plan.one_way(make_budget(1))
    assert [draw.joint for draw in draws] == [True] * (len(draws) - 1) + [False]
    assert draws[-1].attributes == (5,)
    laplace = np.sqrt(8) * np.sqrt(sizes).sum() / np.sqrt(sizes)
    assert plan.deviations(make_budget(1)) @ sizes < 0.95 * (laplace @ sizes)
    strong = TablePlan(plan.attributes, important=Important.of([(0, 1)], 6, pure=True))
    assert (strong.deviations(make_budget(1)) < plan.deviations(make_budget(1)))[:2].all()
    assert not any(draw.joint for draw in plan.one_way(make_budget(1, 1e-9)))
    assert not any(draw.joint for draw in plan.one_way(make_budget(1e-12)))


def test_a_plan_and_a_statement_say_which_law_is_used():
    plan = TablePlan(ATTRIBUTES)
    words = {n: plan.noise_words(n, make_budget(1)) for n in (300, 1500, 50_000)}
    assert all("K-norm noise, 2" in own and "times less than Laplace noise" in own for own in words.values())
    assert "released as independent" in words[300]
    assert "a look for a tenth" in words[1500]
    assert "pairs of columns are measured" in words[50_000]
    assert "Gaussian noise" in plan.noise_words(50_000, make_budget(1, 1e-9))
    mixed = TablePlan((Category(3), NumberGrid(100)))
    assert "K-norm or Laplace noise" in mixed.noise_words(1000, make_budget(1))
    made = charges(tied(1500), 1.0)[1]
    assert made.privacy.noise == ("laplace", "knorm", "matrix", "cube")
    assert made.privacy.noise_words == "discrete Laplace, K-norm, matrix Laplace, cube"
