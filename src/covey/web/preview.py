"""What the noise will do, seen on rows that nobody has: simulated from the schema's columns and the declared size alone.

No true row comes near this. The simulated column is a bell, the simulated pair a plain association; the noise on them has the
size that the plan predicts for this table, and the same shape for every ε, so that moving the slider changes its height alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

import numpy as np

from covey.core.arrays import Floats
from covey.methods.regain.predict import COARSE, LEFT_AFTER_DENOISING, one_way_noise, pair_noise
from covey.privacy.budget import Budget

BARS = 16  # of the simulated histogram
TWO_BY_TWO = np.array([[0.34, 0.16], [0.14, 0.36]])  # a pair that clearly goes together
NAMED = 6  # pairs that are named as lost; of the others their number is told


@dataclass(frozen=True)
class NoisePreview:
    """A simulated histogram and a 2 × 2 table, clean and with noise, and the pairs that noise will drown."""

    column: str
    bars: tuple[tuple[float, float], ...]  # heights from 0 to 1: simulated, and with noise
    pair: tuple[str, str] | None
    cells: tuple[tuple[float, float], ...]  # percentages of a 2 × 2 table, row by row: simulated, and with noise
    lost: tuple[str, ...]
    more: int  # pairs that are lost and not named


def preview_noise(names: Sequence[str], sizes: Sequence[int], n: int, budget: Budget) -> NoisePreview | None:
    """The picture for these public columns, or None where none of them varies."""
    live = [(name, size) for name, size in zip(names, sizes, strict=True) if size > 1]
    if not live:
        return None
    noise = np.random.default_rng(0).standard_normal(BARS + 4)
    name, size = max(live, key=lambda column: column[1])
    count = min(size, BARS)
    bell = np.exp(-0.5 * ((np.arange(count) - 0.42 * (count - 1)) / (0.22 * count)) ** 2)
    bell /= bell.sum()
    noisy = with_noise(bell, one_way_noise(sizes, n, budget) * sqrt(size / count) * noise[:count])
    top = max(float(bell.max()), float(noisy.max()))
    bars = tuple((float(a) / top, float(b) / top) for a, b in zip(bell, noisy, strict=True))
    on_cell = LEFT_AFTER_DENOISING * pair_noise(sizes, n, budget)
    if len(live) < 2:
        return NoisePreview(name, bars, None, (), (), 0)
    (one, c), (two, d) = live[:2]
    spread = on_cell * sqrt(min(c, COARSE) * min(d, COARSE) / 4)  # of a quarter of the cells together
    after = with_noise(TWO_BY_TWO.ravel(), spread * noise[BARS:])
    cells = tuple((100 * float(a), 100 * float(b)) for a, b in zip(TWO_BY_TWO.ravel(), after, strict=True))
    lost = drowned(live, on_cell)
    return NoisePreview(name, bars, (one, two), cells, tuple(lost[:NAMED]), max(0, len(lost) - NAMED))


def with_noise(shares: Floats, noise: Floats) -> Floats:
    """Noisy shares as a release has them: none is negative, and they sum to 1, because the number of rows is public."""
    noisy = np.maximum(0.0, shares + noise - noise.mean())  # which sum to 1 or more
    return np.asarray(noisy / noisy.sum())


def drowned(live: Sequence[tuple[str, int]], on_cell: float) -> list[str]:
    """Pairs in whose table the noise on a cell is larger than the share of the mean cell, those of most cells first."""
    sized = [(min(c, COARSE) * min(d, COARSE), f"{a} × {b}") for (a, c), (b, d) in combinations(live, 2)]
    return [words for cells, words in sorted(sized, key=lambda x: -x[0]) if on_cell * cells > 1]
