"""How Spark in local mode compares with the streaming engine on the same Parquet file, start-up aside.

    python benchmarks/spark.py --rows 3000000 [--table survey.parquet] [--draw 262144] [--ways streaming frame files]

Thirty categorical columns of text. Spark is started, and all ways read a small table, before anything is timed: the streaming
engine, a Spark frame of the file, and `covey.SparkParquet`, whose tasks read the file themselves. Times on a shared machine mean
little; their ratio, taken in one run, is what counts. Target: at most 4 at 20,000,000 rows.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import covey
from covey.tables.sources import write_rows
from scale import SIZES, make_table, schema_of

SCHEMA = schema_of("survey")


def local_spark(processors: int = 2) -> Any:
    """Spark in local mode."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    options = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    return SparkSession.builder.master(f"local[{processors}]").config(map=options).getOrCreate()


def compare(spark: Any, path: Path, small: Path, out: Path, draw: int, ways: list[str]) -> dict[str, dict[str, float]]:
    """Seconds of each step each way, and the ratios to the first."""

    def synth() -> covey.PrivateSynthesizer:
        return covey.PrivateSynthesizer(1.0, 1e-9, schema=SCHEMA)

    def draw_here(fitted: covey.PrivateSynthesizer, way: str) -> None:
        write_rows(fitted.draw(min(draw, fitted.n)), out / f"{way}.parquet", parquet=True)

    def draw_there(fitted: covey.PrivateSynthesizer, way: str) -> None:
        fitted.sample_spark(spark, min(draw, fitted.n)).write.parquet(str(out / f"{way}.parquet"))

    engines: dict[str, tuple[Callable[[Path], Any], Callable[[covey.PrivateSynthesizer, str], None]]] = {
        "streaming": (str, draw_here),
        "frame": (lambda file: spark.read.parquet(str(file)), draw_there),
        "files": (lambda file: covey.SparkParquet(spark, file), draw_there),
    }
    found: dict[str, dict[str, float]] = {}
    for way in ways:
        read, write = engines[way]
        synth().prepare(read(small))
        start = time.perf_counter()
        fitted = synth()
        prepared = fitted.prepare(read(path))
        read_at = time.perf_counter()
        fitted.fit(prepared)
        fitted_at = time.perf_counter()
        write(fitted, way)
        end = time.perf_counter()
        found[way] = {
            "read": read_at - start,
            "read and fit": fitted_at - start,
            "draw": end - fitted_at,
            "all": end - start,
        }
    first, *others = ways
    for way in others:
        found[f"{way} / {first}"] = {step: found[way][step] / found[first][step] for step in found[way]}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--processors", type=int, default=2)
    parser.add_argument("--table", type=Path, help="a table that benchmarks/scale.py made, instead of a new one")
    parser.add_argument("--draw", type=int, default=1 << 18, help="rows to draw: one part")
    parser.add_argument("--ways", nargs="+", default=["streaming", "frame", "files"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, small = options.table or Path(folder, "table.parquet"), Path(folder, "small.parquet")
        if options.table is None:
            make_table(path, options.rows, "survey")
        make_table(small, 50_000, "survey")
        rows = pq.read_metadata(path).num_rows
        spark = local_spark(options.processors)
        try:
            found = compare(spark, path, small, Path(folder), options.draw, options.ways)
        finally:
            spark.stop()
    print(f"{rows:,} rows × {len(SIZES)} categories, {options.processors} processors: seconds")
    for name, steps in found.items():
        print(f"{name:18s}" + "".join(f"   {step} {value:8.2f}" for step, value in steps.items()))


if __name__ == "__main__":
    main()
