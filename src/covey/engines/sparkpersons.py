"""Rows of persons in a Spark frame: rows are counted by person on the executors, and each row gets its weight by a join.

The driver learns the number of persons, which is public, and what rounding leaves of all weights, which goes into the sums. As
the frame is computed anew for every pass, so are the counts: one shuffle more than without persons.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from covey.core.arrays import Array
from covey.core.tables.events import WEIGHT_STEPS
from covey.engines.rows import First, S, T
from covey.engines.spark import Encode, gathering, spark_errors, summed
from covey.engines.weights import NO_PERSON, public_record, weighted
from covey.errors import CHANGED, InputError, InternalError
from covey.privacy.exact import pure
from covey.privacy.gate import Exact

# White space as `str.strip` knows it: Java's, and four separators of old.
SPACE = r"(?U)^[\s\x1c-\x1f]+|[\s\x1c-\x1f]+$"
NOBODY = ("", "nan", "null")


class SparkPersonRows:
    """The records of persons in a Spark frame; n counts persons.

    Args:
        frame: a Spark frame of the needed columns, and of the column of persons as its last.
        encode: turns an Arrow batch of the needed columns into records and a log that can be added.
        p: the number of coordinates.
        missing: how cells that name nobody are written.
        ahead: kernels whose sums will be asked for; they are computed during the first reading.
    """

    steps = WEIGHT_STEPS

    def __init__(
        self, frame: Any, encode: Encode, p: int, missing: Sequence[str], ahead: Sequence[Callable[[Array], Any]] = ()
    ) -> None:
        self.p, self._encode = p, encode
        with spark_errors():
            persons = _rows_of_persons(_with_names(frame, missing))
            self._frame = _with_weights(_with_names(frame, missing), persons)
            self.n, self._remainder = _totals(persons)
        if not self.n:
            raise InputError(NO_PERSON)
        total = self._sum(tuple(ahead))
        self.log = total.log
        self._known = dict(zip(ahead, total.sums, strict=True))

    def reduce(self, kernel: Callable[[Array], S]) -> Exact[S]:
        """The sum of kernel over the rows, each as often as it weighs, in steps of 2^-20."""
        found: S = self._known[kernel] if kernel in self._known else self._sum((kernel,)).sums[0]
        return Exact(found)

    def whole(self, kernel: Callable[[Array], T]) -> NoReturn:
        """Refused: how many rows there are is not public."""
        raise InternalError("rows of persons are only added up, never read one by one.")

    def _sum(self, kernels: tuple[Callable[[Array], Any], ...]) -> First:
        kernels = tuple(map(pure, kernels))
        total = summed(self._frame, _weighed(self._encode, kernels, self.p), gathering(self.p))
        if total.n + self._remainder != self.n * WEIGHT_STEPS:
            raise InputError(CHANGED)
        record = public_record(self.p)
        rest: list[Any] = [kernel(record) for kernel in kernels]
        sums = tuple(a + b.times(self._remainder) for a, b in zip(total.sums, rest, strict=True))
        return First(self.n, total.log, sums)


def _weighed(encode: Encode, kernels: tuple[Callable[[Array], Any], ...], p: int) -> Callable[[Any], First]:
    """What the kernels find in a batch whose last column holds the weights; sent to the executors."""

    def part(batch: Any) -> First:
        width = batch.num_columns - 1
        weights = np.asarray(batch.column(width)).astype(np.int64)
        codes, log = encode(batch.select(list(range(width))))
        record = public_record(p)
        nothing: list[Any] = [kernel(record) for kernel in kernels]
        sums = [weighted(k, codes, weights, none.times(0)) for k, none in zip(kernels, nothing, strict=True)]
        return First(int(weights.sum()), log, tuple(sums))

    return part


# Spark's own words.


def _with_names(frame: Any, missing: Sequence[str]) -> Any:
    """The frame with its last column as the name of a person, null for nobody (the rule of `table.persons`)."""
    from pyspark.sql import functions as F

    *others, last = frame.columns
    word = F.col(last).cast("string")
    bare = F.regexp_replace(word, SPACE, "")
    absent = list(missing) or [""]
    nobody = word.contains("\0") | word.isin(absent) | bare.isin(absent) | F.lower(bare).isin(list(NOBODY))
    return frame.select(*others, F.when(~nobody, bare).alias("person"))


def _rows_of_persons(frame: Any) -> Any:
    """Persons, how many rows each has, and what each of them weighs."""
    from pyspark.sql import functions as F

    counted = frame.where(F.col("person").isNotNull()).groupBy("person").agg(F.count(F.lit(1)).alias("rows"))
    return counted.withColumn("weight", F.floor(F.lit(WEIGHT_STEPS) / F.col("rows")).cast("bigint"))


def _with_weights(frame: Any, persons: Any) -> Any:
    """The needed columns and, last, what each row weighs."""
    from pyspark.sql import functions as F

    others = frame.columns[:-1]
    joined = frame.join(persons.select("person", "weight"), "person", "left")
    return joined.select(*others, F.coalesce(F.col("weight"), F.lit(0)).cast("bigint").alias("weight"))


def _totals(persons: Any) -> tuple[int, int]:
    """The number of persons, and what rounding leaves of all weights."""
    from pyspark.sql import functions as F

    left = F.sum(F.lit(WEIGHT_STEPS) - F.col("rows") * F.col("weight"))
    (found,) = persons.agg(F.count(F.lit(1)).alias("persons"), left.alias("remainder")).collect()
    return int(found.persons), int(found.remainder or 0)
