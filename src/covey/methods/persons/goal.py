"""From noisy tables to what a fit aims at: shares in block matrices, and how much each entry counts. Post-processing.

What a table of a person, of a person and an event, or of one event says beyond its margins is drawn to nothing as far as it is
noise, table by table (James and Stein): many attributes have little to do with each other, and a fit that believed their noise
would spend its centres on it. Tables of two events stay as they are: that they differ from chance is their point, they are few,
and each is too noisy to say so by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from covey.core.arrays import Floats
from covey.core.fit.events import EventGoal
from covey.core.fit.shrinkage import beyond_noise
from covey.core.tables.domain import Domain
from covey.core.tables.events import count_bins
from covey.measure.measurement import Measurement
from covey.measure.query import Columns
from covey.methods.regain.measure_tables import OneWay
from covey.methods.regain.tables import OneWayModel

if TYPE_CHECKING:
    from covey.methods.persons.method import Split

TINY = 1e-12  # what is divided by is never less


def make_goal(
    split: Split,
    seen: OneWayModel,
    counts: tuple[Floats, float],
    tables: list[Measurement],
    n: int,
) -> EventGoal:
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
        one.append((j, np.asarray(having * np.bincount(to, share, minlength=size), dtype=np.float64)))
        own.append(np.full(size, (n / _noise(j, seen.measured, len(to) / size)) ** 2))
    persons = [values for j, values in one if j in split.parts[0]] + [np.add.reduceat(law, starts)]
    events = [values for j, values in one if j in split.parts[1]]
    heavy = [own[j] for j in split.parts[0]] + [n**2 / (sd**2 * widths)]
    target["one"] = np.concatenate([*persons, *events])[None]
    weight["one"] = np.concatenate([*heavy, *(own[j] for j in split.parts[1])])[None]
    shares = [*(values for _, values in one), np.asarray(persons[-1], dtype=np.float64)]
    margins = Margins(shares, float(1 - law[0]))
    for found in tables:
        for columns in found.query.sets:
            _place(found, columns, split, (target, weight), margins)
    return EventGoal(split.persons, split.events, target, weight, lag_shares(law))


@dataclass(frozen=True)
class Margins:
    """Shares of each column: of persons, of events averaged by person, and of numbers of events; and of persons who have any."""

    shares: list[Floats]
    having: float

    def alone(self, kind: str, columns: Columns) -> Floats | None:
        """What a table would hold if its columns had nothing to do with each other; None for tables of two events."""
        if kind in ("step", "two"):
            return None
        one, other = (self.shares[a] for a in columns)
        if kind == "across" and columns[0] == len(self.shares) - 1:  # who has events does not have none
            one = np.append(0.0, one[1:])
            one = one / max(float(one.sum()), TINY)
        return np.outer(one, other) / max(self.having, TINY) if kind == "event" else np.outer(one, other)


def shrunk(values: Floats, alone: Floats, sd: float) -> Floats:
    """A noisy table whose distance from `alone`, margins aside, is kept as far as it exceeds what noise would make of it."""
    apart = values - alone
    apart = apart - apart.mean(axis=0) - apart.mean(axis=1, keepdims=True) + apart.mean()
    noise = sd**2 * (values.shape[0] - 1) * (values.shape[1] - 1)
    return np.asarray(values - (1 - beyond_noise(apart, noise)) * apart)


def _place(
    found: Measurement,
    columns: Columns,
    split: Split,
    goal: tuple[dict[str, Floats], dict[str, Floats]],
    margins: Margins,
) -> None:
    """Put a noisy table, as shares, into the block matrix of its kind."""
    target, weight = goal
    kind, values, sd = found.query.of, found.table(columns), float(found.sd) / found.per
    rows: Domain = split.persons if kind in ("person", "across") else split.events
    others: Domain = split.persons if kind == "person" else split.events
    if kind not in target:
        target[kind], weight[kind] = np.zeros((rows.total, others.total)), np.zeros((rows.total, others.total))
    block = split.block(columns[0]), split.block(columns[1])
    precision = np.full(values.shape, (1 / sd) ** 2)
    alone = margins.alone(kind, columns)
    if alone is not None:
        values = shrunk(values, alone, sd)
    # Half of what stands above the diagonal belongs below it, with half the noise, and is one number.
    if found.query.folded(columns):
        above = np.triu(values, 1) / 2
        values = above + above.T + np.diag(np.diag(values))
        precision = precision * np.where(np.eye(len(values), dtype=bool), 1.0, 2.0)
    target[kind][block], weight[kind][block] = values, precision


def _noise(j: int, one_way: OneWay, wide: float) -> float:
    """About the noise on a bin of an attribute, which holds so many categories or cells."""
    if j in one_way.trees:
        tree = one_way.trees[j]
        return float(tree.sd * np.sqrt(max(1.0, wide / max(1, tree.grid.rounds))))
    return float(one_way.found[j].sd * np.sqrt(wide))


def lag_shares(law: Floats) -> tuple[float, float]:
    """Of the pairs of events of persons with two or more, the shares that lie one place and two places apart."""
    k = np.arange(len(law))
    many = np.where(k >= 2, law, 0.0)
    if not many.sum() > 0:
        return 1.0, 0.0
    pairs = np.maximum(k * (k - 1) / 2, 1)
    one, two = (float((many * np.maximum(k - lag, 0) / pairs).sum() / many.sum()) for lag in (1, 2))
    return one, two
