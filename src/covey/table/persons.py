"""The column that says whose a row is: read beside a schema's columns, and part of no schema, model or bundle.

Two rows belong to one person if their cells, as text without white space around it, are the same. A cell that is blank, null,
NaN, listed in missingValues or contains a NUL byte names nobody: such a row is left out, it weighs nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.core.arrays import Integers
from covey.errors import ParameterError
from covey.table.columns import MISSING_WORDS, Words, as_text
from covey.table.extras import optional
from covey.table.fields import Field
from covey.table.schema import Schema

if TYPE_CHECKING:
    from polars import Series


def without(schema: Schema, person: str) -> Schema:
    """The schema without the column of persons, which is never synthesized."""
    if not isinstance(person, str) or not person.strip():
        raise ParameterError(f"person must name the column that identifies the person, got {person!r}.")
    if person not in schema.names:
        return schema
    if any(person in rule.fields for rule in schema.rules):
        raise ParameterError(
            f"a rule of the schema uses {person!r}, the column that identifies the person. Remove the rule."
        )
    fields = tuple(field for field in schema.fields if field.name != person)
    if not fields:
        raise ParameterError(f"the schema has no column besides {person!r}, which identifies the person.")
    return replace(schema, fields=fields, drafted=schema.drafted and not all(field.confirmed for field in fields))


def beside(schema: Schema, person: str | None) -> Schema:
    """What readers need to know to bring the columns of a schema and the one of persons, of which nothing is declared."""
    return schema if person is None else replace(schema, fields=(*schema.fields, Field(person, "string", learn=True)))


def named(column: Any, missing_values: tuple[str, ...]) -> tuple[list[str | None], Integers]:
    """The names in a part of the column of persons, each once, and for every row the place of its person's; None is nobody."""
    if isinstance(column, Words):
        words = column.words.to_list()
        places: Integers = np.where(column.places < 0, len(words), column.places).astype(np.int64)
    else:
        text: Series = as_text(column)
        found = text.unique().drop_nulls()
        words = found.to_list()
        # Places by the frame library: a loop over cells would take ten times as long as hashing the names.
        order = text.replace_strict(
            found, np.arange(len(found)), default=len(found), return_dtype=optional("polars").Int64
        )
        places = order.to_numpy().astype(np.int64)
    missing = frozenset(missing_values)
    return [*(name(word, missing) for word in words), None], places


def name(word: str | None, missing: frozenset[str]) -> str | None:
    """The person that a cell names; None for nobody."""
    if word is None or "\0" in word or word in missing:
        return None
    bare = word.strip()
    return None if bare in missing or bare.lower() in MISSING_WORDS else bare
