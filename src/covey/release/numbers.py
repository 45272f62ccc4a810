"""Numbers and dates, true beside synthetic, in their own units: what a reader of a table looks at first.

Confidential like all of the evaluation: the true figures have no noise. Missing and special cells are told by their share;
all else is about the rows that have a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy.stats import ks_2samp, rankdata, wasserstein_distance

from covey.engine.arrays import Floats, Integers
from covey.release.charts import word
from covey.release.summary import every_so_many, point
from covey.tables.attributes import MISSING, Grid, Labels
from covey.tables.codec import Codec

QUANTILES = (0.05, 0.1, 0.25, 0.75, 0.9, 0.95)  # beside the median
COMMON = 10  # values that are listed: the commonest of the true table
CORRELATED = 100_000  # rows that rank correlations are computed on, at most: beyond it they hardly change
PAIRS = 1000  # of numbers, and of a number and a field with categories: the first ones
GROUP = 30  # true rows below which a group's mean is no figure to compare
GROUPS = 60  # categories beyond which a field forms no groups
QUANTILE_BINS = 20  # in which tables of numbers are compared, each with a twentieth of the true rows
MEDIAN_ALARM = 0.5  # deviations: more than whatever noise does to a release that is worth having
SHAPE_ALARM = 0.15  # of Kolmogorov's distance, ten times what a good release has


@dataclass(frozen=True)
class Number:
    """A number or date: its attribute, its place among the encoded ones, and the cells of both tables. Private."""

    grid: Grid
    place: int
    cells: tuple[Integers, Integers]

    @property
    def values(self) -> list[Floats]:
        """The values of both tables in the field's unit: days for dates, seconds for times."""
        return [self.grid.value(own[there(own)]) for own in self.cells]


def shown(grid: Grid, value: float) -> float | str:
    """A value of a number, in its unit, as a reader writes it: dates and times as text."""
    return float(value) if grid.field.type in ("integer", "number") else point(grid.field, round(value))


def there(cells: Integers) -> Any:
    """Where a cell has a value: missing and special ones lie below all of them."""
    return cells > MISSING // 2


def numbers_of(codec: Codec, cells: tuple[Integers, Integers]) -> list[Number]:
    """The numbers and dates among the encoded fields."""
    every = enumerate(codec.attributes[name] for name in codec.names)
    return [Number(own, j, (cells[0][:, j], cells[1][:, j])) for j, own in every if isinstance(own, Grid)]


def number_figures(codec: Codec, cells: tuple[Integers, Integers]) -> dict[str, Any]:
    """All figures: columns, rank correlations and group means, the worst first, and sentences about what is far off."""
    own = numbers_of(codec, cells)
    columns = {one.grid.field.name: one_number(one) for one in own}
    order = sorted(columns, key=lambda name: -columns[name]["kolmogorov"])
    return {
        "alarms": alarms(columns),
        "columns": {name: columns[name] for name in order},
        "rank_correlations": rank_correlations(own),
        "group_means": group_means(codec, own, cells),
    }


def one_number(number: Number) -> dict[str, Any]:
    """One column: pairs are (true, synthetic)."""
    both, grid = number.values, number.grid
    without = [1 - len(v) / max(1, len(c)) for v, c in zip(both, number.cells, strict=True)]
    out: dict[str, Any] = {"without_value": without}
    if not all(map(len, both)):
        gone = float(len(both[0]) != len(both[1]))
        return out | {"kolmogorov": gone, "median_off": 0.0, "wasserstein_over_range": gone, "common_off": gone}
    sd = [float(v.std()) for v in both]
    unit = sd[0] or 1 / grid.scale
    middle = [float(np.median(v)) for v in both]
    at = [np.quantile(v, QUANTILES) for v in both]
    limits = grid.value(np.array([grid.axis.low, grid.axis.high]))
    span = float(np.ptp(np.concatenate([*both, limits])))  # of the limits, and of what lies beyond them
    true, synthetic = number.cells
    seen, counts = np.unique(true[there(true)], return_counts=True)
    common = [
        (shown(grid, v / grid.scale), float(np.mean(true == v)), float(np.mean(synthetic == v)))
        for v in seen[np.argsort(-counts, kind="stable")[:COMMON]].tolist()
    ]
    return out | {
        "mean": [shown(grid, v.mean()) for v in both],
        "sd": sd,
        "median": [shown(grid, m) for m in middle],
        "quantiles": {str(q): [shown(grid, a), shown(grid, b)] for q, a, b in zip(QUANTILES, *at, strict=True)},
        "mean_off": abs(both[0].mean() - both[1].mean()) / unit,
        "median_off": abs(middle[0] - middle[1]) / unit,
        "quantiles_off": float(np.abs(at[0] - at[1]).max()) / unit,
        "kolmogorov": float(ks_2samp(both[0], both[1], method="asymp").statistic),
        "wasserstein_over_range": float(wasserstein_distance(both[0], both[1])) / span if span else 0.0,
        "common": common,
        "common_off": float(sum(abs(a - b) for _, a, b in common)),
    }


def alarms(columns: dict[str, dict[str, Any]]) -> list[str]:
    """What a reader must hear first: medians far off, and shapes that were lost; the worst first."""
    found = []
    for name, own in columns.items():
        if "median" not in own:
            if own["kolmogorov"]:
                found.append((np.inf, f"{name} has values in only one of the two tables"))
            continue
        (a, b), off, shape = own["median"], own["median_off"], own["kolmogorov"]
        if off >= MEDIAN_ALARM:
            words = f"the median of {name} is {word(b)} instead of {word(a)}: {off:.1f} standard deviations off"
            found.append((off / MEDIAN_ALARM, words))
        elif shape >= SHAPE_ALARM:
            words = f"the distribution of {name} differs: the proportion below some value is off by {shape:.0%}"
            found.append((shape / SHAPE_ALARM, words))
    return [words for _, words in sorted(found, key=lambda one: -one[0])]


def rank_correlations(numbers: Sequence[Number]) -> list[tuple[str, str, float, float]]:
    """Spearman's coefficient of every two numbers, true and synthetic, the worst first; over rows that have both values."""
    some = [[every_so_many(one.cells[k], CORRELATED) for one in numbers] for k in (0, 1)]
    ranked = [[rankdata(np.where(there(own), own, np.nan), nan_policy="omit") for own in both] for both in some]
    found = []
    for a, b in list(combinations(range(len(numbers)), 2))[:PAIRS]:
        both = []
        for own in ranked:  # 0 where one of them is constant
            x, y = np.stack([own[a], own[b]])[:, ~np.isnan(own[a] + own[b])]
            both.append(float(np.corrcoef(x, y)[0, 1]) if len(x) and np.ptp(x) and np.ptp(y) else 0.0)
        found.append((numbers[a].grid.field.name, numbers[b].grid.field.name, both[0], both[1]))
    return sorted(found, key=lambda one: -abs(one[2] - one[3]))


def group_means(
    codec: Codec, numbers: Sequence[Number], cells: tuple[Integers, Integers]
) -> list[tuple[str, str, str, float | str, float | str | None, float]]:
    """Means of numbers by category: (number, field, category, true mean, synthetic mean, difference in deviations).

    The worst first. A group that the synthetic table lacks is one deviation off.
    """
    fields = [
        (j, name)
        for j, name in enumerate(codec.names)
        if isinstance(codec.attributes[name], Labels) and codec.domain_sizes[j] <= GROUPS
    ]
    found = []
    for one, (j, name) in list(product(numbers, fields))[:PAIRS]:
        labels = codec.attributes[name].field.labels
        sums = []
        for k in (0, 1):
            use = there(one.cells[k]) & (cells[k][:, j] != MISSING)
            group, value = cells[k][use, j], one.grid.value(one.cells[k][use])
            count = np.bincount(group, minlength=len(labels))
            sums.append((count, np.bincount(group, value, minlength=len(labels)) / np.maximum(count, 1)))
        sd = float(one.values[0].std()) if len(one.values[0]) else 0.0
        for i in np.flatnonzero(sums[0][0] >= GROUP).tolist() if sd else []:
            (a, b), held = (sums[0][1][i], sums[1][1][i]), bool(sums[1][0][i])
            off = float(abs(a - b)) / sd if held else 1.0
            found.append(
                (one.grid.field.name, name, labels[i], shown(one.grid, a), shown(one.grid, b) if held else None, off)
            )
    return sorted(found, key=lambda row: -row[-1])


def quantile_tables(
    codec: Codec, codes: tuple[Integers, Integers], cells: tuple[Integers, Integers]
) -> tuple[Integers, Integers, tuple[int, ...]]:
    """Codes in which numbers without declared bins stand in bins of a twentieth of the true rows each, and numbers of codes.

    Bins of equal width would hide what happens inside the few that hold nearly everybody.
    """
    out, sizes = [own.astype(np.int64) for own in codes], list(codec.domain_sizes)
    for one in numbers_of(codec, cells):
        if one.grid.field.bins is not None:
            continue
        true = one.cells[0][there(one.cells[0])]
        levels = np.arange(1, QUANTILE_BINS) / QUANTILE_BINS
        edges = np.unique(np.quantile(true, levels, method="inverted_cdf")) if len(true) else np.zeros(0)
        j = one.place
        behind = codec.domain_sizes[j] - one.grid.bins  # special and missing codes follow the bins
        for k in (0, 1):
            own = one.cells[k]
            at = np.searchsorted(edges, own, side="right")
            rest = codes[k][:, j].astype(np.int64) - one.grid.bins + len(edges) + 1
            out[k][:, j] = np.where(there(own), at, rest)
        sizes[j] = len(edges) + 1 + behind
    return out[0], out[1], tuple(sizes)
