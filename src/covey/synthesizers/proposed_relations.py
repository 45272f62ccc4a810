"""Relations of a table, counted exactly: proposals that its owner may confirm as public knowledge, rule by rule.

Candidates, counts and what follows from what are those of the private search (`methods.relations.search`), without its noise.
So a proposal is confidential: it is for the owner's eyes, no schema and no file holds it, and a release never sees one. What
the owner adds is a rule or a derived column like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from covey.engine.arrays import Array, Integers
from covey.engine.codes.domain import PairTables
from covey.engine.relations import search
from covey.engine.relations.formulas import HALF, Broken, Candidate, Column, proposals
from covey.engine.relations.literals import THRESHOLD, Function, State, cells_of, tabled
from covey.engine.relations.search import Accepted, Findings, Share
from covey.errors import ParameterError
from covey.synthesizers.used_relations import MISSING, applied, columns_of, said
from covey.tables.attributes import MISSING as CELL_MISSING
from covey.tables.attributes import Grid
from covey.tables.codec import Codec, expected_cells
from covey.tables.columns import Table, Words
from covey.tables.fields import Field
from covey.tables.rules import AtMost, Forbid, Rule
from covey.tables.schema import LessEqual, Schema

LOOKED_AT = 20_000  # rows: with so many a share of 0.5% is known to a tenth of it, and a look takes seconds
GLANCE = 1000  # rows that rule most formulas out before all are counted
MOST_BROKEN = 0.005  # of the rows: a few mistakes of typing are forgiven
BROKEN_AT_A_GLANCE = 0.05  # of the rows: what holds in all but 0.5% is hardly ever broken so often in a thousand
FEWEST = 20  # rows that chance would break: of thousands of candidates none is unbroken by chance then
MOST = 30  # proposals: more than a person reads
MOST_COLUMNS = 60  # columns beyond which nothing is looked for: tables of all pairs would fill the memory
MOST_CANDIDATES = 50_000  # formulas; beyond, those of one source alone
AGAIN = 0.02  # of the rows: what a formula of measured columns is ahead of one that starts from a computed column
SEPARATORS = "_-.:=/ "  # in names of columns, before what tells apart those that are one category
NOWHERE: Mapping[str, str] = {}
WEIGHT = 0.25  # of what chance would break, against handicaps: as in the private search

What = tuple[int, int, int] | Function | Candidate  # as relations are accepted


@dataclass(frozen=True)
class Proposal:
    """A relation in words, how many of the rows looked at break it, and what it would add to the schema. Confidential."""

    words: str
    broken: int
    rows: int
    rules: tuple[Rule, ...] = ()
    field: Field | None = None  # a column that would be computed, not measured

    def __str__(self) -> str:
        return f"{self.words} ({self.broken:,} of {self.rows:,} rows break it)"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it speaks of."""
        bases = () if self.field is None or self.field.derived is None else (self.field.name, *self.field.derived.bases)
        return tuple(dict.fromkeys((*bases, *(name for rule in self.rules for name in rule.fields))))

    def added_to(self, schema: Schema) -> Schema:
        """The schema with it; refused where the two contradict each other. Whether a field is confirmed stays as it is."""
        own = {} if self.field is None else {self.field.name: self.field}
        rules = tuple(rule for rule in self.rules if rule not in schema.rules)
        fields = tuple(own.get(field.name, field) for field in schema.fields)
        return replace(schema, fields=fields, rules=(*schema.rules, *rules))

    def is_news(self, schema: Schema) -> bool:
        """Whether the schema does not say it yet, and could."""
        try:
            return self.added_to(schema) != schema
        except ParameterError:
            return False


def exact_proposals(schema: Schema, table: Table) -> tuple[Proposal, ...]:
    """What nearly every row of a table keeps, few rows would keep by chance, and its schema does not say; the best first."""
    codec = alone(schema)
    if codec is None:
        return ()
    cells, _ = codec.encode(_sample(table), "cells")
    found = exclusive_columns(schema, codec, cells)
    homes = schema.home | {name: proposal.words for proposal in found for name in proposal.columns}
    if len(codec.names) <= MOST_COLUMNS:
        found += exact_relations(schema, codec, cells, homes=homes)
    return tuple(proposal for proposal in found if proposal.is_news(schema))


def exclusive_columns(schema: Schema, codec: Codec, cells: Integers) -> list[Proposal]:
    """Yes/no columns whose names begin alike and of which every row sets one, or one at most: they are one category."""
    flags = {f.name: cells[:, j] == 1 for j, f in enumerate(codec.schema.encoded) if f.type == "boolean"}
    begun: dict[str, list[str]] = {}
    for name in (name for name in flags if name not in schema.home):
        for begin in {name[: k + 1] for k, mark in enumerate(name) if mark in SEPARATORS}:
            begun.setdefault(begin, []).append(name)
    found, n, generator = list[Proposal](), len(cells), np.random.default_rng(0)
    for names in sorted((own for own in begun.values() if len(own) > 1), key=len, reverse=True):
        chosen = np.stack([flags[name] for name in names], axis=1)
        several = (generator.permuted(chosen, axis=0).sum(axis=1) > 1).sum()
        rules = [AtMost.one_of(names, none) for none in (False, True)]
        proposals = [Proposal(rule.words.rstrip("."), 0, n, (rule,)) for rule in rules]
        broken = [int(breaks(proposal, codec, cells).sum()) for proposal in proposals]
        taken = {name for proposal in found for name in proposal.columns}
        if several >= max(search.LEAST_BY_CHANCE * n, FEWEST) and taken.isdisjoint(names):
            held = [replace(p, broken=b) for p, b in zip(proposals, broken, strict=True) if b <= MOST_BROKEN * n]
            found += held[:1]
    return found


def exact_relations(
    schema: Schema, codec: Codec, exact: Integers, read_off: bool = False, homes: Mapping[str, str] = NOWHERE
) -> list[Proposal]:
    """The relations of these cells. A function that labels do not give away is `read_off` the rows, and so no proposal.

    Thresholds would be, too: nobody knew them before. Columns of one home exclude each other, which is known.
    """
    codes = codec.numbers(exact)
    n, columns, generator = len(codes), columns_of(codec), np.random.default_rng(0)
    cells = cells_of(columns)
    kernel = PairTables(cells.domain.sizes)
    tables = kernel.matrix(kernel(cells(codes)))
    shares = np.split(np.diag(tables) / n, cells.domain.starts[1:-1])
    columns = tuple(map(search.with_holes, columns, cells.edges, shares))
    of, formulas = tabled(columns, cells, shares), _formulas(columns, codes)
    count = Broken(columns, formulas)
    counted, drawn = count(codes).values[0], count(generator.permuted(codes, axis=0)).values[0]
    whats: list[What] = [*((int(kind), int(a), int(b)) for kind, a, b in of.pairs), *of.functions, *formulas]
    pairs, orders = len(of.pairs), np.array([False] * len(of) + [c.name == "order" for c in formulas], dtype=bool)
    broken = np.concatenate([of.broken(tables), counted.sum(axis=1)])
    broken[orders] = counted[orders[len(of) :], 0]  # where one is missing there is no order to break
    chance = np.concatenate([of.by_chance(shares, n), drawn[:, 0]])
    often = np.maximum(np.where(orders, search.ORDER_BY_CHANCE, search.LEAST_BY_CHANCE) * n, FEWEST)
    left = (broken <= MOST_BROKEN * n) & (chance >= often)
    given = np.array([read_off or bool(f.map) for f in of.functions], dtype=bool)
    left[: len(of)] &= np.concatenate([of.pairs[:, 0] != THRESHOLD, given])
    home, literals = [homes.get(name, name) for name in codec.names], [literal.column for literal in of.literals]
    both = [*((literals[a], literals[b]) for _, a, b in of.pairs), *((f.source, f.target) for f in of.functions)]
    left[: len(of)] &= np.array([home[a] != home[b] for a, b in both], dtype=bool)
    first = ~orders & (np.arange(len(whats)) >= pairs)  # what computes a column comes first
    handicaps = np.concatenate([np.zeros(len(of)), [c.handicap for c in formulas]])
    score = WEIGHT * chance - broken + n * (first - handicaps)
    state, found, accepted = State(columns, of, formulas), list[Proposal](), list[Accepted]()
    state.learn_orders([(codec.names.index(a), codec.names.index(b)) for a, b in _ordered(schema, codec.names)])
    while len(found) < MOST and (able := left & state.allowed()).any():
        again = np.concatenate([np.zeros(pairs), AGAIN * n * state.dropped[state.sources].any(axis=1)])
        i = int(np.where(able, score - again, -np.inf).argmax())
        left[i] = False
        what = whats[i]
        seen = what.map if isinstance(what, Function) else ()
        if isinstance(what, Function) and not seen:  # as most rows have it
            seen = tuple(what.table(tables, cells.domain).argmax(axis=1).tolist())
        one = Accepted(what, Share(broken[i] / n, 0.0), imposed=True, map=seen)
        proposal = _proposal(schema, codec, Findings(columns, of, ()), one)
        if proposal is None or not (read_off or _fits(state, accepted, what)):
            continue
        breaking = int(breaks(proposal, codec, exact).sum())
        if breaking <= MOST_BROKEN * n:
            _learn(state, what, computed=not read_off)
            accepted.append(one)
            found.append(replace(proposal, broken=breaking, rows=n))
    return found


def alone(schema: Schema, most: int | None = None) -> Codec | None:
    """The encoder of fields, each by itself: what one says of others is looked for. None where there is nothing to look at."""
    fields = []
    for field in schema.fields:
        with suppress(ParameterError):  # of a draft without limits
            fields.append(replace(field, follows=None, expected=None, levels=None, confirmed=True))
    several = tuple(field for field in fields if not field.learn and field.measured and field.categories > 1)[:most]
    return Codec(Schema(several, schema.missing_values, dialect=schema.dialect)) if len(several) > 1 else None


def _sample(table: Table) -> Table:
    if table.rows <= LOOKED_AT:
        return table
    rows = np.sort(np.random.default_rng(0).choice(table.rows, LOOKED_AT, replace=False))
    columns = {
        name: Words(column.places[rows], column.words) if isinstance(column, Words) else column.gather(rows)
        for name, column in table.columns.items()
    }
    return replace(table, columns=columns, rows=LOOKED_AT)


def _formulas(columns: Sequence[Column], codes: Array) -> tuple[Candidate, ...]:
    """Orders, and formulas that give a column to its last digit, as far as a glance does not rule them out."""
    every = proposals(columns)
    if len(every) > MOST_CANDIDATES:
        every = tuple(c for c in every if len(c.sources) == 1)
    sharp = dict.fromkeys(
        c if c.name == "order" else replace(c, slack=min(c.slack, HALF * columns[c.target].step), relative=0.0)
        for c in every
        if c.name != "close"
    )
    some = codes[:: max(1, len(codes) // GLANCE)]
    counted = Broken(tuple(columns), tuple(sharp))(some).values[0][:, 0]
    return tuple(c for c, n in zip(sharp, counted, strict=True) if n <= BROKEN_AT_A_GLANCE * len(some))


def _ordered(schema: Schema, names: Sequence[str]) -> list[tuple[str, str]]:
    """Columns of which the schema says that the first is never above the second."""
    pairs = [(link.base, name) for name, link in schema.links.items() if link.difference.low >= 0 and not link.expected]
    pairs += [(rule.left, rule.right) for rule in schema.rules if isinstance(rule, LessEqual)]
    return [pair for pair in pairs if set(pair) <= set(names)]


def _fits(state: State, accepted: Sequence[Accepted], what: What) -> bool:
    """Whether it goes with what was found before: rules are about measured columns, and no circle is computed."""
    if isinstance(what, tuple):
        return True
    if what.name == "order":
        return not state.dropped[[what.target, *what.sources]].any()
    return not search.is_source(accepted, what.target, of_functions=isinstance(what, Candidate))


def _learn(state: State, what: What, computed: bool) -> None:
    """What follows from a relation; where nothing is computed, rows may break it, and others start from its column as well."""
    if isinstance(what, tuple):
        state.learn_literals(*what)
    elif what.name == "order":
        state.learn_orders(what.orders)
    else:
        state.learn_column(what, dropped=computed)
        state.lost[what.target] &= computed


def _proposal(schema: Schema, codec: Codec, findings: Findings, one: Accepted) -> Proposal | None:
    """What a relation would add to the schema, in words that leave out nothing of it; None where it cannot be added."""
    try:
        after = applied(codec, findings, [one])
        own = next((now for now, before in zip(after.fields, codec.schema.fields, strict=True) if now != before), None)
        if own is not None:
            own = replace(own, confirmed=schema[own.name].confirmed, warning=schema[own.name].warning)
        words = _words(after.rules, schema) if after.rules else after.found[0].words
        found = Proposal(words, 0, 0, after.rules, own)
        found.added_to(schema)
    except ParameterError:
        return None
    return found


def breaks(proposal: Proposal, codec: Codec, table: Integers) -> Array:
    """Which rows break it as the schema would have it: computed to the last digit, and without a value where it should be."""
    cells = codec.book.complete(table.T)
    field = proposal.field
    masks = [codec.book.broken(rule, cells) for rule in proposal.rules]
    if field is not None and field.derived is not None:
        own, attribute = cells[field.name], codec.attributes[field.name]
        own = np.where(attribute.has_value(own), own, CELL_MISSING) if isinstance(attribute, Grid) else own
        masks += [expected_cells(field.name, field.derived, codec.attributes, cells) != own]
    return np.asarray(np.logical_or.reduce(masks))


def _words(rules: Sequence[Rule], schema: Schema) -> str:
    first = rules[0]
    if (
        len(rules) == 2
        and isinstance(first, Forbid)
        and all(c == MISSING for _, c in (*first.conditions, *first.unless))
    ):
        return f"{' and '.join(first.fields)} are missing together"
    return " ".join(said(rule, schema) for rule in rules).rstrip(".")
