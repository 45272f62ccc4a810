"""Rows from centres with less chance than coin flips: balanced rounding, and swaps toward the centres' own pairs.

Given how many rows a centre gets, each row is still a product of independent draws (Lemma 4.7 holds), but the copies of a
centre share out its expected counts, so sampling error shrinks. All of it sees public centres only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from covey.engine.arrays import Array, Floats, Integers, strips
from covey.engine.codes.counts import moments
from covey.engine.codes.domain import Domain, pair_matrix
from covey.engine.codes.zeros import Zeros
from covey.engine.fit.centres import Triple, Triples, table_of
from covey.engine.points import WeightedPoints, round_bits

# Beyond these sizes chance is small and swaps are dear: bits are rounded independently, categories are not refined.
BALANCED_ROWS = 250_000
REFINE_ROWS = 1_000_000
REFINE_CATEGORIES = 4000
RARE = 0.01  # of the rows: below it, which of the rarest categories are drawn moves no share that anybody sees
DENSE = 4  # cells for each place that is looked at: up to so many, whole tables are computed faster than places
# A sweep over all columns costs their square: ten up to so many columns, fewer beyond, one at least.
REFINE_COLUMNS = 1000
PROPOSALS = 80  # exchanges proposed for each row of categories, as far as LOOKUPS allows
LOOKUPS = 60_000_000  # entries of the error table that all proposals together may read: a bound on the time
HEAT = 0.2  # temperature of the first exchanges, in units of the weighted error


@dataclass(frozen=True)
class Shares:
    """How many rows each centre gets, centres in random order: systematic, so off by less than one row."""

    order: Integers
    size: Integers

    @cached_property
    def first(self) -> Integers:
        """First row of each centre."""
        return np.cumsum(self.size) - self.size

    @cached_property
    def centre(self) -> Integers:
        """The centre of each row, by its place in `order`."""
        return np.repeat(np.arange(len(self.size)), self.size)

    def partners(self, rows: Integers, public: np.random.Generator) -> Integers:
        """For each of these rows a random row of the same centre."""
        centre = self.centre[rows]
        return np.asarray(self.first[centre] + (public.random(len(rows)) * self.size[centre]).astype(np.int64))


def disjoint(a: Integers, b: Integers) -> tuple[Integers, Integers]:
    """The pairs both of whose members occur nowhere else."""
    _, where, count = np.unique(np.concatenate([a, b]), return_inverse=True, return_counts=True)
    alone = (count[where] == 1).reshape(2, -1).all(axis=0)
    return a[alone], b[alone]


def share_out(weights: Floats, m: int, public: np.random.Generator) -> Shares:
    """Systematic shares of m rows after a random permutation (in a fixed order a systematic choice can be terrible)."""
    order = public.permutation(len(weights))
    cuts = np.floor(np.r_[0.0, np.cumsum(weights[order]) / weights.sum() * m] + public.random()).astype(np.int64)
    cuts[0], cuts[-1] = 0, m
    return Shares(order, np.diff(np.minimum(cuts, m)))


def sample_bits(cloud: WeightedPoints, m: int, public: np.random.Generator) -> Array:
    """m rows of bits, in random order.

    Column i puts ⌊A_j + U_i⌋ − ⌊A_{j−1} + U_i⌋ ones among the rows of centre j, A the running sum of size·y: every
    centre gets its expected count and every column its total up to rounding; inside a centre places are random.
    """
    shares = share_out(cloud.weights, m, public)
    if m > BALANCED_ROWS:
        return round_bits(cloud.points, public.permutation(np.repeat(shares.order, shares.size)), public)
    y = cloud.points[shares.order]
    p = y.shape[1]
    running = np.vstack([np.zeros(p), np.cumsum(shares.size[:, None] * y, axis=0)])
    ones = np.diff(np.floor(running + public.random(p)).astype(np.int64), axis=0)
    group = shares.centre
    place = np.arange(m) - shares.first[group]
    rows = np.empty((m, p), dtype=np.uint8)
    for i in range(p):
        order = np.argsort(group + public.random(m))
        rows[order, i] = place < ones[group, i]
    if p > 1:
        refine_bits(rows, shares, cloud, public)
    return rows[public.permutation(m)]


def refine_bits(
    rows: Array, shares: Shares, cloud: WeightedPoints, public: np.random.Generator, sweeps: int = 10
) -> None:
    """Swap one column's values between two rows of one centre, in place, toward the pairs E x_i x_j of the cloud.

    Column totals and the number of rows per centre stay. For each column: draw disjoint candidate swaps, order them by the
    change of the squared error, and carry out the best prefix.
    """
    n, p = rows.shape
    second, weighted = moments(rows).second, n * cloud.points * cloud.weights[:, None]
    error = np.empty((p, p), dtype=np.float32)
    for begin, end in strips(p):
        error[begin:end] = second[begin:end] - weighted[:, begin:end].T @ cloud.points
    del second
    np.fill_diagonal(error, 0)
    tries = min(400, n)
    for _ in range(max(1, round(sweeps * min(1.0, (REFINE_COLUMNS / p) ** 2)))):
        for i in public.permutation(p):
            a = public.integers(0, n, tries)
            b = shares.partners(a, public)
            differ = rows[a, i] != rows[b, i]
            a, b = disjoint(a[differ], b[differ])
            gives = rows[a, i] == 1
            a, b = np.where(gives, a, b), np.where(gives, b, a)  # a gives its one to b
            change = rows[b].astype(np.float32) - rows[a]
            change[:, i] = 0
            gain = change @ error[i] + (change**2).sum(axis=1) / 2
            order = np.argsort(gain)
            order = order[gain[order] < 0]
            if not len(order):
                continue
            path = np.cumsum(change[order], axis=0)
            value = 2 * (path @ error[i]) + (path**2).sum(axis=1)
            best = int(np.argmin(value))
            if value[best] < 0:
                chosen = order[: best + 1]
                rows[a[chosen], i], rows[b[chosen], i] = 0, 1
                error[i] += path[best]
                error[:, i] += path[best]


@dataclass(frozen=True)
class Kept:
    """What swaps between rows have to keep besides pair tables.

    `scores` gives every category of an ordered attribute a number, whose covariances are kept; `zeros` are combinations that no
    row may have; with `inside`, rows are exchanged inside one centre only; tables of `triples` are kept like those of
    pairs; so many exchanges are proposed for each row.
    """

    scores: Floats | None = None
    zeros: Zeros | None = None
    inside: bool = False
    triples: Triples | None = None
    proposals: int = PROPOSALS


def sample_categories(
    cloud: WeightedPoints, domain: Domain, m: int, public: np.random.Generator, kept: Kept | None = None
) -> Array:
    """m rows of category codes, in random order: balanced inside each centre, columns shuffled independently.

    A row of a centre never gets a category that the centre excludes, so that centres without structural zeros give rows without.
    """
    rows, _ = sample_by_centre(cloud, domain, m, public, kept or Kept())
    return rows[public.permutation(m)]


def sample_mixed(
    cloud: WeightedPoints, domain: Domain, numbers: Floats, m: int, public: np.random.Generator
) -> tuple[Array, Integers]:
    """m rows of category codes and the numbers of their centres, in whole steps, in one random order.

    A number is rounded up or down so that the sum over a centre's rows stays; categories move inside centres only.
    """
    rows, centre = sample_by_centre(cloud, domain, m, public, Kept(inside=True))
    values = numbers[centre]
    whole = np.floor(values)
    running = np.vstack([np.zeros(values.shape[1]), np.cumsum(values - whole, axis=0)])
    whole += np.diff(np.floor(running + public.random(values.shape[1])), axis=0)
    order = public.permutation(m)
    return rows[order], whole[order].astype(np.int64)


def sample_by_centre(
    cloud: WeightedPoints, domain: Domain, m: int, public: np.random.Generator, kept: Kept
) -> tuple[Array, Integers]:
    """m rows of category codes and their centres, those of a centre together before rows are exchanged."""
    shares = share_out(cloud.weights, m, public)
    y = cloud.points[shares.order]
    ends = np.cumsum(shares.size)
    rows = np.empty((int(ends[-1]), len(domain.sizes)), dtype=np.min_scalar_type(max(domain.sizes)), order="F")
    for a, c in enumerate(domain.sizes):
        counts = round_table(y[:, domain.block(a)] * shares.size[:, None], shares.size, public)
        column = rows[:, a]
        column[:] = np.repeat(np.tile(np.arange(c, dtype=rows.dtype), len(y)), counts.ravel())
        for start, stop in zip(ends - shares.size, ends, strict=True):
            public.shuffle(column[start:stop])
    if 2 <= m <= REFINE_ROWS and domain.total <= REFINE_CATEGORIES and sum(c > 1 for c in domain.sizes) > 1:
        rows = refine_categories(rows, cloud, domain, public, shares if kept.inside else None, kept)
    return rows, shares.order[shares.centre]


def round_table(expected: Floats, totals: Integers, public: np.random.Generator) -> Integers:
    """Integers near a table of expected counts, with exact row sums; what a row leaves over is carried to the next.

    Where nothing is expected nothing is put: what is carried waits for the next row that has room for it. Where many categories
    are expected less than once, chance decides which of them are drawn: the largest would always be, and their likes never.
    """
    out = np.zeros(expected.shape, dtype=np.int64)
    carried, once = np.zeros(expected.shape[1]), expected.sum(axis=0)
    rare = once < 1
    if once[rare].sum() > RARE * totals.sum():
        carried[rare] = public.random(int(rare.sum())) - 0.5
    for j in public.permutation(len(expected)):
        want = expected[j] + carried
        open_ = expected[j] > 0
        row = np.where(open_, np.maximum(np.floor(want), 0), 0)
        missing = int(totals[j] - row.sum())
        while missing > 0:  # once, unless few categories are open
            ranked = np.where(open_, row - want, np.inf)
            some = min(missing, int(open_.sum()))
            row[np.argpartition(ranked, some - 1)[:some]] += 1
            missing -= some
        while missing < 0:  # only where negative wants were raised to zero
            row[np.argmax(np.where(row > 0, row - want, -np.inf))] -= 1
            missing += 1
        out[j], carried = row, want - row
    return out


def refine_categories(
    rows: Array, cloud: WeightedPoints, domain: Domain, public: np.random.Generator, shares: Shares | None, kept: Kept
) -> Array:
    """Exchange one attribute between two rows wherever Σ E²/(M + ½) falls, M the centres' own pair tables.

    One-way tables do not change. Proposals come in blocks of disjoint pairs of rows, judged against the same errors E; a block
    is small enough that collisions do not matter. Through the first half a small increase is accepted too, with a temperature
    that falls to zero: pair tables leave third moments free, and mixing moves these from accidents of the fitted centres
    toward the most random table with these pairs. Covariances of the categories' scores count too where there are scores: cells
    of many categories are light, and pairs of them alone wash a strong correlation out. So do the tables of chosen triples. No
    exchange makes a structural zero.
    """
    zeros, (m, q) = kept.zeros, rows.shape
    s, size = domain.starts[:-1], domain.total
    target = domain.off_blocks(cloud.second_moment * m)
    counts = pair_matrix(rows, domain.sizes)
    error = domain.off_blocks(counts - target).astype(np.float32)
    weight = domain.off_blocks(1 / (target + 0.5)).astype(np.float32)
    codes = rows.astype(np.int64) + s
    ties: list[Ties | TripleTies] = [] if kept.scores is None else [Ties(kept.scores, cloud, domain, codes)]
    if kept.triples:
        ties.append(TripleTies(kept.triples, cloud, domain, codes))
    # Row after row, in few bytes: proposals read whole rows from all over the table, and column by column each cell is far away.
    codes = codes.astype(np.min_scalar_type(size), order="C")
    block = max(1, min(max(32, m // 60), m // 2))
    blocks = min(kept.proposals * m, LOOKUPS // q) // block
    for turn in range(blocks):
        a = int(public.integers(q))
        own = domain.block(a)
        picked = public.choice(m, 2 * block, replace=False)
        if shares is None:
            i, j = picked[:block], picked[block:]
        else:
            i, j = disjoint(picked[:block], shares.partners(picked[:block], public))
        differ = np.flatnonzero(codes[i, a] != codes[j, a])
        i, j = i.take(differ), j.take(differ)
        xi, xj = codes.take(i, axis=0).astype(np.int64), codes.take(j, axis=0).astype(np.int64)
        u, v = (xi[:, a] - s[a])[:, None] * size, (xj[:, a] - s[a])[:, None] * size
        ui, vi, vj, uj = u + xi, v + xi, v + xj, u + xj
        w, e = weight[own].ravel(), error[own].ravel()
        few = w.size <= DENSE * ui.size
        if few:
            down, up = w * (1 - 2 * e), w * (1 + 2 * e)
            change = down.take(ui) + up.take(vi) + down.take(vj) + up.take(uj)
        else:  # many categories: the same, at the few places that are looked at
            signed = ((ui, -2), (vi, 2), (vj, -2), (uj, 2))
            change = sum(w.take(places) * (1 + sign * e.take(places)) for places, sign in signed)
        change *= xi != xj
        cost = change.sum(axis=1)
        for tie in ties:
            cost = cost + tie.cost(a, xi, xj)
        good = cost < HEAT * max(0.0, 1 - 2 * turn / blocks) * public.exponential(size=len(i))
        if zeros:
            yi, yj = exchanged(a, xi[good], xj[good])
            good[good] = ~(zeros.forbids(a, yi) | zeros.forbids(a, yj))
        if not good.any():
            continue
        taken = np.flatnonzero(good)
        for tie in ties:
            if isinstance(tie, Ties):
                taken = taken[: tie.room(a, xi.take(taken, axis=0), xj.take(taken, axis=0))]
        i, j, xi, xj, ui, vi, vj, uj = (x.take(taken, axis=0) for x in (i, j, xi, xj, ui, vi, vj, uj))
        for tie in ties:
            tie.take(a, xi, xj)
        gone, came = np.concatenate([ui, vj]).ravel(), np.concatenate([vi, uj]).ravel()
        if few:
            length = size * domain.sizes[a]
            step = np.bincount(came, minlength=length) - np.bincount(gone, minlength=length)
            step = step.reshape(-1, size).astype(np.float32)
            step[:, own] = 0
            error[own] += step
            error[:, own] = error[own].T
        else:
            places, at = np.unique(np.concatenate([came, gone]), return_inverse=True)
            more, less = (np.bincount(own, minlength=len(places)) for own in np.split(at, [len(came)]))
            step = more - less
            r, c = places // size + s[a], places % size
            step[(c >= own.start) & (c < own.stop)] = 0
            error[r, c] += step.astype(np.float32)
            error[c, r] = error[r, c]
        codes[i, a], codes[j, a] = xj[:, a], xi[:, a]
    return np.asarray((codes - s).astype(rows.dtype, order="F"))


def exchanged(a: int, xi: Integers, xj: Integers) -> tuple[Integers, Integers]:
    """Rows i and j after they have exchanged attribute a."""
    yi, yj = xi.copy(), xj.copy()
    yi[:, a], yj[:, a] = xj[:, a], xi[:, a]
    return yi, yj


def keep_limits(rows: Array, limits: Sequence[tuple[list[int], int]], public: np.random.Generator) -> Array:
    """Make rows keep "at most L of these columns", in place: surplus ones move to rows with room, so column totals stay.

    A one that no row has room for is dropped.
    """
    for columns, most in limits:
        part = rows[:, columns].astype(np.int64)
        count = part.sum(axis=1)
        for row in np.flatnonzero(count > most):
            for i in public.permutation(np.flatnonzero(part[row]))[most:]:
                part[row, i] = 0
                count[row] -= 1
                room = np.flatnonzero((count < most) & (part[:, i] == 0))
                if len(room):
                    other = public.choice(room)
                    part[other, i] = 1
                    count[other] += 1
        rows[:, columns] = part
    return rows


# What swaps between rows keep besides pair tables: covariances of scores, and tables of chosen triples.

TIE = 100.0  # weight of a covariance of scores beside that of a cell, when rows are swapped
# Weight of a cell of a triple beside that of a pair: triples are few, and pairs pull at them from all sides.
THREE = 4.0


class Ties:
    """How far rows are from the centres' covariances of scores; a swap of one attribute changes its covariances with all others.

    Scores are scaled to unit variance, so that a covariance of m independent rows has variance m: its square counts
    TIE/m, as that of a cell counts by 1/M.
    """

    def __init__(self, scores: Floats, cloud: WeightedPoints, domain: Domain, codes: Integers) -> None:
        q, m = len(domain.sizes), len(codes)
        p = cloud.weights @ cloud.points
        spread = np.sqrt(np.add.reduceat(p * scores**2, domain.starts[:-1]))
        self.scores = (scores / np.maximum(spread, 1e-12)[domain.block_of]).astype(np.float32)
        each = np.add.reduceat(cloud.points * self.scores, domain.starts[:-1], axis=1)
        own = np.zeros((q, q))
        for begin in range(0, m, 1 << 16):
            part = self.scores[codes[begin : begin + (1 << 16)]].astype(np.float64)
            own += part.T @ part
        self.error = (own - m * (each * cloud.weights[:, None]).T @ each).astype(np.float32)
        self.weight = np.float32(TIE / m)

    def _change(self, a: int, xi: Integers, xj: Integers) -> Array:
        si, sj = self.scores[xi], self.scores[xj]
        change = (sj[:, a] - si[:, a])[:, None] * (si - sj)
        change[:, a] = 0
        return np.asarray(change)

    def cost(self, a: int, xi: Integers, xj: Integers) -> Array:
        """What exchanging attribute a between rows i and j costs."""
        change = self._change(a, xi, xj)
        return np.asarray(self.weight * (2 * change @ self.error[a] + (change**2).sum(axis=1)))

    def room(self, a: int, xi: Integers, xj: Integers) -> int:
        """How many of these exchanges, each good by itself, are good together: more would overshoot the covariances."""
        step = self._change(a, xi, xj).sum(axis=0)
        part = -float(step @ self.error[a]) / max(float(step @ step), 1e-12)
        return int(np.ceil(len(xi) * min(1.0, part))) if part > 0 else len(xi)

    def take(self, a: int, xi: Integers, xj: Integers) -> None:
        """Account for exchanges that are made."""
        self.error[a] += self._change(a, xi, xj).sum(axis=0)
        self.error[:, a] = self.error[a]


class TripleTies:
    """How far rows are from the centres' tables of chosen triples; a swap moves two rows in each that names its attribute."""

    def __init__(self, triples: Triples, cloud: WeightedPoints, domain: Domain, codes: Integers) -> None:
        m = len(codes)
        self.triples = triples
        self.level = np.concatenate([triples.levels.get(a, np.zeros(c, int)) for a, c in enumerate(domain.sizes)])
        shares = triples.shares(cloud.points, domain)
        self.error: dict[Triple, Array] = {}
        self.weight: dict[Triple, Array] = {}
        for triple in triples.names:
            goal = m * table_of(cloud.weights, shares, triple).ravel()
            there = np.bincount(self._cells(triple, codes), minlength=len(goal))
            self.error[triple] = (there - goal).astype(np.float32)
            self.weight[triple] = (THREE / (goal + 0.5)).astype(np.float32)

    def _cells(self, triple: Triple, codes: Integers) -> Integers:
        """The cells of rows, given by their coordinates in the domain."""
        return np.ravel_multi_index([self.level[codes[:, x]] for x in triple], self.triples.sizes(triple))

    def _moves(self, a: int, xi: Integers, xj: Integers) -> list[tuple[Triple, tuple[Integers, ...]]]:
        """By triple that names attribute a: the cells of rows i and j before an exchange, and after it."""
        own = [triple for triple in self.triples.names if a in triple]
        rows = (xi, xj, *exchanged(a, xi, xj)) if own else ()
        return [(triple, tuple(self._cells(triple, x) for x in rows)) for triple in own]

    def cost(self, a: int, xi: Integers, xj: Integers) -> Array:
        """What exchanging attribute a between rows i and j costs."""
        total = np.zeros(len(xi), dtype=np.float32)
        for triple, (i, j, to_i, to_j) in self._moves(a, xi, xj):
            weight, error = self.weight[triple], self.error[triple]
            down, up = weight * (1 - 2 * error), weight * (1 + 2 * error)
            change = down[i] + down[j] + up[to_i] + up[to_j]
            same = ((i == to_i) & (j == to_j)) | ((i == to_j) & (j == to_i))  # nothing moves
            total += np.where(same, 0, change)
        return total

    def take(self, a: int, xi: Integers, xj: Integers) -> None:
        """Account for exchanges that are made."""
        for triple, (i, j, to_i, to_j) in self._moves(a, xi, xj):
            length = len(self.error[triple])
            came = np.bincount(np.concatenate([to_i, to_j]), minlength=length)
            gone = np.bincount(np.concatenate([i, j]), minlength=length)
            self.error[triple] += (came - gone).astype(np.float32)
