"""Persons with several rows: the rows of a person share one weight, so that a person counts once, however many rows there are.

A person with N rows weighs 2^20 steps in all: each row ⌊2^20/N⌋, and what rounding leaves, fewer than N steps, goes to a fixed
public record, the one whose codes are all 0. So the weights of a person sum to 2^20 exactly, they depend on N alone and not on
the order of rows, and a person is an average of records: whatever bounds hold for how far one replaced record moves a sum hold
for one replaced person (docs/proofs/persons.md). A row that names no person weighs nothing.

Kernels know nothing of weights. A kernel is a sum over rows, so a weighted sum is Σ_w w·kernel(rows of weight w), exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from covey.core.arrays import Array, Integers
from covey.core.tables.events import WEIGHT_BITS, WEIGHT_STEPS

NO_PERSON = "the column that identifies the person is empty in every row. There is nothing to synthesize."


def row_weights(rows: Integers) -> Integers:
    """What each row weighs, from the number of rows of its person; 0 for a row without one, which is given as 0."""
    return np.where(rows > 0, WEIGHT_STEPS // np.maximum(rows, 1), 0)


def remainders(rows: Integers) -> int:
    """What rounding leaves of the weights of persons with so many rows each, all together."""
    return int((WEIGHT_STEPS - rows * row_weights(rows)).sum())


def weighted(kernel: Callable[[Array], Any], batch: Array, weights: Integers, total: Any) -> Any:
    """`total` plus the sum of kernel over the rows of a batch, each as often as it weighs.

    Rows of one weight are counted together. Where a batch has many weights, the rows whose weight has a given binary digit are.
    """
    for weight, chosen in classes(weights):
        total = total + kernel(batch[chosen]).times(weight)
    return total


def classes(weights: Integers) -> Iterator[tuple[int, Array]]:
    """Numbers and the rows that they count for: each row's numbers sum to its weight. At most 21 of them."""
    values = np.unique(weights[weights > 0])
    if len(values) <= WEIGHT_BITS:
        yield from ((int(value), weights == value) for value in values)
        return
    for bit in range(WEIGHT_BITS + 1):
        chosen = (weights >> bit) & 1 == 1
        if chosen.any():
            yield 1 << bit, chosen


def public_record(p: int) -> Array:
    """A batch of one record, the public one that takes what rounding leaves."""
    return np.zeros((1, p), dtype=np.uint8)
