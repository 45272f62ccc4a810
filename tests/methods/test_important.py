"""What matters most: its sensitivity, its gain, and that nothing changes without it."""

from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest

import covey
from covey.core.tables.domain import Domain
from covey.errors import ParameterError
from covey.measure.measurement import Measurement
from covey.measure.query import Factor, Query
from covey.methods.regain.important import Important, averaged, restored
from covey.methods.regain.predict import focus_words
from covey.table.schema import Schema

SIZES = (2, 3, 5, 4)


def one_hot(row, a):
    return np.eye(SIZES[a])[row[a]]


@pytest.mark.parametrize("groups", [[(0, 1)], [(1, 2), (0, 3)], [(2,)], [(1, 2), (1, 3), (2, 3)]])
def test_one_row_moves_the_tables_no_farther_than_said_and_single_pairs_attain_it(groups):
    important = Important.of(groups, len(SIZES), pure=False)
    pairs = important.pairs or tuple((min(g[0], b), max(g[0], b)) for g in groups for b in range(4) if b != g[0])
    moves = Important(important.attributes, pairs).moves(SIZES)
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
    assert worst[0] <= moves.l1
    assert worst[1] <= float(moves.l2_squared) + 1e-12
    if len(pairs) == 1:
        assert worst == pytest.approx([moves.l1, float(moves.l2_squared)])


def test_which_pairs_are_measured_again_is_public():
    assert Important.of([(3, 1)], 5, pure=True).pairs == ((1, 3),)
    assert Important.of([(3,)], 5, pure=False).pairs == ()  # its one-way table alone
    assert len(Important.of([(3,)], 20, pure=False).pairs) == 19
    assert Important.of([(3,)], 20, pure=True).pairs == ()
    assert Important((), ((0, 1), (1, 2))).live((2, 1, 3)) == []
    assert Important.of([(0, 1)], 4, pure=True).moves(SIZES).l2_squared == Fraction(4, 3)


def test_two_measurements_are_averaged_and_what_is_noise_is_not_restored():
    domain = Domain((2, 2), (False, False))
    table = np.array([[0.1, -0.1], [-0.1, 0.1]])
    own = np.zeros((4, 4))
    own[:2, 2:], own[2:, :2] = table, table.T
    query = Query([(0, 1)], {a: Factor.plain(2) for a in (0, 1)}, "centred")
    extra = Measurement(query, table.ravel(), 0.01, "gaussian")
    assert np.abs(averaged(-own, 0.01, extra, domain)).max() < 1e-15
    assert averaged(np.zeros((4, 4)), 0.0, extra, domain) == pytest.approx(own)
    assert restored(np.zeros((4, 4)), own, 1.0, extra, domain) == pytest.approx(own, rel=0.01)
    assert np.abs(restored(np.zeros((4, 4)), own * 0.04, 1.0, extra, domain)).max() == 0


FIELDS = [
    {"name": f"c{j}", "type": "string", "constraints": {"enum": list("abcdef"), "required": True}} for j in range(8)
]


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
    for wrong in ("c1", ["c9"], [["c0", "c0"]], [["c0", "c1", "c2"]], [[]]):
        with pytest.raises(ParameterError):
            Schema.from_dict({"fields": FIELDS, "covey": {"important": wrong}})
    flags = [{"name": n, "type": "boolean", "constraints": {"required": True}} for n in "ab"]
    with pytest.raises(ParameterError, match="yes/no columns"):
        covey.PrivateSynthesizer(1.0, schema=Schema.from_dict({"fields": flags, "covey": {"important": ["a"]}}))


def test_a_plan_says_what_is_gained_on_the_one_scale_that_all_errors_have():
    """Two columns of three categories have nine cells; noise of 1% on a cell misplaces 0.4 · 9 of 100 rows."""
    said = focus_words({"important": 0.001, "others": 0.003, "without": 0.002}, [3, 3, 1])
    assert said.startswith("noise moves about 0.36% of the rows in an important two-column table")
    assert "without this choice 0.72%, in other tables 1.1%" in said
    assert "about 50%" not in focus_words(
        {"important": 0.2, "others": 0.3, "without": 0.2}, [3, 3]
    )  # beyond, columns are taken for independent
