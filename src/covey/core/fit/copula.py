"""Pair tables of ordered attributes as two normal variables cut at quantiles: one correlation in place of a whole table.

Two numbers that rise together fill a band around a diagonal. Cell by cell, such a band drowns in noise as soon as bins are fine;
as a law with one parameter (Pearson 1900; polychoric correlation) it is found from all cells at once. What it does not explain is
denoised as before. Post-processing: shares and tables come out of the gate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from covey.core.arrays import Floats, Integers
from covey.core.tables.domain import Domain
from covey.core.tables.merging import by_run, merge_ordered

ANGLES = 32  # correlations tried on each side of 0, as sines of angles that gather at a right angle: up to .99998
GATHER = 1.6  # how strongly they gather: steps of 2% in the width of the band
TOLL = 1.0  # in variances of the noise: what a correlation must explain beyond what its own fit to noise would
STEPS = np.arange(ANGLES + 1) / (ANGLES + 1)
STRONG = 0.8  # a correlation whose band is narrower than a bin, so that bins hide it
FINE = 40  # bins of a tied attribute; with 24 more of a narrow band was lost
MOST = 400  # bins of all attributes, up to which tied attributes get finer ones
ROOM = 1 << 25  # entries of all tables that are tried together; beyond, nothing is tried


@dataclass(frozen=True)
class Margin:
    """The categories of one attribute that have an order: places, their total share, and normal quantiles between them."""

    attribute: int
    places: Integers
    total: float
    cuts: Floats


class NormalTables:
    """For every two attributes with an order, covariance tables of normal laws at many correlations.

    Args:
        shares: one-way shares of all categories.
        domain: the attributes; besides ordered ones, those with two categories take part.
        specials: how many of an attribute's first categories have no place in its order.
    """

    def __init__(self, shares: Floats, domain: Domain, specials: Integers) -> None:
        margins = {}
        for a, size in enumerate(domain.sizes):
            own = np.arange(domain.starts[a] + specials[a], domain.starts[a] + size)
            if len(own) > 1 and (domain.ordered[a] or size == 2):
                p = np.maximum(shares[own], 1e-9)
                below = np.cumsum(p)[:-1] / p.sum()
                margins[a] = Margin(a, own, float(p.sum()), ndtri(np.clip(below, 1e-9, 1 - 1e-9)))
        pairs = [(x, y) for a, x in margins.items() for b, y in margins.items() if a < b]
        entries = 2 * ANGLES * sum(len(x.places) * len(y.places) for x, y in pairs)
        self.pairs = pairs if entries <= ROOM else []
        self.tables = [covariance_tables(x, y) for x, y in self.pairs]

    def best(self, target: Floats, sd: float) -> list[int | None]:
        """The correlation of each pair, by its place among those tried: least squares, none unless it pays the toll."""
        found: list[int | None] = []
        for (x, y), tables in zip(self.pairs, self.tables, strict=True):
            flat = tables.reshape(len(tables), -1)
            gain = flat @ target[np.ix_(x.places, y.places)].ravel() - np.einsum("tc,tc->t", flat, flat) / 2
            place = int(np.argmax(gain))
            found.append(place if gain[place] > TOLL * sd**2 else None)
        return found

    def explained(self, target: Floats, sd: float) -> Floats:
        """The covariances that the best correlation of each pair gives."""
        return self.at(self.best(target, sd), len(target))

    def at(self, best: list[int | None], size: int) -> Floats:
        """Covariances of all pairs at given correlations."""
        out = np.zeros((size, size))
        for (x, y), tables, place in zip(self.pairs, self.tables, best, strict=True):
            if place is not None:
                out[np.ix_(x.places, y.places)] = tables[place]
                out[np.ix_(y.places, x.places)] = tables[place].T
        return out

    def tied(self, best: list[int | None]) -> list[int]:
        """The attributes that some other one is tied to more strongly than STRONG."""
        strong = np.tile(np.sin(np.pi / 2 * (1 - (1 - STEPS[1:]) ** GATHER)) > STRONG, 2)
        pairs = [pair for pair, place in zip(self.pairs, best, strict=True) if place is not None and strong[place]]
        return sorted({margin.attribute for pair in pairs for margin in pair})


def covariance_tables(x: Margin, y: Margin) -> Floats:
    """Cells of a bivariate normal law minus their product of margins, for falling then rising negative and positive angles.

    ∂Φ₂(h, k; sin θ)/∂θ = exp(−(h² − 2hk·sin θ + k²)/(2cos²θ))/2π (Plackett 1954), summed by Simpson's rule from θ = 0.
    """
    h, k = x.cuts[None, :, None], y.cuts[None, None, :]

    def slope(angle: Floats) -> Floats:
        t = angle[:, None, None]
        return np.asarray(np.exp(-(h**2 - 2 * h * k * np.sin(t) + k**2) / (2 * np.cos(t) ** 2)) / (2 * np.pi))

    sides = []
    for sign in (1, -1):
        angle = sign * np.pi / 2 * (1 - (1 - STEPS) ** GATHER)
        ends, middle = slope(angle), slope((angle[1:] + angle[:-1]) / 2)
        steps = (ends[:-1] + 4 * middle + ends[1:]) / 6 * np.diff(angle)[:, None, None]
        below = np.pad(np.cumsum(steps, axis=0), ((0, 0), (1, 1), (1, 1)))
        sides.append(np.diff(np.diff(below, axis=1), axis=2))
    return np.asarray(np.concatenate(sides) * (x.total * y.total))


@dataclass(frozen=True)
class Sharpened:
    """Shares and covariances over bins, and category → bin, for every attribute."""

    domain: Domain
    shares: Floats
    covariances: Floats
    maps: list[Integers]


def sharpened(
    coarse: Sharpened, found: tuple[NormalTables, list[int | None]], fine: list[Floats], specials: Integers
) -> Sharpened | None:
    """Covariances over finer bins of attributes that are strongly tied; None where none is.

    A normal law that was found over bins says what its table over parts of bins is. What it leaves of the covariances has no
    such law and is shared out in proportion: summed over parts, everything is as it was.

    Args:
        coarse: what was measured and denoised.
        found: normal tables over its bins, and their best correlations.
        fine: shares of the categories of each attribute.
        specials: how many of an attribute's first categories have no place in its order.
    """
    normal, best = found
    # Of two categories without an order nothing finer is known: parts of theirs would be no steps of a normal law.
    tied = [a for a in normal.tied(best) if coarse.domain.ordered[a]]
    total, maps = coarse.domain.total, coarse.maps
    if not tied or total >= MOST:
        return None
    mass = max(1 / FINE, len(tied) / (MOST - total))
    finer = [
        by_run(m, lambda own, p=p: merge_ordered(p[own], mass)) if a in tied else m  # type: ignore[misc]
        for a, (m, p) in enumerate(zip(maps, fine, strict=True))
    ]
    domain = Domain(tuple(int(m.max()) + 1 for m in finer), coarse.domain.ordered)
    shares = np.concatenate([np.bincount(m, p) for m, p in zip(finer, fine, strict=True)])
    above = np.concatenate(
        [coarse.domain.starts[a] + m[first_of(f)] for a, (m, f) in enumerate(zip(maps, finer, strict=True))]
    )
    whole = np.bincount(above, shares)[above]
    part = np.where(whole > 0, shares / np.where(whole > 0, whole, 1.0), 1 / np.bincount(above)[above])
    rest = (coarse.covariances - normal.at(best, total))[np.ix_(above, above)] * np.outer(part, part)
    again = NormalTables(shares, domain, specials)
    return Sharpened(domain, shares, rest + again.at(best, domain.total), finer) if again.pairs else None


def first_of(bins: Integers) -> Integers:
    """The first category of each bin."""
    return np.unique(bins, return_index=True)[1]
