"""Whole commands under the odometer: `covey release` from a file to a bundle, with all that it prints.

A draft that is then learned is such a ride: names, types and decimals of columns are read off the table, which the
promise says, by rules that no single cell decides; nothing else of the draft may show.
"""

from __future__ import annotations

import contextlib
import csv
import tempfile
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
from click.testing import CliRunner

import covey.tables.column_drafts
import covey.tables.fields
import covey.workflow
from audits import persons
from audits.faces import files_in
from audits.odometer import Ride
from audits.planting import Fault, replaced
from covey.desk.cli import main
from covey.errors import InternalError
from covey.tables.dialects import Spelling

DRAFTED = ("age", "cost", "seen", "ward", "sick", "dose")
PLAIN = ("30", "12.5", "2014-01-01", "A", "yes", "5.12")
OTHERS = {
    "elsewhere": ("77", "180.25", "2018-12-31", "B", "no", "1.01"),
    "holes": ("", "", "", "", "", ""),
    "far outside": ("-999999", "1e14", "1901-10-14", "A", "yes", "1e14"),
    "a label of its own": ("30", "12.5", "2014-01-01", "a ward of its own", "yes", "5.12"),
    "more decimals": ("30", "12.123456", "2014-01-01", "A", "yes", "5.1234567"),
    "a label that looks like a formula": ("30", "12.5", "2014-01-01", "=1+1", "yes", "5.12"),
    # Cells that are none of what their column holds: a single one decides nothing about the others.
    "decimal commas, and words for values": ("thirty", "1.234,5", "25/04/2021", "7", "maybe", "1.234,5"),
    "thousands, and codes": ("030", "1,234.5", "04/25/2021", "2014-01-01", "1", "1,234.5"),
    "a fraction, a time and a list": ("30.5", "[1, 2]", "2014-01-01T10:15:00", "[]", "2", "99999999999999999999"),
}


class Command:
    """A release by the command line, in a folder of its own; `privacy` and `schema` are those of the synthesizer it makes."""

    def __init__(self, seed, *words, schema=None, drafted=0):
        self.words = [*words, "--seed", str(seed)]
        self.drafted, self._given, self._made, self._left = drafted, schema, [], {}

    def fit(self, table):
        """Write the table down, release it, and keep all that came of it."""

        def making(real):
            def make(order, schema):
                self._made.append(real(order, schema))
                return self._made[-1]

            return make

        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            with Path("table.csv").open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(table)
                writer.writerows(zip(*table.values(), strict=True))
            if self._given is not None:
                self._given.save("schema.json")
            with patch.object(covey.workflow, "synthesizer", making(covey.workflow.synthesizer)):
                done = CliRunner().invoke(main, ["release", "table.csv", *self.words, "--out", "out"])
            if done.exception is not None and not isinstance(done.exception, SystemExit):
                raise done.exception
            if done.exit_code:
                raise InternalError(done.output)
            self._left = {"output": done.output, **files_in(Path("out"))}

    @property
    def privacy(self):
        """The statement of the release."""
        return self._made[-1].privacy

    @property
    def schema(self):
        """The schema that it ended with."""
        return self._made[-1].schema

    @property
    def _declared(self):
        """What its schema said before anything was found, as of a synthesizer."""
        return self._made[-1]._declared

    def leaving(self):
        """All that was printed and written."""
        return self._left


def draft_table(seed, *first, n=700, wards="ABC"):
    """Records of six columns that nobody has described."""
    g = np.random.default_rng(seed)
    columns = (
        [str(age) for age in g.integers(15, 80, n)],
        [f"{cost:.2f}" for cost in g.lognormal(3, 1, n)],
        [f"201{year}-0{1 + year}-17" for year in g.integers(0, 9, n)],
        g.choice(list(wards), n).tolist(),
        g.choice(["yes", "no"], n).tolist(),
        [f"{dose:.2f}" for dose in g.lognormal(1, 1, n)],
    )
    rows = [*first, *list(zip(*columns, strict=True))[len(first) :]]
    return dict(zip(DRAFTED, map(list, zip(*rows, strict=True)), strict=True))


def rides():
    """A draft that is learned, and a release for persons under a schema."""
    words = ("--epsilon", "8", "--delta", "0.0001", "--rows", "20")
    person = persons.person_ride("", persons.flags(4), persons.visits(60, 4, 5), 1.0)
    schema = persons.flags(4)

    def draft(seed):
        return Command(seed, "--learn", *words, "--accept-misfits", "1", drafted=len(DRAFTED))

    def by_person(seed):
        return Command(seed, "--schema", "schema.json", "--person", "who", *words, schema=schema)

    neighbours = {name: draft_table(0, first) for name, first in OTHERS.items()}
    shows = {"drafted": 6, "learned": 5, "labels": 3}
    return [
        Ride(
            "draft, then learned",
            draft,
            draft_table(0, PLAIN),
            neighbours,
            draft_table(9, wards="ABCD"),
            shows,
        ),
        Ride(
            "a command for persons", by_person, person.table, person.neighbours, person.stranger, {"charge moments": 10}
        ),
    ]


# Faults.


def one_cell_has_more_decimals():
    """A column has the decimals of its longest cell, not those that nearly all of its cells have."""

    def strict(_):
        def decimals_of(values):
            return next(
                (d for d in range(1, 9) if np.allclose(values, np.round(values, d), rtol=1e-15, atol=1e-10)), None
            )

        return decimals_of

    return replaced((covey.tables.column_drafts, "decimals_of", strict))


def one_cell_has_a_comma():
    """A column has decimal commas if a single cell has one."""

    def any_comma(real):
        def number_spelling(words, *rest):
            if words.str.contains(",").any():
                return Spelling(",", "."), "a comma"
            return real(words, *rest)

        return number_spelling

    return replaced((covey.tables.column_drafts, "number_spelling", any_comma))


def one_cell_decides():
    """A column is taken for numbers, dates or flags if every single cell is one."""

    def strict(_):
        return lambda cells: 0

    return replaced((covey.tables.column_drafts, "strays", strict), (covey.tables.column_drafts, "strays", strict))


def labels_of_the_draft():
    """Words among numbers that the draft saw stay special values."""

    def remembering(real):
        def to_learn(self):
            special = tuple(sorted(set(self.enum or ()))) if self.type == "string" else ()
            return replace(real(self), other=f"none of {len(special)}") if special else real(self)

        return to_learn

    return replaced((covey.tables.fields.Field, "to_learn", remembering))


def read_rows_told():
    """The command says how many rows it has read."""

    def telling(real):
        def fit_of(prepared):
            print(f"read {prepared.records} rows")
            return real(prepared)

        return fit_of

    return replaced((covey.workflow, "fit_of", telling))


def faults():
    """All of them."""
    return [
        Fault("one cell decides how many decimals", "odometer: draft, then learned", one_cell_has_more_decimals()),
        Fault("one cell decides the decimal mark", "odometer: draft, then learned", one_cell_has_a_comma()),
        Fault("one cell decides what a column is", "odometer: draft, then learned", one_cell_decides()),
        Fault("labels of the draft counted", "odometer: draft, then learned", labels_of_the_draft()),
        Fault("rows of persons told by the command", "odometer: a command for persons", read_rows_told()),
    ]
