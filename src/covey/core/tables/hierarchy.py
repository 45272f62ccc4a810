"""Categories in public groups (diagnoses in chapters, communes in counties): shares and bins that keep the groups right.

Post-processing of two noisy histograms, one of the groups and one of the categories. Sums of many noisy categories are far
noisier than a group's own count; and a rare category is better described by its group than by all that is rare.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covey.core.arrays import Floats, Integers
from covey.core.tables.histograms import denoise_histogram


def group_counts(counts: Integers, groups: Integers) -> Integers:
    """Exact counts of groups from those of categories."""
    out = np.zeros(int(groups.max()) + 1, dtype=np.int64)
    np.add.at(out, groups, counts)
    return out


def grouped_histogram(
    fine: tuple[Floats, float],
    coarse: tuple[Floats, float],
    groups: Integers,
    total: float,
    public: np.random.Generator,
) -> Floats:
    """Denoised counts of categories whose sums are the denoised counts of their groups.

    Args:
        fine: noisy counts of categories, and the deviation of their noise.
        coarse: the same of the groups.
        groups: the group of each category.
        total: the number of records.
        public: randomness of the denoisers.

    A group's count is the mean of the two measurements by their variances.
    """
    (v, sd), (g, coarse_sd) = fine, coarse
    members = np.bincount(groups)
    own, summed = 1 / coarse_sd**2, 1 / (sd**2 * np.maximum(members, 1))
    both = (own * g + summed * np.bincount(groups, v)) / (own + summed)
    wide = float(np.sqrt(np.mean(1 / (own + summed))))
    held = denoise_histogram(both, wide, total, False, public)
    out = np.zeros(len(v))
    for group in np.flatnonzero(members):
        inside = np.flatnonzero(groups == group)
        if held[group] > 0:
            out[inside] = denoise_histogram(v[inside], sd, held[group], False, public)
    return out


def grouped_bins(share: Floats, groups: Integers, cut: float, most: int, classes: Integers) -> Integers:
    """Category → bin: common categories alone, the rest of a common group together, all other ones together.

    At most `most` bins, half of them for single categories, for each class that rules tell apart.
    """
    out, base = np.zeros(len(share), dtype=np.int64), 0
    half = max(2, most // 2)
    for one in np.unique(classes):
        own = np.flatnonzero(classes == one)
        alone = _largest(share[own], cut, half)
        rest = np.where(alone, 0.0, share[own])
        mass = np.bincount(groups[own], rest, minlength=int(groups.max()) + 1).astype(np.float64)
        kept = _largest(mass, cut, half - 1)
        place = np.where(kept, np.cumsum(kept) - 1, kept.sum())[groups[own]]  # the group's bin, or that of all others
        names = np.where(alone, len(kept) + np.arange(len(own)), place)
        found = np.unique(names, return_inverse=True)[1].ravel()
        out[own] = base + found
        base += int(found.max()) + 1
    return out


def _largest(share: Floats, cut: float, most: int) -> NDArray[np.bool_]:
    """Which shares lie above the cut, and are among the largest."""
    above = np.zeros(len(share), dtype=bool)
    above[np.argsort(-share, kind="stable")[:most]] = True
    return np.asarray(above & (share > cut))
