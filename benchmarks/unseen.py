"""Accuracy of `regain` on tables of bits that nothing was tuned on, beside those that constants are tuned on.

python benchmarks/unseen.py --as NAME [--seeds 0,1] [--tables plants] [--settings "1:1e-9,1:0:added"] [--out docs/benchmarks]

The split is written down in benchmarks/binary.py. Adds the run to unseen.csv under a name, in place of an earlier one of the same
name, and writes unseen.md, which compares all runs. A run with a code of the past (PYTHONPATH) under another name gives "before".
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np

import covey
from benchmarks.binary import CHECKING, DATA, FRESH, TUNING, load_bits
from benchmarks.regain import Truth, name_of, show

SETTINGS = "1:1e-9,10:1e-9,1:0"
ADDED = ", a row added or removed"
DRAWS = 8  # of the bootstrap, whose δ varies from draw to draw more than ours
FIELDS = ["run", "table", "n", "p", "setting", "seed", "delta1", "delta2", "delta3", "delta4", "seconds"]
HALVES = {"tuned on": TUNING, "checking": CHECKING, "checking, never tuned on": FRESH}


def measure(names, settings, seeds, run):
    """A row for every table, setting and seed: ratios of δ_1 … δ_4 to the bootstrap of the true rows."""
    for name in names:
        X = load_bits(name)
        if X is None:
            print(f"{name} is not in {DATA}: skipped")
            continue
        truth, generator, n = Truth(X), np.random.default_rng(0), len(X)
        boot = np.mean([truth.errors(X[generator.integers(0, n, n)]) for _ in range(DRAWS)], axis=0)
        for epsilon, delta, neighbours in settings:
            for seed in seeds:
                begin = time.process_time()
                Z = covey.PrivateSynthesizer(epsilon, delta, seed=seed, neighbours=neighbours).fit(X).sample(n)
                seconds = time.process_time() - begin
                ratios = [f"{v:.4f}" for v in truth.errors(Z) / boot]
                setting = name_of(epsilon, delta) + ADDED * (neighbours != "replace-one")
                values = [run, name, *X.shape, setting, seed, *ratios, f"{seconds:.2f}"]
                yield dict(zip(FIELDS, map(str, values), strict=True))


def setting_of(text):
    """ε and δ, and which neighbours: 1:1e-9, 1:0:added."""
    epsilon, delta, *added = text.split(":")
    return float(epsilon), float(delta), "add-or-remove-one" if added else "replace-one"


def key(row):
    """What a run measures once."""
    return tuple(row[name] for name in ("run", "table", "setting", "seed"))


def ratios(rows):
    """Geometric means over seeds of the four ratios."""
    logs = [[np.log(float(row[f"delta{d}"])) for d in (1, 2, 3, 4)] for row in rows]
    return np.exp(np.mean(logs, axis=0))


def page(rows):
    """unseen.md."""
    runs, settings = (list(dict.fromkeys(row[name] for row in rows)) for name in ("run", "setting"))
    text = [
        "# regain on tables that nothing was tuned on",
        "",
        "`benchmarks/unseen.py`: RMSE₁ to RMSE₄, root mean square errors of 1- to 4-way shares, over those of a bootstrap of the",
        "true rows; as many synthetic rows as true ones; geometric means over seeds and tables. Seconds of processor time, fit",
        f"plus sample. The split is in `benchmarks/binary.py`: constants are tuned on {', '.join(TUNING)} alone. Of the",
        f"checking half {', '.join(FRESH)} were never tuned on;",
        "on the rest older constants were, none since the split. Tables that the folder has not got are skipped.",
    ]
    for setting in settings:
        text += ["", f"## {setting}", "", "| tables | " + " | ".join(runs) + " |", "|---|" + "---|" * len(runs)]
        here = [row for row in rows if row["setting"] == setting]
        for half, names in HALVES.items():
            text.append(f"| **{half}** | " + " | ".join(of(here, run, names) for run in runs) + " |")
        for name in TUNING + CHECKING:
            found = [row for row in here if row["table"] == name]
            if found:
                cells = [of(found, run, [name], timed=True) for run in runs]
                text.append(f"| {name} {found[0]['n']} × {found[0]['p']} | " + " | ".join(cells) + " |")
    return "\n".join(text) + "\n"


def of(rows, run, names, timed=False):
    """One cell of the page: every table counts once, however many seeds it has."""
    tables = [[row for row in rows if row["run"] == run and row["table"] == name] for name in names]
    tables = [found for found in tables if found]
    if not tables:
        return ""
    cell = show(np.exp(np.mean([np.log(ratios(found)) for found in tables], axis=0)), 2)
    seconds = [float(row["seconds"]) for row in tables[0] if row["seconds"]]
    if timed:
        return f"{cell}, {np.mean(seconds):.1f} s" if seconds else cell
    return f"{cell} ({len(tables)} tables)"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--as", dest="run", default="now")
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("--tables", default=",".join(TUNING + CHECKING))
    parser.add_argument("--settings", default=SETTINGS)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    options = parser.parse_args()
    warnings.simplefilter("ignore", covey.errors.CoveyWarning)
    settings = [setting_of(text) for text in options.settings.split(",")]
    found = []
    for row in measure(options.tables.split(","), settings, list(map(int, options.seeds.split(","))), options.run):
        found.append(row)
        print(" ".join(row.values()), flush=True)
    file = options.out / "unseen.csv"
    if file.exists():
        with file.open(encoding="utf-8", newline="") as old:
            fresh = {key(row) for row in found}
            found = [row for row in csv.DictReader(old) if key(row) not in fresh] + found
    with file.open("w", encoding="utf-8", newline="") as new:
        writer = csv.DictWriter(new, FIELDS)
        writer.writeheader()
        writer.writerows(found)
    (options.out / "unseen.md").write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
