"""Candidates, what breaks them, and how far one replaced row moves that: brute force over random neighbours."""

from dataclasses import replace

import numpy as np
import pytest

from covey.engine.codes.domain import PairTables
from covey.engine.relations.formulas import DAY, FORMULAS, YEAR, Broken, Column, proposals
from covey.engine.relations.literals import EQUIVALENT, EXCLUDES, IMPLIES, THRESHOLD, Analogies, State, cells_of, tabled

COLUMNS = (
    Column("a", "label", 4, 3, labels=("x1", "x2", "y1")),
    Column("b", "label", 2, labels=("x", "y")),
    Column("c", "label", 4, 3, labels=("x1", "x2", "y1")),
    Column("i", "number", 101, 0, 1, 100, 0.0, 1.0),
    Column("j", "number", 101, 0, 1, 100, 0.0, 1.0),
    Column("k", "number", 500, -1, 0, 500, -20.0, 1.0),
    Column("m", "number", 400, 0, 1, 399, 0.0, 0.5),
    Column("clock", "number", 2401, 0, 1, 2400, 0.0, 1.0),
    Column("later", "number", 2401, 0, 1, 2400, 0.0, 1.0),
    Column("rate", "number", 400, -1, 0, 400, 0.0, 0.05),
    Column("s", "date", 400, -1, 0, 400, 40 * YEAR // DAY * DAY, DAY),
    Column("t", "date", 400, 0, 1, 399, 40 * YEAR // DAY * DAY, DAY),
    Column("u", "datetime", 400 * 86400, 0, 1, 400 * 86400 - 1, 40 * YEAR // DAY * DAY, 1.0),
    Column("v", "datetime", 400 * 86400, -1, 0, 400 * 86400, 40 * YEAR // DAY * DAY, 1.0),
    Column("year", "number", 60, -1, 0, 60, 1990.0, 1.0),
    Column("month", "number", 12, -1, 0, 12, 1.0, 1.0),
)
EDGE = (0, 1, 2, 3, 50, 60)


def some_rows(n, seed):
    """Rows that agree often, at the ends of columns and in between, so that relations hold and break."""
    draw = np.random.default_rng(seed)
    return np.stack([np.minimum(draw.choice([*EDGE, c.size - 1], n), c.size - 1) for c in COLUMNS], axis=1)


def neighbours(count, n=8):
    for seed in range(count):
        rows, other = some_rows(n, seed), some_rows(1, 10_000 + seed)
        changed = rows.copy()
        changed[seed % n] = other[0]
        yield rows, changed, np.vstack([rows, other])


CELLS = cells_of(COLUMNS)
OF = tabled(COLUMNS, CELLS, [np.full(size, 1 / size) for size in CELLS.domain.sizes])
FOUND = proposals(COLUMNS)


def counted(rows):
    kernel = PairTables(CELLS.domain.sizes)
    tables = OF.broken(kernel.matrix(kernel(CELLS(rows))))
    return OF, tables, FOUND, Broken(COLUMNS, FOUND)(rows).values[0]


def test_one_row_moves_no_count_by_more_than_one_and_an_added_one_moves_none_down():
    """A choice is paid for by the range of the changes, which is 1 and not 2; a count that could fall would be seen."""
    moved_tables, moved = [set(), set()], [{formula.name: 0 for formula in FORMULAS} for _ in range(2)]
    for rows, replaced, added in neighbours(25):
        of, one, formulas, broken = counted(rows)
        kinds = [*of.pairs[:, 0].tolist(), *("map" if f.map else "function" for f in of.functions)]
        for way, other in enumerate((replaced, added)):
            _, two, _, after = counted(other)
            assert np.abs(two - one).max() <= 1
            # Those that break it, and those in which one side is missing, each.
            assert np.abs(after - broken).max() <= 1
            assert ((after - broken) ** 2).sum(axis=1).max() <= 2 - way  # an added row is broken or a hole, not both
            if way:
                assert min((two - one).min(), (after - broken).min()) >= 0
            moved_tables[way] |= {kinds[x] for x in np.flatnonzero(one != two)}
            for x in np.flatnonzero((broken != after).any(axis=1)):
                moved[way][formulas[x].formula.name] += 1
    assert moved_tables == [{IMPLIES, EQUIVALENT, EXCLUDES, THRESHOLD, "map", "function"}] * 2
    assert [name for own in moved for name, times in own.items() if not times] == []  # every family was seen to move


def test_counts_are_those_of_a_loop_over_rows():
    rows = some_rows(40, 3)
    of, found, formulas, broken = counted(rows)
    cells = of.cells(rows)

    def holds(x, row):
        literal = of.literals[x]
        return literal.first <= cells[row, literal.column] <= literal.last

    draw = np.random.default_rng(0)
    for i in draw.choice(len(of.pairs), 300):
        kind, x, y = of.pairs[i]
        pairs = [(holds(x, r), holds(y, r)) for r in range(len(rows))]
        wrong = {IMPLIES: lambda p, q: p and not q, EQUIVALENT: lambda p, q: p != q}
        assert found[i] == sum(wrong.get(kind, lambda p, q: p and q)(p, q) for p, q in pairs)
    for i in draw.choice(len(formulas), 300):
        candidate = formulas[i]
        one_by_one = [Broken(COLUMNS, (candidate,))(rows[r : r + 1]).values[0][0] for r in range(len(rows))]
        np.testing.assert_array_equal(broken[i], np.sum(one_by_one, axis=0))


@pytest.mark.parametrize("n", [1, 5])
def test_cells_part_all_codes_and_some_codes_of_cells_lie_in_them(n):
    rows = some_rows(n, 1)
    np.testing.assert_array_equal(CELLS(CELLS.codes(CELLS(rows), np.random.default_rng(0))), CELLS(rows))
    assert all(edges[0] == 0 and edges[-1] == c.size for edges, c in zip(CELLS.edges, COLUMNS, strict=True))


def open_state(columns=COLUMNS):
    """All candidates, of which nothing is known yet."""
    cells, formulas = cells_of(columns), proposals(columns)
    of = tabled(columns, cells, [np.full(size, 1 / size) for size in cells.domain.sizes])
    return of, formulas, State(columns, of, formulas)


def test_what_follows_from_accepted_relations_is_not_asked_again():
    of, formulas, state = open_state()
    place = {(of.literals[x].column, of.literals[x].first): x for x in range(len(of.literals)) if of.literals[x].single}
    x, y, z = place[0, 0], place[1, 0], place[2, 0]

    def allowed(kind, one, two):
        return state.allowed()[np.flatnonzero((of.pairs == (kind, one, two)).all(axis=1))[0]]

    assert allowed(IMPLIES, x, z)
    state.learn_literals(IMPLIES, x, y)
    state.learn_literals(IMPLIES, y, z)
    assert not allowed(IMPLIES, x, z)  # by way of y
    assert allowed(IMPLIES, z, x)
    state.learn_literals(EXCLUDES, place[0, 1], y)
    assert not allowed(EXCLUDES, x, place[0, 1]) if (EXCLUDES, x, place[0, 1]) in map(tuple, of.pairs) else True
    first = next(c for c in formulas if c.formula.name == "equal")
    state.learn_column(first, dropped=True)
    after = state.allowed()[len(of) :]
    assert not any(after[i] for i, c in enumerate(formulas) if c.target == first.target)
    circle = [i for i, c in enumerate(formulas) if c.target in first.sources and first.target in c.sources]
    assert not any(after[i] for i in circle)


def test_an_order_that_follows_from_others_is_not_asked_again():
    of, formulas, state = open_state()
    orders = {c.orders[0]: i for i, c in enumerate(formulas) if c.formula.name == "order"}
    i, j, k = (next(x for x, c in enumerate(COLUMNS) if c.name == name) for name in "ijk")
    assert {(i, j), (j, k), (i, k), (k, i)} <= set(orders)
    for pair in ((i, j), (j, k)):
        assert state.allowed()[len(of) + orders[pair]]
        state.learn_orders(formulas[orders[pair]].orders)
    after = {pair: bool(state.allowed()[len(of) + place]) for pair, place in orders.items()}
    assert not after[i, j]
    assert not after[i, k]  # by way of j
    assert after[k, i]


def test_a_part_that_is_nearly_always_the_same_is_in_no_sum():
    """Fees that hardly anybody pays can be added to any two equal columns; small counts lie near any installment."""
    j = next(x for x, c in enumerate(COLUMNS) if c.name == "j")
    rare = (*COLUMNS[:j], replace(COLUMNS[j], usual=0.9), *COLUMNS[j + 1 :])

    def summed(columns):
        return [c for c in proposals(columns) if c.formula.name == "sum" and j in (c.target, *c.sources)]

    assert summed(COLUMNS)
    assert summed(rare) == []
    small = Column("few", "number", 8, -1, 0, 8, 0.0, 1.0)
    paid = [c for c in proposals((*COLUMNS, small)) if c.name == "installment"]
    assert paid
    assert not any(len(COLUMNS) in (c.target, c.sources[0]) for c in paid)


def test_what_leaves_room_for_nearly_any_value_is_no_candidate():
    """Exit rates below 0.2 were said to be a duration divided by 1000, rounded down; years and few rooms, to add up."""
    shape = {"exits": (200, 0.0, 0.001), "when": (9, 2014.0, 1.0), "rooms": (4, 0.0, 1.0)}
    more = [Column(name, "number", n, -1, 0, n, low, step) for name, (n, low, step) in shape.items()]
    found = [(c.name, c.target - len(COLUMNS), c.sources) for c in proposals((*COLUMNS, *more)) if c.name != "order"]
    assert {"rest", "elapsed", "quotient"} <= {name for name, target, _ in found if target == 1}
    said = {f[:2] for f in found} | set(found)
    assert not said & {("quotient", 0), ("elapsed", 0), ("rest", 1, (len(COLUMNS) + 2,))}


def test_what_an_accepted_candidate_suggests_follows_from_names_and_labels():
    """One word in place of another all through, or one label in a third column; a change of one end alone suggests nothing."""
    dates = [replace(COLUMNS[11], name=f"{a}_{b}") for a, b in ("cI", "cO", "rI", "rO", "xB")]
    plans = [Column(name, "label", 3, labels=("no", "none", "yes")) for name in ("backup", "support", "films")]
    columns = (*dates, *plans)
    of, formulas, _ = open_state(columns)
    found = Analogies(columns, of, formulas)
    order = {c.orders[0]: len(of) + i for i, c in enumerate(formulas) if c.formula.name == "order"}
    assert found.of(order[0, 1]) == [order[2, 3]]
    place = {(x.column, x.first): i for i, x in enumerate(of.literals) if x.single}

    def both(kind, one, two):
        return int(np.flatnonzero((of.pairs == (kind, place[one], place[two])).all(axis=1))[0])

    assert found.of(both(EQUIVALENT, (5, 1), (6, 1))) == [both(EQUIVALENT, (5, 1), (7, 1))]
    assert found.of(both(EQUIVALENT, (5, 1), (6, 0))) == []
    assert found.of(both(EQUIVALENT, (0, 0), (1, 0))) == [both(EQUIVALENT, (2, 0), (3, 0))]


def test_columns_that_are_missing_together_are_told_once_whichever_way_that_was_found():
    of, _, state = open_state()
    holes = {x.column: i for i, x in enumerate(of.literals) if x.single and of.cells.edges[x.column][x.first] == 0}
    i, j, t = (next(x for x, c in enumerate(COLUMNS) if c.name == name) for name in "ijt")
    state.learn_literals(IMPLIES, holes[i], holes[j])
    assert state.missing_together() == []
    state.learn_literals(IMPLIES, holes[j], holes[i])
    assert state.missing_together() == [frozenset((i, j))]
    state.learn_literals(EQUIVALENT, holes[j], holes[t])
    assert state.missing_together() == [frozenset((i, t)), frozenset((j, t))]


def test_nothing_is_said_to_lie_between_two_copies():
    of, formulas, state = open_state()
    copies = next(c for c in formulas if c.formula.name == "equal" and COLUMNS[c.target].kind == "date")
    between = [c.formula.name == "days" and {*c.sources} == {copies.target, *copies.sources} for c in formulas]
    assert any(between)
    assert state.allowed()[len(of) :][between].all()
    state.learn_orders(copies.orders)
    assert not state.allowed()[len(of) :][between].any()
    assert not any(c.name == "days" for c in proposals([replace(c, usual=0.9) for c in COLUMNS]))


def test_of_columns_whose_words_are_not_known_nothing_is_said_but_that_they_are_missing():
    """A date in wide bins, or a time: cells without labels, which no rule could name. Releases failed after their charge."""
    columns = (*COLUMNS, Column("binned", "label", 6, 5), Column("bare", "label", 6))
    (of, formulas, _), first = open_state(columns), len(COLUMNS)
    assert [(x.column, x.first) for x in of.literals if x.column >= first] == [(first, 5)]
    assert not any(f.source >= first or f.target >= first for f in of.functions)
    assert Analogies(columns, of, formulas).of(0) is not None
