"""Sequences drawn from centres of persons and events: persons, how many events each has, and the events one after the other.

Draws are stratified: of the k rows that follow one law, the j-th in random order draws between (j − 1)/k and j/k of it, so that
counts are near their expectation wherever many rows share a law. Persons of a centre then exchange attributes until tables of two
of them, the number of events among them, are near their law. Post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import special

from covey.engine.arrays import Array, Floats, Integers, counted
from covey.engine.codes.domain import Domain
from covey.engine.codes.events import Histories, Timing, count_bins, position_starts
from covey.engine.codes.zeros import NOTHING_BARRED, Across
from covey.engine.draw.balanced import Kept, sample_by_centre
from covey.engine.fit.events import EventModel, Tie
from covey.engine.points import WeightedPoints

NOT_TIMED = Timing()  # no attribute says when an event was
EXCHANGES = 8  # proposed for each person: centres are small, and five bring tables as near to their law as eighty do
SWEEPS = 4  # over all events, before values are exchanged inside bins
LEAST = 1e-12  # of a law, for a value that has none: where all others are barred it is drawn


@dataclass(frozen=True)
class SequenceLaw:
    """All that sequences are drawn from. Public."""

    models: Sequence[EventModel]  # fits that rows are drawn from in equal parts, over the categories of the two domains
    persons: Domain  # attributes of a person; the number of events, in bins, is the last
    events: Domain  # attributes of an event
    counts: Floats  # shares of persons with 0, 1, … events
    barred: Across = NOTHING_BARRED  # what no event of some persons can be
    timing: Timing = NOT_TIMED  # which attributes of events say when
    # By class of places and attribute: factors of its categories there.
    tilts: Mapping[tuple[int, int], Floats] = field(default_factory=dict)
    ties: Mapping[int, Tie] = field(default_factory=dict)  # of attributes of events, to the events before

    def draw(self, n: int, public: np.random.Generator, mended: Callable[[int], None] = lambda _: None) -> Histories:
        """n persons and their events, as codes; `mended` is told how many events were drawn anew, for their person's sake."""
        sizes = np.full(len(self.models), n // len(self.models))
        sizes[public.permutation(len(sizes))[: n % len(sizes)]] += 1
        shares = [(own, int(size)) for own, size in zip(self.models, sizes, strict=True) if size]
        parts = [self._draw(own, size, public, mended) for own, size in shares]
        if not any(len(part.owner) for part in parts):
            parts[0] = self._draw(*shares[0], public, mended, some=True)
        first = np.cumsum([0, *(part.n for part in parts[:-1])])
        owner = np.concatenate([part.owner + start for part, start in zip(parts, first, strict=True)])
        persons, events = (np.concatenate([getattr(part, name) for part in parts]) for name in ("persons", "events"))
        return shuffled(Histories(persons, events, owner, len(self.counts) - 1), public)

    def _draw(
        self, own: EventModel, n: int, public: np.random.Generator, mended: Callable[[int], None], some: bool = False
    ) -> Histories:
        """n persons of one model; with `some` at least one of them has an event, for a table needs a row."""
        cloud = WeightedPoints(np.full(len(own.persons), 1 / len(own.persons)), own.persons)
        drawn, centre = sample_by_centre(cloud, self.persons, n, public, Kept(inside=True, proposals=EXCHANGES))
        many = self._how_many(drawn[:, -1].astype(np.int64), public)
        if some and not many.any():
            many[public.integers(n)] = 1
        who = np.flatnonzero(many > 0)
        meets = self.barred.meets(drawn[:, :-1]) if self.barred else None
        blocks = [own.events[:, self.events.block(a)] for a in range(len(self.events.sizes))]
        kind = _pick(own.first, centre[who], public)
        tied = {a: tie for a, tie in self.ties.items() if tie.again}
        levels, bases = dict[int, Floats](), {a: public.random(len(who)) for a in tied}
        events, owner, turn, sorts = [], [], [], []
        for t in range(len(self.counts) - 1):
            if not len(who):
                break
            for a, tie in tied.items():
                levels[a] = np.where(public.random(len(who)) < tie.again, bases[a], public.random(len(who)))
                bases[a] = bases[a] if tie.lasting else levels[a]
            laws = enumerate(self._at(blocks, t))
            picked = np.stack([_pick(law, kind, public, levels.get(a)) for a, law in laws], axis=1)
            if meets is not None:
                for a, rows, barred in self.barred.breaking(meets[who], picked):
                    picked[rows, a] = _pick((blocks[a] + LEAST) * ~barred, kind[rows], public)
                    mended(len(rows))
            events.append(picked)
            owner.append(who)
            turn.append(np.full(len(who), t))
            sorts.append(kind)
            on = many[who] > t + 1
            who, kind = who[on], kind[on]
            bases = {a: base[on] for a, base in bases.items()}
            chained = public.random(len(who)) < own.sticky
            fresh = _pick(own.kinds, centre[who], public)
            kind = np.where(chained, _pick(own.chain, kind, public), fresh)
        if not events:
            empty = np.zeros((0, len(self.events.sizes)), dtype=np.int64)
            return Histories(drawn[:, :-1], empty, np.zeros(0, dtype=np.int64), len(self.counts) - 1)
        whose, when = np.concatenate(owner), np.concatenate(turn)
        order = np.lexsort((when, whose))
        found = Histories(drawn[:, :-1], np.concatenate(events)[order], whose[order], len(self.counts) - 1)
        sort = np.concatenate(sorts)[order] * len(self.counts) + (when[order] if self.tilts else 0)
        for a, tie in self.ties.items():
            if tie.rho:
                found.events[:, a] = in_line(found, found.events[:, a], tie, sort, public)
        return found

    def _at(self, blocks: list[Floats], t: int) -> list[Floats]:
        """The laws of an event at place t: the place is known, and tilts the others; first events alone follow none."""
        found = list(blocks)
        if self.timing.position is not None:
            place = int(np.searchsorted(position_starts(len(self.counts) - 1), t, side="right")) - 1
            for a, block in enumerate(blocks):
                if (place, a) in self.tilts:
                    found[a] = (block + LEAST) * self.tilts[place, a]
            found[self.timing.position] = np.zeros_like(blocks[self.timing.position])
            found[self.timing.position][:, place] = 1.0
        if self.timing.gap is not None:
            own = found[self.timing.gap] + LEAST
            first = np.arange(own.shape[1]) == 0
            found[self.timing.gap] = own * (first if t == 0 else ~first)
        return found

    def _how_many(self, bins: Integers, public: np.random.Generator) -> Integers:
        """Numbers of events inside their bins."""
        starts = count_bins(len(self.counts) - 1)
        if not self.counts[0] > 0:  # everybody has events: centres are fitted, and may have left some persons without
            none = np.flatnonzero(bins == 0)
            bins[none] = _pick(np.add.reduceat(self.counts, starts)[None], np.zeros_like(none), public)
        stops = np.append(starts[1:], len(self.counts))
        law = np.zeros((len(starts), int((stops - starts).max())))
        for j, (a, b) in enumerate(zip(starts, stops, strict=True)):
            law[j, : b - a] = self.counts[a:b] + 1e-12
        return np.asarray(starts[bins] + _pick(law, bins, public))


def in_line(linked: Histories, codes: Integers, tie: Tie, sort: Integers, public: np.random.Generator) -> Integers:
    """Codes of an attribute, exchanged among events of one bin and one sort so that they follow each other inside bins too.

    Normal numbers with the tie's correlation from each event to the next, given the bins that they lie in, say who gets which
    (Gibbs: every other event in turn). Tables over bins stay as they are, and so does the law of an event of each sort.
    """
    bins = tie.bins[codes]
    sizes = np.bincount(bins, minlength=int(tie.bins.max()) + 1)
    sizes[: tie.free] = 0
    above = np.cumsum(sizes) / max(int(sizes.sum()), 1)
    inside = np.stack([np.append(0.0, above[:-1]), above])[:, bins]
    low, high = special.ndtri(np.where(bins < tie.free, [[0.0], [1.0]], inside))
    before, after = linked.places > 0, np.append(linked.places[1:] > 0, False)
    within = before & after
    precision = np.where(before | after, 1 + within * tie.rho**2, 1 - tie.rho**2) / (1 - tie.rho**2)
    slope, spread = tie.rho / (1 + within * tie.rho**2), 1 / np.sqrt(precision)
    z = np.append(special.ndtri(np.clip(inside.mean(axis=0), 1e-6, 1 - 1e-6)), 0.0)
    for rows in [np.flatnonzero(linked.places % 2 == k) for k in (0, 1)] * SWEEPS:
        mean = slope[rows] * (before[rows] * z[rows - 1] + after[rows] * z[rows + 1])
        first, last = (special.ndtr((end[rows] - mean) / spread[rows]) for end in (low, high))
        level = first + public.random(len(rows)) * (last - first)
        z[rows] = mean + spread[rows] * special.ndtri(np.clip(level, 1e-9, 1 - 1e-9))
    found, same = np.empty_like(codes), sort * len(sizes) + bins
    found[np.lexsort((z[:-1], same))] = codes[np.lexsort((codes, same))]
    return found


def laid_in_order(linked: Histories, timing: Timing, last: int) -> Histories:
    """Drawn codes with the order column rising within each person, up to a last code.

    With times between events these are laid one after the other from the first event's time; a history that would end too late
    begins earlier, and one that is too long for the whole range is shortened in proportion. Otherwise values are sorted.
    """
    if timing.order is None or not len(linked.owner):
        return linked
    events = linked.events.astype(np.int64)
    own = events[:, timing.order]
    if timing.gap is None:
        events[:, timing.order] = own[np.lexsort((own, linked.owner))]
        return replace(linked, events=events)
    gaps = np.maximum(events[:, timing.gap] - 1, 0)
    start = np.flatnonzero(linked.places == 0)
    whose = np.repeat(np.arange(len(start)), np.diff(np.append(start, len(own))))
    since = np.cumsum(gaps) - np.cumsum(gaps)[start][whose]
    whole = np.maximum.reduceat(since, start)
    shrink = np.minimum(1.0, last / np.maximum(whole, 1))
    since = np.floor(since * shrink[whose]).astype(np.int64)
    first = np.minimum(own[start], last - np.maximum.reduceat(since, start))
    events[:, timing.order] = first[whose] + since
    after = np.diff(events[:, timing.order], prepend=0)
    events[:, timing.gap] = np.where(linked.places > 0, after + 1, 0)
    return replace(linked, events=events)


def shuffled(linked: Histories, public: np.random.Generator) -> Histories:
    """The persons in random order, their events with them."""
    place = public.permutation(linked.n)  # where each person goes
    persons = np.empty_like(linked.persons)
    persons[place] = linked.persons
    owner = place[linked.owner]
    order = np.argsort(owner, kind="stable")
    return Histories(persons, linked.events[order], owner[order], linked.most)


def _pick(laws: Floats, which: Array, public: np.random.Generator, levels: Floats | None = None) -> Integers:
    """A code for each row, from the law (a row of `laws`) that it names: at its level, or stratified among the rows of a law."""
    if not len(which):
        return np.zeros(0, dtype=np.int64)
    order = np.lexsort((public.random(len(which)), which))
    own = which[order].astype(np.int64)
    u = (counted(np.bincount(own)) + public.random(len(own))) / np.bincount(own)[own]
    u = u if levels is None else levels[order]
    size = laws.shape[1]
    below = np.cumsum(laws, axis=1)
    below = below / below[:, -1:]
    below[:, -1] = 1.0
    # One sorted list for all laws: law g lies between g and g + 1.
    flat = (below + np.arange(len(laws))[:, None]).ravel()
    found = np.searchsorted(flat, own + np.minimum(u, 1 - 1e-9), side="right") - own * size
    out = np.empty(len(which), dtype=np.int64)
    out[order] = np.clip(found, 0, size - 1)
    return out
