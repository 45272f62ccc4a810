"""What the noise will do, seen on rows that nobody has: simulated from the schema's columns and the declared size alone.

No true row comes near this. The simulated column is a bell, the simulated pair a plain association; the noise on them has the
size that the plan predicts for this table, and the same shape for every ε, so that moving the slider changes its height alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np

from covey.core.arrays import Floats
from covey.methods.regain.predict import COARSE, LEFT_AFTER_DENOISING, one_way_noise, pair_noise
from covey.privacy.budget import Budget

BARS = 16  # of the simulated histogram
TWO_BY_TWO = np.array([0.34, 0.16, 0.14, 0.36])  # a pair that clearly goes together, row by row
NAMED = 6  # pairs that are named as lost; of the others their number is told


def preview_noise(names: Sequence[str], sizes: Sequence[int], n: int, budget: Budget) -> dict[str, Any] | None:
    """The picture for these public columns, or None where none of them varies.

    A simulated histogram of a column, bars from 0 to 1, and percentages of a 2 × 2 table of a pair, both as pairs of the clean
    and the noisy figure; and the pairs that noise will drown, those of most cells first.
    """
    live = [(name, size) for name, size in zip(names, sizes, strict=True) if size > 1]
    if not live:
        return None
    noise = np.random.default_rng(0).standard_normal(BARS + 4)
    name, size = max(live, key=lambda column: column[1])
    count = min(size, BARS)
    bell = np.exp(-0.5 * ((np.arange(count) - 0.42 * (count - 1)) / (0.22 * count)) ** 2)
    bell /= bell.sum()
    noisy = with_noise(bell, one_way_noise(sizes, n, budget) * sqrt(size / count) * noise[:count])
    bars = np.column_stack([bell, noisy]) / max(bell.max(), noisy.max())
    found: dict[str, Any] = {"column": name, "bars": bars.tolist(), "pair": None, "lost": [], "more": 0}
    if len(live) < 2:
        return found
    on_cell = LEFT_AFTER_DENOISING * pair_noise(sizes, n, budget)
    (one, c), (two, d) = live[:2]
    spread = on_cell * sqrt(min(c, COARSE) * min(d, COARSE) / 4)  # of a quarter of the cells together
    cells = 100 * np.column_stack([TWO_BY_TWO, with_noise(TWO_BY_TWO, spread * noise[BARS:])])
    # Drowned is a pair in whose table the noise on a cell is larger than the share of the mean cell.
    sized = [(min(c, COARSE) * min(d, COARSE), f"{a} × {b}") for (a, c), (b, d) in combinations(live, 2)]
    lost = [words for cells, words in sorted(sized, key=lambda x: -x[0]) if on_cell * cells > 1]
    more = max(0, len(lost) - NAMED)
    return found | {"pair": (one, two), "cells": cells.tolist(), "lost": lost[:NAMED], "more": more}


def with_noise(shares: Floats, noise: Floats) -> Floats:
    """Noisy shares as a release has them: none is negative, and they sum to 1, because the number of rows is public."""
    noisy = np.maximum(0.0, shares + noise - noise.mean())  # which sum to 1 or more
    return np.asarray(noisy / noisy.sum())
