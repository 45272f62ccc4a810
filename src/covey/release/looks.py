"""What a table looks like: its columns and what goes together, from public values alone; in private reports with error bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from covey.core.arrays import Array, Floats, Integers
from covey.errors import CannotAnswerError
from covey.html import Html, tag
from covey.release import charts
from covey.release.charts import pair_key, percent, span
from covey.release.contents import DISTANT, LOST, MEASURED, MODELLED, Bands, PairBands
from covey.release.page import Part, reason, section
from covey.release.summary import MISSING, Column, associations, commonest, ranked

LOOKS, PAIRS = "What the table looks like", "What goes together"
CHARTS = 48  # columns that get a picture of their own
FLAGS = 160  # flags that get a bar
FLAGS_TOGETHER = 16  # bars in one list
MAPPED = 40  # columns of the map of associations
LISTED = 10  # associations in the list
QUANTILED = 16  # numbers whose quantiles are told: each takes a moment
EMPTY = 5e-4  # share of rows that is not worth a bar at the end of a histogram; the numbers below it have them all
TABLED = 30  # pairs whose tables are in the page: some hundred kilobytes

NOWHERE: Mapping[int, Array] = {}
EVEN = (
    " Pale bars were not measured more finely, or noise hides the details. Inside such a bar synthetic values are spread "
    "evenly, whatever the confidential ones are."
)
Level = tuple[float, float, float, float]  # a quantile's level, its value, and the ends of its band
Ends = tuple[Floats, Floats]  # of the bands of a column's labels


def distributions(
    columns: Sequence[Column],
    counts: Sequence[Integers],
    private: bool,
    bands: Bands | None = None,
    even: Mapping[int, Array] = NOWHERE,
    of: str = "",
) -> Part:
    """One-way distributions of the synthetic rows; in wide tables of the first columns of each kind.

    `counts` has, by attribute, how many rows have each code. `even` says of numbers, by attribute, in which bars values are
    spread evenly. `of` names the table where there are several.
    """
    every = [(column, column.shares_of(own), j) for j, (column, own) in enumerate(zip(columns, counts, strict=True))]
    flags = [one for one in every if one[0].is_flag]
    lists = flags if len(flags) > 3 else []
    single = [one for one in every if not (lists and one[0].is_flag)]

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
        cards.append(_flag_list([(c, own, ends(j, c, own)) for c, own, j in lists[i : i + FLAGS_TOGETHER]]))
    measured = [j for column, _, j in single[:CHARTS] if column.ordered][:QUANTILED]
    for column, own, j in single[:CHARTS]:
        try:
            drawn = ends(j, column, own)
            levels = bands.quantiles(j) if bands is not None and j in measured else []
            cards.append(
                _column_card(column, own, drawn, (_quantiles(levels), _unbanded(unbanded.get(j))), even.get(j))
            )
        except Exception as error:  # the other columns are worth a look
            cards.append(tag("article", tag("h3", column.name), reason(error)))
    hidden = max(0, len(lists) - FLAGS) + max(0, len(single) - CHARTS)
    words = "How the synthetic rows are distributed in each column. " + (
        "Nothing here was taken from the real rows."
        if private
        else "Averages of groups keep the totals of a column, so these proportions can equal those of the real rows."
    )
    if bands is not None:
        words += (
            " The thin line at a bar is its error band: it holds the proportion in the confidential table with 95% confidence. "
            "It comes from the noisy measurements and costs no privacy."
        )
    if any(own.any() for own in even.values()):
        words += EVEN
    if hidden:
        words += (
            f" To keep the page small, only {len(columns) - hidden:,} of {len(columns):,} columns are shown: the first of each "
            "kind."
        )
    key, title = (f"columns-{of}", f"What {of} look like") if of else ("columns", LOOKS)
    return section(key, title, tag("p", words), tag("div", cards, class_="grid"))


def _flag_list(flags: Sequence[tuple[Column, Floats, Ends | None]]) -> Html:
    shares = [own for _, own, _ in flags]
    rows = [(column.name, [float(s[1])]) for (column, _, _), s in zip(flags, shares, strict=True)]
    bands = [None if e is None else (float(e[0][1]), float(e[1][1])) for _, _, e in flags]
    missing = max(float(s[2]) if len(s) > 2 else 0.0 for s in shares)
    note = "proportion of rows with yes" + (f"; up to {percent(missing)} missing" if missing > 0 else "")
    return tag(
        "article",
        tag("h3", "Yes/no columns"),
        tag("p", note, class_="note"),
        charts.bars(rows, "Proportion of yes", bands=bands),
    )


def _column_card(
    column: Column, shares: Floats, ends: Ends | None, below: Sequence[Html | None] = (), even: Array | None = None
) -> Html:
    note = f"{column.type}, {column.domain}" + (f"; {percent(float(shares[-1]))} missing" if column.has_missing else "")
    caption = f"Proportions of {column.name}"
    if not column.ordered:
        order = ranked(column.labels, np.stack([shares, *(ends or ())]), column.has_missing)
        bands = [(float(v[1]), float(v[2])) if len(v) > 1 and label in column.labels else None for label, v in order]
        picture = charts.bars([(label, [float(v[0])]) for label, v in order], caption, bands=bands)
    else:
        bins = len(column.labels) - column.has_missing
        missing = [float(shares[-1])] if column.has_missing and shares[-1] > 0 else None
        drawn = None if ends is None else (ends[0][:bins], ends[1][:bins])
        near = _inhabited(shares[:bins], drawn)
        drawn = None if drawn is None else (drawn[0][near], drawn[1][near])
        even = None if even is None else even[:bins][near]
        bars = charts.histogram(
            column.name, column.labels[:bins][near], [shares[:bins][near]], missing, ("share",), drawn, even
        )
        head, numbers = ["value", "share"], []
        for k, (label, v) in enumerate(zip(column.labels, shares, strict=True)):
            if label != MISSING or v > 0:
                numbers.append([label, percent(float(v)), *([] if ends is None else [span(ends[0][k], ends[1][k])])])
        picture = charts.figure(caption, bars, charts.table(head + ["95%"] * (ends is not None), numbers, caption))
    return tag("article", tag("h3", column.name), tag("p", note, class_="note"), picture, below)


def _inhabited(shares: Floats, ends: Ends | None) -> slice:
    """The bins between the first and the last that hold synthetic rows or, as the bands have it, true ones: the rest is empty."""
    held = (shares > 0) if ends is None else (shares > EMPTY) | (ends[0] > 0)
    places = np.flatnonzero(held)
    return slice(max(int(places[0]) - 1, 0), int(places[-1]) + 2) if len(places) else slice(None)


def _quantiles(levels: Sequence[Level]) -> Html | None:
    """Some quantiles of a number in the confidential table, in its own units, with their bands."""
    if not levels:
        return None
    told = [
        f"{'median' if q == 0.5 else f'{100 * q:g}% below'} {_plain(value)} ({_plain(x)} – {_plain(y)})"
        for q, value, x, y in levels
    ]
    return tag("p", f"In the confidential table, 95%: {'; '.join(told)}.", class_="note")


def _unbanded(why: str | None) -> Html | None:
    """Why the bars of a column have no error bands."""
    return None if why is None else tag("p", f"No error bands: {why}", class_="note")


def _plain(value: float) -> str:
    """Three significant digits, and whole numbers without a point."""
    return f"{value:,.0f}" if float(value).is_integer() else charts.number(value)


def pair_map(
    columns: Sequence[Column],
    some: Integers,
    rows: int,
    bands: Bands | None = None,
    fine: Integers | None = None,
    of: str = "",
) -> Part | None:
    """The associations of the synthetic rows as a map, and the strongest of them as a list; nothing for one column.

    `some` are evenly chosen of so many `rows`. With bands it also says which associations the measurements show; `fine` has
    the same rows with numbers by cells; `of` names the table where there are several.
    """
    shown = columns[:MAPPED]
    if len(shown) < 2:
        return None
    known = None if bands is None or fine is None else bands.pairs(fine, len(shown))
    values = np.eye(len(shown)) if known is None else known.synthetic
    apart = np.ones_like(values, dtype=bool) if known is None else known.kind == DISTANT
    if apart.any():
        values = np.where(apart, associations(some[:, : len(shown)], shown), values)
    names = [column.name for column in shown]
    words = (
        "How strongly two columns of the synthetic table depend on each other, by Cramér’s V: 0 means not at all, 1 means that "
        "each determines the other. It is corrected for chance."
    )
    if len(columns) > MAPPED:
        words += f" The map shows the first {MAPPED} of {len(columns):,} columns."
    if len(some) < rows:
        words += f" It was computed on {len(some):,} of the {rows:,} rows."
    if bands is not None and known is None:
        words += (
            " All of them are modelled. Tables of two columns were not measured by themselves, or only for shortened rows, so "
            "pairs have no error bands."
        )
    title = "Associations in the synthetic data"
    lost = None if known is None else known.kind == LOST
    tabled = [] if known is None else _tabled(known)
    picture = charts.heat_map(names, values, title, "Cramér’s V", lost, tabled)
    listed = _strongest(names, values) if known is None else _measured(names, known, tabled)
    told = [] if known is None else [tag("p", _kinds(known, names))]
    below = [] if bands is None or fine is None else [_pair_table(bands, fine, names, pair) for pair in tabled]
    if below:
        told.append(
            tag("p", "Click a pair on the map or in the list to see its table, with a 95% band for every cell.")
        )
    drawn = tag("div", picture, listed, class_="beside")
    key, heading = (f"pairs-{of}", f"{PAIRS}: {of}") if of else ("pairs", PAIRS)
    return section(key, heading, tag("p", words), *told, charts.figure(title, drawn), *below)


def _tabled(known: PairBands) -> list[tuple[int, int]]:
    """Pairs whose tables are shown: not lost in noise, those that go together most."""
    i, j = np.triu_indices(len(known.kind), 1)
    size = np.where(
        np.isin(known.kind[i, j], (LOST, DISTANT)), -1.0, np.maximum(known.value[i, j], known.synthetic[i, j])
    )
    return [(int(i[k]), int(j[k])) for k in np.argsort(-size, kind="stable")[:TABLED] if size[k] >= 0]


def _pair_table(bands: Bands, fine: Integers, names: Sequence[str], pair: tuple[int, int]) -> Html:
    """The table of one pair, unseen until its link is followed."""
    a, b = pair
    try:
        found = bands.table(fine, a, b)
    except Exception as error:  # a link leads here
        return tag("div", reason(error), id=pair_key(pair), class_="unseen")
    rows = [
        (label, *([percent(s), tag("span", span(x, y), class_="note")] for s, x, y in zip(*own, strict=True)))
        for label, *own in zip(found.rows, found.share, found.low, found.high, strict=True)
    ]
    title = f"{names[a]} × {names[b]}: proportion of synthetic rows, and the 95% band of the confidential proportion"
    grid = charts.table((names[a], *found.columns), rows, title, "cells")
    return tag("div", grid, id=pair_key(pair), class_="unseen")


def _strongest(names: Sequence[str], values: Floats) -> Html:
    pairs = [(pair, value) for pair, value in charts.strongest_pairs(names, values, LISTED) if float(value) > 0.01]
    if not pairs:
        return tag("p", "No pair has more than 0.01: the columns are practically independent.", class_="note")
    return charts.table(("pair", "Cramér’s V"), pairs, f"The {len(pairs)} strongest associations")


def _measured(names: Sequence[str], known: PairBands, tabled: Sequence[tuple[int, int]]) -> Html:
    """The strongest associations whose bands leave out 0: what lies below the edge of the noise is not listed."""
    i, j = np.triu_indices(len(names), 1)
    order = [k for k in np.argsort(-known.value[i, j], kind="stable")[:LISTED] if known.value[i[k], j[k]] > 0]
    if not order:
        return tag("p", "Noise hides all associations in this release.", class_="note")
    rows = [
        (
            _led_to_table((int(i[k]), int(j[k])), names, tabled),
            f"{known.synthetic[i[k], j[k]]:.3f}",
            f"{known.low[i[k], j[k]]:.3f} – {known.high[i[k], j[k]]:.3f}",
        )
        for k in order
    ]
    head = ("pair", "synthetic", "confidential, 95%")
    words = f"The {len(rows)} strongest associations that were measured"
    return charts.table(head, rows, words if len(rows) > 1 else "The one association that is stronger than the noise")


def _led_to_table(pair: tuple[int, int], names: Sequence[str], tabled: Sequence[tuple[int, int]]) -> Html | str:
    """A pair's names, and the way to its table."""
    words = f"{names[pair[0]]} × {names[pair[1]]}"
    return tag("a", words, href=f"#{pair_key(pair)}") if pair in tabled else words


def _kinds(known: PairBands, names: Sequence[str]) -> str:
    """How many pairs are of which kind."""
    upper = known.kind[np.triu_indices(len(known.kind), 1)]
    count = {kind: int(np.sum(upper == kind)) for kind in (MEASURED, MODELLED, LOST, DISTANT)}
    words = (
        f"Of {len(upper):,} pairs {count[MEASURED]:,} are measured: their noisy tables show the association, or show that there "
        f"is hardly any. {count[MODELLED]:,} are modelled: the association in the synthetic rows follows from other columns, and "
        f"noise hides whether it is real. {count[LOST]:,} are lost in noise: a weak association may exist, and the map leaves "
        "these empty. With 95% confidence none of the listed associations comes from noise alone."
    )
    if known.distant:
        columns = ", ".join(names[j] for j in known.distant)
        words += (
            f" {count[DISTANT]:,} have no band, because one of the columns was measured by its distance from another one "
            f"({columns}). The map shows their association in the synthetic rows."
        )
    return words
