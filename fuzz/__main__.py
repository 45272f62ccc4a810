"""Fuzz one target: `python -m fuzz releases --runs 5000`, or of bytes, with atheris, `python -m fuzz table --runs 500000`.

Or ask questions whose answers are known: `python -m fuzz answers --runs 200`, see fuzz/answers.py.

Of bytes, an uncaught exception, an input that takes more than 5 seconds or a process of more than 512 MiB ends the run with the
input that did it, written to build/fuzz/. Inputs in fuzz/corpus/ are where it starts. For releases see fuzz/releases.py.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent


def main():
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=["releases", "answers", "table", "schema"])
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--length", type=int, default=400, help="longest input, in bytes")
    parser.add_argument("--seed", type=int, default=1, help="of releases: the first one")
    parser.add_argument("--log", type=Path, help="of releases: where finds are written as they come")
    parser.add_argument(
        "--patience", type=int, default=5, help="seconds of wall clock; more where others need the machine"
    )
    options = parser.parse_args()
    if options.target == "releases":
        from fuzz.releases import main as explore

        sys.exit(explore(options.runs, options.seed, options.log))
    if options.target == "answers":
        from fuzz.answers import main as ask

        sys.exit(ask(options.runs, options.seed))
    of_bytes(options)


def of_bytes(options):
    """Let atheris look for inputs that break a target."""
    import atheris

    with atheris.instrument_imports(include=["covey.tables", "fuzz.targets"]):
        from fuzz.targets import TARGETS

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
