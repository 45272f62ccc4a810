"""What no event of some persons can be: structural zeros across persons and events, over the cells of a model.

A box names some cells of attributes of a person and of one attribute of an event; nobody who lies in the first has an event in
the second. As each box names one attribute of events, what is barred of it is a set that follows from the person alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from covey.core.arrays import Array, Floats, Integers
from covey.core.tables.zeros import Boxes, Mask, held_in

MOST_KINDS = 10_000  # of persons that rules tell apart: looked at one by one before anything is charged
SURE = 100.0  # times the precision of a noisy entry: what is known to be zero counts as measured ten times as sharply


@dataclass(frozen=True)
class Barred:
    """One box: masks over the cells of attributes of a person, and an attribute of events with a mask over its cells."""

    persons: Mapping[int, Mask]
    attribute: int
    events: Mask


@dataclass(frozen=True)
class Across:
    """All boxes."""

    boxes: tuple[Barred, ...] = ()

    @classmethod
    def of(cls, boxes: Boxes, first: int, codes: Sequence[Integers]) -> Across:
        """Boxes over the attributes of both tables, of which `first` are of persons; a cell is given by one of its codes."""
        found = []
        for box in boxes.boxes:
            masks = {j: held_in(codes[j], side) for j, side in box.sides.items()}
            [attribute] = [j for j in masks if j >= first]
            own = {j: mask for j, mask in masks.items() if j < first}
            found.append(Barred(own, attribute - first, masks[attribute]))
        return cls(tuple(found))

    def __bool__(self) -> bool:
        return bool(self.boxes)

    def meets(self, persons: Array) -> Mask:
        """Which persons lie in the persons' side of which box."""
        found = np.ones((len(persons), len(self.boxes)), dtype=bool)
        for k, box in enumerate(self.boxes):
            for j, mask in box.persons.items():
                found[:, k] &= mask[persons[:, j]]
        return found

    def breaking(self, meets: Mask, events: Integers) -> Iterator[tuple[int, Integers, Mask]]:
        """Events of persons with these sides that are barred: an attribute, which rows, and all that is barred for them."""
        for attribute in sorted({box.attribute for box in self.boxes}):
            own = [k for k, box in enumerate(self.boxes) if box.attribute == attribute]
            kinds, kind = np.unique(meets[:, own], axis=0, return_inverse=True)
            for i, pattern in enumerate(kinds):
                if not pattern.any():
                    continue
                barred = np.any([self.boxes[k].events for k, on in zip(own, pattern, strict=True) if on], axis=0)
                rows = np.flatnonzero((kind.ravel() == i) & barred[events[:, attribute]])
                if len(rows):
                    yield attribute, rows, barred

    @property
    def impossible(self) -> bool:
        """Whether some kind of person can have no event at all, because everything is barred for them."""
        named = sorted({j for box in self.boxes for j in box.persons})
        kinds = []
        for j in named:
            masks = np.array([box.persons[j] for box in self.boxes if j in box.persons])
            kinds.append(np.unique(masks, axis=1, return_index=True)[1])
        if np.prod([len(own) for own in kinds], dtype=np.float64) > MOST_KINDS:
            return True
        for cells in product(*kinds):
            at = dict(zip(named, cells, strict=True))
            met = [box for box in self.boxes if all(mask[at[j]] for j, mask in box.persons.items())]
            for attribute in {box.attribute for box in met}:
                if np.all(np.any([box.events for box in met if box.attribute == attribute], axis=0)):
                    return True
        return False

    def merged(self, maps: Sequence[Sequence[Integers]]) -> Across:
        """The same over bins of cells; no bin holds cells that a box tells apart."""

        def binned(mask: Mask, to: Integers) -> Mask:
            return mask[np.unique(to, return_index=True)[1]]

        return Across(
            tuple(
                Barred(
                    {j: binned(mask, maps[0][j]) for j, mask in box.persons.items()},
                    box.attribute,
                    binned(box.events, maps[1][box.attribute]),
                )
                for box in self.boxes
            )
        )

    def told(self, target: Floats, weight: Floats, blocks: tuple[Sequence[slice], Sequence[slice]]) -> None:
        """Write what is known to be zero of the table of persons and events into what a fit aims at, in place."""
        for box in self.boxes:
            if len(box.persons) != 1:
                continue  # of two attributes of a person and one of an event there is no table
            [(j, mask)] = box.persons.items()
            rows, columns = blocks[0][j], blocks[1][box.attribute]
            known = np.outer(mask, box.events)
            target[rows, columns][known] = 0.0
            weight[rows, columns][known] *= SURE


NOTHING_BARRED = Across()
