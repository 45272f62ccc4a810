"""Columns of a release as an analyst names them: conditions, numbers and groups become scores of categories.

{"ward": "surgery"}    a category; a list for several; None or "missing" for missing cells
{"age": (65, None)}    from 65 on; both ends belong to the range
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.errors import CannotAnswerError, ParameterError, nearest
from covey.html import shorten
from covey.release.conditional import Wish
from covey.table.attributes import Grid
from covey.table.codec import Codec
from covey.table.fields import Field
from covey.table.values import BITS, FALSE_TRUE, typed

MISSING = "missing"
NAMED = 3  # categories of a merged group that its label names
LIGHT = 0.05  # a bin with a larger share is not cut: the bounds on what lies on either side would say little
Conditions = Mapping[str, Any]


@dataclass(frozen=True)
class Scale:
    """A number or date in bins: `first` is the category of the first bin, and bins hold the steps from starts to ends."""

    grid: Grid
    first: int
    starts: Integers
    ends: Integers
    words: Mapping[str, int]  # special values, by category

    @property
    def bins(self) -> slice:
        """The categories that are bins."""
        return slice(self.first, self.first + len(self.starts))

    def shown(self, step: int) -> str:
        """A step as it is written; a column with special words is written as text too."""
        return str(self.grid.render(np.array([step]))[0])


@dataclass(frozen=True)
class Columns:
    """The encoded columns of a schema; `edges` are those of a number's units in codes, where it was measured so."""

    codec: Codec
    edges: Mapping[str, Integers] = field(default_factory=dict)
    shares: Mapping[str, Floats] = field(default_factory=dict)  # of a number's categories: which bins are light
    left_out: tuple[str, ...] = ()  # columns of the confidential table of which learning found nothing

    def place(self, name: Any) -> int:
        """Which attribute a column is."""
        if name in self.codec.names:
            return self.codec.names.index(name)
        if name in self.codec.schema.names:
            if self.codec.schema[name].derived is not None:
                raise CannotAnswerError(
                    f"{name!r} is computed from other columns and was not measured: ask about those."
                )
            raise CannotAnswerError(f"{name!r} has the same value in every row: there is nothing to estimate.")
        if name in self.left_out:
            raise CannotAnswerError(f"{name!r} was left out of the release: nothing in it stood out of the noise.")
        raise ParameterError(f"there is no column {name!r}. {nearest(str(name), self.codec.schema.names, 'columns')}")

    def field(self, name: str) -> Field:
        """The field of a column."""
        return self.codec.schema[self.codec.names[self.place(name)]]

    def size(self, name: str) -> int:
        """How many categories a column has."""
        return len(self.edges[name]) - 1 if name in self.edges else int(self.codec.domain_sizes[self.place(name)])

    def scale(self, name: str) -> Scale | None:
        """How a number or date is binned; None for labels."""
        self.place(name)
        grid = self.codec.attributes[name]
        if not isinstance(grid, Grid):
            return None
        special = grid.field.special
        if name not in self.edges:
            words = {word: grid.bins + k for k, word in enumerate(special)}
            return Scale(grid, 0, grid.axis.starts, grid.axis.ends, words)
        if name in self.codec.schema.links:
            link = self.codec.schema.links[name]
            raise CannotAnswerError(
                f"{name!r} was measured by its distance from {link.base!r}, not by itself: no honest interval can be given. "
                "In Python release.interval(function) gives an approximate one."
            )
        apart = len(special) + (not grid.field.required)
        values = self.edges[name][self.edges[name] >= apart] - apart + grid.axis.low
        return Scale(grid, apart, values[:-1], values[1:] - 1, {word: k for k, word in enumerate(special)})

    def missing(self, name: str) -> Floats:
        """1 for the category of missing cells, 0 for the others."""
        out, scale = np.zeros(self.size(name)), self.scale(name)
        if not self.field(name).required:
            out[scale.first - 1 if scale is not None and name in self.edges else -1] = 1.0
        return out

    # Conditions.

    def conditions(self, wanted: Conditions) -> dict[int, Floats]:
        """By attribute, 1 for the categories that meet all conditions on it and 0 for the others."""
        return {self.place(name): self.condition(name, value) for name, value in named(wanted, 1).items()}

    def condition(self, name: str, value: Any) -> Floats:
        """1 for the categories of a column that a condition names."""
        self.place(name)
        several = value if isinstance(value, list | set | frozenset) else [value]
        found = np.max([self._one(name, v) for v in several], axis=0) if several else np.zeros(self.size(name))
        if not found.any():
            raise ParameterError(f"no value of {name!r} in the schema meets the condition {value!r}.")
        return np.asarray(found)

    def _one(self, name: str, value: Any) -> Floats:
        field, scale, out = self.field(name), self.scale(name), np.zeros(self.size(name))
        labels = [] if scale is not None else list(field.labels)
        if value is None or (value == MISSING and MISSING not in labels):
            if field.required:
                raise ParameterError(f"{name!r} is never missing.")
            return self.missing(name)
        if scale is not None:
            if isinstance(value, str) and value in scale.words:
                out[scale.words[value]] = 1.0
                return out
            return self._range(scale, value, out)
        if isinstance(value, tuple):
            raise ParameterError(f"{name!r} has categories: a range of them is not defined. Give a list.")
        word = str(value)
        if field.type == "boolean":
            known = {
                form: label
                for pair in (FALSE_TRUE, BITS, field.flags)
                for form, label in zip(pair, labels, strict=True)
            }
            word = known.get(word, {form.lower(): label for form, label in known.items()}.get(word.lower(), word))
        if word not in labels:
            rest = "" if field.other is None else f" Values that are not listed are in {field.other!r}."
            raise ParameterError(f"{name!r} has no category {word!r}. {nearest(word, labels, 'categories')}{rest}")
        out[labels.index(word)] = 1.0
        return out

    def _range(self, scale: Scale, value: Any, out: Floats) -> Floats:
        """The part of every bin between two values. A bin that is cut is refused unless it is light.

        How many of its rows lie on either side was not measured.
        """
        name, (first, last) = scale.grid.field.name, self._ends(scale, value)
        width = scale.ends - scale.starts + 1
        part = np.clip(np.minimum(scale.ends, last) - np.maximum(scale.starts, first) + 1, 0, width) / width
        held = self.shares.get(name, np.ones(len(out)))[scale.bins]
        heavy = (part > 0) & (part < 1) & (held > LIGHT)
        if heavy.any():
            k = int(np.flatnonzero(heavy)[0])
            raise CannotAnswerError(
                f"{name!r} was measured in bins, and the range cuts the one from {scale.shown(int(scale.starts[k]))} to "
                f"{scale.shown(int(scale.ends[k]))}, which holds {held[k]:.0%} of the rows: how many lie on either side is not "
                f"known, and beyond {LIGHT:.0%} bounds would say little. Let the range include it or leave it out; a release "
                "without declared bins, or with more of them, would tell more."
            )
        out[scale.bins] = part
        return out

    def _ends(self, scale: Scale, value: Any) -> tuple[int, int]:
        """The first and the last step of a range, or of a single value; refused where the schema has none in it."""
        low, high = value if isinstance(value, tuple) and len(value) == 2 else (value, value)
        axis, name = scale.grid.axis, scale.grid.field.name
        first = axis.low if low is None else self.step(scale, low, up=True)
        last = axis.high if high is None else self.step(scale, high, up=False)
        if first > last or last < axis.low or first > axis.high:
            raise ParameterError(
                f"no value of {name!r} in the schema meets {_said(name, value)}: its values lie between "
                f"{scale.shown(axis.low)} and {scale.shown(axis.high)}."
            )
        return first, last

    def wishes(self, wanted: Conditions) -> list[Wish]:
        """Conditions as those who draw rows take them: ranges need not end where bins do."""
        return [self._wish(name, value) for name, value in named(wanted).items()]

    def _wish(self, name: str, value: Any) -> Wish:
        several = list(value) if isinstance(value, list | set | frozenset) else [value]
        place, scale = self.place(name), self.scale(name)
        words = {} if scale is None else {word: k for k, word in enumerate(scale.words)}
        ranges, apart = [], []
        for one in several:
            if scale is None or one is None or one == MISSING or (isinstance(one, str) and one in words):
                apart.append(one)
            else:
                ranges.append(self._ends(scale, one))
        found = self.condition(name, apart) if apart or not ranges else np.zeros(self.size(name))
        missing = bool((found * self.missing(name)).any())
        if scale is None:
            codes = np.flatnonzero(found * (1 - self.missing(name)))
            return Wish(place, codes=tuple(codes.tolist()), missing=missing)
        specials = tuple(words[one] for one in apart if one in words)
        return Wish(place, ranges=tuple(ranges), specials=specials, missing=missing)

    def step(self, scale: Scale, value: Any, up: bool) -> int:
        """The first step of a number's or date's precision at or above (up), or the last at or below a value."""
        field = scale.grid.field
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

    # Numbers.

    def number(self, name: str) -> tuple[Floats, Floats]:
        """Each category's value and half the width of its bin; flags are 0 and 1. Missing and special categories get 0."""
        field, scale = self.field(name), self.scale(name)
        out, half = np.zeros((2, self.size(name)))
        if field.type == "boolean":
            out[1] = 1.0
            return out, half
        if scale is None or field.type not in ("integer", "number"):
            kind = "categories" if scale is None else f"values of type {field.type}"
            outcome = f"; a regression takes one of them as its outcome: {name}=… ~ …" if scale is None else ""
            raise ParameterError(
                f"{name!r} holds {kind}, which have no mean, quantile or correlation. Ask for shares of them{outcome}."
            )
        out[scale.bins] = (scale.starts + scale.ends) / 2 / scale.grid.scale
        half[scale.bins] = (scale.ends - scale.starts) / 2 / scale.grid.scale
        return out, half

    def there(self, name: str) -> Floats:
        """1 for the categories of a number that are numbers."""
        scale = self.scale(name)
        if scale is None:
            return 1 - self.missing(name)
        out = np.zeros(self.size(name))
        out[scale.bins] = 1.0
        return out

    # Groups.

    def groups(self, name: str, bins: Integers) -> list[tuple[str, Floats]]:
        """The bins of a column's pair tables, each with a label: what can be told apart together with another column."""
        return [
            (self._label(name, np.flatnonzero(bins == k)), (bins == k).astype(float)) for k in range(bins.max() + 1)
        ]

    def _label(self, name: str, members: Integers) -> str:
        field, scale = self.field(name), self.scale(name)
        words: list[str] = []
        if scale is not None:
            own = members[(members >= scale.first) & (members < scale.bins.stop)] - scale.first
            if len(own):
                low, high = int(scale.starts[own[0]]), int(scale.ends[own[-1]])
                words.append(" to ".join(scale.shown(step) for step in ([low, high] if high > low else [low])))
            words += [word for word, c in scale.words.items() if c in members]
            words += [MISSING] * bool(self.missing(name)[members].any())
            return shorten(" or ".join(words))
        labels = [*field.labels, *([] if field.required else [MISSING])]
        words = [labels[c] for c in members]
        more = [f"{len(words) - NAMED} more"] if len(words) > NAMED + 1 else []
        return shorten(" or ".join([*(words[:NAMED] if more else words), *more]))


def named(wanted: Any, least: int = 0) -> Conditions:
    """Conditions by column, so many of them at least, or a refusal that shows how they are given."""
    if not isinstance(wanted, Mapping) or len(wanted) < least:
        raise ParameterError(
            f'conditions are given as {{"ward": "surgery", "age": (65, None)}}, a value or a range by column, got {wanted!r}.'
        )
    return wanted


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
