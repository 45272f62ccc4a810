"""What a table looks like: its columns and what goes together, from public values alone; in private reports with error bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from covey.engine.arrays import Floats, Integers
from covey.errors import CannotAnswerError
from covey.markup import Html, tag
from covey.release import charts
from covey.release.charts import pair_key, percent, span
from covey.release.contents import DISTANT, LOST, MEASURED, MODELLED, PairBands
from covey.release.page import Part, reason, render, section
from covey.release.summary import MISSING, Column, associations, commonest, ranked

CHARTS = 48  # columns that get a picture of their own
FLAGS = 160  # flags that get a bar
FLAGS_TOGETHER = 16  # bars in one list
MAPPED = 40  # columns of the map of associations
LISTED = 10  # associations in the list
QUANTILED = 16  # numbers whose quantiles are told: each takes a moment
EMPTY = 5e-4  # share of rows that is not worth a bar at the end of a histogram; the numbers below it have them all
TABLED = 30  # pairs whose tables are in the page: some hundred kilobytes

Ends = tuple[Floats, Floats]  # of the bands of a column's labels


def distributions(
    columns: Sequence[Column], counts: Sequence[Integers], private: bool, bands: Any = None, of: str = ""
) -> Part:
    """One-way distributions of the synthetic rows; in wide tables of the first columns of each kind.

    `counts` has, by attribute, how many rows have each code. `of` names the table where there are several.
    """
    every = [(column, column.shares_of(own), j) for j, (column, own) in enumerate(zip(columns, counts, strict=True))]
    flags = [one for one in every if one[0].type == "boolean"]
    lists = flags if len(flags) > 3 else []
    single = [one for one in every if not (lists and one[0].type == "boolean")]

    unbanded: dict[int, str] = {}  # why there is no band

    def ends(j: int, column: Column, own: Floats) -> Ends | None:
        """Bands of the labels that have a bar of their own; they are few, however many labels there are."""
        count = len(own) - column.has_missing
        kept = np.arange(count) if column.ordered else commonest(own[:count])
        shown = np.concatenate([kept, np.arange(count, len(own))])
        low, high = np.zeros((2, len(own)))
        try:
            if bands is None:
                return None
            low[shown], high[shown] = bands.column(j, column, shown)
        except CannotAnswerError as error:
            unbanded[j] = str(error)
            return None
        return low, high

    cards = []
    for i in range(0, min(len(lists), FLAGS), FLAGS_TOGETHER):
        rows, missing = [], 0.0
        for column, own, j in lists[i : i + FLAGS_TOGETHER]:
            band = ends(j, column, own)
            rows.append(
                (column.name, [float(own[1])], None if band is None else (float(band[0][1]), float(band[1][1])))
            )
            missing = max(missing, float(own[2]) if column.has_missing else 0.0)
        cards.append(render("flags.html", rows=rows, missing=missing))
    measured = [j for column, _, j in single[:CHARTS] if column.ordered][:QUANTILED]
    for column, own, j in single[:CHARTS]:
        try:
            drawn = ends(j, column, own)
            levels = bands.quantiles(j) if bands is not None and j in measured else []
            cards.append(_column_card(column, own, drawn, levels=levels, unbanded=unbanded.get(j)))
        except Exception as error:  # the other columns are worth a look
            cards.append(tag("article", tag("h3", column.name), reason(error)))
    hidden = max(0, len(lists) - FLAGS) + max(0, len(single) - CHARTS)
    key, title = (f"columns-{of}", f"What {of} look like") if of else ("columns", "What the table looks like")
    given = {"private": private, "banded": bands is not None, "hidden": hidden, "width": len(columns)}
    return section(key, title, "columns.html", cards=cards, **given)


def _column_card(column: Column, shares: Floats, ends: Ends | None, **below: Any) -> Html:
    """Bars of categories, or a histogram with its numbers; `below` has quantiles, and why there are no bands."""
    histogram, rows = None, list[Any]()
    if not column.ordered:
        order = ranked(column.labels, np.stack([shares, *(ends or ())]), column.has_missing)
        for label, own in order:
            band = (float(own[1]), float(own[2])) if len(own) > 1 and label in column.labels else None
            rows.append((label, [float(own[0])], band))
    else:
        bins = len(column.labels) - column.has_missing
        missing = [float(shares[-1])] if column.has_missing and shares[-1] > 0 else None
        drawn = None if ends is None else (ends[0][:bins], ends[1][:bins])
        near = _inhabited(shares[:bins], drawn)
        drawn = None if drawn is None else (drawn[0][near], drawn[1][near])
        labels, seen = column.labels[:bins][near], [shares[:bins][near]]
        histogram = (labels, seen, missing, ("share",), drawn, column.growing)
        for k, (label, v) in enumerate(zip(column.labels, shares, strict=True)):
            if label != MISSING or v > 0:
                rows.append([label, percent(float(v)), *([] if ends is None else [span(ends[0][k], ends[1][k])])])
    given = {"column": column, "shares": shares, "histogram": histogram, "rows": rows, "banded": ends is not None}
    return render("column.html", plain=_plain, **given, **below)


def beside(column: Column, both: Floats, kinds: Sequence[str], error: float, changed: float = 0.0) -> tuple[Any, ...]:
    """A column of two tables, by the shares of its labels in both: a card of `one_way.html`."""
    if not column.ordered:
        order = ranked(column.labels, both, column.has_missing, 10)
        return column, error, changed, None, [(label, [float(x) for x in own], None) for label, own in order]
    bins = len(column.labels) - column.has_missing
    missing = [float(x) for x in both[:, -1]] if column.has_missing and both[:, -1].any() else None
    rows = [(label, *map(percent, map(float, own))) for label, *own in zip(column.labels, *both, strict=True)]
    return column, error, changed, (column.labels[:bins], list(both[:, :bins]), missing, kinds), rows


def _inhabited(shares: Floats, ends: Ends | None) -> slice:
    """The bins between the first and the last that hold synthetic rows or, as the bands have it, true ones: the rest is empty."""
    held = (shares > 0) if ends is None else (shares > EMPTY) | (ends[0] > 0)
    places = np.flatnonzero(held)
    return slice(max(int(places[0]) - 1, 0), int(places[-1]) + 2) if len(places) else slice(None)


def _plain(value: float) -> str:
    """Three significant digits, and whole numbers without a point."""
    return f"{value:,.0f}" if float(value).is_integer() else charts.number(value)


def pair_map(
    columns: Sequence[Column], some: Integers, rows: int, bands: Any = None, fine: Integers | None = None, of: str = ""
) -> Part | None:
    """The associations of the synthetic rows as a map, and the strongest of them as a list; nothing for one column.

    `some` are evenly chosen of so many `rows`. With bands it also says which associations the measurements show; `fine` has
    the same rows with numbers by cells; `of` names the table where there are several.
    """
    names = [column.name for column in columns[:MAPPED]]
    count = len(names)
    if count < 2:
        return None
    known = None if bands is None or fine is None else bands.pairs(fine, count)
    if known is None or bands is None or fine is None:
        values, lost, linked, tables, kinds = associations(some[:, :count], columns[:MAPPED]), None, [], [], None
        listed: list[Any] = [pair for pair in charts.strongest_pairs(names, values, LISTED) if float(pair[1]) > 0.01]
    else:
        distant = known.kind == DISTANT
        values = known.synthetic
        if distant.any():
            values = np.where(distant, associations(some[:, :count], columns[:MAPPED]), values)
        lost, linked, kinds = known.kind == LOST, _tabled(known), _kinds(known, names)
        listed = _measured(names, known)
        tables = [_pair_table(bands, fine, names, pair) for pair in linked]
    key, heading = (f"pairs-{of}", f"What goes together: {of}") if of else ("pairs", "What goes together")
    given = {"values": values, "lost": lost, "names": names, "width": len(columns), "some": len(some), "rows": rows}
    given |= {"kinds": kinds, "banded": bands is not None, "listed": listed, "linked": linked, "tables": tables}
    return section(key, heading, "pairs.html", **given)


def _tabled(known: PairBands) -> list[tuple[int, int]]:
    """Pairs whose tables are shown: not lost in noise, those that go together most."""
    i, j = np.triu_indices(len(known.kind), 1)
    size = np.where(
        np.isin(known.kind[i, j], (LOST, DISTANT)), -1.0, np.maximum(known.value[i, j], known.synthetic[i, j])
    )
    return [(int(i[k]), int(j[k])) for k in np.argsort(-size, kind="stable")[:TABLED] if size[k] >= 0]


def _pair_table(bands: Any, fine: Integers, names: Sequence[str], pair: tuple[int, int]) -> Html:
    given: dict[str, Any] = {"key": pair_key(pair), "one": names[pair[0]], "two": names[pair[1]], "why": None}
    try:
        found = bands.table(fine, *pair)
    except Exception as error:  # a link leads here
        return render("pair_table.html", **given | {"why": reason(error)})
    cells = [list(zip(*own, strict=True)) for own in zip(found.share, found.low, found.high, strict=True)]
    rows = zip(found.rows, cells, strict=True)
    return render("pair_table.html", head=list(found.columns), rows=rows, **given)


def _measured(names: Sequence[str], known: PairBands) -> list[tuple[Any, ...]]:
    """The strongest associations whose bands leave out 0: what lies below the edge of the noise is not listed."""
    i, j = np.triu_indices(len(names), 1)
    order = np.argsort(-known.value[i, j], kind="stable")[:LISTED]
    pairs = [(int(i[k]), int(j[k])) for k in order if known.value[i[k], j[k]] > 0]
    return [(p, f"{names[p[0]]} × {names[p[1]]}", known.synthetic[p], known.low[p], known.high[p]) for p in pairs]


def _kinds(known: PairBands, names: Sequence[str]) -> dict[str, Any]:
    """How many pairs are of which kind."""
    upper = known.kind[np.triu_indices(len(known.kind), 1)]
    kinds = {"measured": MEASURED, "modelled": MODELLED, "lost": LOST, "distant": DISTANT}
    count = {name: int(np.sum(upper == kind)) for name, kind in kinds.items()}
    return count | {"pairs": len(upper), "columns": [names[j] for j in known.distant]}
