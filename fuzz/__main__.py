"""Fuzz one target: `python -m fuzz table --runs 500000`. Needs atheris.

An uncaught exception, an input that takes more than 5 seconds or a process of more than 512 MiB ends the run with the input
that did it, written to build/fuzz/. Inputs in fuzz/corpus/ are where it starts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["covey.table", "fuzz.targets"]):
    from fuzz.targets import TARGETS

HERE = Path(__file__).parent


def main():
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=list(TARGETS))
    parser.add_argument("--runs", type=int, default=500_000)
    parser.add_argument("--length", type=int, default=400, help="longest input, in bytes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--patience", type=int, default=5, help="seconds of wall clock; more where others need the machine"
    )
    options = parser.parse_args()
    finds, grown = Path("build/fuzz"), Path("build/fuzz/corpus") / options.target
    grown.mkdir(parents=True, exist_ok=True)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        act, place = TARGETS[options.target], Path(folder)
        words = [
            f"-runs={options.runs}",
            f"-max_len={options.length}",
            f"-seed={options.seed}",
            f"-timeout={options.patience}",
            "-rss_limit_mb=512",
            f"-dict={HERE / 'words.txt'}",
            f"-artifact_prefix={finds}/{options.target}-",
            "-print_final_stats=1",
            str(grown),
            str(HERE / "corpus" / options.target),
        ]
        atheris.Setup([sys.argv[0], *words], lambda data: timed(act, data, place))
        atheris.Fuzz()


def timed(act, data, place):
    """One input; whatever else runs on the machine, it must not need more than 5 seconds of processor time."""
    begin = time.process_time()
    act(data, place)
    if time.process_time() - begin > 5:
        raise RuntimeError("an input took more than 5 seconds of processor time")


if __name__ == "__main__":
    main()
