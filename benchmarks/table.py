"""Encoding beside reading, and how quickly the command line answers.

python benchmarks/table.py [--rows 5000000]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from covey.tables.codec import Codec
from covey.tables.schema import Schema
from covey.tables.sources import read_table


def write_table(path, rows, attributes=14):
    import polars as pl

    generator = np.random.default_rng(0)
    labels = [np.array([f"c{a}_{i}" for i in range(size)]) for a, size in enumerate([2, 5, 9, 16, 42, 7, 3] * 2)]
    columns = {f"a{a}": labels[a][generator.integers(0, len(labels[a]), rows)] for a in range(attributes)}
    pl.DataFrame(columns).write_csv(path)
    fields = [
        {"name": f"a{a}", "type": "string", "constraints": {"enum": labels[a].tolist(), "required": True}}
        for a in range(attributes)
    ]
    return Schema.from_dict({"fields": fields})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=5_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        codec = Codec(write_table(path, rows))
        begin = time.perf_counter()
        table = read_table(path, codec.schema)
        reading = time.perf_counter() - begin
        begin = time.perf_counter()
        codec.encode(table)
        encoding = time.perf_counter() - begin
    whole = (reading + encoding) / reading
    verdict = "ok" if whole <= 3 else "MISSED"
    print(f"{rows:,} × 14 categories: read {reading:.1f} s, read and encode {whole:.2f}×   target ≤ 3× {verdict}")
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-m", "covey.desk.cli", "--help"], check=True, capture_output=True)
        times.append(time.perf_counter() - begin)
    verdict = "ok" if min(times) < 0.5 else "MISSED"
    print(f"covey --help: {min(times):.2f} s   target < 0.5 s {verdict}")


if __name__ == "__main__":
    main()
