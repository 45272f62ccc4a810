"""How a release of a Parquet file grows with its rows: time against reading the file twice, and peak memory.

    python benchmarks/scale.py [--rows 100000 1000000 20000000] [--table survey | mixed] [--times 1] [--folder build/scale]

The survey has 30 categories. The mixed table has eight categories, four counts, four amounts of money, two dates, and two numbers
of which a tenth is missing. With `--times 20` it has twenty times these columns.
Each figure comes from a process of its own. "read twice" reads the needed columns two times with the same reader, in the same
process as the release, just before it. The release is complete: reading, encoding, measuring, certificate, drawing and writing
`--draw` rows. The ratio is given by the clock, which wants idle cores, and in processor seconds, which mind others less.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

SIZES = [2, 3, 4, 5, 6, 8] * 5
MIXED_SIZES = [2, 3, 4, 5, 6, 8, 10, 12]
ROWS = [100_000, 1_000_000, 20_000_000]
STEP = 500_000


def categories(z, sizes, generator):
    """Text columns with a common cause."""
    import pyarrow as pa

    columns = {}
    for a, c in enumerate(sizes):
        x = np.minimum((c * (0.5 * z + 0.5 * generator.random(len(z))) ** 1.5).astype(np.int32), c - 1)
        words = pa.array([f"answer {j}" for j in range(c)])
        columns[f"q{a}"] = pa.DictionaryArray.from_arrays(pa.array(x), words).cast(pa.string())
    return columns


def numbers(z, times, generator):
    """Numbers with the same cause."""
    import pyarrow as pa

    k, columns = len(z), {}
    for a in range(4 * times):
        columns[f"count{a}"] = pa.array((generator.gamma(2, 10, k) * (1 + z)).astype(np.int64).clip(0, 200))
        columns[f"money{a}"] = pa.array(np.round(np.exp(generator.normal(5 + z, 1)), 2).clip(0, 99_999))
    for a in range(2 * times):
        days = (18_000 + 1000 * z + generator.integers(0, 365, k)).astype(np.int32)
        columns[f"day{a}"] = pa.array(days).cast(pa.date32())
        value = np.round((generator.gamma(2, 100, k) * (1 + z)).clip(0, 5000), 1)
        columns[f"value{a}"] = pa.array(value, mask=generator.random(k) < 0.1)
    return columns


def make_table(path: Path, n: int, kind: str, times: int = 1, seed: int = 1) -> None:
    """Columns with a common cause, written in row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator, writer = np.random.default_rng(seed), None
    for start in range(0, n, STEP):
        k = min(STEP, n - start)
        z = generator.random(k)
        mixed = kind == "mixed"
        columns = categories(z, (MIXED_SIZES if mixed else SIZES) * times, generator)
        table = pa.table(columns | numbers(z, times, generator) if mixed else columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def schema_of(kind: str, times: int = 1):
    from covey.tables.schema import Field, Schema

    fields = [
        Field(f"q{a}", "string", enum=tuple(f"answer {j}" for j in range(c)), required=True)
        for a, c in enumerate((MIXED_SIZES if kind == "mixed" else SIZES) * times)
    ]
    if kind == "mixed":
        fields += [Field(f"count{a}", "integer", 0, 200, required=True) for a in range(4 * times)]
        fields += [Field(f"money{a}", "number", 0, 100_000, decimals=2, required=True) for a in range(4 * times)]
        fields += [Field(f"day{a}", "date", "2019-01-01", "2024-12-31", required=True) for a in range(2 * times)]
        fields += [Field(f"value{a}", "number", 0, 5000, decimals=1) for a in range(2 * times)]
    return Schema(tuple(fields)).confirm()


def measure(path: Path, kind: str, times: int, draw: int) -> dict[str, float]:
    """Read twice, then release, in this process."""
    from covey.release.bundle import write_bundle
    from covey.synthesizers import PrivateSynthesizer
    from covey.tables.sources import open_source

    schema = schema_of(kind, times)

    def read() -> int:
        return sum(len(part) for part in open_source(path, schema).parts())

    n = read()  # the file is in the system's cache for both
    begin, work = time.perf_counter(), time.process_time()
    read()
    read()
    twice, twice_work = time.perf_counter() - begin, time.process_time() - work
    begin, work = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        synth = PrivateSynthesizer(1.0, 1e-9, schema=schema)
        prepared = synth.prepare(path)
        reading = time.perf_counter() - begin
        synth.fit(prepared)
        fitting = time.perf_counter() - begin - reading
        write_bundle(synth.release(min(draw, n)), path.with_suffix(".bundle"), parquet=True, force=True)
    total, total_work = time.perf_counter() - begin, time.process_time() - work
    found = {"n": n, "twice": twice, "reading": reading, "fitting": fitting, "total": total}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return found | {"twice_work": twice_work, "total_work": total_work, "peak_gib": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--folder", type=Path, default=Path("build/scale"))
    parser.add_argument("--table", choices=["survey", "mixed"], default="survey")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--draw", type=int, default=100_000)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.table, options.times, options.draw)))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    print("| rows | read twice | first pass | fit | release | release / read twice | in processor seconds | peak GiB |")
    print("|---|---|---|---|---|---|---|---|")
    found = []
    for n in options.rows:
        path = options.folder / f"{options.table}-{n}-{options.times}.parquet"
        if not path.exists():
            make_table(path, n, options.table, options.times)
        command = [sys.executable, __file__, "--one", str(path), "--table", options.table]
        command += ["--times", str(options.times), "--draw", str(options.draw)]
        result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        found.append(result)
        print(
            f"| {n} | {result['twice']:.2f} s | {result['reading']:.2f} s | {result['fitting']:.2f} s "
            f"| {result['total']:.2f} s | {result['total'] / result['twice']:.2f} "
            f"| {result['total_work']:.1f} / {result['twice_work']:.1f} = {result['total_work'] / result['twice_work']:.2f} "
            f"| {result['peak_gib']:.2f} |",
            flush=True,
        )
    if len(found) > 1:
        a, b = found[0], found[-1]
        exponent = math.log(b["total"] / a["total"]) / math.log(b["n"] / a["n"])
        passes = math.log(b["reading"] / a["reading"]) / math.log(b["n"] / a["n"])
        print(
            f"\ngrowth exponent from {a['n']} to {b['n']} rows: {exponent:.2f} (the pass over the rows alone: {passes:.2f})"
        )


if __name__ == "__main__":
    main()
