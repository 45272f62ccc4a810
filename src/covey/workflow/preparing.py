"""Before a release: a description drafted from tables, how tables fit a description, and what a release would be like.

Drafts and fits are confidential, a plan follows from public sizes alone. Nothing is charged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from covey.engine.budget import Budget, budget_for, check_delta, shown
from covey.engine.model import CERTIFICATE_SHARE
from covey.engine.models.persons.plan import PersonsPrediction, predict_persons
from covey.engine.models.predict import (
    Prediction,
    expected_focus,
    expected_triples,
    flag_words,
    focus_words,
    least_noise,
    predict,
    solve_epsilon,
    triple_words,
)
from covey.engine.unit import ALL_ROWS, REPLACE, Neighbours, Unit
from covey.errors import ArgumentError, InputError, ParameterError, nearest, whole_number
from covey.synthesizers import learning
from covey.synthesizers.proposed_relations import Proposal, exact_proposals
from covey.tables.codec import Codec, EncodeLog
from covey.tables.column_drafts import Note
from covey.tables.columns import named
from covey.tables.description import Description, require_one_branch
from covey.tables.dialects import Dialect
from covey.tables.drafting import Draft
from covey.tables.drafting import draft as look
from covey.tables.models import persons_plan, table_model
from covey.tables.reading import Prepared, Reader, TableRead
from covey.tables.resources import BARE, LONGEST, MOST_EVENTS, Parent, Resource, persons_beside
from covey.tables.rules import Rule
from covey.tables.schema import Schema, require_confirmed
from covey.tables.sources import SIZE_LIMIT, read_table
from covey.tables.sources.databases import Database
from covey.tables.zeros import structural_zeros

PLAIN = Dialect()  # as covey writes tables itself
# What a draft of persons with events leaves to its reader.
OF_EVENTS = (
    f"at_most is {MOST_EVENTS}, the largest possible number. Lower it if it is public knowledge that a person has fewer events",
    "order: name the column that orders the events, if there is one, and make it required",
)

# A draft.


@dataclass(frozen=True)
class Drafted:
    """A description of private data, what was looked at, and what to look at in it. For the tables' owner alone."""

    description: Description
    found: tuple[Draft, ...] = ()  # of the tables that there are
    links: tuple[str, ...] = ()  # what was chosen between tables, and why

    @property
    def by_table(self) -> list[tuple[Note, ...]]:
        """What was chosen and why, of each table that there is, but for the columns that link them."""
        several = len(self.description.tables) > 1
        links = [part.link if several else "" for part in self.description.given]
        return [
            tuple(note for note in one.notes if note.field != link)
            for one, link in zip(self.found, links, strict=bool(self.found))
        ]

    @property
    def notes(self) -> tuple[Note, ...]:
        """All of that, of fields as the description names them."""
        if len(self.description.tables) == 1:
            return tuple(note for notes in self.by_table for note in notes)
        return tuple(
            note if note.field is None else replace(note, field=f"{part.name}.{note.field}")
            for part, notes in zip(self.description.given, self.by_table, strict=True)
            for note in notes
        )

    @cached_property
    def relations(self) -> tuple[Proposal, ...]:
        """Relations between the columns of a single table, which its schema does not hold: somebody has to confirm them."""
        schema = self.description.schema
        return exact_proposals(schema, self.found[0].table) if schema is not None and self.found else ()

    @property
    def twice(self) -> tuple[str, ...]:
        """Columns whose own name was taken, as they are called instead."""
        return tuple(name for one in self.found for name in one.table.twice)


def propose(table: Any, described: Schema | Description) -> tuple[Proposal, ...]:
    """Relations between the columns of one table, counted exactly on its rows: for the owner alone. Nothing is charged."""
    schema = Description.of(described).schema
    if schema is None:
        raise ParameterError("relations are looked for between the columns of one table. This is a package of several.")
    return exact_proposals(schema, read_table(table, schema))


def with_proposal(schema: Schema, found: Sequence[Proposal], words: str) -> Schema:
    """The schema with the proposal that these words say, as public knowledge: what it speaks of was confirmed before."""
    chosen = {proposal.words: proposal for proposal in found}.get(words.strip().rstrip("."))
    if chosen is None:
        known = [proposal.words for proposal in found]
        raise ParameterError(f"no relation was seen that says {words!r}. {nearest(words, known, 'relations')}")
    require_confirmed({name: schema[name] for name in chosen.columns}, "schema")
    after = chosen.added_to(schema)
    structural_zeros(Codec(after))  # refuses rules that leave no row
    return after


def draft(
    tables: Path | Database | Mapping[str, Path],
    dialect: Dialect = PLAIN,
    size_limit: int = SIZE_LIMIT,
    person: str | None = None,
    learning: bool = False,
) -> Drafted:
    """A description that fits a table, or files by the names that their owner calls them. Nothing in it is public yet.

    Of two files the first has the persons. `person` names the column that says whose each row is, of the events or of the only
    file; of two files the only one that could be is taken. `at_most` is the largest number there is, whatever the tables hold:
    it is public, and nobody is asked to confirm it. With `learning` a single table is to be learned.
    """
    by_file = tables if isinstance(tables, Mapping) else {"": tables}
    files = list(by_file)
    found = tuple(look(one, dialect, size_limit, learning) for one in by_file.values())
    if len(found) == 1 and person is None:
        schema = Schema(found[0].fields, found[0].missing_values, dialect=found[0].dialect)
        return Drafted(Description.of(schema), found)
    require_one_branch(files[1:] or files)
    names = [re.sub(r"[^\w-]+", "_", file.split(".")[0])[:LONGEST] or "table" for file in files]
    if len(found) == 1:
        link, columns = person or "", list(found[0].table.columns)
        if link not in columns:
            raise ParameterError(f"{files[0]} has no column {link!r}. {nearest(link, columns, 'columns')}")
        said = f"{names[0]}.{link}: identifies the person; it is left out, and synthetic persons are numbered"
        unit = Resource(persons_beside(names[0]), BARE, "id")
    else:
        key, link = find_key(found[0].table.columns, found[1].table.columns, names, person)
        said = f"{names[1]}.{link} → {names[0]}.{key}: the key; both columns are left out, and synthetic persons are numbered"
        unit = Resource(names[0], _without(found[0], key), key, path=files[0])
    parent = Parent(unit.name, link, MOST_EVENTS)
    events = Resource(names[-1], _without(found[-1], link), parent=parent, path=files[-1])
    return Drafted(Description((unit, events), alone=len(found) == 1), found, (said, *OF_EVENTS))


def _without(found: Draft, column: str) -> Schema:
    """The drafted schema of a table without its key."""
    fields = tuple(field for field in found.fields if field.name != column)
    if not fields:
        raise ParameterError(f"a table has no column besides its key {column!r} that a draft could describe.")
    return Schema(fields, found.missing_values, dialect=found.dialect)


def find_key(persons: Any, events: Any, names: list[str], person: str | None = None) -> tuple[str, str]:
    """The column that has a value of its own in every row of persons, and the one of events whose values are all among these.

    Whom a release protects hangs on it, so that nothing is guessed: of several that could be, `person` names the events', and
    where it could refer to several of persons also which ("patient=id").
    """

    def values(column: Any) -> list[str | None]:
        words, places = named(column, ("",))
        return [words[place] for place in places]

    sets = {name: values(column) for name, column in persons.items()}
    keys = {name: set(found) for name, found in sets.items() if None not in found and len(set(found)) == len(found)}
    link, _, key = (person or "").partition("=")
    links = []
    for name, column in events.items():
        own = set(values(column)) - {None}
        links += [(key, name) for key, there in keys.items() if own and own <= there]
    if not links:
        raise InputError(
            f"no column of {names[1]} holds only values that {names[0]} has once each: which column names the person? Name the "
            "table of persons first, and see that each person has one row there."
        )
    left = [pair for pair in links if link in ("", pair[1]) and key in ("", pair[0])]
    said = ", ".join(f"{name}={key}" for key, name in left or links)
    if not left:
        raise ParameterError(f"{person} does not link {names[1]} to {names[0]}. What could: {said}.")
    if len(left) > 1:
        raise ParameterError(
            f"several columns of {names[1]} could name the person in {names[0]}: {said}. Say which it is (--person on the "
            "command line): it decides which rows are protected together."
        )
    return left[0]


# A fit.


@dataclass(frozen=True)
class Finding:
    """Cells of a column that do not fit, or rows of a table: so many, of how many, and in words what becomes of them."""

    name: str  # of the column or the table; empty where there is one table
    count: int
    rows: int
    words: str
    left_out: bool = False  # whether these rows are left out

    def __str__(self) -> str:
        return f"{self.name}{': ' if self.name else ''}{self.count:,} of {self.rows:,} {self.words}"


def findings_in(table: TableRead) -> list[Finding]:
    """What would happen to the cells and rows of a table, column by column."""
    found = []
    for name, seen in table.log.columns.items():
        field = table.schema[name]
        becomes = f"become {field.other!r}" if field.other else "become the default or missing"
        empty = seen.missing == table.rows and not field.required
        cells = [
            (seen.unparseable, f"are no {field.type}, and become the default or missing"),
            (seen.unknown, f"are in no category of the schema, and {becomes}"),
            (seen.clipped, "are beyond a limit, and are moved to it"),
            (seen.missing if field.required else 0, "are missing in a required column, and become the default"),
            (seen.missing if empty else 0, "are missing, so there is nothing to release"),
        ]
        found += [Finding(table.called(name), count, table.rows, f"cells {what}") for count, what in cells]
    ragged = [(table.log.short_rows, "too few"), (table.log.long_rows, "too many")]
    return found + [Finding(table.name, count, table.rows, f"rows have {what} cells") for count, what in ragged]


@dataclass(frozen=True)
class Fit:
    """How tables fit their description. Computed on true data: for the owner alone."""

    tables: tuple[TableRead, ...]
    persons: int | None = None  # how many there are, where persons are counted
    rest: tuple[Finding, ...] = ()  # rows that are left out, and those that break a rule
    broken: tuple[tuple[Rule, int], ...] = ()  # rules of a table that rows break, and how many do

    @property
    def rows(self) -> int:
        """Rows of the table, or of that of the events."""
        return self.tables[-1].rows

    @property
    def log(self) -> EncodeLog:
        """What encoding met, by column."""
        columns = {one.called(name): seen for one in self.tables for name, seen in one.log.columns.items()}
        ragged = sum(one.log.short_rows for one in self.tables), sum(one.log.long_rows for one in self.tables)
        return EncodeLog(columns, *ragged, tuple(name for one in self.tables for name in one.log.ignored))

    @property
    def findings(self) -> list[Finding]:
        """What would happen to cells and rows."""
        found = [finding for table in self.tables for finding in findings_in(table)]
        return [finding for finding in (*found, *self.rest) if finding.count]

    @property
    def misfits(self) -> dict[str, Fraction]:
        """Shares of cells that would be moved, emptied or filled with a default, by column; of rows that would be left out."""
        out = {rest.name: Fraction(rest.count, max(1, rest.rows)) for rest in self.rest if rest.left_out}
        for one in self.tables:
            for name, seen in one.log.columns.items():
                field = one.schema[name]
                lost = seen.unparseable + seen.clipped + (0 if field.other else seen.unknown)
                out[one.called(name)] = Fraction(lost + (seen.missing if field.required else 0), max(1, one.rows))
        return out


def fit_of(prepared: Prepared) -> Fit:
    """How tables that were prepared fit."""
    reader, described, tables = prepared.reader, prepared.reader.description, prepared.tables
    broken = [(table, rule, n) for table in tables for rule in table.schema.rules if (n := table.log.broken[rule])]
    rest = [
        Finding(table.name, count, table.rows, f"rows break the rule {rule}; no synthetic row will")
        for table, rule, count in broken
    ]
    if described.schema is None:
        name, most = described.events.name, described.link.at_most
        beyond = f"rows are left out, because a person may have at most {most} (at_most)"
        against = "rows break a rule across the tables; no synthetic row will"
        rest.append(Finding(name, prepared.left_out, prepared.records, beyond, left_out=True))
        rest.append(Finding(name, prepared.broken, prepared.records, against))
    elif reader.person is not None:
        nobody = "rows name no person and are left out"
        rest.append(Finding(reader.person, prepared.left_out, prepared.records, nobody, left_out=True))
    persons = prepared.n if reader.by_person else None
    return Fit(tables, persons, tuple(rest), tuple((rule, count) for _, rule, count in broken))


def check(tables: Any, described: Schema | Description, person: str | None = None) -> Fit:
    """Read tables as their description says, confirmed or not, and count what does not fit. Nothing is charged."""
    whole = Description.of(described)
    if person is not None and whole.schema is not None:
        [unit] = whole.tables
        whole = replace(whole, tables=(replace(unit, schema=unit.schema.without(person)),))
    return fit_of(Reader(whole, "cells", person=person).prepare(tables))


# A plan.


@dataclass(frozen=True)
class Plan:
    """A prediction, in words and for JSON."""

    prediction: Prediction | PersonsPrediction
    words: tuple[str, ...]
    facts: dict[str, Any]


def plan(  # what is described, how many there are, and what is promised
    described: Schema | Description,
    n: int,
    epsilon: Fraction | None,
    delta: Fraction,
    target_error: Fraction | None = None,
    unit: Unit = 1,
    neighbours: Neighbours = REPLACE,
) -> Plan:
    """What a release would be like, from public sizes alone; with a target error instead of ε, also that ε.

    n counts rows, or persons where there are persons with events or `unit` is "all", as in a release with a column of persons.
    """
    whole = Description.of(described)
    if (epsilon is None) == (target_error is None):
        raise ArgumentError("give ", "epsilon", ", or ", "target_error", " to find it.")
    if whole.schema is None:
        if epsilon is None:
            raise ArgumentError("covey cannot find an epsilon for persons with events. Give ", "epsilon", ".")
        check_delta(delta, n)
        budget = budget_for(epsilon, delta, ALL_ROWS, labels=whole.learns, neighbours=neighbours)
        for part in whole.tables:
            learning.check_learning(part.schema, delta)
        expected = whole.each(lambda part: learning.expected_schema(part.schema))
        persons, cost = predict_persons(persons_plan(expected), n, budget), learning.learning_cost(whole, n, budget)
        told = [
            *persons.words,
            *([] if cost is None else [learning.cost_words(cost, budget.counted)]),
            learning.too_wide(whole, n, budget),
        ]
        facts = asdict(persons) | ({} if cost is None else {"learning": cost})
        return Plan(persons, tuple(filter(None, told)), facts)
    schema = learning.with_known_domains(whole.schema)
    learning.check_learning(schema, delta)
    expected_codec, learns = learning.expected_codec(schema), bool(schema.learns)
    sizes, attributes = expected_codec.domain_sizes, expected_codec.kinds
    n = whole_number(n, "persons" if unit == ALL_ROWS else "rows", 1)
    check_delta(delta, n)

    def promise(epsilon: float | Fraction) -> Budget:
        return budget_for(epsilon, delta, unit, labels=learns, neighbours=neighbours)

    budget = promise(solve_epsilon(sizes, n, promise, target_error) if epsilon is None else epsilon)
    cost, wide = learning.learning_cost(schema, n, budget), learning.too_wide(schema, n, budget)
    own = None if learns else table_model(Codec(schema), Fraction(0), budget.pure).plan
    fixed = learns or schema.finds_relations or unit != 1 or (own and own.important)
    law = budget if fixed else least_noise(attributes, budget, n)
    found = predict(sizes, n, law, attributes, budget.delta)
    focus = expected_focus(own, n, budget) if own and own.remeasured(n, budget).pairs else None
    triples = None
    if own and own.important.triples:
        share = own.shares(n, budget, 1 - CERTIFICATE_SHARE).get("triples")
        measuring = None if share is None else budget.part(share)
        triples = expected_triples(own.important, len(own.attributes), n, measuring)
    flags = all(size == 2 for size in sizes)  # these have a plan of their own
    noise = flag_words(n, len(sizes), law) if flags else "" if own is None else own.noise_words(n, law)
    if law.pure and delta:
        noise = (
            f"{noise}; " * bool(noise)
            + "nothing of δ is spent, since pure ε has less noise here (unless a ledger counts μ²)"
        )
    more = {"learning": cost, "important": focus, "triples": triples}
    words = [
        found.sentence,
        f"  {'persons' if unit == ALL_ROWS else 'rows':9} {n:,}",
        f"  columns   {len(sizes)} to measure, with {sum(sizes):,} categories or bins in all",
        f"  guarantee ε = {found.epsilon:g}, δ = {shown(delta)}, {neighbours}",
        f"  time      about {found.seconds:.0f} s",
        f"  memory    about {found.memory_gib:.2g} GiB",
        f"  noise     {noise}" if noise else "",
        "" if found.groups is None else found.groups.sentence,
        "" if cost is None else learning.cost_words(cost, budget.counted),
        wide,
        "" if focus is None else focus_words(focus, sizes),
        "" if triples is None else triple_words(triples),
        *(f"warning: {warning}" for warning in found.warnings),
    ]
    facts = found.as_dict() | {name: one for name, one in more.items() if one is not None}
    return Plan(found, tuple(filter(None, words)), facts)
