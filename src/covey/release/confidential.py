"""The steward's own report: true beside synthetic, watermarked, and kept out of bundles. The words are in `templates`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from covey.html import shorten
from covey.release import charts
from covey.release.changed import changed_words
from covey.release.charts import percent
from covey.release.evaluation import WATERMARK, Comparison, as_read_words, pair_variation, share_compared
from covey.release.numbers import WORST
from covey.release.page import Part, render, section
from covey.release.places import refuse_in_bundle
from covey.release.summary import Column, describe, ranked

CHARTS = 36  # columns that are drawn, the worst ones: a page that still opens at once
MAPPED = 40  # columns on the map of pairs: beyond it their names can no longer be read
CELLS = 6  # of each of the worst pairs
ALARMS = 5  # that stand above all else: more would not be read
KINDS = ("true", "synthetic")


def write_confidential(path: Path, text: str) -> None:
    """Write a file that only its owner can read, and never into a bundle."""
    refuse_in_bundle(path)
    path.unlink(missing_ok=True)  # a new file, so that old permissions and links do not live on
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)


def evaluation_html(rows: Comparison, figures: Mapping[str, Any]) -> str:
    """The page for the figures of `evaluate`."""
    columns, own = describe(rows.codec), figures["average_total_variation"]
    tiles = [
        ("of the rows would have to move in an average table", f"{100 * own['average']:.2f}%"),
        ("in a fresh sample of real rows, by chance alone", f"{100 * own['fresh_sample_of_real_rows']:.2f}%"),
        (f"in the worst table, {shorten(' × '.join(own['worst_table']), 60)}", f"{100 * own['worst']:.2f}%"),
    ]
    given = {"figures": figures, "bundle": rows.bundle, "share_compared": share_compared}
    sections = [
        section("overview", "In short", "overview.html", as_read_words=as_read_words, **given),
        *_numbers(figures["numbers"]),
        _one_way(rows, columns, figures),
        _two_way(rows, columns, figures),
        *contradiction_section(figures["contradictions"]),
        *prediction(figures["prediction"]),
    ]
    return render(
        "evaluation.html",
        watermark=WATERMARK,
        badges=[("confidential", "alarm"), (str(rows.bundle["guarantee"]), "")],
        real=len(rows.true),
        drawn=len(rows.synthetic),
        changed=changed_words(figures["changed"]),
        alarms=figures["numbers"]["alarms"][:ALARMS],
        tiles=tiles,
        sections=sections,
    )


def _numbers(figures: Mapping[str, Any]) -> list[Part]:
    """Numbers and dates in their own units, the worst first."""
    columns = [(name, own) for name, own in figures["columns"].items() if "mean" in own][:CHARTS]
    worst = {"correlations": figures["rank_correlations"][:WORST], "means": figures["group_means"][:WORST]}
    title = "Numbers in their own units"
    return [section("numbers", title, "numbers.html", columns=columns, **worst)] if columns else []


def _one_way(rows: Comparison, columns: Sequence[Column], figures: Mapping[str, Any]) -> Part:
    """Each column, true beside synthetic, the worst first."""
    errors = list(figures["columns"].values())
    changed = {name: own["share"] for name, own in figures["changed"]["columns"].items()}
    cards = []
    for j in np.argsort(-np.array(errors), kind="stable")[:CHARTS]:
        column, histogram = columns[j], None
        both = np.stack([column.shares(codes[:, j]) for codes in (rows.true, rows.synthetic)])
        shown: list[Any]
        if not column.ordered:
            order = ranked(column.labels, both, column.has_missing, 10)
            shown = [(label, [float(x) for x in own], None) for label, own in order]
        else:
            bins = len(column.labels) - column.has_missing
            missing = [float(x) for x in both[:, -1]] if column.has_missing and both[:, -1].any() else None
            histogram = charts.histogram(column.name, column.labels[:bins], list(both[:, :bins]), missing, KINDS)
            shown = [(label, *map(percent, map(float, own))) for label, *own in zip(column.labels, *both, strict=True)]
        cards.append((column, errors[j], changed.get(column.name, 0), histogram, shown))
    return section("one", "Column by column", "one_way.html", cards=cards, width=len(columns))


def _two_way(rows: Comparison, columns: Sequence[Column], figures: Mapping[str, Any]) -> Part:
    """Errors of pairs as a map, and the cells that are furthest off in the worst of them."""
    names, places = [column.name for column in columns], {name: j for j, name in enumerate(rows.codec.names)}
    cells = [row for a, b, _ in figures["worst_pairs"][:5] for row in worst_cells(rows, columns, places[a], places[b])]
    given = {"figures": figures, "share_compared": share_compared, "mapped": MAPPED}
    distances = pair_variation(rows, MAPPED)
    return section("two", "Pair by pair", "two_way.html", names=names, cells=cells, distances=distances, **given)


def worst_cells(rows: Comparison, columns: Sequence[Column], a: int, b: int) -> list[tuple[str, str, str, str]]:
    """The cells of one pair, as a reader sees its values, whose shares differ most."""
    one, two = columns[a], columns[b]
    shape = (len(one.labels), len(two.labels))
    if shape[0] * shape[1] > 1_000_000:
        return []
    tables = [
        np.bincount(one.group[c[:, a]] * shape[1] + two.group[c[:, b]], minlength=shape[0] * shape[1]) / len(c)
        for c in (rows.true, rows.synthetic)
    ]
    off = tables[1] - tables[0]
    out = []
    for k in np.argsort(-np.abs(off), kind="stable")[:CELLS]:
        i, j = divmod(int(k), shape[1])
        sign = "+" if off[k] >= 0 else "−"
        label = f"{one.name} = {one.labels[i]}, {two.name} = {two.labels[j]}"
        out.append((label, percent(tables[0][k], 2), percent(tables[1][k], 2), f"{sign}{100 * abs(off[k]):.2f} points"))
    return out


def contradiction_section(found: Mapping[str, Any]) -> list[Part]:
    """Relations of the true rows that synthetic ones break."""
    return [section("contradictions", "Contradictions", "contradictions.html", found=found)] if found["worst"] else []


def prediction(found: Sequence[Mapping[str, Any]] | None) -> list[Part]:
    """Train on synthetic, test on real; None where scikit-learn is missing."""
    title = "Train on synthetic, test on real"
    return [section("prediction", title, "prediction.html", found=found)] if found is None or found else []
