"""Before a release: a schema drafted from a table, and how a table fits a schema. Confidential, and nothing is charged."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from covey.engines.persons import Keyring, PersonCounts, nameless
from covey.table import metadata
from covey.table.codec import Codec, EncodeLog
from covey.table.databases import Database
from covey.table.dialects import Dialect
from covey.table.persons import WithPerson, named, without
from covey.table.proposing import CALLED, Note
from covey.table.provisional import Provisional
from covey.table.rules import Rule, shown_rule
from covey.table.schema import Schema
from covey.table.sources import SIZE_LIMIT, no_rows, open_source

PLAIN = Dialect()  # as covey writes tables itself


@dataclass(frozen=True)
class Drafted:
    """A schema that describes private data, and for doubtful fields what to look at. For the table's owner alone."""

    schema: Schema
    notes: tuple[Note, ...]

    @property
    def twice(self) -> tuple[str, ...]:
        """Columns whose own name was taken, as they are called instead."""
        return tuple(note.choice[len(CALLED) + 1 : -1] for note in self.notes if note.choice.startswith(CALLED))

    @property
    def doubts(self) -> dict[str, str]:
        """For each doubtful column, what to look at."""
        return {n.field: f"{n.reason}; {n.warning}" for n in self.notes if n.field is not None and n.warning}


def draft(
    table: Path | Database, dialect: Dialect = PLAIN, size_limit: int = SIZE_LIMIT, learning: bool = False
) -> Drafted:
    """A schema that fits this table. Nothing in it is public before its owner has confirmed it."""
    return Drafted(*Schema.draft_with_notes(table, dialect, size_limit, learning))


def imported(path: Path) -> Schema:
    """The schema that SDV's JSON or SmartNoise's YAML metadata declares."""
    return metadata.from_sdv_json(path) if path.suffix == ".json" else metadata.from_smartnoise_yaml(path)


@dataclass(frozen=True)
class Fit:
    """How a table fits a schema: its rows, and what its cells needed. Computed on true data: for the owner alone.

    With a column of persons also how many there are, and how many rows name nobody and are left out.
    """

    rows: int
    log: EncodeLog
    schema: Schema
    person: str | None = None
    persons: int | None = None
    nobodys: int = 0
    broken: tuple[tuple[Rule, int], ...] = ()  # rules that rows break, and how many do

    @property
    def words(self) -> list[str]:
        """What would happen to cells, column by column."""
        n, said = self.rows, []
        for name, seen in self.log.columns.items():
            field = self.schema[name]
            found = [
                (seen.unparseable, f"no {field.type} and taken as missing, or as the default"),
                (
                    seen.unknown,
                    "in no category of the schema" + (f" and merged into {field.other!r}" if field.other else ""),
                ),
                (seen.clipped, "outside the bounds and moved to them"),
                (seen.missing if field.required else 0, "missing and filled with the default: the field is required"),
                (seen.missing if seen.missing == n and not field.required else 0, "missing"),
            ]
            said += [f"{name}: {count:,} of {n:,} cells are {what}" for count, what in found if count]
        ragged = [(self.log.short_rows, "too few"), (self.log.long_rows, "too many")]
        said += [f"{count:,} of {n:,} rows have {what} cells" for count, what in ragged if count]
        for rule, count in self.broken:
            said.append(f"{count:,} of {n:,} rows break the rule {shown_rule(rule)}: no synthetic row will")
        return said + [f"{self.person}: {self.nobodys:,} of {n:,} rows name nobody and are left out"] * (
            self.nobodys > 0
        )

    @property
    def misfits(self) -> dict[str, Fraction]:
        """For each column the share of cells that would become something else: moved, emptied, or filled with a default.

        Of the column of persons, the share of rows that would be left out.
        """
        out = {} if self.person is None else {self.person: Fraction(self.nobodys, self.rows)}
        for name, seen in self.log.columns.items():
            field = self.schema[name]
            lost = seen.unparseable + seen.clipped + (0 if field.other else seen.unknown)
            out[name] = Fraction(lost + (seen.missing if field.required else 0), self.rows)
        return out


def check(table: Path | Database, schema: Schema, person: str | None = None) -> Fit:
    """Read a table as the schema says, confirmed or not, and count the cells that do not fit. Nothing is charged."""
    own = schema if person is None else without(schema, person)
    # Fields that are to be learned are read on public grids, the others as the schema says.
    codec = Provisional(own) if own.learns else Codec(own)
    source = open_source(table, own if person is None else WithPerson(own, person))
    rows, log, ring, counts, nobodys = 0, EncodeLog(), Keyring(), PersonCounts(), 0
    broken: Counter[Rule] = Counter()
    for part in source.parts():
        piece = source.table(part)
        if isinstance(codec, Codec) and own.rules:
            cells, seen = codec.encode_part(piece, cells=True)
            broken.update(codec.breaks(cells))
        else:
            _, seen = codec.encode_part(piece)
        log, rows = (log + seen if rows else seen), rows + piece.rows
        if person is not None:
            keys = ring.keys(*named(piece.columns[person], own.missing_values))
            counts.add(keys)
            nobodys += nameless(keys)
    if not rows:
        raise no_rows()
    counts.merge()
    persons = None if person is None else counts.persons
    return Fit(rows, log, own, person, persons, nobodys, tuple((r, broken[r]) for r in own.rules if broken[r]))
