"""The steward's own report: true beside synthetic, watermarked, and kept out of bundles."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from covey.core.arrays import Floats
from covey.html import Html, shorten, tag
from covey.release import charts
from covey.release.changed import changed_words
from covey.release.charts import number, percent
from covey.release.contradictions import contradiction_section
from covey.release.evaluation import WATERMARK, Comparison, as_read_words, pair_variation, share_compared
from covey.release.numbers import WORST, word
from covey.release.page import Part, facts, page, section
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
    columns = describe(rows.codec)
    n, m = len(rows.true), len(rows.synthetic)
    own = figures["average_total_variation"]
    tiles = [
        ("of the rows would have to move in an average table", f"{100 * own['average']:.2f}%"),
        ("in a fresh sample of real rows, by chance alone", f"{100 * own['fresh_sample_of_real_rows']:.2f}%"),
        (f"in the worst table, {shorten(' × '.join(own['worst_table']), 60)}", f"{100 * own['worst']:.2f}%"),
    ]
    banner = (
        "The figures below were computed on the real records without noise. They can tell something about single persons. "
        "They are for the data owner alone and are not part of any release."
    )
    sections = [
        overview(rows, figures),
        *numbers(figures["numbers"]),
        one_way(rows, columns, figures),
        two_way(rows, columns, figures),
        *contradiction_section(figures["contradictions"]),
        *prediction(figures["prediction"]),
    ]
    changed, off = changed_words(figures["changed"]), figures["numbers"]["alarms"][:ALARMS]
    guarantee = str(rows.bundle["guarantee"])
    lead = f"A bundle of {m:,} synthetic rows beside the real table of {n:,}."
    badges = [("confidential", "alarm"), (guarantee, "")]
    banners = [tag("p", tag("strong", WATERMARK), ". ", banner, class_="banner alarm")]
    if changed:
        listed = tag("ul", [tag("li", f"{line}.") for line in changed])
        opening = "The schema changed these values before anything was measured, so the bundle cannot show them:"
        banners.append(tag("div", tag("strong", "Changed by the schema"), ". ", opening, listed, class_="banner alarm"))
    banners += [tag("p", tag("strong", "Far off"), ": ", words, ".", class_="banner alarm") for words in off]
    footer = tag("p", "Written by covey. This page is one file without scripts; it loads nothing and sends nothing.")
    return page("Real and synthetic", "Evaluation", lead, badges, banners, tiles, sections, footer, WATERMARK)


def overview(rows: Comparison, figures: Mapping[str, Any]) -> Part:
    """The figures in one table, and what they mean."""
    own, listed = figures["average_total_variation"], []
    of = "two columns" if own["columns"] == 2 else "one column"
    average = (
        f"{100 * own['average']:.2f}%, the average over {share_compared(figures, str(own['columns']))} of {of}; a fresh sample "
        f"of real rows has {100 * own['fresh_sample_of_real_rows']:.2f}%"
    )
    average = "; ".join([average, *as_read_words(own)])
    worst = f"{100 * own['worst']:.2f}%, in {' × '.join(own['worst_table'])}"
    for d, value in figures["total_variation"].items():
        of = share_compared(figures, d)
        free = figures["total_variation_of_resampled_true_rows"][d]
        listed.append(
            (
                f"{d}-way tables",
                f"{number(value)}, the average over {of}; a fresh sample of real rows has {number(free)}",
            )
        )
    loss = figures["covariance"]
    if loss:
        listed.append(
            ("Covariance loss", f"{number(loss['loss'])}, where the real covariance has norm {number(loss['true'])}")
        )
    if "covariance_loss" in rows.bundle:
        listed.append(
            ("of which averaging", f"{number(float(rows.bundle['covariance_loss']))} when the groups were formed")
        )
    words = (
        "The total variation distance is the proportion of rows that would have to change their cell to make the synthetic "
        "table equal to the real one. A value that the schema moved to a limit, merged, emptied or filled always counts as "
        "wrong. A fresh sample of real rows, as large as the synthetic table, shows what chance alone does. The plan and the "
        "certificate use the same measure; the certificate adds noise to it."
    )
    technical = (
        "Here the total variation distance is a proportion from 0 to 1. The covariance loss is the Frobenius norm of the "
        "difference of two covariance matrices, of category indicators of the tables as the schema reads them."
    )
    fold = tag("details", tag("summary", "In technical terms"), tag("p", technical), facts(listed, "Other errors"))
    short = facts([("Average total variation distance", average), ("The worst table", worst)], "Errors")
    small = tag("p", figures["small_groups"]) if figures["small_groups"] else None
    return section("overview", "In short", tag("p", words), short, small, fold)


def numbers(figures: Mapping[str, Any]) -> list[Part]:
    """Numbers and dates in their own units, the worst first."""
    columns = {name: own for name, own in figures["columns"].items() if "mean" in own}
    if not columns:
        return []
    head = (
        "column",
        "mean",
        "deviation",
        "median",
        "10% to 90%",
        "distribution function off by",
        "commonest values off by",
    )
    shown = [(name, *_number_row(own)) for name, own in list(columns.items())[:CHARTS]]
    pairs = [(f"{a} × {b}", f"{x:.2f}", f"{y:.2f}") for a, b, x, y in figures["rank_correlations"][:WORST]]
    means = [
        (f"{number}, {field} = {label}", word(x), word(y), f"{off:.2f}")
        for number, field, label, x, y, off in figures["group_means"][:WORST]
    ]
    words = (
        "Each entry is the real figure and, behind the arrow, the synthetic one. Two distribution functions are off by the "
        "largest difference between the shares of rows below any one value."
    )
    parts = [charts.table(head, shown, "Numbers and dates", "broad")]
    if pairs:
        parts.append(charts.table(("rank correlation of", *KINDS), pairs, "The worst rank correlations"))
    if means:
        title = "The worst group means"
        parts.append(charts.table(("mean of", *KINDS, "in standard deviations"), means, title, "named"))
    return [
        section(
            "numbers", "Numbers in their own units", tag("p", words), *(tag("div", p, class_="apart") for p in parts)
        )
    ]


def _number_row(own: Mapping[str, Any]) -> tuple[str, ...]:
    pairs = [own["mean"], own["sd"], own["median"]]
    low, high = own["quantiles"]["0.1"], own["quantiles"]["0.9"]
    ranges = " → ".join(f"{word(a)} to {word(b)}" for a, b in zip(low, high, strict=True))
    shown = [" → ".join(word(value) for value in pair) for pair in pairs]
    return (*shown, ranges, percent(own["kolmogorov"]), percent(own["common_off"]))


def one_way(rows: Comparison, columns: Sequence[Column], figures: Mapping[str, Any]) -> Part:
    """Each column, true beside synthetic, the worst first."""
    both, errors = (rows.true, rows.synthetic), list(figures["columns"].values())
    order = np.argsort(-np.array(errors), kind="stable")[:CHARTS]
    changed = {name: own["share"] for name, own in figures["changed"]["columns"].items()}
    cards = [
        _card(
            columns[j], np.stack([columns[j].shares(t[:, j]) for t in both]), errors[j], changed.get(columns[j].name, 0)
        )
        for j in order
    ]
    cut = f" The {CHARTS} worst of {len(columns):,} columns are drawn." if len(columns) > CHARTS else ""
    legend = tag(
        "ul",
        tag("li", tag("i", class_="swatch", aria_hidden="true"), "true"),
        tag("li", tag("i", class_="swatch b1", aria_hidden="true"), "synthetic"),
        class_="legend",
    )
    return section(
        "one",
        "Column by column",
        tag("p", f"The largest errors come first. Neighbouring values are joined where a column has many.{cut}"),
        legend,
        tag("div", cards, class_="grid"),
    )


def _card(column: Column, both: Floats, error: float, changed: float) -> Html:
    note = f"{100 * error:.2f}% of the rows would have to move"
    note += f", {100 * changed:.2f}% because the schema changed them; drawn as it reads them" if changed else ""
    caption = f"Shares of {column.name}"
    if not column.ordered:
        rows = [(label, [float(x) for x in v]) for label, v in ranked(column.labels, both, column.has_missing, 10)]
        picture = charts.bars(rows, caption, KINDS)
    else:
        bins = len(column.labels) - column.has_missing
        missing = [float(x) for x in both[:, -1]] if column.has_missing and both[:, -1].any() else None
        drawn = charts.histogram(column.name, column.labels[:bins], list(both[:, :bins]), missing, KINDS)
        numbers = [
            (label, percent(float(a)), percent(float(b))) for label, a, b in zip(column.labels, *both, strict=True)
        ]
        picture = charts.figure(caption, drawn, charts.table(("value", *KINDS), numbers, caption))
    return tag("article", tag("h3", column.name), tag("p", note, class_="note"), picture)


def two_way(rows: Comparison, columns: Sequence[Column], figures: Mapping[str, Any]) -> Part:
    """Errors of pairs as a map, and the cells that are furthest off in the worst of them."""
    names = [column.name for column in columns]
    if len(names) < 2:
        return section("two", "Pair by pair", tag("p", "There is only one column."))
    shown = names[:MAPPED]
    title = "Total variation distance, pair by pair"
    worst = [(f"{a} × {b}", f"{100 * v:.2f}") for a, b, v in figures["worst_pairs"]]
    picture = tag(
        "div",
        charts.heat_map(shown, pair_variation(rows, MAPPED), title, "Proportion of rows that would have to move"),
        charts.table(("pair", "rows of 100"), worst, "The worst pairs"),
        class_="beside",
    )
    cut = f" The map shows the first {MAPPED} of {len(names):,} columns." if len(names) > MAPPED else ""
    done, there = figures["tables_compared"]["2"]
    cut += f" The worst pairs are the worst of {share_compared(figures, '2')}." if done < there else ""
    places = {name: j for j, name in enumerate(rows.codec.names)}
    cells = [row for a, b, _ in figures["worst_pairs"][:5] for row in worst_cells(rows, columns, places[a], places[b])]
    head, furthest = ("cell", *KINDS, "difference"), "The cells of the five worst pairs that are furthest off"
    return section(
        "two",
        "Pair by pair",
        tag("p", f"The distance between real and synthetic tables of two columns.{cut}"),
        charts.figure(title, picture),
        tag("div", charts.table(head, cells, furthest, "named"), class_="apart"),
    )


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


def prediction(found: Sequence[Mapping[str, Any]] | None) -> list[Part]:
    """Train on synthetic, test on real."""
    title = "Train on synthetic, test on real"
    if found is None:
        words = "Predictions need scikit-learn, which is not installed: pip install 'covey[evaluate]'."
        return [section("prediction", title, tag("p", words))]
    if not found:
        return []
    rows = [
        (
            entry["target"],
            percent(entry["most_frequent"]),
            percent(entry["trained_on_true"]["accuracy"]),
            percent(entry["trained_on_synthetic"]["accuracy"]),
            f"{entry['trained_on_true']['auc']:.3f}",
            f"{entry['trained_on_synthetic']['auc']:.3f}",
        )
        for entry in found
    ]
    head = (
        "predicted column",
        "always the most frequent",
        "accuracy, from real",
        "accuracy, from synthetic",
        "AUC, from real",
        "AUC, from synthetic",
    )
    words = (
        "A logistic regression on all other columns was trained twice: on half of the real rows and on the synthetic rows. Both "
        "were tested on the other half of the real rows. The closer the two results, the better. AUC is averaged over classes; "
        "0.5 is chance. The synthetic rows were made from all real rows, including the tested half."
    )
    return [section("prediction", title, tag("p", words), charts.table(head, rows, "Predictions"))]
