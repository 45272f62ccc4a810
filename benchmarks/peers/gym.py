"""SDGym, the benchmark of the SDV project, with covey as a custom synthesizer and SDGym's own scores.

    python -m benchmarks.peers.gym --data FOLDER [--tables telco] [--ways covey] [--again covey] [--seconds 600]

SDGym's own tables lie in a storage bucket. Here it gets those of benchmarks.numeric.real, by its own way for tables of one's own.
Absent packages and tables are reported as absent. Runs that sdgym.csv has are not repeated unless --again names their way.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import signal
import subprocess
import tempfile
import warnings
import zipfile
from datetime import date
from pathlib import Path

import pandas as pd

from benchmarks.numeric.real import CENSUS, LEFT_OUT, NUMBERS
from benchmarks.peers.launch import ENVIRONMENTS, THREADS

FIELDS = ["table", "rows", "columns", "way", "status", "quality", "diagnostic", "seconds", "date"]
OURS = ["covey", "covey, a row added or removed"]
REAL, UNIFORM = "DataIdentity", "UniformSynthesizer"
NETWORKS = ["CTGANSynthesizer", "CTGANSynthesizer:10", "TVAESynthesizer:10"]  # after a colon, epochs
WAYS = [REAL, *OURS, "GaussianCopulaSynthesizer", *NETWORKS, "ColumnSynthesizer", UNIFORM]
TABLES = list(NUMBERS)


def table(name: str, folder: Path) -> pd.DataFrame:
    """A table as it is: numbers, and categories as words; names of rows are left out."""
    file = folder / ("adult.data" if name == "adult" else f"{name}.csv")
    names = CENSUS.split() if name == "adult" else None
    raw = pd.read_csv(file, sep=";" if name == "cardio" else ",", names=names, dtype=str, skipinitialspace=True)
    raw = raw[raw.iloc[:, 0] != "age"].drop(columns=[n for n in raw if n in LEFT_OUT])
    for column in NUMBERS[name]:
        raw[column] = pd.to_numeric(raw[column], errors="coerce").fillna(0)
    return raw


def run(frame: pd.DataFrame, name: str, ways: list[str], seconds: int) -> list[dict]:
    """SDGym's own lines about some synthesizers on one table, as rows of the file; it runs its uniform one beside any other."""
    head = {"table": name, "rows": len(frame), "columns": frame.shape[1], "date": date.today().isoformat()}
    with tempfile.TemporaryDirectory() as made:
        place = Path(made) / "single_table" / name
        place.mkdir(parents=True)
        with zipfile.ZipFile(place / "data.zip", "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr(f"{name}.csv", frame.to_csv(index=False))
        kinds = {n: {"sdtype": "numerical" if n in NUMBERS[name] else "categorical"} for n in frame}
        told = {"tables": {name: {"columns": kinds}}, "relationships": [], "METADATA_SPEC_VERSION": "V1"}
        (place / "metadata.json").write_text(json.dumps(told))
        out = Path(made) / "scores.csv"
        command = [ENVIRONMENTS / "sdgym/bin/python", "-W", "ignore", Path(__file__).with_name("run_sdgym.py")]
        one = dict.fromkeys((f"{thread}_NUM_THREADS" for thread in THREADS), "1")
        env = os.environ | one | {"PYTHONPATH": f"{Path('src').absolute()}:{Path().absolute()}", "TMPDIR": made}
        done = subprocess.run(
            [str(word) for word in [*command, made, out, *ways]],
            capture_output=True,
            text=True,
            env=env,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5)),
        )
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return [head | {"way": way, "status": f"over {seconds} s"} for way in ways]
        if done.returncode:
            raise RuntimeError(f"SDGym failed: {done.stderr[-2000:]}")
        with out.open(encoding="utf-8", newline="") as file:
            return [head | told_of(line) for line in csv.DictReader(file)]


def told_of(line: dict[str, str]) -> dict:
    """A line of SDGym as part of a row."""
    way = line["Synthesizer"].removeprefix("Custom:").removeprefix("Variant:")
    if not line["Quality_Score"]:
        return {"way": way, "status": (line["Error"] or "no score").strip()[:160]}
    seen = {"quality": float(line["Quality_Score"]), "diagnostic": float(line["Diagnostic_Score"])}
    return {"way": way, "status": "ok", **seen, "seconds": float(line["Train_Time"]) + float(line["Sample_Time"])}


def read(folder: Path) -> dict[tuple[str, str], dict]:
    """The file's rows by table and way."""
    if not (folder / "sdgym.csv").exists():
        return {}
    with (folder / "sdgym.csv").open(encoding="utf-8", newline="") as file:
        return {(row["table"], row["way"]): row for row in csv.DictReader(file)}


def write(known: dict[tuple[str, str], dict], folder: Path) -> None:
    """sdgym.csv and its page, in the order of tables and ways."""
    order = sorted(known, key=lambda k: (TABLES.index(k[0]), WAYS.index(k[1])))
    with (folder / "sdgym.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: round(v, 4) if isinstance(v, float) else v for k, v in known[k].items()} for k in order)
    (folder / "sdgym.md").write_text(page(list(read(folder).values())), encoding="utf-8")


HEAD = """# SDGym

`python -m benchmarks.peers.gym --data FOLDER` (part of `make bench-peers`), code of 18 November 2026. SDGym 0.15.1 of the SDV
project (sdv 1.38.5, sdmetrics 0.32.0) ran with covey as a custom synthesizer, at (ε, δ) = (1, 1e-9) and its defaults, and
computed its own scores. Each figure is of one run.

- *quality*: mean of how close single columns and pairs are, of 1
- *diagnostic*: how much of the rows is valid (values in the real range, categories that exist), of 1

**Only covey promises anything about privacy.** All others learn from real rows without a guarantee, and DataIdentity gives them
back.
"""
REST = """## What to know

- SDGym's own tables lie in a storage bucket that was not reachable. It got these tables by its own way for tables of one's own.
- Identifiers are left out, telco's 11 blank totals count as 0, and covey is told round limits of numbers that are wider than
  the rows. A value beyond the real ones lowers *diagnostic*, which asks for the range of the real rows.
- CTGAN and TVAE can be entered by the same program, and were not run here: 300 epochs take long on one core.
- The weaker promise has the better score on three of the four tables, as it should. On bank it has not: one run is little.
- SDGym's privacy score was left out: it measures distances to real rows, and no promise follows from it.
- Seconds are SDGym's, of the wall clock, on a machine with other work, while it counts memory: compare them roughly or not at
  all.
- SDGym 0.15.1 fails with sdv 2.0.0, which `pip install sdgym` takes by default.
"""


def wins(rows: dict[tuple[str, str], dict]) -> list[str]:
    """Where a synthesizer without a promise has better scores than covey."""
    out = []
    for name in TABLES:
        own, lost = rows.get((name, "covey")), []
        others = [w for w in WAYS if w not in (REAL, *OURS) and rows.get((name, w), {}).get("status") == "ok"]
        for score in ("quality", "diagnostic") if own and own["status"] == "ok" else ():
            best = max(others, key=lambda way: float(rows[name, way][score]))
            if float(rows[name, best][score]) > float(own[score]):
                lost.append(f"{score} {show(rows[name, best][score])} against {show(own[score])} ({best})")
        out += [f"- **{name}**: {'; '.join(lost) or 'nowhere'}"] if own else []
    return out


def show(value: str) -> str:
    """Four digits: almost all rows are valid, and seldom all."""
    return f"{float(value):.4f}".lstrip("0") if value else ""


def page(listed: list[dict]) -> str:
    """The page of sdgym.csv."""
    rows = {(row["table"], row["way"]): row for row in listed}
    lines = [HEAD, "## Where a synthesizer is better than covey", "", *wins(rows), "", "## All figures", ""]
    lines += ["| table | synthesizer | quality | diagnostic | seconds |", "|---|---|---|---|---|"]
    for name in TABLES:
        for way in WAYS:
            if row := rows.get((name, way)):
                cells = [show(row["quality"]), show(row["diagnostic"]), f"{float(row['seconds'] or 0):.0f}"]
                cells = cells if row["status"] == "ok" else [row["status"], "", ""]
                lines.append(f"| {name} | {way} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", REST])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--ways", nargs="+", default=WAYS)
    parser.add_argument("--again", nargs="+", default=[])
    parser.add_argument("--seconds", type=int, default=600, help="of processor time for a network, or for all others")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if not (ENVIRONMENTS / "sdgym/bin/python").exists():
        print("SDGym: not installed")
        return
    for name in given.tables:
        try:
            frame = table(name, given.data)
        except FileNotFoundError as problem:
            print(f"{problem}: skipped")
            continue
        left = [way for way in given.ways if (name, way) not in read(given.out) or way in given.again]
        slow = [[way] for way in left if way in NETWORKS]  # each under a limit of its own
        for ways in [[way for way in left if way not in NETWORKS], *slow]:
            for row in run(frame, name, ways, given.seconds) if ways else ():
                print(row, flush=True)
                write(read(given.out) | {(name, row["way"]): row}, given.out)
    write(read(given.out), given.out)  # the page, if nothing was to be run


if __name__ == "__main__":
    main()
