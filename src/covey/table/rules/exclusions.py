"""Combinations that cannot occur, and what follows from a combination."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.core.arrays import Integers
from covey.errors import ParameterError
from covey.table.attributes import Grid
from covey.table.document import refuse_unknown
from covey.table.domain import Cells, Condition, Mask, Rule, Zero, shown_rule
from covey.table.fields import TYPES, Field

Conditions = tuple[tuple[str, Condition], ...]


@dataclass(frozen=True)
class Forbid(Rule):
    """A structural zero: no record meets all these conditions at once."""

    word = "forbid"
    conditions: Conditions

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the conditions."""
        return tuple(name for name, _ in self.conditions)

    @property
    def words(self) -> str:
        """The rule in plain words."""
        return f"Never together: {_told(self.conditions, '; ')}."

    def to_dict(self) -> dict[str, Any]:
        """The rule as it stands in a file."""
        return {self.word: _plain(self.conditions)}

    @classmethod
    def read(cls, body: Any, fields: Mapping[str, Field]) -> Forbid:
        """The rule as a file states it."""
        return cls(_read(body, fields, cls.word))

    def check(self, fields: Mapping[str, Field]) -> tuple[str, ...]:
        """Conditions that fields can meet."""
        for name, condition in self.conditions:
            condition.check(fields[name], self.word)
        return TYPES

    @property
    def zeros(self) -> tuple[Zero, ...]:
        """All conditions together."""
        return (_all_hold(self.conditions),)

    def broken(self, attributes: Mapping[str, Any], cells: Mapping[str, Integers]) -> Mask:
        """Which rows meet all conditions."""
        return _met(self.conditions, attributes, cells)

    def mend(self, attributes: Mapping[str, Any], cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Redraw a number inside its bin if that helps; else give one of the fields, chosen at random, another value."""
        for name, condition in self.conditions:
            attribute = attributes[name]
            if isinstance(attribute, Grid) and len(rows):
                there = attribute.has_value(cells[name][rows])
                for _ in range(8):
                    column = cells[name][rows]
                    drawn = attribute.draw(np.where(there, attribute.bin_of(column), attribute.size), generator)
                    cells[name][rows] = drawn = np.where(there, drawn, column)  # a special value stays what it is
                    still = attribute.meets(condition, drawn)
                    rows, there = rows[still], there[still]
                    if not len(rows):
                        return
        able = [(n, c) for n, c in self.conditions if attributes[n].avoid(c, 1, generator) is not None]
        if not able:
            return
        chosen = generator.integers(0, len(able), len(rows))
        for j, (name, condition) in enumerate(able):
            mine = rows[chosen == j]
            fresh = attributes[name].avoid(condition, len(mine), generator)
            if fresh is not None:
                cells[name][mine] = fresh


@dataclass(frozen=True)
class Requires(Rule):
    """If a record meets all conditions, it also meets each of `then`: the readable form of several structural zeros."""

    word = "requires"
    conditions: Conditions
    then: Conditions

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of all conditions."""
        return tuple(name for name, _ in (*self.conditions, *self.then))

    @property
    def words(self) -> str:
        """The rule in plain words."""
        return f"If {_told(self.conditions, ' and ')}, then {_told(self.then, ' and ')}."

    def to_dict(self) -> dict[str, Any]:
        """The rule as it stands in a file."""
        return {self.word: {"if": _plain(self.conditions), "then": _plain(self.then)}}

    @classmethod
    def read(cls, body: Any, fields: Mapping[str, Field]) -> Requires:
        """The rule as a file states it."""
        refuse_unknown(body, ("if", "then"), cls.word)
        return cls(*(_read(body[part], fields, cls.word) for part in ("if", "then")))

    def check(self, fields: Mapping[str, Field]) -> tuple[str, ...]:
        """Conditions on both sides that fields can meet."""
        if not (self.conditions and self.then):
            raise ParameterError(f"rule {shown_rule(self)} needs conditions both under if and under then.")
        for name, condition in (*self.conditions, *self.then):
            condition.check(fields[name], self.word)
        return TYPES

    @property
    def zeros(self) -> tuple[Zero, ...]:
        """For each thing that is required: the conditions hold, and it does not."""
        return tuple((*_all_hold(self.conditions), (name, wanted, True)) for name, wanted in self.then)

    def broken(self, attributes: Mapping[str, Any], cells: Mapping[str, Integers]) -> Mask:
        """Which rows meet the conditions, and not all that is required."""
        return _met(self.conditions, attributes, cells) & ~_met(self.then, attributes, cells)

    def mend(self, attributes: Mapping[str, Any], cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Give the columns that fail what is required a random value that does not."""
        for name, wanted in self.then:
            attribute, column = attributes[name], cells[name]
            failing = rows[~attribute.meets(wanted, column[rows])]
            fresh = attribute.some(wanted, len(failing), generator)
            if fresh is not None:
                column[failing] = fresh


def _met(conditions: Conditions, attributes: Mapping[str, Any], cells: Mapping[str, Integers]) -> Mask:
    """Which rows meet all conditions."""
    return np.asarray(np.logical_and.reduce([attributes[n].meets(c, cells[n]) for n, c in conditions]))


def _read(body: Any, fields: Mapping[str, Field], word: str) -> Conditions:
    for name in body:
        if name not in fields:
            raise ParameterError(f"a {word} rule names {name!r}, which is not a field. Correct the name.")
    return tuple((name, Condition.read(fields[name], what, word)) for name, what in body.items())


def _plain(conditions: Conditions) -> dict[str, Any]:
    return {name: condition.to_plain() for name, condition in conditions}


def _told(conditions: Conditions, between: str) -> str:
    return between.join(f"{name} {condition.words}" for name, condition in conditions)


def _all_hold(conditions: Conditions) -> Zero:
    return tuple((name, condition, False) for name, condition in conditions)
