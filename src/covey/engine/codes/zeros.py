"""Structural zeros: combinations of categories that no row of a table can have, known in public.

A box names two or more attributes (or one) and, for each, some of its categories; a row lies in the box if it has one of these
categories in every attribute that the box names. A product of categorical laws never meets a box if it gives up one whole side
of it, so centres that give up a side of every box need no repair afterwards: every row drawn from them is possible.

Across persons and their events (`Across`) a box names some cells of attributes of a person and of one attribute of an event;
nobody who lies in the first has an event in the second. What is barred of that attribute is a set that follows from the
person alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import NDArray

from covey.engine.arrays import Array, Floats, Integers
from covey.engine.codes.domain import Domain

Mask = NDArray[np.bool_]
Range = tuple[int, int]
Box = dict[int, tuple[Range, ...]]  # ranges [first, last + 1) of codes for each attribute that the box names
# A side that holds more than this of an attribute's law is given up only where no other side of the box can be.
NEARLY_ALL = 1 - 1e-6
TRACE = 1e-30  # stands for a probability that rounds to zero: far below any that counts, and products of a few stay above zero


@dataclass(frozen=True)
class Boxes:
    """Boxes over the codes of a table, before codes are gathered into cells and bins."""

    boxes: tuple[Box, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.boxes)

    def cuts(self, attribute: int) -> list[int]:
        """The codes at which some box begins or ends: cells and bins must not lie across these."""
        sides = [box[attribute] for box in self.boxes if attribute in box]
        return sorted({end for side in sides for both in side for end in both})

    def signature(self, attribute: int, size: int) -> Integers:
        """The class of every code: codes of one class lie in the same boxes."""
        sides = [box[attribute] for box in self.boxes if attribute in box]
        inside = [np.zeros(size, dtype=bool), *(held_in(np.arange(size), side) for side in sides)]
        return np.unique(np.array(inside), axis=1, return_inverse=True)[1].ravel()

    def on(self, domain: Domain, codes: Sequence[Integers]) -> Zeros:
        """The boxes over categories, each given by one of its codes; no category may lie across a cut."""
        masks = []
        for box in self.boxes:
            mask = np.ones(domain.total, dtype=bool)
            for attribute, side in box.items():
                mask[domain.block(attribute)] = held_in(codes[attribute], side)
            masks.append((tuple(box), mask))
        return Zeros(domain, tuple(masks))


NO_BOXES = Boxes()  # everything can occur


def held_in(codes: Integers, side: Sequence[Range]) -> Mask:
    """Which codes lie in a side of a box."""
    held = np.zeros(len(codes), dtype=bool)
    for first, stop in side:
        held |= (codes >= first) & (codes < stop)
    return held


@dataclass(frozen=True)
class Zeros:
    """Boxes over the categories of a domain: the attributes that a box names, and which categories it holds of each."""

    domain: Domain
    boxes: tuple[tuple[tuple[int, ...], Mask], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.boxes)

    def gathered(self, maps: Sequence[Integers], merged: Domain) -> Self:
        """The same over bins of categories; no bin holds categories that a box tells apart."""
        places = zip(maps, self.domain.starts, strict=False)
        first = np.concatenate([np.unique(to, return_index=True)[1] + start for to, start in places])
        return replace(self, domain=merged, boxes=tuple((names, mask[first]) for names, mask in self.boxes))

    @cached_property
    def pairs(self) -> Mask:
        """Which two categories never occur together, by boxes of two attributes; and of one, with anything."""
        found = np.zeros((self.domain.total,) * 2, dtype=bool)
        for names, mask in self.boxes:
            blocks = [self.domain.block(a) for a in names]
            if len(names) == 1:
                found[blocks[0]] |= mask[blocks[0], None]
                found[:, blocks[0]] |= mask[blocks[0]]
            elif len(names) == 2:
                one, other = blocks
                found[one, other] |= np.outer(mask[one], mask[other])
                found[other, one] |= np.outer(mask[other], mask[one])
        return found

    def broken(self, codes: Array) -> Mask:
        """Which rows of category codes lie in a box."""
        bad = np.zeros(len(codes), dtype=bool)
        for names, mask in self.boxes:
            inside = [mask[self.domain.starts[a] + codes[:, a].astype(np.int64)] for a in names]
            bad |= np.logical_and.reduce(inside)
        return bad

    def forbids(self, a: int, coordinates: Integers) -> Mask:
        """Which rows, given by their coordinates in the domain, lie in a box that names attribute a."""
        bad = self.pairs[coordinates[:, a, None], coordinates].any(axis=1)
        for names, mask in self.boxes:
            if len(names) > 2 and a in names:
                bad |= mask[coordinates[:, list(names)]].all(axis=1)
        return np.asarray(bad)

    def allowed(self, y: Floats) -> Mask | None:
        """What each centre, a product of categorical laws, may keep, so that it meets no box.

        Of the box that it meets most a centre gives up the side that it has least of, until it meets none. A centre that runs
        out of categories joins another one's part of the table; None if all do.
        """
        d = self.domain
        y, keep = np.array(y, dtype=np.float64), np.ones(y.shape, dtype=bool)
        stuck = np.zeros(len(y), dtype=bool)
        sides = np.array([mask & (d.block_of == a) for names, mask in self.boxes for a in names], dtype=np.float64)
        box_of = np.repeat(np.arange(len(self.boxes)), [len(names) for names, _ in self.boxes])
        starts = np.flatnonzero(np.diff(box_of, prepend=-1))
        open_ = np.arange(len(y))
        while len(open_):
            # How much of each side a centre has; a trace at least where it keeps any category of it.
            held = y[open_] @ sides.T + np.where(keep[open_] @ sides.T > 0, TRACE, 0.0)
            alive = np.logical_and.reduceat(held > 0, starts, axis=1)
            met = np.where(alive, np.multiply.reduceat(held, starts, axis=1) + TRACE, 0.0)
            worst = met.argmax(axis=1)
            going = met[np.arange(len(open_)), worst] > 0
            open_, held, worst = open_[going], held[going], worst[going]
            if not len(open_):
                break
            mine = np.where(box_of == worst[:, None], held, np.inf)
            side = np.argmin(np.where(mine > NEARLY_ALL, mine + 1, mine), axis=1)
            gone = sides[side] > 0
            stuck[open_] |= mine[np.arange(len(open_)), side] > NEARLY_ALL
            keep[open_] &= ~gone
            y[open_] = np.where(gone, 0.0, y[open_])
            total = np.add.reduceat(y[open_], d.starts[:-1], axis=1)[:, d.block_of]
            y[open_] /= np.maximum(total, 1e-300)
            open_ = open_[~stuck[open_]]
        if stuck.all():
            return None
        keep[stuck] = keep[np.resize(np.flatnonzero(~stuck), int(stuck.sum()))]
        return keep


MOST_KINDS = 10_000  # of persons that rules tell apart: looked at one by one before anything is charged
SURE = 100.0  # times the precision of a noisy entry: what is known to be zero counts as measured ten times as sharply


@dataclass(frozen=True)
class Across(Zeros):
    """Boxes over attributes of persons, the `first` ones of the domain, and each over one attribute of their events."""

    first: int = 0

    @classmethod
    def of(cls, boxes: Boxes, first: int, codes: Sequence[Integers]) -> Across:
        """Boxes over the attributes of both tables; a cell is given by one of its codes."""
        domain = Domain(tuple(map(len, codes)), (False,) * len(codes))
        return cls(domain, boxes.on(domain, codes).boxes, first)

    def meets(self, persons: Array) -> Mask:
        """Which persons lie in the persons' side of which box."""
        found = np.ones((len(persons), len(self.boxes)), dtype=bool)
        for k, (names, mask) in enumerate(self.boxes):
            for j in names:
                found[:, k] &= mask[self.domain.starts[j] + persons[:, j]] if j < self.first else True
        return found

    def breaking(self, meets: Mask, events: Integers) -> Iterator[tuple[int, Integers, Mask]]:
        """Events of persons with these sides that are barred: an attribute, which rows, and all that is barred for them."""
        for a in sorted({max(names) for names, _ in self.boxes}):
            own = [k for k, (names, _) in enumerate(self.boxes) if a in names]
            sides = np.array([self.boxes[k][1][self.domain.block(a)] for k in own])
            kinds, kind = np.unique(meets[:, own], axis=0, return_inverse=True)
            for i, pattern in enumerate(kinds):
                barred = sides[pattern].any(axis=0)
                rows = np.flatnonzero((kind.ravel() == i) & barred[events[:, a - self.first]])
                if len(rows):
                    yield a - self.first, rows, barred

    @property
    def impossible(self) -> bool:
        """Whether some kind of person can have no event at all, because everything is barred for them."""
        block = self.domain.block
        named = sorted({j for names, _ in self.boxes for j in names if j < self.first})
        kinds = []
        for j in named:
            masks = np.array([mask[block(j)] for names, mask in self.boxes if j in names])
            kinds.append(np.unique(masks, axis=1, return_index=True)[1])
        if np.prod([len(own) for own in kinds], dtype=np.float64) > MOST_KINDS:
            return True
        for cells in product(*kinds):
            at = {j: self.domain.starts[j] + cell for j, cell in zip(named, cells, strict=True)}
            met = [box for box in self.boxes if all(box[1][at[j]] for j in box[0] if j < self.first)]
            for a in {max(names) for names, _ in met}:
                if np.any([mask[block(a)] for names, mask in met if a in names], axis=0).all():
                    return True
        return False

    def told(self, target: Floats, weight: Floats) -> None:
        """Write what is known to be zero of the table of persons and events into what a fit aims at, in place."""
        start = self.domain.starts[self.first]
        for names, mask in self.boxes:
            if len(names) != 2:
                continue  # of two attributes of a person and one of an event there is no table
            rows, own = map(self.domain.block, sorted(names))
            columns = slice(own.start - start, own.stop - start)
            known = np.outer(mask[rows], mask[own])
            target[rows, columns][known] = 0.0
            weight[rows, columns][known] *= SURE


NOTHING_BARRED = Across(Domain((), ()))
