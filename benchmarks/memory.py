"""Peak memory of whole releases beside what `covey plan` says of them: twelve kinds of tables and more.

    python benchmarks/memory.py [--case NAME …] [--folder build/memory] [--out docs/benchmarks/memory.csv]

A table is written in row groups by one process and released by another: reading, encoding, measuring, certificate, drawing,
bundle and report. Its peak is the largest resident size that the system saw, libraries included. Figures of other cases stay.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import resource
import tempfile
import warnings
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

STEP = 200_000  # rows that are made at a time
DRAWN = 1 << 18  # rows of a part: longer tables are drawn in parts, and need no more
COLUMNS = (
    "case",
    "rows",
    "flags",
    "categories",
    "numbers",
    "grid",
    "persons",
    "delta",
    "peak_gib",
    "libraries_gib",
)


@dataclass(frozen=True)
class Case:
    """A kind of table: its columns, rows, and what is asked of it."""

    rows: int
    flags: int = 0
    categories: tuple[int, ...] = ()
    numbers: int = 0
    grid: int = 1000  # values of a number
    persons: bool = False
    csv: bool = False
    delta: float = 1e-9
    epsilon: float = 1.0

    @property
    def counted(self) -> int:
        """What a release counts: rows, or persons, who have three each."""
        return self.rows // 3 if self.persons else self.rows


MIXED = {"flags": 6, "categories": (2, 3, 4, 5, 6, 8, 12), "numbers": 7}
CASES = {
    "flags, narrow": Case(100_000, flags=20),
    "flags, 400": Case(20_000, flags=400, delta=0),
    "flags, wide": Case(5_000, flags=3_000),
    "flags, long": Case(3_000_000, flags=60),
    "categories": Case(100_000, categories=(2, 3, 4, 5, 6, 8) * 5),
    "categories, many": Case(50_000, categories=(60,) * 40),
    "20,000 codes": Case(50_000, flags=2, categories=(20_000, 5, 8)),
    "100,000 codes": Case(100_000, flags=2, categories=(100_000, 5, 8)),
    "100,000 codes and numbers": Case(100_000, flags=2, categories=(100_000, 5, 8), numbers=3),
    "300 numbers": Case(30_000, numbers=300),
    "300 numbers, large epsilon": Case(30_000, numbers=300, epsilon=10.0),
    "1,000 numbers": Case(10_000, numbers=1_000),
    "numbers, fine": Case(50_000, numbers=10, grid=10**9),
    "mixed": Case(100_000, **MIXED),
    "mixed, small": Case(5_000, **MIXED, delta=0),
    "mixed, persons": Case(300_000, **MIXED, persons=True),
    "mixed, CSV": Case(1_000_000, **MIXED, csv=True),
    "mixed, long": Case(3_000_000, **MIXED),
    "mixed, 20,000,000": Case(20_000_000, **MIXED),
}


def make(case: Case, path: Path) -> None:
    """Columns with a common cause, written in row groups."""
    import pyarrow as pa
    import pyarrow.csv as text
    import pyarrow.parquet as pq

    g, writer = np.random.default_rng(1), None
    for start in range(0, case.rows, STEP):
        k = min(STEP, case.rows - start)
        z, columns = g.random(k), {}
        if case.persons:
            columns["person"] = pa.array(g.integers(0, case.counted, k))
        for j in range(case.flags):
            columns[f"f{j}"] = pa.array((g.random(k) < 0.2 + 0.5 * z).astype(bool))
        for j, size in enumerate(case.categories):
            codes = np.minimum((size * (0.5 * z + 0.5 * g.random(k)) ** 1.5).astype(np.int32), size - 1)
            words = pa.array([f"c{i}" for i in range(size)])
            columns[f"c{j}"] = pa.DictionaryArray.from_arrays(pa.array(codes), words).cast(pa.string())
        for j in range(case.numbers):
            columns[f"n{j}"] = pa.array(((case.grid - 1) * (0.6 * z + 0.4 * g.random(k)) ** 2).astype(np.int64))
        table = pa.table(columns)
        if writer is None:
            writer = (text.CSVWriter if case.csv else pq.ParquetWriter)(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def schema_of(case: Case):
    """The public schema of a case."""
    from covey.tables.schema import Field, Schema

    sure = {"required": True, "confirmed": True}
    person = [Field("person", "integer", minimum=0, maximum=case.rows, **sure)] if case.persons else []
    return Schema(
        (
            *person,
            *(Field(f"f{j}", "boolean", **sure) for j in range(case.flags)),
            *(
                Field(f"c{j}", "string", enum=tuple(f"c{i}" for i in range(size)), **sure)
                for j, size in enumerate(case.categories)
            ),
            *(Field(f"n{j}", "integer", minimum=0, maximum=case.grid - 1, **sure) for j in range(case.numbers)),
        )
    )


def peak() -> float:
    """Gibibytes at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def release(case: Case, path: Path, folder: Path, found) -> None:
    """Release a table in this process."""
    warnings.simplefilter("ignore")
    from covey.workflow import PrivateOrder, release

    schema = folder / "schema.json"
    schema.write_text(json.dumps(schema_of(case).to_dict()))
    libraries = peak()
    person = "person" if case.persons else None
    order = PrivateOrder(
        path,
        schema,
        folder / "bundle",
        case.epsilon,
        Fraction(case.delta),
        person=person,
        rows=min(case.counted, DRAWN),
        seed=1,
        parquet=True,
    )
    release(order)
    found.put((peak(), libraries))


def measure(name: str, folder: Path) -> dict[str, object]:
    """One case, in processes of its own."""
    case, start = CASES[name], multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path, found = Path(place) / ("table.csv" if case.csv else "table.parquet"), start.Queue()
        for target, arguments in ((make, (case, path)), (release, (case, path, Path(place), found))):
            process = start.Process(target=target, args=arguments)
            process.start()
            process.join()
            if process.exitcode:
                raise SystemExit(f"{name}: ended with {process.exitcode}")
        top, libraries = found.get()
    facts = (
        name,
        case.rows,
        case.flags,
        " ".join(map(str, case.categories)),
        case.numbers,
        case.grid,
        int(case.persons),
        case.delta,
    )
    return dict(zip(COLUMNS, (*facts, f"{top:.3f}", f"{libraries:.3f}"), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", nargs="*", choices=CASES)
    parser.add_argument("--folder", type=Path, default=Path("build/memory"))
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks/memory.csv"))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in given.case or CASES:
        row = measure(name, given.folder)
        rows = {name: row}
        if given.out.exists():
            with given.out.open(newline="", encoding="utf-8") as file:
                rows = {own["case"]: own for own in csv.DictReader(file)} | rows
        with given.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows[own] for own in CASES if own in rows)
        print(row, flush=True)


if __name__ == "__main__":
    main()
