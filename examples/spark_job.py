"""A private release of a table in Spark: the rows stay on the executors, and the ledger and the noise in the driver.

    covey ledger open survey --budget 3 --ledger ledger.sqlite
    spark-submit spark_job.py hdfs:///survey schema.json survey ledger.sqlite release
    spark-submit spark_job.py /mnt/shared/survey schema.json survey ledger.sqlite release --files

covey must be installed on the executors, in the same version as here: pip install 'covey[spark]'. The table is read several
times, and every time it must be the same one; cache it, or write it down first, if computing it is dear or involves chance.
With --files executors read the Parquet files of a folder themselves, several times faster than Spark hands over the rows of a
frame; all of them must see it under that name. The release is the same.
"""

from __future__ import annotations

import hashlib
import sys
from fractions import Fraction
from pathlib import Path

from pyspark.sql import SparkSession

import covey
from covey import Ledger, write_bundle
from covey.release.places import check_target

EPSILON, DELTA = Fraction(1), Fraction(1, 10**9)
BUNDLE_ROWS = 10_000  # the bundle holds a sample of so many rows; all of them are written by the executors


def release(
    spark: SparkSession, table: str, schema: str, dataset: str, ledger: str, out: str, files: bool = False
) -> None:
    """Release the Parquet table of that name: a bundle in out/bundle, and as many rows as it has in out/rows."""
    # Public parameters first: nothing is read, nothing is charged.
    synth = covey.PrivateSynthesizer(EPSILON, DELTA, schema=covey.Schema.load(schema))
    books = Ledger(ledger)
    books.check(dataset, EPSILON, DELTA)
    folder = Path(out, "bundle")
    check_target(folder, force=False)
    # The first reading: it may fail on the table, and nothing is charged yet.
    prepared = synth.prepare(covey.SparkParquet(spark, table) if files else spark.read.parquet(table))
    synth.check(prepared.n)
    receipt = books.charge(dataset, EPSILON, DELTA, "release")
    # From here on nothing depends on what a record holds.
    synth.fit(prepared)
    bundle = write_bundle(synth.release(min(synth.n, BUNDLE_ROWS)), folder, parquet=True)
    synth.sample_spark(spark, synth.n).write.parquet(f"{out}/rows")
    books.mark_released(receipt, hashlib.sha256((bundle / "SHA256SUMS").read_bytes()).hexdigest())
    print(synth.certificate)


if __name__ == "__main__":
    if len(sys.argv) < 6 or sys.argv[6:] not in ([], ["--files"]):
        sys.exit("spark_job.py TABLE SCHEMA DATASET LEDGER OUT [--files]")
    with SparkSession.builder.appName("covey").getOrCreate() as session:
        release(session, *sys.argv[1:6], files=len(sys.argv) == 7)
