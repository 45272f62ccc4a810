"""`regain` for tables of categories and numbers, from schema to rows; whether pairs of small ones are measured."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import covey
from audits.gates import fitted
from covey.engine.budget import make_budget
from covey.engine.codes import domain
from covey.engine.codes.domain import CodeCounts
from covey.engine.entropy import Streams
from covey.engine.models.predict import least_noise
from covey.engine.models.tables import table_counts
from covey.engine.models.tables.important import Important
from covey.engine.models.tables.measure_tables import matrix_is_better, rank_sensitivity
from covey.engine.models.tables.method import RegainTables
from covey.engine.models.tables.plan_tables import ONE_WAY_AND_PAIRS, TablePlan, pair_law
from covey.engine.noise.law import CUBE, KNORM, LAPLACE, MATRIX
from covey.engine.numbers.grid import Category, NumberGrid
from covey.engine.units.local import ArrayRows
from covey.release.statements import certificate_facts
from covey.tables.schema import Field, Schema

N = 4000
ATTRIBUTES = (NumberGrid(10**6, 1, (1,)), NumberGrid(121), Category(4), Category(6, True))


def people(n=N, seed=0):
    """Incomes with zeros and holes, ages tied to them, a region, an ordered grade."""
    g = np.random.default_rng(seed)
    age = np.clip(g.normal(45, 15, n), 0, 120).astype(np.int64)
    income = (
        np.where(g.random(n) < 0.2, 0, np.exp(9 + age / 30 + g.normal(0, 0.3, n))).astype(np.int64).clip(0, 10**6 - 1)
    )
    codes = np.where(g.random(n) < 0.1, 0, income + 1)
    return np.column_stack([codes, age, g.integers(0, 4, n), np.minimum(age // 20, 5)])


def release(epsilon, delta, seed=1, share=Fraction(1, 20)):
    rows = ArrayRows(people())
    method, streams = RegainTables(share, ATTRIBUTES), Streams.from_seed(seed)
    budget = make_budget(epsilon, delta)
    found, gate = fitted(rows, method, budget, streams)
    return found, gate, found.law.draw(N, streams.child("rows"))


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_a_release_keeps_shares_quantiles_and_ties(delta):
    found, gate, rows = release(4.0, delta)
    true = people()
    assert gate.unused == ()
    assert sum(line.amount for line in gate.book) == gate.budget.amount
    assert rows.shape == true.shape
    assert (rows < [a.size for a in ATTRIBUTES]).all()
    for code in (0, 1):  # missing, zero
        assert np.mean(rows[:, 0] == code) == pytest.approx(np.mean(true[:, 0] == code), abs=0.02)
    values = [t[t[:, 0] > 1, 0] for t in (true, rows)]
    assert np.median(values[1]) == pytest.approx(np.median(values[0]), rel=0.06)
    ranks = [np.corrcoef(*np.argsort(np.argsort(t[t[:, 0] > 1, :2], axis=0), axis=0).T)[0, 1] for t in (true, rows)]
    assert ranks[0] > 0.8
    assert abs(ranks[0] - ranks[1]) < 0.08
    assert found.law.distances(true).numbers <= found.certificate.misplaced.bound
    assert "below any value of a number" in found.certificate.sentence
    facts = certificate_facts(found.certificate)
    for measure in ("distribution_functions", "average_total_variation"):
        assert facts[measure]["bound"] == found.certificate.misplaced.bound
    without = replace(found.certificate, misplaced=replace(found.certificate.misplaced, numbers=False))
    assert "distribution_functions" not in certificate_facts(without)


@pytest.mark.parametrize(
    ("places", "ranked"), [((0, 1), True), ((0, 3), True), ((0, 2), False), ((2, 3), False), ((0,), False)]
)
def test_swaps_keep_ranks_where_two_columns_have_some_and_one_is_a_number(places, ranked):
    """Ordered categories alone keep their ranks better by their pair tables."""
    method = RegainTables(Fraction(0), tuple(ATTRIBUTES[j] for j in places))
    rows = ArrayRows(people(500)[:, places])
    found = fitted(rows, method, make_budget(1), Streams.from_seed(1))[0]
    assert (found.law.score is not None) == ranked
    assert len(found.law.cells) == sum(isinstance(a, NumberGrid) for a in method.attributes)


def test_passes_by_ranges_count_what_codes_counted_in_one_pass(monkeypatch):
    whole = release(1.0, 1e-6)[2]
    monkeypatch.setattr(domain, "FULL_CODES", 0)
    assert table_counts.code_kernel(ATTRIBUTES) == CodeCounts((2, 3), (4, 6))
    assert (release(1.0, 1e-6)[2] == whole).all()


@pytest.mark.parametrize("delta", [0, 1e-9])
@pytest.mark.parametrize("n", [1, 50, 300, 1500, 50_000, 10**6])
def test_one_way_shares_sum_to_one_and_public_shares_to_the_rest(n, delta):
    budget, rest = make_budget(1, delta), Fraction(19, 20)
    for plan in (TablePlan(ATTRIBUTES), TablePlan(FEW)):
        assert sum(draw.share for draw in plan.one_way.draws(budget)) == 1
        shares, parts = plan.shares(n, budget, rest), plan.expected_shares(n, budget, rest)
        assert sum(shares.values()) == sum(parts.values()) == rest
        assert min(shares.values()) >= 0
        assert {"histograms", "pairs"} <= set(parts)
    alone = TablePlan((NumberGrid(100),)).shares(100, make_budget(1), Fraction(1))
    assert alone == {"histograms": 1, "pairs": 0}


def test_the_law_for_ranks_is_the_one_with_less_noise():
    assert not matrix_is_better(2)
    assert matrix_is_better(24)
    sensitivity = rank_sensitivity(4)
    assert (sensitivity.l1, sensitivity.l2_squared, sensitivity.trace) == (8 * 64**2, 16 * 64**4, 8 * 64**2)


def test_numbers_keep_their_shape_and_with_bins_they_lose_it():
    g = np.random.default_rng(3)
    hours = np.where(g.random(N) < 0.47, 40, g.integers(1, 99, N))
    income = np.where(g.random(N) < 0.13, 0, np.exp(g.normal(10, 1, N)).round())
    frame = pl.DataFrame({"hours": hours, "income": income})

    def fields(**bins):
        return Schema(
            (Field("hours", "integer", 0, 168, **bins), Field("income", "number", 0, 10**7, decimals=0, **bins))
        )

    made = {
        name: covey.PrivateSynthesizer(1.0, 1e-9, schema=fields(**bins), seed=4).fit(frame).sample(N)
        for name, bins in (("own", {}), ("bins", {"bins": 20}))
    }
    forty = {name: (rows["hours"] == 40).mean() for name, rows in made.items()}
    assert abs(forty["own"] - 0.47) < 0.02
    assert forty["bins"] < 0.3
    middle = {name: rows["income"].median() for name, rows in made.items()}
    assert middle["own"] == pytest.approx(np.median(income), rel=0.05)
    assert middle["bins"] > 2 * np.median(income)


def test_certificates_cover_tables_drawn_later():
    schema = Schema((Field("x", "integer", 0, 10**6), Field("y", "string", enum=("a", "b"), required=True)))
    table = {"x": [str(x) for x in people(800)[:, 0]], "y": ["a", "b"] * 400}
    synth = covey.PrivateSynthesizer(5.0, schema=schema, seed=1).fit(table)
    bounds = synth.certify(synth.sample(500))
    assert set(bounds) == set(synth.certificate.bound)
    assert all(bounds[d] >= synth.certificate.bound[d] for d in bounds)
    assert bounds.numbers > synth.certificate.misplaced.bound
    drawn = synth.sample(500)
    true, made = (np.sort(np.asarray(x["x"], dtype=np.float64)) for x in (table, drawn))
    places = np.concatenate([true, made])
    below = [np.searchsorted(x, places, side="right") / len(x) for x in (true, made)]
    assert np.abs(below[0] - below[1]).max() <= synth.certify(drawn).numbers
    other = {"x": ["0"] * 500, "y": list(drawn["y"])}  # all of the mass at one value
    assert synth.certify(other).numbers > 0.5 > bounds.numbers


pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
FEW_SIZES = (2, 3, 2, 4, 2, 2, 3)
FEW = tuple(map(Category, FEW_SIZES))


def tied(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2, (n, 1)) * (np.array(FEW_SIZES) - 1)


def loose(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2, (n, len(FEW_SIZES)))


def charges(table, *budget, **options):
    made = covey.PrivateSynthesizer(*budget, domain=FEW_SIZES, seed=1, **options).fit(table)
    return {charge.purpose: charge.amount for charge in made.privacy.charges}, made


@pytest.mark.parametrize(("n", "design"), [(300, "one-way"), (700, "dependence test"), (1500, "pairs")])
def test_more_rows_take_a_table_from_margins_over_a_test_to_pairs(n, design):
    assert TablePlan(FEW).design(n, make_budget(1)) == design


def test_a_look_costs_less_where_pairs_must_reach_far_more_than_its_noise():
    """Tables of many categories have so noisy pairs that a coarser look decides as well."""
    budget, many = make_budget(1), TablePlan((Category(12),) * 14)
    assert TablePlan(FEW).dependence_test_share(700, budget) == Fraction(1, 10)
    assert Fraction(1, 30) <= many.dependence_test_share(6000, budget) < Fraction(1, 15)
    shares = many.shares(6000, budget, Fraction(19, 20))
    assert shares["look"] < Fraction(1, 15) * Fraction(19, 20)
    assert sum(shares.values()) == Fraction(19, 20)


@pytest.mark.parametrize(
    "plan",
    [
        TablePlan((*FEW, NumberGrid(100))),
        TablePlan(FEW, important=Important.of([(0, 1)], 6, pure=True)),
        TablePlan(FEW, important=Important(triples=2)),
        TablePlan(FEW, one_cell_per_unit=False),
        TablePlan(FEW, may_skip_pairs=False),
        TablePlan(FEW[:1]),
    ],
)
def test_what_has_a_plan_of_its_own_is_not_looked_at(plan):
    assert plan.design(700, make_budget(1)) == "pairs"


def test_a_look_finds_tied_columns_and_leaves_independent_ones_alone():
    """One charge pays for one-way tables and pairs, whatever the look says, and all of it is spent."""
    spent, pairs, laws = [], [], []
    for table in (tied(700), loose(700)):
        found, made = charges(table, 1.0)
        spent.append(found)
        pairs.append(made.measurements.pairs().kept)
        laws.append({m.law.name for m in made.measurements.found if m.kept and m.query.degree == 1})
    assert pairs == [True, False]
    assert laws == [{"knorm"}, {"knorm"}]
    plan = {"look": Fraction(95, 1000), ONE_WAY_AND_PAIRS: Fraction(855, 1000), "certificate": Fraction(1, 20)}
    assert spent == [plan, plan]
    assert {m.purpose for m in made.measurements.found} == {ONE_WAY_AND_PAIRS}


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
    said = plan.one_way.deviations(make_budget(0.1))
    for a in range(3):
        (own,) = made.measurements.holding((a,))
        assert np.allclose(own.sds((a,)) * 300, said[a])


def test_attributes_share_draws_only_where_that_has_less_noise_and_an_important_one_gets_more():
    """Σ c·sd against that of Laplace noise on each; beyond 64 categories it is Laplace's."""
    sizes = (2, 2, 3, 5, 9, 100)
    plan = TablePlan(tuple(map(Category, sizes)))
    draws = plan.one_way.draws(make_budget(1))
    assert [draw.joint for draw in draws] == [True] * (len(draws) - 1) + [False]
    assert draws[-1].attributes == (5,)
    laplace = np.sqrt(8) * np.sqrt(sizes).sum() / np.sqrt(sizes)
    assert plan.one_way.deviations(make_budget(1)) @ sizes < 0.95 * (laplace @ sizes)
    strong = TablePlan(plan.attributes, important=Important.of([(0, 1)], 6, pure=True))
    assert (strong.one_way.deviations(make_budget(1)) < plan.one_way.deviations(make_budget(1)))[:2].all()
    assert not any(draw.joint for draw in plan.one_way.draws(make_budget(1, 1e-9)))
    assert not any(draw.joint for draw in plan.one_way.draws(make_budget(1e-12)))


def test_a_plan_and_a_statement_say_which_law_is_used():
    plan = TablePlan(FEW)
    words = {n: plan.noise_words(n, make_budget(1)) for n in (300, 700, 50_000)}
    assert all("K-norm noise, 2" in own and "times less than Laplace noise" in own for own in words.values())
    assert "released as independent" in words[300]
    assert "a look for a tenth" in words[700]
    assert "pairs of columns are measured" in words[50_000]
    assert "Gaussian noise" in plan.noise_words(50_000, make_budget(1, 1e-9))
    mixed = TablePlan((Category(3), NumberGrid(100)))
    assert "K-norm or Laplace noise" in mixed.noise_words(1000, make_budget(1))
    made = charges(tied(700), 1.0)[1]
    assert made.privacy.noise == (LAPLACE, KNORM, MATRIX, CUBE)
    assert made.privacy.noise_words == "discrete Laplace, K-norm, matrix Laplace, cube"


@pytest.mark.parametrize("kind", ["replace-one", "add-or-remove-one"])
def test_nothing_of_delta_is_spent_where_pure_noise_is_smaller(kind):
    """Few flags get pure noise, which is closer; many keep Gaussian noise, and so do few where a ledger counts μ²."""
    X = (np.random.default_rng(0).random((2000, 1)) + np.random.default_rng(1).random((2000, 30)) > 1.1).astype(
        np.uint8
    )

    def fitted(p, composition=None, seed=0):
        options = {"neighbours": kind, "composition": composition, "seed": seed}
        return covey.PrivateSynthesizer(1.0, 1e-9, **options).fit(X[:, :p])

    made = {way: [fitted(8, way, seed) for seed in range(4)] for way in (None, "gaussian")}
    few, kept, many = made[None][0], made["gaussian"][0], fitted(30)
    assert (few.privacy.budget.pure, kept.privacy.budget.pure, many.privacy.budget.pure) == (True, False, False)
    assert (few.delta, few.rho, few.privacy.budget.epsilon) == (kept.delta, None, kept.privacy.budget.epsilon)
    assert few.privacy.spent <= 1
    assert "pure noise" in few.privacy.mechanism
    errors = {
        way: np.mean([covey.marginal_error(X[:, :8], one.sample(2000), 2) for one in own]) for way, own in made.items()
    }
    assert errors[None] < 0.85 * errors["gaussian"]


def test_which_law_has_less_noise_is_a_function_of_public_sizes():
    few, numbers = [Category(3)] * 4, [Category(3)] * 4 + [NumberGrid(1000)]
    for neighbours in ("replace-one", "add-or-remove-one"):
        budget = make_budget(1, 1e-9, neighbours=neighbours)
        assert least_noise(few, budget) == make_budget(1, 0, neighbours=neighbours)
        assert least_noise([Category(9)] * 40, budget) == budget
        assert least_noise(numbers, budget) == budget
        assert least_noise([Category(1), Category(5)], budget) == budget
    assert least_noise(few, make_budget(1, 1e-2)) == make_budget(1, 1e-2)  # much δ buys less noise than none


def test_with_few_rows_columns_decide_which_law_is_taken():
    """Sixteen columns: pairs have less Gaussian noise, columns less pure noise. A secret number of rows decides nothing."""
    kinds, budget = [Category(3)] * 16, make_budget(1, 1e-9)
    assert least_noise(kinds, budget) == least_noise(kinds, budget, 5000) == budget
    assert least_noise(kinds, budget, 300) == make_budget(1, 0)
    assert least_noise([Category(40)] * 16, budget, 300) == budget  # columns have more pure noise
    secret = make_budget(1, 1e-9, neighbours="add-or-remove-one")
    assert least_noise(kinds, secret, 300) == least_noise(kinds, secret)


def test_with_many_rows_three_yes_no_columns_decide_which_law_is_taken():
    flags, budget, secret = (
        [Category(2)] * 16,
        make_budget(1, 1e-9),
        make_budget(1, 1e-9, neighbours="add-or-remove-one"),
    )
    assert least_noise(flags, budget, 20_000) == make_budget(1, 0)
    assert least_noise(flags, budget, 60_000) == budget
    assert least_noise(flags[:2], budget, 60_000) == make_budget(1, 0)  # there are no three
    assert least_noise(flags, secret, 60_000) == least_noise(flags, secret, 300)


def test_what_a_ledger_is_told_is_what_a_table_of_this_size_spends():
    """A schema alone says Gaussian noise; with few rows the release is pure, and `rho` says so before the charge."""
    fields = tuple(Field(f"c{j}", "string", enum=("a", "b", "c")) for j in range(16))
    codes = np.random.default_rng(0).integers(0, 3, (300, 16))
    made = covey.PrivateSynthesizer(1, 1e-9, schema=Schema(fields), seed=0)
    assert made.rho is not None
    made.check(300)
    assert made.rho is None
    made.fit({f"c{j}": np.array(["a", "b", "c"])[codes[:, j]].tolist() for j in range(16)})
    assert made.rho is None
    assert made.privacy.budget.pure
    made.check(5000)
    assert made.rho is not None


def test_a_look_where_the_number_of_rows_is_secret_leaves_independent_columns_alone():
    """Columns that say the same have their pairs measured; independent ones get the whole charge for one-way tables.

    Without a look pairs would be measured of both."""
    g, sizes = np.random.default_rng(0), [3] * 8
    tied, apart = np.repeat(g.integers(0, 3, (500, 1)), 8, axis=1), g.integers(0, 3, (500, 8))

    def pairs(X):
        made = covey.PrivateSynthesizer(1.0, domain=sizes, neighbours="add-or-remove-one", seed=0).fit(X)
        assert {"look", "columns and pairs"} <= {charge.purpose for charge in made.privacy.charges}
        return [m for m in made.measurements.found if m.query.degree == 2 and m.kept]

    assert pairs(tied)
    assert not pairs(apart)


def test_columns_and_pairs_of_few_categories_share_one_draw_of_less_noise():
    """Both have less noise than under two charges with the same shares, and `plan` says so; other tables have two charges."""
    X, sizes = np.random.default_rng(0).integers(0, 2, (5000, 12)), [2] * 11 + [3]
    made = covey.PrivateSynthesizer(1.0, 1e-9, domain=sizes, composition="gaussian", seed=0).fit(X)
    assert {charge.purpose for charge in made.privacy.charges} == {ONE_WAY_AND_PAIRS, "certificate"}
    (pairs,) = [m for m in made.measurements.found if m.query.degree == 2]
    one = next(m for m in made.measurements.found if m.query.degree == 1)
    plan, budget = TablePlan(tuple(map(Category, sizes))), make_budget(1, 1e-9).part(Fraction(95, 100))
    first = plan.one_way_share(5000, budget)
    assert pairs.sd < 0.95 * pair_law(plan.domain, budget.part(1 - first)).sd
    assert float(np.max(one.sd)) < 0.95 * plan.one_way.deviations(budget.part(first)).max()
    assert "in one draw with pairs" in plan.noise_words(5000, make_budget(1, 1e-9))
    others = [(6,) * 5, (2, 1, 3), (3,)]
    assert all(TablePlan(tuple(map(Category, own))).design(5000, budget) == "pairs" for own in others)
    for other in (make_budget(1), make_budget(1, 1e-9, neighbours="add-or-remove-one"), make_budget(1, 1e-9, 3)):
        assert (plan.design(5000, other) == "joint draw") is (other.rows_per_person == 3)
