"""Rows added or removed: sensitivities against brute force, a number of rows that is nowhere exact, and less noise."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

import covey
from covey.engine.budget import make_budget
from covey.engine.codes.counts import moments
from covey.engine.codes.domain import Domain, PairTables, centred_counts
from covey.engine.driver import SIZE, count_units, run
from covey.engine.entropy import Streams
from covey.engine.exact import Exact
from covey.engine.gate import WHOLE, Gate
from covey.engine.model import Ask
from covey.engine.models.bits import column_sums, mean_sensitivity, sign_pairs, sign_sums
from covey.engine.models.tables.measure_tables import measure_one_way, pair_sensitivity
from covey.engine.models.tables.plan_tables import TablePlan
from covey.engine.models.tables.table_counts import OneWayCounts
from covey.engine.noise.law import CUBE
from covey.engine.noise.sensitivity import added_in_ball, added_pair_tables, added_parities
from covey.engine.numbers.grid import Category
from covey.engine.sensitivity import Sensitivity
from covey.engine.units.local import ArrayRows
from covey.engine.units.rows import Counted
from covey.errors import InternalError, ParameterError
from covey.release.bundle import write_bundle
from covey.release.verify import verify_bundle
from covey.tables.schema import Field

ADDED = "add-or-remove-one"
FLAGS = [np.array(row, dtype=np.uint8) for row in product((0, 1), repeat=4)]


def squared(change, weights=1):
    return float(np.sum(weights * np.asarray(change, dtype=np.float64) ** 2))


def signs_of(row):
    """All products of one to four signs of a row, by degree."""
    z = 2.0 * row - 1
    return {d: np.array([z[list(own)].prod() for own in combinations(range(4), d)]) for d in range(1, 5)}


def test_products_of_signs_move_by_one_each_whatever_row_is_added():
    weights = {1: Fraction(3, 2), 2: Fraction(1), 3: Fraction(1, 4), 4: Fraction(1, 9)}
    moved = [sum(squared(own, float(weights[d])) for d, own in signs_of(row).items()) for row in FLAGS]
    assert moved == pytest.approx([float(added_parities(4, weights))] * len(FLAGS))
    # A weight that is too small is noticed.
    assert max(moved) > float(added_parities(4, {**weights, 2: Fraction(1, 2)}))


def test_sums_and_pairs_of_signs_are_sums_over_rows():
    """The exact number of rows is inside them: with another one a constant would be added, which an added row does not see."""
    table = np.array(FLAGS[3:9])
    for row in FLAGS:
        before, after = moments(table), moments(np.vstack([table, row]))
        z = 2 * row.astype(int) - 1
        assert (sign_sums(after) - sign_sums(before) == z).all()
        assert (sign_pairs(after, 0, 4) - sign_pairs(before, 0, 4) == np.outer(z, z)).all()


def test_centred_pair_tables_move_as_far_as_their_formula_says_and_no_farther():
    sizes = (2, 3, 4)
    domain, kernel = Domain(sizes, (False,) * 3), PairTables(sizes)
    table = np.array(list(product(*(range(c) for c in sizes))), dtype=np.int64)[::5]
    c = domain.counts[domain.block_of]
    moved = []
    for row in product(*(range(c) for c in sizes)):
        tables = [centred_counts(kernel.matrix(kernel(t)), domain) for t in (table, np.vstack([table, row]))]
        change = (tables[1] - tables[0]) / (c[:, None] * c)
        moved.append(sum(squared(change[domain.block(a), domain.block(b)]) for a, b in combinations(range(3), 2)))
    assert moved == pytest.approx([float(added_pair_tables(sizes))] * len(moved))
    assert added_pair_tables(sizes) == pair_sensitivity(domain).added.l2_squared
    # Uncentred counts move farther: to forget the centre would be noticed.
    assert max(moved) < 3


def test_rows_in_a_ball_move_no_farther_than_its_formula():
    g = np.random.default_rng(0)
    R2, weight = Fraction(5), Fraction(1)
    rows = g.normal(size=(4000, 6))
    rows *= np.sqrt(5) / np.linalg.norm(rows, axis=1)[:, None]
    upper = np.triu_indices(6, 1)
    moved = [squared(u, float(weight)) + squared(np.outer(u, u)[upper]) for u in rows]
    assert max(moved) <= float(added_in_ball(R2, weight))
    assert max(moved) > 0.85 * float(added_in_ball(R2, weight))


def gate(shares, epsilon=1, delta=0, seed=0):
    return Gate(make_budget(epsilon, delta, neighbours=ADDED), shares, Streams.from_seed(seed))


def test_the_gate_asks_how_far_an_added_row_moves_a_statistic():
    with pytest.raises(InternalError, match="not proved"):
        gate({"x": WHOLE}).measure("x", Exact(np.zeros(2, np.int64)), 2, Sensitivity(l1=2))
    gates = Gate(make_budget(1, 0), {"x": WHOLE}, Streams.from_seed(0)), gate({"x": WHOLE})
    wide, narrow = (own.measure("x", Exact(np.zeros(2, np.int64)), 2, Sensitivity.histograms(1)) for own in gates)
    assert wide.sd == 2 * narrow.sd


def test_joint_tables_share_one_noisy_size_which_counts_once():
    """Fifteen flags of one draw tell n once: as fifteen measurements its deviation would be said to be a quarter."""
    plan, rows = TablePlan((Category(2),) * 15), ArrayRows(np.zeros((300, 15), np.int64))
    (draw,) = plan.one_way.draws(make_budget(1, neighbours=ADDED))
    assert draw.joint
    found, sizes = [], []
    for seed in range(60):

        def asked(setting):
            counts = OneWayCounts.of(setting.n, plan.attributes)
            one_way = yield from measure_one_way(counts, plan, setting)
            return one_way, setting.refined(one_way.size_estimates)

        one_way, setting = run(asked, Counted(rows, 300, 1e3), gate({"histograms": WHOLE}, seed=seed))
        assert len(one_way.size_estimates) == 1
        assert len({round(float(m.values.sum()), 6) for m in one_way.histograms}) == 1
        sizes.append(setting.n)
        moved = one_way.rescaled(setting.n)
        assert {round(float(m.values.sum()), 6) for m in moved.histograms} == {setting.n}
        found += [m.values[0] - m.values[1] for m in moved.histograms]
    assert np.std(sizes) == pytest.approx(setting.size_sd, rel=0.3)
    assert np.std(sizes) > 2 * setting.size_sd / np.sqrt(15)
    # A contrast (x₀ − x₁)/√2 has the deviation that is said, and that of replaced rows is twice it.
    assert np.std(found) / np.sqrt(2) == pytest.approx(one_way.histograms[0].sd, rel=0.1)
    assert plan.one_way.deviations(make_budget(1)) == pytest.approx(
        2 * plan.one_way.deviations(make_budget(1, neighbours=ADDED)), rel=0.1
    )


def test_means_of_signs_have_half_the_noise():
    rows = ArrayRows(np.array(FLAGS * 50))

    def asked(setting):
        return (yield [Ask("means", [column_sums(setting)], mean_sensitivity(setting), noise=CUBE)])

    one = run(asked, rows, Gate(make_budget(1, 0), {"means": WHOLE}, Streams.from_seed(0)))[0]
    own = run(asked, Counted(rows, 800, 1.0), gate({"means": WHOLE}))[0]
    assert own.sd == pytest.approx(one.sd / 2)


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_the_number_of_rows_is_measured_with_its_own_noise(delta):
    rows = ArrayRows(np.zeros((700, 3), np.uint8))
    found = [count_units(rows, gate({SIZE: WHOLE}, 1, delta, seed)) for seed in range(300)]
    values = np.array([float(f.values[0]) for f in found])
    assert abs(values.mean() - 700) < 4 * found[0].sd / np.sqrt(300)
    assert np.std(values) == pytest.approx(found[0].sd, rel=0.2)  # an exact number has no deviation: rejected


@pytest.fixture(scope="module")
def fitted():
    g = np.random.default_rng(5)
    table = {"age": g.integers(18, 90, 1234).tolist(), "ward": g.choice(["a", "b", "c"], 1234).tolist()}
    schema = covey.Schema((Field("age", "integer", 0, 110), Field("ward", "string", enum=("a", "b", "c"))))
    return covey.PrivateSynthesizer(1, 1e-9, schema=schema, neighbours=ADDED, seed=3).fit(table)


def test_the_exact_number_of_rows_is_in_no_file(fitted, tmp_path):
    folder = write_bundle(fitted.release(), tmp_path / "bundle")
    n = fitted.privacy.n
    assert n != 1234
    assert fitted.privacy.spent <= fitted.privacy.budget.amount
    assert {"size", "histograms", "pairs", "certificate"} <= {charge.purpose for charge in fitted.privacy.charges}
    assert verify_bundle(folder).rows == n
    for path in folder.iterdir():
        if path.suffix in (".json", ".md", ".html", ".yaml"):
            text = path.read_text(encoding="utf-8")
            assert "1234" not in text, path.name
            assert "1,234" not in text, path.name
    words = (folder / "privacy.json").read_text(encoding="utf-8")
    assert '"neighbours": "add-or-remove-one"' in words
    assert "replace-one: ε = 2" in words  # what the same release promises the other way
    assert str(n) in words


def test_the_papers_method_a_large_delta_and_nothing_but_noise_are_refused():
    for words, epsilon, options in [
        ("replaced row", 1, {"method": "paper"}),
        ("at most 1e-05", 1, {"delta": 1e-3}),
        ("neighbours must be", 1, {"neighbours": "both"}),
        *(("of a secret number", 1e-9, {"seed": seed}) for seed in range(4)),  # whatever noise will make of 20 rows
    ]:
        with pytest.raises(ParameterError, match=words):
            covey.PrivateSynthesizer(epsilon, **({"neighbours": ADDED} | options)).fit(np.zeros((20, 3)))
