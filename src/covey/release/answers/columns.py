"""Columns of a release as an analyst names them: conditions, numbers and groups become scores of categories.

{"ward": "surgery"}    a category; a list for several; None or "missing" for missing cells
{"age": (65, None)}    from 65 on; both ends belong to the range

A release knows a number only within its limits, and a category only if it is listed. An answer that rests on a limit where a
noticeable share of the rows lies, or on the category of all that is not listed, is about the table so changed: notes say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from covey.engine.arrays import Floats, Integers
from covey.errors import CannotAnswerError, ParameterError, briefly, nearest
from covey.markup import shorten
from covey.release.charts import percent
from covey.release.conditional import Wish
from covey.tables.attributes import MISSING as NO_VALUE
from covey.tables.attributes import SPECIAL, Grid, parted
from covey.tables.codec import Codec
from covey.tables.derived_fields import Derived
from covey.tables.description import Description
from covey.tables.fields import BITS, FALSE_TRUE, Field, typed

MISSING = "missing"
NAMED = 3  # categories of a merged group that its label names
LIGHT = 0.05  # a bin with a larger share is not cut: the bounds on what lies on either side would say little
NOTICED = 0.01  # of the values that a question is about: fewer at a limit are what any limit has
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
class Distance:
    """A number by its distance from a column or an expression: code apart + 1 is the distance `low`, in `scale` to a unit."""

    place: int
    base: str | Derived
    apart: int
    low: int
    scale: float
    edges: Integers  # of its units, in codes


@dataclass(frozen=True)
class Columns:
    """The encoded columns of one table, or of several, by their places among all."""

    described: Description
    edges: Mapping[int, Integers] = field(default_factory=dict)  # of a number's units in codes, where it was measured
    shares: Mapping[int, Floats] = field(default_factory=dict)  # of the units of each column: which bins are light
    left_out: tuple[str, ...] = ()  # columns of the confidential table of which learning found nothing

    @cached_property
    def _tables(self) -> list[tuple[str | None, Codec]]:
        """The name of every table, "" where there is one and None for persons without columns, and its codec."""
        several = self.described.schema is None
        names = [None if part.bare else part.name * several for part in self.described.tables]
        return list(zip(names, self.described.codecs, strict=True))

    @cached_property
    def _all(self) -> list[tuple[str | None, Codec, str]]:
        """Table, codec and name of every column, by place."""
        return [(table, codec, name) for table, codec in self._tables for name in codec.names]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of all columns, by place."""
        return tuple(name for _, _, name in self._all)

    @cached_property
    def called(self) -> tuple[str, ...]:
        """The same as a question has to name them: with the table where several have such a column."""
        several = {name for name, places in self._by_name.items() if len(places) > 1}
        return tuple(f"{table}.{name}" if name in several else name for table, _, name in self._all)

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Of all columns that can be asked about: persons without columns have one that stands for them."""
        return tuple(j for j, (table, _, _) in enumerate(self._all) if table is not None)

    @property
    def askable(self) -> list[str]:
        """The names of these columns."""
        return [self.called[j] for j in self.places]

    @cached_property
    def _declared(self) -> list[tuple[str, Field]]:
        """The table and the field of all columns of schemas, those included that were not measured."""
        return [
            (table, field)
            for table, codec in self._tables
            if table is not None
            for field in (*codec.schema.fields, *(field for field, _ in codec.schema.together.values()))
        ]

    @cached_property
    def spoken(self) -> tuple[str, ...]:
        """All names that a question may use: "ward", and of several tables also "visits.ward"."""
        full = tuple(f"{table}.{field.name}" for table, field in self._declared if table)
        return tuple(field.name for _, field in self._declared) + full

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for j in self.places:
            table, codec, own = self._all[j]
            for part in (own, *(codec.schema.together[own][1].flags if own in codec.schema.together else ())):
                for name in _names(table, part):
                    found.setdefault(name, []).append(j)
        return found

    def place(self, name: Any) -> int:
        """Which attribute a column is."""
        found = self._by_name.get(str(name), [])
        if len(found) > 1:
            raise ParameterError(
                f"several tables have a column {name!r}: write {' or '.join(f'{self._all[j][0]}.{name}' for j in found)}."
            )
        if found:
            return found[0]
        for one in (own for table, own in self._declared if name in _names(table, own.name)):
            if one.derived is None:
                raise CannotAnswerError(f"{name!r} has the same value in every row: there is nothing to estimate.")
            raise CannotAnswerError(f"{name!r} is computed from other columns and was not measured: ask about those.")
        if name in self.left_out:
            raise CannotAnswerError(f"{name!r} was left out of the release: nothing in it stood out of the noise.")
        known = [field.name for _, field in self._declared]
        raise ParameterError(f"there is no column {name!r}. {nearest(str(name), known, 'columns')}")

    def field(self, name: str) -> Field:
        """The field of a column."""
        _, codec, own = self._all[self.place(name)]
        member = self._member(name)
        return codec.attributes[own].field if member is None else member[0]

    def _member(self, name: str) -> tuple[Field, Integers] | None:
        """Of a column that is part of a category: its field, and its cell in each code of that. None of any other."""
        table, codec, called = self._all[self.place(name)]
        own = name if codec.schema.home.get(name) == called else name.removeprefix(f"{table}.")
        if codec.schema.home.get(own) != called:
            return None
        codes, attribute = np.arange(self.size(name)), codec.attributes[called]
        cells = np.where(codes == attribute.size, NO_VALUE, codes)
        return codec.schema[own], parted(cells, codec.schema.together[called][1], codec.given.attributes)[own]

    def size(self, name: str) -> int:
        """How many categories a column has."""
        place = self.place(name)
        if place in self.edges:
            return len(self.edges[place]) - 1
        _, codec, own = self._all[place]
        return int(codec.domain_sizes[codec.names.index(own)])

    def scale(self, name: str) -> Scale | None:
        """How a number or date is binned; None for labels."""
        place = self.place(name)
        _, codec, own = self._all[place]
        grid = codec.attributes[own]
        if own in codec.expected and own not in codec.fine:
            raise CannotAnswerError(
                f"{name!r} was measured by whether it follows from {', '.join(codec.expected[own].bases)}, not by itself: no "
                "honest interval can be given. In Python release.interval(function) gives an approximate one."
            )
        if not isinstance(grid, Grid):
            return None
        special = grid.field.special
        if place not in self.edges:
            words = {word: grid.bins + k for k, word in enumerate(special)}
            return Scale(grid, 0, grid.axis.starts, grid.axis.ends, words)
        if own in codec.schema.links:
            link = codec.schema.links[own]
            raise CannotAnswerError(
                f"{name!r} was measured by its distance from {link.base!r}, not by itself: no honest interval can be given. "
                "In Python release.interval(function) gives an approximate one."
            )
        apart = len(special) + (not grid.field.required)
        values = self.edges[place][self.edges[place] >= apart] - apart + grid.axis.low
        return Scale(grid, apart, values[:-1], values[1:] - 1, {word: k for k, word in enumerate(special)})

    def declared(self, name: str) -> Field | None:
        """The field that a schema has under a name, measured or computed; None where there is none, or several."""
        found = [own for table, own in self._declared if name in _names(table, own.name)]
        return found[0] if len(found) == 1 else None

    def distance(self, name: str) -> Distance | None:
        """How a number is measured that was by its distance from what others say; None for one measured by itself."""
        place = self.place(name)
        _, codec, own = self._all[place]
        if own not in codec.links or place not in self.edges:
            return None
        link, decimals = codec.links[own], codec.schema[own].axis.decimals
        base = codec.expected[own] if link.expected else link.base
        return Distance(place, base, codec.apart(own), link.difference.low, 10.0**decimals, self.edges[place])

    def kind(self, name: str) -> str:
        """Whether it has "categories", or is a "flag", a "number" or another type; "" for what was not measured by itself."""
        try:
            scale = self.scale(name)
        except CannotAnswerError:
            return ""
        type_ = self.field(name).type
        if scale is None:
            return "flag" if type_ == "boolean" else "categories"
        return "number" if type_ in ("integer", "number") else type_

    def missing(self, name: str) -> Floats:
        """1 for the category of missing cells, 0 for the others."""
        out, scale, member = np.zeros(self.size(name)), self.scale(name), self._member(name)
        if member is not None:
            return np.asarray(member[1] == NO_VALUE, dtype=np.float64)
        if not self.field(name).required:
            out[scale.first - 1 if scale is not None and self.place(name) in self.edges else -1] = 1.0
        return out

    # Conditions.

    def conditions(self, wanted: Conditions) -> dict[int, Floats]:
        """By attribute, 1 for the categories that meet all conditions on it and 0 for the others."""
        out: dict[int, Floats] = {}
        for name, value in named(wanted).items():
            place = self.place(name)
            out[place] = self.condition(name, value) * out.get(place, 1.0)
            if not out[place].any():
                raise ParameterError(f"no row meets {said(wanted)}: of these columns one at most is true.")
        return out

    def condition(self, name: str, value: Any) -> Floats:
        """The part of each category of a column that meets a condition. A bin that a range cuts is refused unless it is light.

        How many of its rows lie on either side was not measured.
        """
        (codes, ranges), scale, out = self._meant(name, value), self.scale(name), np.zeros(self.size(name))
        out[codes] = 1.0
        for first, last in ranges:
            assert scale is not None  # nosec B101 # for the type checker: labels have no ranges
            width = scale.ends - scale.starts + 1
            part = np.clip(np.minimum(scale.ends, last) - np.maximum(scale.starts, first) + 1, 0, width) / width
            self._require_light(name, scale, np.flatnonzero((part > 0) & (part < 1)))
            out[scale.bins] = np.maximum(out[scale.bins], part)
        return out

    def _meant(self, name: str, value: Any) -> tuple[list[int], list[tuple[int, int]]]:
        """The categories that a condition names, by code, and its ranges of a number's steps."""
        field, scale = self.field(name), self.scale(name)
        labels = [] if scale is not None else list(field.labels)
        codes, ranges = [], []
        for one in _each(value):
            if one is None or (isinstance(one, str) and one == MISSING and MISSING not in labels):
                if field.required:
                    raise ParameterError(f"{name!r} is never missing.")
                codes.append(int(np.argmax(self.missing(name))))
            elif scale is None:
                codes += self._codes(name, self._label(name, field, one))
            elif isinstance(one, str) and one in scale.words:
                codes.append(scale.words[one])
            else:
                ranges.append(self._ends(scale, one))
        if not codes and not ranges:
            raise ParameterError(f"no value of {name!r} in the schema meets the condition {value!r}.")
        return codes, ranges

    def _codes(self, name: str, label: int) -> list[int]:
        """The codes of rows with a label: of a column that is part of a category all that tell so."""
        member = self._member(name)
        return [label] if member is None else np.flatnonzero(member[1] == label).tolist()

    def _label(self, name: str, field: Field, value: Any) -> int:
        """The place of a label."""
        if isinstance(value, tuple):
            raise ParameterError(f"{name!r} has categories: a range of them is not defined. Give a list.")
        word, labels = str(value), list(field.labels)
        if field.type == "boolean":
            pairs = (FALSE_TRUE, BITS, field.flags)
            known = {form: label for pair in pairs for form, label in zip(pair, labels, strict=True)}
            word = known.get(word, {form.lower(): label for form, label in known.items()}.get(word.lower(), word))
        if word not in labels:
            rest = "" if field.other is None else f" Values that are not listed are in {field.other!r}."
            raise ParameterError(f"{name!r} has no category {word!r}. {nearest(word, labels, 'categories')}{rest}")
        return labels.index(word)

    def _require_light(self, name: str, scale: Scale, cut: Integers) -> None:
        """Refuse a range that cuts such bins of a number, if many rows lie in one."""
        for k in cut:
            held = float(self.shares[self.place(name)][scale.first + k]) if self.place(name) in self.shares else 1.0
            if held > LIGHT:
                ends = f"{scale.shown(scale.starts[k])} to {scale.shown(scale.ends[k])}"
                raise CannotAnswerError(
                    f"{self.names[self.place(name)]!r} was measured in bins, and the range cuts the one from {ends}, which holds "
                    f"{held:.0%} of the rows: how many lie on either side is not known, and beyond {LIGHT:.0%} bounds would say "
                    "little. Let the range include it or leave it out; a release without declared bins, or with more of them, "
                    "would tell more."
                )

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
        return max(first, axis.low), min(last, axis.high)

    def wishes(self, wanted: Conditions) -> list[Wish]:
        """Conditions as those who draw rows take them: ranges need not end where bins do."""
        return [self._wish(name, value) for name, value in named(wanted).items()]

    def _wish(self, name: str, value: Any) -> Wish:
        codes, ranges = self._meant(name, value)
        scale, empty = self.scale(name), self.missing(self.called[self.place(name)])
        specials = {} if scale is None else {code: SPECIAL + k for k, code in enumerate(scale.words.values())}
        cells = [NO_VALUE if empty[code] else specials.get(code, code) for code in codes]
        return Wish(self.place(name), (*ranges, *((cell, cell) for cell in cells)))

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
            raise ParameterError(f"{field.name!r} holds values of type {field.type}, and {briefly(value)} is none.")
        return int(field.on_grid(read, "ROUND_CEILING" if up else "ROUND_FLOOR"))

    # Numbers.

    def number(self, name: str) -> tuple[Floats, Floats]:
        """Each category's value and half the width of its bin; flags are 0 and 1. Missing and special categories get 0."""
        field, scale = self.field(name), self.scale(name)
        out, half = np.zeros((2, self.size(name)))
        if field.type == "boolean":
            out[self._codes(name, 1)] = 1.0
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
        member = self._member(name)
        if member is not None:
            held = {**dict(enumerate(member[0].labels)), NO_VALUE: MISSING}
            return [(word, (member[1] == k).astype(float)) for k, word in held.items() if (member[1] == k).any()]
        return [
            (self._group(name, np.flatnonzero(bins == k)), (bins == k).astype(float)) for k in range(bins.max() + 1)
        ]

    def _group(self, name: str, members: Integers) -> str:
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

    # Notes.

    def notes(self, name: str, mask: Floats | None = None, closed: tuple[bool, bool] = (True, True)) -> list[str]:
        """What is to be said of the categories of a column that a mask picks, or of all.

        An end of a range that is not `closed` goes on beyond the limit: what was moved to it belongs there.
        """
        field, scale, shares = self.field(name), self.scale(name), self.shares.get(self.place(name))
        if scale is None:
            place = -1 if field.other is None else list(field.labels).index(field.other)
            if place < 0 or (mask is not None and not mask[place]):
                return []
            rows = "" if shares is None else f", {percent(float(shares[place]))} of the rows"
            return [f"{field.other!r} of {name!r} holds all values that the schema does not list{rows}"]
        if shares is None:
            return []
        own, used = shares[scale.bins], np.ones(len(scale.starts)) if mask is None else mask[scale.bins]
        least, whole = NOTICED * float(own @ used), max(float(own.sum()), 1e-12)
        low, high = (bool(closed[k] and used[-k] > 0 and own[-k] >= max(least, 1e-9)) for k in (0, 1))
        if not (low or high):
            return []
        first, last = (scale.shown(step) for step in (scale.grid.axis.low, scale.grid.axis.high))
        where = f"beyond {first} to {last}" if low and high else f"below {first}" if low else f"above {last}"
        to = "these limits" if low and high else first if low else last
        wide = any(on and scale.ends[-k] > scale.starts[-k] for k, on in ((0, low), (1, high)))
        ends = {0: low, len(own) - 1: high}  # one and the same where both limits lie in one bin
        share = percent(sum(float(own[k]) for k, on in ends.items() if on) / whole)
        any_ = "" if field.learned else ", if any,"
        lie = f"in whose bin{'s' * (low and high)} {share}" if wide else f"where {share}"
        return [f"values of {name!r} {where}{any_} were moved to {to}, {lie} of all values lie"]

    def notes_of(self, wanted: Conditions | None, but: str | None = None) -> list[str]:
        """Of the values that conditions name, those on one column left out."""
        out = []
        for name, value in ((name, value) for name, value in (wanted or {}).items() if name != but):
            for one in _each(value):
                ends = one if isinstance(one, tuple) and len(one) == 2 else (one, one)
                out += self.notes(name, self.condition(name, one), (ends[0] is not None, ends[1] is not None))
        return out

    def notes_of_all(self) -> list[str]:
        """Of every column of a release."""
        out = []
        for name in self.askable:
            with suppress(CannotAnswerError):  # measured by its distance from another column
                out += self.notes(name)
        return out


def together(*parts: Iterable[str]) -> str:
    """Sentences, each once."""
    return "; ".join(dict.fromkeys(sentence for part in parts for sentence in part if sentence))


def _names(table: str | None, name: str) -> tuple[str, ...]:
    """How a column may be called."""
    return (name, f"{table}.{name}") if table else (name,)


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


def _each(value: Any) -> list[Any]:
    """The values of a condition, one by one."""
    return list(value) if isinstance(value, list | set | frozenset) else [value]


def _said(name: str, value: Any) -> str:
    if isinstance(value, tuple) and len(value) == 2:
        low, high = value
        if low is None or high is None:
            return f"{name}<={high}" if low is None else f"{name}>={low}"
        return f"{low}<={name}<={high}"
    return f"{name}={','.join(map(_word, _each(value)))}"


def _word(value: Any) -> str:
    return MISSING if value is None else str(value).lower() if isinstance(value, bool) else str(value)
