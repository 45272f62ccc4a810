"""Strong triples: how far scores move, which are chosen, that they come out, and that nothing is lost where there are none."""

from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy.special import expit
from scipy.stats import norm

import covey
from audits.gates import a_budget, a_gate
from covey.answers.replicates import Mechanism
from covey.answers.tables import write_tables
from covey.core.fit.centres import deviations, varying_triples
from covey.errors import CannotAnswerError, InternalError, ParameterError
from covey.measure.query import Factor, Query
from covey.methods.regain.important import Important, moves_of, triple_shares
from covey.privacy.budget import CHOICE, make_budget
from covey.privacy.gate import Exact, Moves
from covey.release.bundle import write_bundle
from covey.table.schema import Schema

SIZES = (2, 3, 2, 2)
TRIPLES = varying_triples(SIZES)


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
    X = np.stack([g.integers(0, c, 30) for c in SIZES], axis=1)
    query = Query(TRIPLES, {a: Factor.plain(c) for a, c in enumerate(SIZES)})
    kernel = query.kernel()
    expected = g.integers(0, 6, query.starts[-1])
    before = kernel(X).integers()[0]
    farthest, tables = 0, 0
    for row in product(*(range(c) for c in SIZES)):
        after = kernel(np.vstack([row, X[1:]])).integers()[0]
        scores = [deviations(counts, expected, query.starts) for counts in (before, after)]
        farthest = max(farthest, np.abs(scores[0] - scores[1]).max())
        tables = max(tables, np.abs(before - after).sum(), ((before - after) ** 2).sum())
    assert farthest == 2
    assert tables == moves_of(len(TRIPLES)).l1 == moves_of(len(TRIPLES)).l2_squared == 2 * len(TRIPLES)


def test_a_choice_has_the_chances_that_its_proof_gives_it():
    """Two candidates: P(first) = α^d/(1 + α) for a first one d > 0 behind, ties to the first; half the scale is rejected."""
    gate = a_gate("choosing", amount=1)
    first = 0
    for _ in range(1000):
        gate.book.clear()
        first += gate.choose("choosing", Exact(np.array([0, 3])), 2, 1, Moves(score=1)) == (0,)

    def chance(scale):
        return np.exp(-3 / scale) / (1 + np.exp(-1 / scale))

    spread = 4 * np.sqrt(chance(2) / 1000)
    assert abs(first / 1000 - chance(2)) < spread < abs(chance(1) - chance(2))


def test_choices_are_charged_round_by_round_and_leave_each_candidate_once():
    for pure in (True, False):
        gate = a_gate("choosing", amount=Fraction(1, 2), pure=pure)
        assert sorted(gate.choose("choosing", Exact(np.arange(3)), 3, 3, Moves(score=2))) == [0, 1, 2]
        assert [line.amount for line in gate.book] == [Fraction(1, 6)] * 3
        with pytest.raises(InternalError, match="spent"):
            gate.choose("choosing", Exact(np.arange(3)), 3, 3, Moves(score=2))
    with pytest.raises(InternalError, match="declared"):
        a_gate("choosing").choose("choosing", Exact(np.arange(3)), 4, 1, Moves(score=2))


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
    assert Important(triples=3).affordable(20_000, 20, budget.part(Fraction(1, 10)))[0] == 3
    assert Important(triples=3).affordable(200, 20, budget.part(Fraction(1, 10))) == (0, 0)  # noise alone
    assert Important(triples=3).affordable(20_000, 2, budget) == (0, 0)  # no triple among two columns
    assert Important(triples=3).affordable(10**6, 1000, budget) == (0, 0)  # too many to look at
    assert triple_shares(Fraction(1, 2), Important(triples=3), 200, 20, budget) == {}
    shares = triple_shares(Fraction(1, 2), Important(triples=3), 20_000, 20, budget)
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
def test_where_there_are_none_the_centres_stay_as_pairs_made_them():
    X = np.random.default_rng(2).integers(0, 2, (6000, 8))
    synth = covey.PrivateSynthesizer(1.0, 1e-9, domain=[2] * 8, triples=2, seed=1).fit(X)
    assert synth._law.triples is None
    assert {charge.purpose for charge in synth.privacy.charges} >= {
        "choosing triples",
        "triples",
    }  # looked for, and paid


FIELDS = [{"name": f"c{j}", "type": "string", "constraints": {"enum": list("abc"), "required": True}} for j in range(6)]


@pytest.mark.usefixtures("few_steps")
def test_a_target_leads_to_triples_with_it_and_the_bundle_draws_them_again(tmp_path):
    schema = Schema.from_dict({"fields": FIELDS, "covey": {"target": "c4", "triples": 1}})
    assert Schema.from_dict(schema.to_dict()).focus(target="c3").target == "c3"
    X = exclusive(9000, 6, size=3)
    frame = pl.DataFrame({f"c{j}": np.array(list("abc"))[X[:, j]] for j in range(6)})
    synth = covey.PrivateSynthesizer(2.0, 1e-9, schema=schema, seed=2).fit(frame)
    assert synth._law.triples.names == ((1, 2, 4),)
    purposes = {charge.purpose for charge in synth.privacy.charges}
    assert {"choosing triples", "triples"} <= purposes
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
    with pytest.raises(CannotAnswerError, match="of three at a time 'c1', 'c2', 'c4'"):
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


def test_what_makes_no_sense_is_refused():
    for wrong in ({"target": "c9"}, {"triples": -1}, {"triples": "many"}, {"target": 3}):
        with pytest.raises(ParameterError):
            Schema.from_dict({"fields": FIELDS, "covey": wrong})
    with pytest.raises(ParameterError, match="categories"):
        covey.PrivateSynthesizer(1.0, triples=2)
    flags = [{"name": n, "type": "boolean", "constraints": {"required": True}} for n in "abc"]
    with pytest.raises(ParameterError, match="yes/no columns"):
        covey.PrivateSynthesizer(1.0, schema=Schema.from_dict({"fields": flags, "covey": {"triples": 2}}))
