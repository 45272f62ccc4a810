"""Rows that Spark's executors read: every task adds up what the kernels find in its part, and one sum reaches the driver.

The first tasks read, encode and sum; their sums are shuffled and merged on the executors, first in groups, then all of them; the
driver collects one row with one binary cell. No randomness is here: noise is drawn where `fit` was called, in the driver. A
task that dies is run again by Spark, and since a kernel is a pure function nothing changes.

Rows of persons are counted by person on the executors, and each row gets its weight by a join. The driver learns the number of
persons, which is public, and what rounding leaves of all weights, which goes into the sums. As the frame is computed anew for
every pass, so are the counts: one shuffle more than without persons.
"""

from __future__ import annotations

import pickle  # nosec B403 # only what our own tasks wrote
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from covey.engine.arrays import Array, blas_threads, processors
from covey.engine.codes.events import WEIGHT_STEPS
from covey.engine.exact import Exact, pure
from covey.engine.units.local import BATCH_ENTRIES
from covey.engine.units.persons import NO_PERSON, public_record, weighted
from covey.engine.units.rows import NO_ROWS, First, Rows, T
from covey.errors import CHANGED, InputError

BATCH_ROWS = 1 << 17  # Spark's own batches are small: a task puts them together up to so many rows
# White space as `str.strip` knows it: Java's, and four separators of old.
SPACE = r"(?U)^[\s\x1c-\x1f]+|[\s\x1c-\x1f]+$"
NOBODY = ("", "nan", "null")

Encode = Callable[[Any], tuple[Array, Any]]
Read = Callable[[Iterator[Any]], Iterator[Any]]  # from the Arrow batches of a task to the parts that are encoded


class SparkRows(Rows):
    """The records of a Spark frame, or of files that a frame's tasks read; they stay on the executors.

    Args:
        frame: a Spark frame of the needed columns. It is computed anew for every pass, so it must be the same each time.
        encode: turns a part into records and a log that can be added; it is sent to the executors.
        p: the number of coordinates.
        ahead: kernels whose sums will be asked for; they are computed during the first reading.
        read: what a task makes of its batches: the parts that it encodes. Without it, longer batches of the frame's rows.

    The first reading happens here, before anything is charged: it finds n, and whatever cannot be read.
    """

    def __init__(
        self, frame: Any, encode: Encode, p: int, ahead: Sequence[Callable[[Array], Any]] = (), read: Read | None = None
    ) -> None:
        self._frame, self._encode, self.p = frame, encode, p
        self._read = read or partial(_gathered, rows=max(1, min(BATCH_ROWS, BATCH_ENTRIES // p)))
        total = self._sum(tuple(ahead))
        self.n, self.log = total.n, total.log
        self._known = dict(zip(ahead, total.sums, strict=True))

    def reduce(self, kernel: Callable[[Array], T]) -> Exact[T]:
        """The sum of kernel(batch) over all batches: known from the first reading, or computed in another one."""
        if kernel in self._known:
            return Exact(self._known[kernel])
        return Exact(self._unchanged(self._sum((kernel,))))

    def whole(self, kernel: Callable[[Array], T]) -> Exact[T]:
        """kernel(all records), inside one task; only its result comes back."""
        task = _whole_task(self._encode, self._read, pure(kernel))
        return Exact(self._unchanged(_collect(_map(self._frame.coalesce(1), task))))

    def _sum(self, kernels: tuple[Callable[[Array], Any], ...]) -> First:
        return self._summed(_counted(self._encode, tuple(map(pure, kernels))))

    def _summed(self, part: Callable[[Any], First]) -> First:
        """The sum of part(…) over the parts that tasks read from the Arrow batches of the frame: one value in the driver."""
        parts = _map(self._frame, _sum_task(part, self._read), "place int, sums binary")
        groups = _map(parts.repartition("place"), _merge_task)
        total: First = _collect(_map(groups.repartition(1), _merge_task))
        return total

    def _unchanged(self, found: First) -> Any:
        if found.n != self.n:
            raise InputError(CHANGED)
        return found.sums[0]


class SparkPersonRows(SparkRows):
    """The records of persons in a Spark frame whose last column names them; `missing` is how cells that name nobody are written.

    n counts persons.
    """

    steps = WEIGHT_STEPS
    whole = Rows.whole

    def __init__(
        self, frame: Any, encode: Encode, p: int, missing: Sequence[str], ahead: Sequence[Callable[[Array], Any]] = ()
    ) -> None:
        with spark_errors():
            weighed, self.n, self._remainder = _by_person(frame, missing)
        if not self.n:
            raise InputError(NO_PERSON)
        super().__init__(weighed, encode, p, ahead)

    def _sum(self, kernels: tuple[Callable[[Array], Any], ...]) -> First:
        kernels = tuple(map(pure, kernels))
        total = self._summed(_weighed(self._encode, kernels, self.p))
        if total.n + self._remainder != self.n * WEIGHT_STEPS:
            raise InputError(CHANGED)
        rest: list[Any] = [kernel(public_record(self.p)) for kernel in kernels]
        sums = tuple(a + b.times(self._remainder) for a, b in zip(total.sums, rest, strict=True))
        return First(self.n, total.log, sums)


def task_numbers(spark: Any, count: int) -> Any:
    """A Spark frame of the numbers 0, 1, …, one for each of so many tasks."""
    return spark.range(0, count, 1, count)


def generate(spark: Any, parts: int, part: Callable[[int], Iterable[Any]], schema: Any) -> Any:
    """A Spark frame of Arrow batches part(0), part(1), …, each made on the executors when it is needed.

    `part` is a pure function from the number of a part to its batches, which all have the schema; it is sent to the executors.
    """

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for k in batch.column(0).to_pylist():
                yield from part(k)

    return _map(task_numbers(spark, parts), task, schema)


# What runs on the executors. Functions made here know the encoder and the kernels, and nothing of the driver.


def _counted(encode: Encode, kernels: tuple[Callable[[Array], Any], ...]) -> Callable[[Any], First]:
    """What the kernels find in a part."""

    def part(piece: Any) -> First:
        codes, log = encode(piece)
        return First(len(codes), log, tuple(kernel(codes) for kernel in kernels))

    return part


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


def _sum_task(part: Callable[[Any], First], read: Read) -> Callable[..., Iterator[Any]]:
    """A task that reads its parts and yields one sum.

    A part that cannot be read is carried along like a sum, so that Spark does not try again in vain.
    """

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        total: First | None = None
        context = TaskContext.get()
        place = 0 if context is None else context.partitionId()
        with blas_threads(1):
            try:
                for piece in read(batches):
                    found = part(piece)
                    total = found if total is None else total + found
            except InputError as error:
                yield _blob(InputError(str(error)), place)
                return
        if total is not None:
            yield _blob(total, place)

    return task


def _merge_task(batches: Iterator[Any]) -> Iterator[Any]:
    """A task that yields the sum of its sums."""
    total: Any = None
    for batch in batches:
        for cell in batch.column("sums"):
            found = _read(cell)
            if isinstance(found, InputError):
                yield _blob(found)
                return
            total = found if total is None else total + found
    if total is not None:
        yield _blob(total)


def _whole_task(encode: Encode, read: Read, kernel: Callable[[Array], Any]) -> Callable[..., Iterator[Any]]:
    """A task that encodes everything and yields what the kernel says about it."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        try:
            records = [encode(piece)[0] for piece in read(batches)]
        except InputError as error:
            yield _blob(InputError(str(error)))
            return
        if records:
            with blas_threads(processors()):
                X = np.concatenate(records)
                yield _blob(First(len(X), None, (kernel(X),)))

    return task


def _gathered(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Batches of so many rows, or a few more, from shorter ones."""
    import pyarrow as pa

    held: list[Any] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()
            held, count = [], 0
    if count:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()


def _blob(value: Any, place: int | None = None) -> Any:
    """A batch of one row that carries a value."""
    import pyarrow as pa

    columns = {} if place is None else {"place": pa.array([place], pa.int32())}
    return pa.record_batch(columns | {"sums": pa.array([pickle.dumps(value, protocol=5)], pa.binary())})


def _read(cell: Any) -> Any:
    return pickle.loads(cell.as_buffer())  # nosec B301 # sums that our own tasks made, sent over the cluster itself


# What runs in the driver.


def _map(frame: Any, task: Callable[[Iterator[Any]], Iterator[Any]], schema: Any = "sums binary") -> Any:
    with warnings.catch_warnings():
        # Spark looks at the version of pandas for every function of Arrow batches; no pandas is used here.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        return frame.mapInArrow(task, schema)


def _collect(frame: Any) -> Any:
    """The one value that a frame of sums comes down to."""
    with spark_errors():
        rows = frame.collect()
    if not rows:
        raise InputError(NO_ROWS)
    found = pickle.loads(rows[0].sums)  # nosec B301 # the same
    if isinstance(found, InputError):
        raise found
    return found


@contextmanager
def spark_errors() -> Iterator[None]:
    """What Spark cannot finish is an InputError."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        told = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise InputError(f"Spark could not read the table: {told.strip()}") from error


def _by_person(frame: Any, missing: Sequence[str]) -> tuple[Any, int, int]:
    """The needed columns and, last, what each row weighs; how many persons there are, and what rounding leaves of all weights.

    The last column of the frame names persons, by the rule of the table's own reader; null is nobody.
    """
    from pyspark.sql import functions as F

    *others, last = frame.columns
    word = F.col(last).cast("string")
    bare = F.regexp_replace(word, SPACE, "")
    absent = list(missing) or [""]
    nobody = word.contains("\0") | word.isin(absent) | bare.isin(absent) | F.lower(bare).isin(list(NOBODY))
    named = frame.select(*others, F.when(~nobody, bare).alias("person"))
    persons = named.where(F.col("person").isNotNull()).groupBy("person").agg(F.count(F.lit(1)).alias("rows"))
    persons = persons.withColumn("weight", F.floor(F.lit(WEIGHT_STEPS) / F.col("rows")).cast("bigint"))
    left = F.sum(F.lit(WEIGHT_STEPS) - F.col("rows") * F.col("weight"))
    (found,) = persons.agg(F.count(F.lit(1)).alias("persons"), left.alias("remainder")).collect()
    joined = named.join(persons.select("person", "weight"), "person", "left")
    weighed = joined.select(*others, F.coalesce(F.col("weight"), F.lit(0)).cast("bigint").alias("weight"))
    return weighed, int(found.persons), int(found.remainder or 0)
