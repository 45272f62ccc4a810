"""A row per version: speed of a release, and errors of three tables, so that a regression is seen.

    python -m benchmarks.versions --data FOLDER [--of COMMIT ...] [--out docs/benchmarks]

Measures the working tree, or earlier commits, each in a process of its own with its own src. A commit replaces its row in
versions.csv. Speed is processor time over that of Python's csv.reader on the same file, the best of three, so that rows of other
machines compare. FOLDER holds nltcs.npz, plants.npz, adult.csv with its domain, and bank.csv.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from datetime import date
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
FIELDS = ["version", "committed", "measured", "release", "nltcs", "plants", "adult", "bank KS", "bank"]
ROWS, SEEDS, TIMES = 200_000, 4, 3
HEAD = """# One row per version

`python -m benchmarks.versions --data FOLDER` (part of `make bench` where DATA is given) adds a row; `--of COMMIT` measures an
earlier version beside it.

- *release*: a CSV file of 200,000 rows and 14 categories, from file to bundle, in multiples of reading it with csv.reader
- *nltcs*, *plants*: root mean square error of proportions of two yes/no columns
- *adult*: mean total variation distance of pairs; *bank KS*, *bank*: mean distance of distribution functions, and of pairs

Errors are means of four seeds at (1, 1e-9). Versions that draw other noise differ by chance. On a busy machine *release* moves by
a tenth.
"""


def measures(folder: Path) -> dict[str, float]:
    """All figures, with the covey that this process imports."""
    import covey
    from benchmarks.numeric.compare import codes_of, frame_of, schema_of
    from benchmarks.numeric.measures import judge
    from benchmarks.numeric.real import load
    from benchmarks.small import errors, pair_shares
    from benchmarks.small import load as coded

    found = {"release": release()}
    for name in ("nltcs", "plants", "adult"):
        X, sizes, ordered = coded(name)
        own, each = sizes or [2] * X.shape[1], []
        for seed in range(SEEDS):
            Z = covey.PrivateSynthesizer(1.0, 1e-9, domain=sizes, ordinal=ordered, seed=seed).fit(X).sample(len(X))
            each.append(errors(*(pair_shares(Y, own) for Y in (X, Z)), own)[0 if sizes else 1])
        found[name] = float(np.mean(each))
    table, frame = (bank := load("bank", folder)[0]), frame_of(bank)
    made = [covey.PrivateSynthesizer(1.0, 1e-9, schema=schema_of(table), seed=seed) for seed in range(SEEDS)]
    judged = [judge(table, codes_of(table, synth.fit(frame).sample(len(frame))))[0] for synth in made]
    return found | {"bank KS": np.mean([j["KS"] for j in judged]), "bank": np.mean([j["2-way TV"] for j in judged])}


def release() -> float:
    """A release from file to bundle, in multiples of reading the file."""
    from benchmarks.table import write_table
    from covey.workflow import PrivateOrder, release

    with tempfile.TemporaryDirectory() as name:
        path, schema, spent = Path(name) / "table.csv", Path(name) / "schema.json", []
        schema.write_text(json.dumps(write_table(path, ROWS).to_dict()))
        for k in range(TIMES):
            marks = [time.process_time()]
            with path.open(newline="") as file:
                sum(1 for _ in csv.reader(file))
            marks.append(time.process_time())
            release(PrivateOrder(path, schema, Path(name) / f"bundle{k}", 1.0, 1e-9, seed=1))
            spent.append(np.diff([*marks, time.process_time()]))
    return float(np.divide(*np.min(spent, axis=0)[::-1]))


def page(rows: list[dict]) -> str:
    """The page of versions.csv."""
    lines = [HEAD, f"| {' | '.join(FIELDS)} |", "|" + "---|" * len(FIELDS)]
    return "\n".join([*lines, *(f"| {' | '.join(row[k] for k in FIELDS)} |" for row in rows)]) + "\n"


def git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True).stdout.strip()


def measured(commit: str, folder: Path) -> dict[str, str]:
    """A row of the file; "" is the working tree."""
    with tempfile.TemporaryDirectory() as name:
        source = ROOT
        if commit:
            git("worktree", "add", "--detach", f"{name}/tree", commit)
            source = Path(name) / "tree"
        places = {"PYTHONPATH": f"{source / 'src'}{os.pathsep}{ROOT}", "COVEY_DATA": str(folder.absolute())}
        command = [sys.executable, "-m", "benchmarks.versions", "--data", str(folder), "--here"]
        try:
            told = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | places)
        finally:
            if commit:
                git("worktree", "remove", "--force", f"{name}/tree")
    values = json.loads(told.stdout.splitlines()[-1])
    facts = git("describe", "--always", "--tags", commit or "HEAD"), git("log", "-1", "--format=%cs", commit or "HEAD")
    return dict(zip(FIELDS, (*facts, date.today().isoformat(), *(f"{v:.4g}" for v in values.values())), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--of", nargs="+", default=[""], help="commits instead of the working tree")
    parser.add_argument("--here", action="store_true", help="print the figures of the covey that is imported")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.here:
        return print(json.dumps({k: float(v) for k, v in measures(given.data).items()}))
    for commit in given.of:
        row, path = measured(commit, given.data), given.out / "versions.csv"
        rows = list(csv.DictReader(path.open(encoding="utf-8"))) if path.exists() else []
        rows = sorted([r for r in rows if r["version"] != row["version"]] + [row], key=lambda r: r["committed"])
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        path.with_suffix(".md").write_text(page(rows), encoding="utf-8")
        print(row, flush=True)
    return None


if __name__ == "__main__":
    main()
