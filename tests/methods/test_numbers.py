"""`regain` for tables with numbers, from schema to rows."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import covey
from audits.gates import fitted
from covey.core.numbers.grid import Category, NumberGrid
from covey.core.tables.domain import CodeCounts
from covey.engines.local import ArrayRows
from covey.entropy import Streams
from covey.methods.regain import measure_tables
from covey.methods.regain.measure_tables import matrix_is_better, rank_moves
from covey.methods.regain.plan_tables import TablePlan
from covey.methods.regain.tables import RegainTables
from covey.privacy.budget import make_budget
from covey.privacy.gate import Gate
from covey.release.statements import certificate_facts
from covey.table.schema import Field, Schema

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
    assert (
        facts["distribution_functions"]["bound"]
        == facts["average_total_variation"]["bound"]
        == found.certificate.misplaced.bound
    )
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


def test_charges_of_trees_are_fixed_by_public_numbers():
    """Whatever the table, the gate's book has the same lines for one-way measures: a tree that stops early would tell."""
    books = []
    for table in (people(), np.zeros((N, 4), np.int64), people(seed=5)[::-1] // 2):
        method, streams = RegainTables(Fraction(1, 20), ATTRIBUTES), Streams.from_seed(2)
        gate = fitted(ArrayRows(table), method, make_budget(1, 1e-6), streams)[1]
        books.append([line for line in gate.book if line.purpose == "histograms"])
    assert books[0] == books[1] == books[2]
    rounds = sum(a.rounds for a in ATTRIBUTES if isinstance(a, NumberGrid)) + 2
    assert len(books[0]) == rounds


def test_passes_by_ranges_count_what_codes_counted_in_one_pass(monkeypatch):
    whole = release(1.0, 1e-6)[2]
    monkeypatch.setattr("covey.core.tables.domain.FULL_CODES", 0)
    assert measure_tables.codes_kernel(ATTRIBUTES) == CodeCounts((2, 3), (4, 6))
    assert (release(1.0, 1e-6)[2] == whole).all()


def test_one_way_shares_sum_to_one_and_public_shares_to_the_rest():
    plan = TablePlan(ATTRIBUTES)
    for delta in (0, 1e-9):
        assert sum(draw.part for draw in plan.one_way(make_budget(1, delta))) == 1
    for delta in (0, 1e-9):
        for n in (1, 50, 10**6):
            shares = plan.shares(n, make_budget(1, delta), Fraction(19, 20))
            assert sum(shares.values()) == Fraction(19, 20)
            assert min(shares.values()) >= 0
    alone = TablePlan((NumberGrid(100),)).shares(100, make_budget(1), Fraction(1))
    assert alone == {"histograms": 1, "pairs": 0}


def test_the_law_for_ranks_is_the_one_with_less_noise():
    assert not matrix_is_better(2)
    assert matrix_is_better(24)
    moves = rank_moves(4)
    assert (moves.l1, moves.l2_squared, moves.trace) == (8 * 64**2, 16 * 64**4, 8 * 64**2)


@pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
@pytest.mark.parametrize("delta", [0, 1e-4])
@pytest.mark.parametrize(
    "column", [["5"] * 40, [""] * 40, ["nan", "inf", "-inf", "x"] * 10, ["0"] * 20 + ["1000000"] * 20, ["5"]]
)
@pytest.mark.usefixtures("few_steps")
def test_odd_columns_give_valid_rows(column, delta):
    schema = Schema((Field("x", "number", 0, 10**6, decimals=3), Field("y", "string", enum=("a", "b"))))
    table = {"x": column, "y": ["a"] * len(column)}
    for epsilon in (0.5, 1e-12, 1e6):
        rows = covey.PrivateSynthesizer(epsilon, delta, schema=schema, seed=0).fit(table).sample(60)
        assert not schema.validate(rows)


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


def test_the_gate_sees_every_round():
    seen = []

    class Watching(Gate):
        def _release(self, exact, noise, payment, weight, block=None):
            if payment.purpose == "histograms":
                seen.append(int(exact._sealed.sum() * weight))  # counted on a finer grid for K-norm noise
            return super()._release(exact, noise, payment, weight, block)

    rows = ArrayRows(people())
    fitted(rows, RegainTables(Fraction(0), ATTRIBUTES), make_budget(1), Streams.from_seed(3), Watching)
    assert seen == [N] * len(seen)  # each is a partition of all records
