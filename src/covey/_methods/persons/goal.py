"""From noisy tables to what a fit aims at: shares in block matrices, and how much each entry counts. Post-processing.

What a table of a person, of a person and an event, or of one event says beyond its margins is drawn to nothing as far as it is
noise, table by table (James and Stein): many attributes have little to do with each other, and a fit that believed their noise
would spend its centres on it. Tables of two events stay as they are: that they differ from chance is their point, they are few,
and each is too noisy to say so by itself.

What places change are factors by which values are more or less likely at the first event, the second, and so on. The chain of
kinds of events knows no place: it is the same all along a history. How attributes of an event go with its place was measured in
tables of their own, and the laws that values are drawn from are tilted at each place until they agree with these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from covey._core.arrays import Floats, Integers
from covey._core.draw.events import SequenceLaw
from covey._core.fit.events import EventGoal
from covey._core.fit.shrinkage import beyond_noise
from covey._core.tables.domain import Domain
from covey._core.tables.events import count_bins, position_starts
from covey._methods.regain.measure_tables import OneWay
from covey._methods.regain.tables import OneWayModel
from covey.measure.measurement import Measurement
from covey.measure.query import Columns

if TYPE_CHECKING:
    from covey._methods.persons.method import Split

TINY = 1e-12  # what is divided by is never less
LOST = 3.0  # a class of places with less than so many deviations of its noise is drawn as all others are
LEAST = 0.02  # of what a value would have at any place: no factor is smaller, whatever noise says
ROUNDS = 5  # of tilting: after two or three nothing changes


def make_goal(
    split: Split, seen: OneWayModel, counts: tuple[Floats, float], tables: list[Measurement], n: int
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
    for found in tables:
        for columns in found.query.sets:
            alone = independent(found.query.of, columns, shares, float(1 - law[0]))
            _place(found, columns, split, (target, weight), alone)
    return EventGoal(split.persons, split.events, target, weight, lag_shares(law))


def independent(kind: str, columns: Columns, shares: Sequence[Floats], having: float) -> Floats | None:
    """What a table would hold if its columns had nothing to do with each other; None for tables of two events.

    Shares are of persons, of events averaged by person, and of numbers of events; `having` is that of persons who have any.
    """
    if kind in ("step", "two"):
        return None
    one, other = (shares[a] for a in columns)
    if kind == "across" and columns[0] == len(shares) - 1:  # who has events does not have none
        one = np.append(0.0, one[1:])
        one = one / max(float(one.sum()), TINY)
    return np.outer(one, other) / max(having, TINY) if kind == "event" else np.outer(one, other)


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
    alone: Floats | None,
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


def leave_places(goal: EventGoal, place: int) -> None:
    """Let the fit pass over the attribute of the place, in the goal itself: it is known when events are drawn."""
    block = goal.events.block(place)
    first = goal.persons.total
    goal.weight["one"][:, first + block.start : first + block.stop] = 0.0
    for kind in ("across", "event"):
        if kind in goal.weight:
            goal.weight[kind][:, block] = 0.0
    if "event" in goal.weight:
        goal.weight["event"][block] = 0.0


def tilted(
    tables: Sequence[Measurement], place: int, split: Split, seen: OneWayModel, law: SequenceLaw
) -> dict[tuple[int, int], Floats]:
    """Factors for the cells of an attribute, by class of places and attribute."""
    first = len(split.parts[0])
    found: dict[tuple[int, int], Floats] = {}
    of_event = [(m, columns) for m in tables if m.query.of == "event" for columns in m.query.sets]
    for measured, columns in of_event:
        if first + place not in columns:
            continue
        one, other = (column - first for column in columns)
        a = other if one == place else one
        values, sd = measured.counts(columns), float(measured.sd)
        values = values if one == place else values.T
        to = seen.maps[first + place]
        for row in range(len(values)):
            together = np.flatnonzero(to == row)  # classes that were measured as one
            laws = _laws(law, a, together)
            aim = _aim(values[row], sd, _mixed(laws, np.ones(laws[0][1].shape[1])), seen.maps[first + a])
            if aim is not None:
                found |= dict.fromkeys(((int(q), a) for q in together), _factors(aim, laws))
    return found


def _aim(counts: Floats, sd: float, usual: Floats, to: Integers) -> Floats | None:
    """The law of an attribute's cells at a class of places: as measured, drawn to the usual one as far as it is noise."""
    total = float(counts.sum())
    if total <= LOST * sd * len(counts) ** 0.5:
        return None
    binned = total * np.bincount(to, usual)
    apart = counts - binned
    kept = beyond_noise(apart, len(counts) * sd**2)
    if not kept:
        return None
    ratio = np.maximum(binned + kept * apart, LEAST * binned) / np.maximum(binned, 1e-12)
    return np.asarray(usual * ratio[to] / float(usual @ ratio[to]))


def _laws(law: SequenceLaw, a: int, together: Integers) -> list[tuple[Floats, Floats]]:
    """For each model, how much each kind of event weighs at some classes of places, and its law of the attribute.

    Tables average over the events of a person, so a person with N events, k of them in the classes, weighs k/N there.
    """
    most = len(law.counts) - 1
    starts = count_bins(most)
    classes = np.searchsorted(position_starts(most), np.arange(most), side="right") - 1
    part = np.array([0.0, *(np.isin(classes[:n], together).mean() for n in range(1, most + 1))])
    mass = np.maximum(law.counts, 1e-12)
    by_bin = np.add.reduceat(part * mass, starts) / np.add.reduceat(mass, starts)
    found = []
    for own in law.models:
        weights = (own.persons[:, -len(starts) :] @ by_bin) @ own.first
        found.append((weights / max(float(weights.sum()), 1e-12), own.events[:, law.events.block(a)]))
    return found


def _mixed(laws: list[tuple[Floats, Floats]], factors: Floats) -> Floats:
    """The law of the attribute at these places, with factors."""
    now = np.zeros(len(factors))
    for weights, law in laws:
        own = law * factors
        now += weights @ (own / np.maximum(own.sum(axis=1, keepdims=True), 1e-300)) / len(laws)
    return now


def _factors(aim: Floats, laws: list[tuple[Floats, Floats]]) -> Floats:
    """Factors with which the laws of kinds, weighed, come to the aim."""
    factors = np.ones(len(aim))
    for _ in range(ROUNDS):
        now = _mixed(laws, factors)
        factors = factors * np.where(now > 1e-12, aim / np.maximum(now, 1e-12), 1.0)
        factors = np.clip(factors / factors.max(), 1e-6, 1.0)
    return factors
