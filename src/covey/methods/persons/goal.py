"""From noisy tables to what a fit aims at: shares in block matrices, and how much each entry counts. Post-processing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from covey.core.arrays import Floats
from covey.core.fit.linked import LinkedGoal
from covey.core.tables.domain import Domain
from covey.core.tables.linked import count_bins
from covey.methods.persons.measure import NoisyTable, folded
from covey.methods.regain.measure_numbers import OneWayMeasured
from covey.methods.regain.numbers import Looks

if TYPE_CHECKING:
    from covey.methods.persons.method import Split


def make_goal(
    split: Split,
    seen: Looks,
    one_way: OneWayMeasured,
    counts: tuple[Floats, float],
    tables: list[NoisyTable],
    n: int,
) -> LinkedGoal:
    """What the measurements ask of a fit; `counts` are denoised shares of persons by number of events, and their noise."""
    law, sd = counts
    starts = count_bins(len(law) - 1)
    widths = np.diff(np.append(starts, len(law)))
    target: dict[str, Floats] = {}
    weight: dict[str, Floats] = {}
    one, own = [], []
    for j, (share, to) in enumerate(zip(seen.shares, seen.maps, strict=True)):
        size = int(to.max()) + 1
        having = 1.0 if j in split.parts[0] else float(1 - law[0])
        one.append((j, having * np.bincount(to, share, minlength=size)))
        own.append(np.full(size, (n / _noise(j, one_way, len(to) / size)) ** 2))
    persons = [values for j, values in one if j in split.parts[0]] + [np.add.reduceat(law, starts)]
    events = [values for j, values in one if j in split.parts[1]]
    heavy = [own[j] for j in split.parts[0]] + [n**2 / (sd**2 * widths)]
    target["one"] = np.concatenate([*persons, *events])[None]
    weight["one"] = np.concatenate([*heavy, *(own[j] for j in split.parts[1])])[None]
    for found in tables:
        _place(found, n, split, target, weight)
    return LinkedGoal(split.persons, split.events, target, weight, lag_shares(law))


def _place(found: NoisyTable, n: int, split: Split, target: dict[str, Floats], weight: dict[str, Floats]) -> None:
    """Put a noisy table into the block matrix of its kind."""
    kind = found.table.kind
    rows: Domain = split.persons if kind in ("person", "across") else split.events
    columns: Domain = split.persons if kind == "person" else split.events
    if kind not in target:
        target[kind], weight[kind] = np.zeros((rows.total, columns.total)), np.zeros((rows.total, columns.total))
    block = rows.block(found.table.one), columns.block(found.table.other)
    values, precision = found.values / n, np.full(found.values.shape, (n / found.sd) ** 2)
    if folded(
        found.table
    ):  # half of what stands above the diagonal belongs below it, with half the noise, and is one number
        above = np.triu(values, 1) / 2
        values = above + above.T + np.diag(np.diag(values))
        precision = precision * np.where(np.eye(len(values), dtype=bool), 1.0, 2.0)
    target[kind][block], weight[kind][block] = values, precision


def _noise(j: int, one_way: OneWayMeasured, wide: float) -> float:
    """About the noise on a bin of an attribute, which holds so many categories or cells."""
    if j in one_way.trees:
        tree = one_way.trees[j]
        return float(tree.sd * np.sqrt(max(1.0, wide / max(1, tree.grid.rounds))))
    return float(one_way.categories[j].sd * np.sqrt(wide))


def lag_shares(law: Floats) -> tuple[float, float]:
    """Of the pairs of events of persons with two or more, the shares that lie one place and two places apart."""
    k = np.arange(len(law))
    many = np.where(k >= 2, law, 0.0)
    if not many.sum() > 0:
        return 1.0, 0.0
    pairs = np.maximum(k * (k - 1) / 2, 1)
    one, two = (float((many * np.maximum(k - lag, 0) / pairs).sum() / many.sum()) for lag in (1, 2))
    return one, two
