"""Functions read off noisy tables: the best value for each cell of a source, in intervals where the source is ordered."""

from __future__ import annotations

import numpy as np

from covey.core.arrays import Array, Floats


def best_function(table: Floats, sd: float, inside: Array) -> tuple[int, ...]:
    """For each row of a noisy table the column with most mass; rows that lie `inside` an ordered range change it seldom.

    A change costs what noise alone could gain by one, so that intervals stay whole.
    """
    found = table.argmax(axis=1)
    core = np.flatnonzero(inside)
    if len(core) > 1:
        penalty = sd * np.sqrt(2 * np.log(table.size))
        score, back = table[core[0]].copy(), []
        for i in core[1:]:
            jump = score.max() - penalty
            back.append(np.where(score >= jump, np.arange(len(score)), score.argmax()))
            score = np.maximum(score, jump) + table[i]
        at = int(score.argmax())
        for i, row in zip(core[::-1], [None, *back[::-1]], strict=True):
            at = at if row is None else int(row[at])
            found[i] = at
    return tuple(int(x) for x in found)
