"""What places change: factors by which values are more or less likely at the first event, the second, and so on. Post-processing.

The chain of kinds of events knows no place: it is the same all along a history. How attributes of an event go with its place was
measured in tables of their own, and the laws that values are drawn from are tilted at each place until they agree with these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.core.draw.events import SequenceLaw
from covey.core.fit.events import EventGoal
from covey.core.fit.shrinkage import beyond_noise
from covey.core.tables.events import count_bins, position_starts
from covey.measure.measurement import Measurement

if TYPE_CHECKING:
    from covey.methods.persons.method import Split
    from covey.methods.regain.tables import OneWayModel

LOST = 3.0  # a class of places with less than so many deviations of its noise is drawn as all others are
LEAST = 0.02  # of what a value would have at any place: no factor is smaller, whatever noise says
ROUNDS = 5  # of tilting: after two or three nothing changes


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
