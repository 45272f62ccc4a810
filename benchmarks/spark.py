"""How Spark in local mode compares with the streaming engine on the same Parquet file, start-up aside.

    python benchmarks/spark.py --rows 3000000

Thirty categorical columns of text. Spark is started, and both engines read a small table, before anything is timed. Times on
a shared machine mean little; their ratio, taken in one run, is what counts. Target: at most 4 at 20,000,000 rows.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import covey
from covey.table.sources import write_parquet
from scale import SIZES, make_table, survey_schema

SCHEMA = survey_schema()


def local_spark(processors: int = 2) -> Any:
    """Spark in local mode."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    options = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    return SparkSession.builder.master(f"local[{processors}]").config(map=options).getOrCreate()


def compare(spark: Any, path: Path, small: Path, out: Path) -> dict[str, dict[str, float]]:
    """Seconds of each step on both engines, and the ratios."""

    def synth() -> covey.PrivateSynthesizer:
        return covey.PrivateSynthesizer(1.0, 1e-9, schema=SCHEMA)

    def draw_here(fitted: covey.PrivateSynthesizer) -> None:
        write_parquet(fitted.draw(fitted.n), out / "streaming.parquet")

    def draw_there(fitted: covey.PrivateSynthesizer) -> None:
        fitted.sample_spark(spark, fitted.n).write.parquet(str(out / "spark.parquet"))

    engines = {"streaming": (str, draw_here), "spark": (lambda file: spark.read.parquet(str(file)), draw_there)}
    found: dict[str, dict[str, float]] = {}
    for engine, (read, draw) in engines.items():
        synth().prepare(read(small))
        start = time.perf_counter()
        fitted = synth()
        prepared = fitted.prepare(read(path))
        read_at = time.perf_counter()
        fitted.fit(prepared)
        fitted_at = time.perf_counter()
        draw(fitted)
        end = time.perf_counter()
        found[engine] = {
            "read": read_at - start,
            "read and fit": fitted_at - start,
            "draw": end - fitted_at,
            "all": end - start,
        }
    found["ratio"] = {step: found["spark"][step] / found["streaming"][step] for step in found["spark"]}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--processors", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder, "table.parquet"), Path(folder, "small.parquet")
        make_table(path, options.rows)
        make_table(small, 50_000)
        spark = local_spark(options.processors)
        try:
            found = compare(spark, path, small, Path(folder))
        finally:
            spark.stop()
    print(f"{options.rows:,} rows × {len(SIZES)} categories, {options.processors} processors: seconds")
    for name, steps in found.items():
        print(f"{name:10s}" + "".join(f"   {step} {value:8.2f}" for step, value in steps.items()))


if __name__ == "__main__":
    main()
