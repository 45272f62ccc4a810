"""What matters most, pairs and triples: how far they move, their gain, and that nothing changes without them."""

from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy.special import expit
from scipy.stats import norm

import covey
from audits.gates import a_budget
from covey.engine.budget import CHOICE, make_budget
from covey.engine.codes.domain import Domain
from covey.engine.fit.centres import deviations, signs_of, varying_triples
from covey.engine.measurement import Measurement
from covey.engine.models.predict import focus_words
from covey.engine.models.tables.important import Important, average_pairs, restore_pairs
from covey.engine.models.tables.triples import NO_TRIPLES, triple_sensitivity, triple_shares
from covey.engine.noise.law import GAUSSIAN
from covey.engine.query import Factor, Query
from covey.errors import CannotAnswerError, ParameterError
from covey.release.answers.replicates import Mechanism
from covey.release.answers.tables import write_tables
from covey.release.bundle import write_bundle
from covey.tables.codec import Codec
from covey.tables.models import table_model
from covey.tables.schema import Schema
from tests.entries import entry

SIZES = (2, 3, 5, 4)


def one_hot(row, a):
    return np.eye(SIZES[a])[row[a]]


@pytest.mark.parametrize("groups", [[(0, 1)], [(1, 2), (0, 3)], [(2,)], [(1, 2), (1, 3), (2, 3)]])
def test_one_row_moves_the_tables_no_farther_than_said_and_single_pairs_attain_it(groups):
    important = Important.of(groups, len(SIZES), pure=False)
    pairs = important.pairs or tuple((min(g[0], b), max(g[0], b)) for g in groups for b in range(4) if b != g[0])
    sensitivity = Important(important.attributes, pairs).sensitivity(SIZES)
    rows = list(product(*(range(c) for c in SIZES)))
    worst = [0.0, 0.0]
    for x in rows:
        for y in rows[:: 1 if len(pairs) == 1 else 7]:
            l1 = l2 = 0.0
            for a, b in pairs:
                tables = [np.outer(one_hot(r, a), one_hot(r, b)) for r in (x, y)]
                l1 += np.abs(tables[0] - tables[1]).sum()
                centred = [np.outer(one_hot(r, a) - 1 / SIZES[a], one_hot(r, b) - 1 / SIZES[b]) for r in (x, y)]
                l2 += np.square(centred[0] - centred[1]).sum()
            worst = [max(worst[0], l1), max(worst[1], l2)]
    assert worst[0] <= sensitivity.l1
    assert worst[1] <= float(sensitivity.l2_squared) + 1e-12
    if len(pairs) == 1:
        assert worst == pytest.approx([sensitivity.l1, float(sensitivity.l2_squared)])


def test_which_pairs_are_measured_again_is_public():
    assert Important.of([(3, 1)], 5, pure=True).pairs == ((1, 3),)
    assert Important.of([(3,)], 5, pure=False).pairs == ()  # its one-way table alone
    assert len(Important.of([(3,)], 20, pure=False).pairs) == 19
    assert Important.of([(3,)], 20, pure=True).pairs == ()
    assert Important((), ((0, 1), (1, 2))).varying_pairs((2, 1, 3)) == []
    assert Important.of([(0, 1)], 4, pure=True).sensitivity(SIZES).l2_squared == Fraction(4, 3)


def test_two_measurements_are_averaged_and_what_is_noise_is_not_restore_pairs():
    domain = Domain((2, 2), (False, False))
    table = np.array([[0.1, -0.1], [-0.1, 0.1]])
    own = np.zeros((4, 4))
    own[:2, 2:], own[2:, :2] = table, table.T
    query = Query([(0, 1)], {a: Factor.plain(2) for a in (0, 1)}, "centred")
    extra = Measurement(query, table.ravel(), 0.01, GAUSSIAN)
    assert np.abs(average_pairs(-own, 0.01, extra, domain)).max() < 1e-15
    assert average_pairs(np.zeros((4, 4)), 0.0, extra, domain) == pytest.approx(own)
    assert restore_pairs(np.zeros((4, 4)), own, 1.0, extra, domain) == pytest.approx(own, rel=0.01)
    assert np.abs(restore_pairs(np.zeros((4, 4)), own * 0.04, 1.0, extra, domain)).max() == 0


FIELDS = [entry(f"c{j}", "string", enum=list("abcdef"), required=True) for j in range(8)]


def table(n=3000):
    generator = np.random.default_rng(5)
    codes = generator.integers(0, 6, (n, 8))
    codes[:, 1] = np.where(generator.random(n) < 0.6, (codes[:, 0] * 5 + 1) % 6, codes[:, 1])
    return pl.DataFrame({f"c{j}": np.array(list("abcdef"))[codes[:, j]] for j in range(8)})


def codes(column):
    return np.array(["abcdef".index(word) for word in column])


def test_an_important_pair_comes_out_closer():
    X = table()
    schema = Schema.from_dict({"fields": FIELDS})

    def error(focus, seed):
        own = schema.focus(*focus)
        rows = covey.PrivateSynthesizer(1.0, schema=own, seed=seed).fit(X).sample(3000)
        counts = [
            np.histogram2d(*(codes(f[name]) for name in ("c0", "c1")), bins=6, range=[[0, 6]] * 2)[0] for f in (X, rows)
        ]
        return np.abs(counts[0] - counts[1]).sum() / 6000

    plain, chosen = (np.mean([error(focus, seed) for seed in range(2)]) for focus in ([], [("c0", "c1")]))
    assert chosen < 0.7 * plain


def test_a_schema_carries_it_and_refuses_what_makes_no_sense(tmp_path):
    schema = Schema.from_dict({"fields": FIELDS, "covey": {"important": ["c1", ["c0", "c2"]]}})
    schema.save(tmp_path / "s.json")
    assert Schema.load(tmp_path / "s.json").important == (("c1",), ("c0", "c2"))
    wrong = [{"important": named} for named in ("c1", ["c9"], [["c0", "c0"]], [["c0", "c1", "c2"]], [[]])]
    for said in (*wrong, {"target": "c9"}, {"target": 3}, {"triples": -1}, {"triples": "many"}):
        with pytest.raises(ParameterError):
            Schema.from_dict({"fields": FIELDS, "covey": said})
    flags = [{"name": n, "type": "boolean", "constraints": {"required": True}} for n in "abc"]
    for said in ({"important": ["a"]}, {"triples": 2}):
        with pytest.raises(ParameterError, match="yes/no columns"):
            covey.PrivateSynthesizer(1.0, schema=Schema.from_dict({"fields": flags, "covey": said}))
    with pytest.raises(ParameterError, match="categories"):
        covey.PrivateSynthesizer(1.0, triples=2)


def test_a_plan_says_what_is_gained_on_the_one_scale_that_all_errors_have():
    """Two columns of three categories have nine cells; noise of 1% on a cell misplaces 0.4 · 9 of 100 rows."""
    said = focus_words({"important": 0.001, "others": 0.003, "without": 0.002}, [3, 3, 1])
    assert said.startswith("noise moves about 0.36% of the rows in an important two-column table")
    assert "without this choice 0.72%, in other tables 1.1%" in said
    # Beyond, columns are taken for independent.
    assert "about 50%" not in focus_words({"important": 0.2, "others": 0.3, "without": 0.2}, [3, 3])


FLAGS = (2, 3, 2, 2, 2, 2)
TRIPLES = varying_triples(FLAGS, room=100)  # twenty, then five of four and one of five columns on two levels


def exclusive(n, columns, size=2, seed=3, noise=0.0):
    """Independent columns but for one, which is the sum of two others: no pair shows it."""
    g = np.random.default_rng(seed)
    X = g.integers(0, size, (n, columns))
    X[:, 4] = np.where(g.random(n) < noise, X[:, 4], (X[:, 1] + X[:, 2]) % size)
    return X


def missed(X, Y, size=2):
    """Total variation of the table of the three tied columns."""
    code = np.array([size * size, size, 1])
    tables = [np.bincount(np.asarray(Z)[:, [1, 2, 4]].astype(int) @ code, minlength=size**3) / len(Z) for Z in (X, Y)]
    return np.abs(tables[0] - tables[1]).sum() / 2


def test_one_row_moves_scores_and_tables_no_farther_than_said_and_that_is_attained():
    g = np.random.default_rng(0)
    X = np.stack([g.integers(0, c, 30) for c in FLAGS], axis=1)
    query = Query(TRIPLES, {a: Factor.plain(c) for a, c in enumerate(FLAGS)})
    kernel = query.kernel()
    expected = g.integers(0, 6, query.starts[-1])
    before = kernel(X).integers()[0]
    farthest, tables, signs = np.zeros(len(TRIPLES)), 0, signs_of(TRIPLES, query.starts)
    for row in product(*(range(c) for c in FLAGS)):
        after = kernel(np.vstack([row, X[1:]])).integers()[0]
        scores = [deviations(counts, expected, query.starts, signs) for counts in (before, after)]
        farthest = np.maximum(farthest, np.abs(scores[0] - scores[1]))
        tables = max(tables, np.abs(before - after).sum(), ((before - after) ** 2).sum())
    odd = [1 - 2 * (X[:, list(t)].sum(axis=1) % 2).mean() for t in TRIPLES[20:]]
    none = deviations(before, 0 * expected, query.starts, signs)
    assert none[20:] == pytest.approx(30 * np.abs(odd))
    assert farthest.max() == 2
    assert (farthest[20:] == 2).all()
    assert (
        tables == triple_sensitivity(len(TRIPLES)).l1 == triple_sensitivity(len(TRIPLES)).l2_squared == 2 * len(TRIPLES)
    )


def test_what_a_choice_costs_covers_gaussian_and_concentrated_privacy():
    epsilon = np.geomspace(1e-3, 20, 400)
    gaussian = 2 * norm.ppf(expit(epsilon)) ** 2  # μ²/2
    assert (gaussian <= float(CHOICE) * epsilon**2).all()
    assert (gaussian > 0.6 * epsilon**2)[:100].all()  # a smaller constant would not do
    scale = a_budget(Fraction(1, 5), pure=False).choice_scale(2)
    assert 0 <= float(scale) - 4 / np.sqrt(0.2 / 0.8) < 1e-12
    assert a_budget(Fraction(1, 5), pure=False, rows_per_person=3).choice_scale(2) == pytest.approx(3 * float(scale))


def test_whether_triples_are_looked_for_is_a_public_formula():
    budget = make_budget(1.0, 1e-9)
    assert Important(triples=3).affordable(20_000, 20, budget.part(Fraction(1, 10))).count == 3
    assert Important(triples=3).affordable(200, 20, budget.part(Fraction(1, 10))) == NO_TRIPLES  # noise alone
    assert Important(triples=3).affordable(20_000, 2, budget) == NO_TRIPLES  # no triple among two columns
    assert Important(triples=3).affordable(10**6, 1000, budget) == NO_TRIPLES  # too many to look at
    assert triple_shares(Fraction(1, 2), lambda _: False) == {}
    shares = triple_shares(
        Fraction(1, 2), lambda own: Important(triples=3).affordable(20_000, 20, budget.part(own)).count > 0
    )
    assert sum(shares.values()) == Fraction(1, 2)


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize(("delta", "n"), [(1e-9, 6000), (0.0, 12_000)])
def test_an_exclusive_or_is_learned_and_pairs_alone_do_not(delta, n):
    X = exclusive(n, 8)
    options = {"domain": [2] * 8, "seed": 1}
    with_them = covey.PrivateSynthesizer(1.0, delta, triples=2, **options).fit(X)
    assert (1, 2, 4) in with_them._law.triples.names
    assert missed(X, with_them.sample(1500)) < 0.1
    assert missed(X, covey.PrivateSynthesizer(1.0, delta, **options).fit(X).sample(1500)) > 0.4


@pytest.mark.usefixtures("few_steps")
def test_exclusive_ors_of_three_four_and_five_columns_are_found_together_and_a_bundle_keeps_them(tmp_path):
    X, tied = np.random.default_rng(4).integers(0, 2, (20_000, 13)), [range(3), range(3, 7), range(7, 12)]
    for own in tied:
        X[:, own[-1]] = X[:, own[:-1]].sum(axis=1) % 2
    labels = [{"enum": ["no", "yes", "perhaps"][: 2 + (j == 12)], "required": True} for j in range(13)]
    fields = [{"name": f"c{j}", "type": "string", "constraints": own} for j, own in enumerate(labels)]
    schema = Schema.from_dict({"fields": fields, "covey": {"triples": 3}})
    frame = pl.DataFrame({f"c{j}": np.array(["no", "yes"])[X[:, j]] for j in range(13)})
    synth = covey.PrivateSynthesizer(2.0, 1e-9, schema=schema, seed=1).fit(frame)
    assert set(synth._law.triples.names) == set(map(tuple, tied))
    write_bundle(synth.release(50), tmp_path / "bundle")
    release = covey.load(tmp_path / "bundle")
    assert Mechanism(release).method().important.triples == 3
    rows = (release.sample(3000, seed=4).select(f"c{j}" for j in range(12)) == "yes").to_numpy()
    assert max((rows[:, own].sum(axis=1) % 2).mean() for own in tied) < 0.2
    share = release.share({f"c{j}": "yes" for j in tied[1]}, about="table")
    assert share.low <= X[:, tied[1]].all(axis=1).mean() <= share.high < share.low + 0.1
    assert {path.name for path in write_tables(release, tmp_path / "tables")} >= {"triples.csv", "4-columns.csv"}


@pytest.mark.usefixtures("few_steps")
def test_where_there_are_none_the_centres_stay_as_pairs_made_them():
    X = np.random.default_rng(2).integers(0, 2, (6000, 8))
    synth = covey.PrivateSynthesizer(1.0, 1e-9, domain=[2] * 8, triples=2, seed=1).fit(X)
    assert synth._law.triples is None
    assert {"choosing triples", "triples"} <= {charge.purpose for charge in synth.privacy.charges}


LETTERS = [entry(f"c{j}", "string", enum=list("abc"), required=True) for j in range(6)]


@pytest.mark.usefixtures("few_steps")
def test_a_target_leads_to_triples_with_it_and_the_bundle_draws_them_again(tmp_path):
    schema = Schema.from_dict({"fields": LETTERS, "covey": {"target": "c4", "triples": 1}})
    assert Schema.from_dict(schema.to_dict()).focus(target="c3").target == "c3"
    X = exclusive(9000, 6, size=3)
    frame = pl.DataFrame({f"c{j}": np.array(list("abc"))[X[:, j]] for j in range(6)})
    synth = covey.PrivateSynthesizer(2.0, 1e-9, schema=schema, seed=2).fit(frame)
    assert synth._law.triples.names == ((1, 2, 4),)
    assert {"choosing triples", "triples"} <= {charge.purpose for charge in synth.privacy.charges}
    write_bundle(synth.release(500), tmp_path / "bundle")
    release = covey.load(tmp_path / "bundle")
    assert Mechanism(release).known
    assert Mechanism(release).method().important.triples == 1
    cells = [release.share({"c1": "a", "c2": "b", "c4": label}, about="table") for label in "abc"]
    shares = [np.mean((X[:, [1, 2, 4]] == (0, 1, k)).all(axis=1)) for k in range(3)]
    assert all(cell.low <= share <= cell.high for cell, share in zip(cells, shares, strict=True))
    given = release.share({"c4": "b"}, given={"c1": "a", "c2": "b"})
    assert given.low <= shares[1] / sum(shares) <= given.high
    assert given.high - given.low < 0.3
    with pytest.raises(CannotAnswerError, match="of more at a time 'c1', 'c2', 'c4'"):
        release.share({"c1": "a", "c2": "b", "c3": "c"})
    *_, path = write_tables(release, tmp_path / "tables")
    lines = path.read_text().splitlines()
    assert lines[0] == "column_a,category_a,column_b,category_b,column_c,category_c,count,sd"
    assert len(lines) == 28
    assert float(lines[2].split(",")[6]) == pytest.approx(
        9000 * release.share({"c1": "a", "c2": "a", "c4": "b"}).value, rel=1e-4
    )
    rows = release.sample(1500, seed=4)
    codes = np.stack([rows[f"c{j}"].cast(pl.Enum(list("abc"))).to_physical().to_numpy() for j in range(6)], axis=1)
    assert missed(X, codes, 3) < 0.15


def test_what_a_target_gets_follows_from_how_well_pairs_are_measured():
    """Most of the pairs' budget for its own where all would be noise, triples where they are sharp; between, two fifths, with δ.

    Whoever asks for triples gets them at any size that noise allows, and keeps the pairs that were named.
    """
    unasked = Schema.from_dict({"fields": LETTERS, "covey": {"target": "c4"}})
    asked, named = unasked.focus(triples=3), unasked.focus(("c0", "c1"))
    plans = [table_model(Codec(schema), Fraction(0), pure=False).plan for schema in (unasked, asked, named)]

    def gets(n, delta=1e-9):
        shares = [plan.shares(n, make_budget(3, delta), Fraction(1)) for plan in plans]
        return [sorted({"important", "triples"} & set(own)) for own in shares], shares[0]

    few, middle = gets(300), gets(2_000)
    assert (few[0], middle[0]) == ([["important"], [], ["important"]], [["important"], ["triples"], ["important"]])
    assert [own["important"] / own["pairs"] for _, own in (few, middle)] == [4, Fraction(2, 3)]
    assert gets(2_000, 0)[0] == [[], ["triples"], ["important"]]
    assert gets(12_000)[0] == [["triples"], ["triples"], ["important", "triples"]]
    star, own = (plan.remeasured(300, make_budget(3, 1e-9)).pairs for plan in (plans[0], plans[2]))
    assert (star, own) == (((0, 4), (1, 4), (2, 4), (3, 4), (4, 5)), ((0, 1),))


def test_with_few_rows_pairs_with_a_target_come_out_closer():
    X = table(1500)
    X = X.with_columns([pl.Series(f"c{j}", X["c0"]) for j in (2, 5)])  # so that c0 is told by three columns
    schema = Schema.from_dict({"fields": FIELDS})

    def error(own, seed):
        rows = covey.PrivateSynthesizer(1.0, schema=own, seed=seed).fit(X).sample(1500)
        pairs = [[np.histogram2d(codes(f["c0"]), codes(f[c]), 6)[0] for c in ("c2", "c5")] for f in (X, rows)]
        return np.abs(np.subtract(*pairs)).sum() / 6000

    plain, chosen = (np.mean([error(own, seed) for seed in range(2)]) for own in (schema, schema.focus(target="c0")))
    assert chosen < 0.8 * plain
