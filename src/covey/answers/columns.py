"""Columns of a release as an analyst names them: conditions, numbers and groups become scores of categories.

{"ward": "surgery"}    a category; a list for several; None or "missing" for missing cells
{"age": (65, None)}    from 65 on; both ends belong to the range
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.answers.moments import Feature
from covey.core.arrays import Floats, Integers
from covey.errors import CannotAnswerError, ParameterError, nearest
from covey.html import shorten
from covey.table.attributes import Grid
from covey.table.codec import Codec
from covey.table.fields import Field
from covey.table.values import typed

MISSING = "missing"
NAMED = 3  # categories of a merged group that its label names
Conditions = Mapping[str, Any]


@dataclass(frozen=True)
class Columns:
    """The encoded columns of a schema."""

    codec: Codec

    def place(self, name: Any) -> int:
        """Which attribute a column is."""
        if name in self.codec.names:
            return self.codec.names.index(name)
        if name in self.codec.schema.names:
            raise CannotAnswerError(f"{name!r} has the same value in every row: there is nothing to estimate.")
        raise ParameterError(f"there is no column {name!r}. {nearest(str(name), self.codec.schema.names, 'columns')}")

    def field(self, name: str) -> Field:
        """The field of a column."""
        return self.codec.schema[self.codec.names[self.place(name)]]

    def size(self, name: str) -> int:
        """How many categories a column has."""
        return int(self.codec.domain_sizes[self.place(name)])

    def grid(self, name: str) -> Grid | None:
        """How a number or date is binned; None for labels."""
        self.place(name)
        attribute = self.codec.attributes[name]
        return attribute if isinstance(attribute, Grid) else None

    def missing(self, name: str) -> Floats:
        """1 for the category of missing cells, 0 for the others."""
        out = np.zeros(self.size(name))
        if not self.field(name).required:
            out[-1] = 1.0
        return out

    # Conditions.

    def conditions(self, wanted: Conditions) -> dict[int, Floats]:
        """By attribute, 1 for the categories that meet all conditions on it and 0 for the others."""
        if not isinstance(wanted, Mapping) or not wanted:
            raise ParameterError(f'conditions are given as {{"column": value, …}}, got {wanted!r}.')
        return {self.place(name): self.condition(name, value) for name, value in wanted.items()}

    def condition(self, name: str, value: Any) -> Floats:
        """1 for the categories of a column that a condition names."""
        self.place(name)
        several = value if isinstance(value, list | set | frozenset) else [value]
        found = np.max([self._one(name, v) for v in several], axis=0) if several else np.zeros(self.size(name))
        if not found.any():
            raise ParameterError(f"no value of {name!r} in the schema meets the condition {value!r}.")
        return np.asarray(found)

    def _one(self, name: str, value: Any) -> Floats:
        field, grid, out = self.field(name), self.grid(name), np.zeros(self.size(name))
        labels = [] if grid is not None else list(field.labels)
        if value is None or (value == MISSING and MISSING not in labels):
            if field.required:
                raise ParameterError(f"{name!r} is never missing.")
            return self.missing(name)
        if grid is not None:
            if value in field.special:
                out[grid.bins + field.special.index(value)] = 1.0
                return out
            return self._range(grid, value, out)
        if isinstance(value, tuple):
            raise ParameterError(f"{name!r} has categories: a range of them is not defined. Give a list.")
        word = str(value).lower() if field.type == "boolean" else str(value)
        if field.type == "boolean" and word in ("0", "1"):
            word = labels[int(word)]
        if word not in labels:
            raise ParameterError(f"{name!r} has no category {word!r}. {nearest(word, labels, 'categories')}")
        out[labels.index(word)] = 1.0
        return out

    def _range(self, grid: Grid, value: Any, out: Floats) -> Floats:
        """Bins between two values. A range that cuts a bin is refused: how many lie on either side was not measured."""
        low, high = value if isinstance(value, tuple) and len(value) == 2 else (value, value)
        axis = grid.axis
        first = axis.low if low is None else self.step(grid, low, up=True)
        last = axis.high if high is None else self.step(grid, high, up=False)
        if first > last or last < axis.low or first > axis.high:
            raise ParameterError(
                f"no value of {grid.field.name!r} in the schema meets {value!r}: its values lie between "
                f"{self.shown(grid, axis.low)} and {self.shown(grid, axis.high)}."
            )
        first, last = max(first, axis.low), min(last, axis.high)
        for edge, starts in ((first, axis.starts), (last, axis.ends)):
            if edge not in starts:
                near = starts[np.argsort(np.abs(starts - edge), kind="stable")[:2]]
                options = " or ".join(self.shown(grid, int(s)) for s in np.sort(near))
                word = "begin" if starts is axis.starts else "end"
                raise CannotAnswerError(
                    f"{grid.field.name!r} was measured in bins, and {self.shown(grid, edge)} lies inside one: how many rows lie "
                    f"on either side is not known. Let the range {word} at {options}; a release with more bins would tell more."
                )
        out[: grid.bins] = (axis.starts >= first) & (axis.ends <= last)
        return out

    def step(self, grid: Grid, value: Any, up: bool) -> int:
        """The first step of a number's or date's precision at or above (up), or the last at or below a value."""
        field = grid.field
        given = value.item() if isinstance(value, np.generic) else value
        if isinstance(given, str) and field.type in ("integer", "number"):
            try:
                given = float(given)
            except ValueError:
                given = None
        if field.type == "integer" and isinstance(given, float) and np.isfinite(given):
            given = np.ceil(given) if up else np.floor(given)
        read = typed(field.type, given)
        if read is None:
            raise ParameterError(f"{field.name!r} holds values of type {field.type}, and {value!r} is none.")
        return int(field.on_grid(read, "ROUND_CEILING" if up else "ROUND_FLOOR"))

    @staticmethod
    def shown(grid: Grid, step: int) -> str:
        """A step of a number or date as it is written."""
        return str(grid.render(np.array([step]))[0])

    # Numbers.

    def number(self, name: str) -> tuple[Floats, Floats]:
        """Each category's value and half the width of its bin; flags are 0 and 1. Missing and special categories get 0."""
        field, grid = self.field(name), self.grid(name)
        out, half = np.zeros((2, self.size(name)))
        if field.type == "boolean":
            out[1] = 1.0
            return out, half
        if grid is None or field.type not in ("integer", "number"):
            kind = "categories" if grid is None else f"values of type {field.type}"
            raise ParameterError(f"{name!r} holds {kind}, which have no mean. Ask for shares of its categories.")
        out[: grid.bins] = (grid.axis.starts + grid.axis.ends) / 2 / grid.scale
        half[: grid.bins] = (grid.axis.ends - grid.axis.starts) / 2 / grid.scale
        return out, half

    def there(self, name: str) -> Floats:
        """1 for the categories of a number that are numbers."""
        grid = self.grid(name)
        out = 1 - self.missing(name)
        if grid is not None:
            out[grid.bins : grid.size] = 0.0
        return out

    # Groups.

    def groups(self, name: str, bins: Integers) -> list[tuple[str, Floats]]:
        """The bins of a column's pair tables, each with a label: what can be told apart together with another column."""
        return [
            (self._label(name, np.flatnonzero(bins == k)), (bins == k).astype(float)) for k in range(bins.max() + 1)
        ]

    def _label(self, name: str, members: Integers) -> str:
        field, grid = self.field(name), self.grid(name)
        words: list[str] = []
        if grid is not None:
            own = members[members < grid.bins]
            if len(own):
                low, high = int(grid.axis.starts[own[0]]), int(grid.axis.ends[own[-1]])
                ends = [self.shown(grid, low), *([self.shown(grid, high)] if high > low else [])]
                words.append(" to ".join(ends))
            words += [field.special[c - grid.bins] for c in members if grid.bins <= c < grid.size]
            words += [MISSING] * bool(self.missing(name)[members].any())
            return shorten(" or ".join(words))
        labels = [*field.labels, *([] if field.required else [MISSING])]
        words = [labels[c] for c in members]
        more = [f"{len(words) - NAMED} more"] if len(words) > NAMED + 1 else []
        return shorten(" or ".join([*(words[:NAMED] if more else words), *more]))


def said(wanted: Conditions) -> str:
    """Conditions in words."""
    return " ".join(_said(name, value) for name, value in wanted.items())


def _said(name: str, value: Any) -> str:
    if isinstance(value, tuple) and len(value) == 2:
        low, high = value
        if low is None or high is None:
            return f"{name}<={high}" if low is None else f"{name}>={low}"
        return f"{low}<={name}<={high}"
    if isinstance(value, list | set | frozenset):
        return f"{name}={','.join(map(_word, value))}"
    return f"{name}={_word(value)}"


def _word(value: Any) -> str:
    return MISSING if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def features(scores: Sequence[tuple[int, Floats]]) -> tuple[Feature, ...]:
    """Features without spread inside categories."""
    return tuple(Feature(a, np.asarray(s, dtype=np.float64)) for a, s in scores)
