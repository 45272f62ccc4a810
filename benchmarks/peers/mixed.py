"""Real tables of numbers and categories: covey under both promises, its peers, and private learners, in one file of results.

    python -m benchmarks.peers.mixed --data FOLDER [--tables bank telco] [--ways "dpsynth SWIFT"] [--again covey] [--seeds 2]

Seven tenths of the rows are released, and the rest judges what models learned. FOLDER holds telco.csv, bank.csv, cardio.csv and
UCI's adult.data; a table that is not there is skipped. Runs that mixed.csv has are not repeated unless --again names their way.
Peers that know categories alone get numbers cut at 32 quantiles of the real rows, free of charge: that is not private and favours
them. dpsynth cuts numbers itself. DP-EBM and private boosting are no synthesizers: they learn the label under differential
privacy, and only their AUC is measured.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import tempfile
import time
import warnings
from dataclasses import replace
from datetime import date
from pathlib import Path
from statistics import mean

import numpy as np
import pandas as pd

import covey
from benchmarks.knowledge import aucs
from benchmarks.numeric.compare import codes_of, frame_of, schema_of
from benchmarks.numeric.measures import coarse_codes, judge
from benchmarks.numeric.real import NUMBERS, load
from benchmarks.numeric.tables import Table, encode
from benchmarks.peers.compare import decided
from benchmarks.peers.launch import ENVIRONMENTS, METHODS, launch
from benchmarks.peers.launch import PEERS as SOURCES
from benchmarks.peers.metrics import subsets
from covey.evaluation.comparison import total_variation

RELEASED, EIGHTHS, BINS, DELTA = 0.7, 8, 32, 1e-9
FIELDS = ["table", "rows", "columns", "way", "epsilon", "seed", "status", "KS", "Spearman", "TV2", "TV3", "trees"]
FIELDS += ["logistic", "seconds", "date"]


def split(table: Table) -> tuple[Table, np.ndarray]:
    """The rows that are released, and those that judge."""
    order = np.random.default_rng(0).permutation(len(table.codes))
    cut = int(RELEASED * len(order))
    return replace(table, codes=table.codes[order[:cut]]), table.codes[order[cut:]]


def errors(table: Table, codes: np.ndarray) -> dict[str, float]:
    """Distances of single numbers, rank correlations, tables of two columns (twentieths) and of three (eighths)."""
    found = judge(table, codes)[0]
    true, drawn = table.values(), table.values(codes)
    X, sizes = coarse_codes(table, table.codes, true, true, EIGHTHS)
    Z, _ = coarse_codes(table, codes, true, drawn, EIGHTHS)
    three = np.mean([total_variation(X, Z, sizes, s) for s in subsets(len(sizes), 3)])
    return {"KS": found["KS"], "Spearman": found["Spearman RMS"], "TV2": found["2-way TV"], "TV3": float(three)}


def covey_rows(table: Table, epsilon: float, seed: int, target: str | None, neighbours: str) -> np.ndarray:
    """As many synthetic rows as there are."""
    schema = schema_of(table)
    schema = schema.focus(target=target) if target else schema
    synth = covey.PrivateSynthesizer(epsilon, DELTA, schema=schema, seed=seed, neighbours=neighbours)
    return codes_of(table, synth.fit(frame_of(table)).sample(len(table.codes)))


def peer_rows(table: Table, way: str, epsilon: float, seed: int, seconds: int) -> tuple[dict, np.ndarray | None]:
    """What a peer's own process says of its run, and its rows as codes."""
    method = next(m for m in METHODS if m.name == way.partition(",")[0])
    method = replace(method, option=OPTIONS.get(way.partition(", ")[2], method.option))
    with tempfile.TemporaryDirectory() as name:
        folder, n = Path(name), len(table.codes)
        true, raw = table.values(), method.source == "dpsynth"
        edges = {j: cuts(table.codes[:, j]) for j in true}
        cut = [np.searchsorted(edges[j], x, side="right") if j in true else x for j, x in enumerate(table.codes.T)]
        codes, sizes = (
            np.column_stack(cut),
            [len(edges[j]) + 1 if j in true else c.size for j, c in enumerate(table.columns)],
        )
        names = [c.name for c in table.columns]
        frame = pd.DataFrame(codes, columns=names)
        domain: dict[str, object] = dict(zip(names, map(int, sizes), strict=True))
        if raw:
            frame = frame.assign(**{names[j]: values for j, values in true.items()})
            domain |= {c.name: [c.low, c.low + c.step * (c.size - 1)] for c in table.columns if c.number}
        frame.to_csv(folder / "table.csv", index=False)
        (folder / "domain.json").write_text(json.dumps(domain))
        told = launch(method, folder, n, epsilon, seconds, 8)
        if told["status"] != "ok":
            return told, None
        rows = pd.read_csv(folder / "synthetic.csv")
    drawn = rows[names].to_numpy()
    return told, drawn_codes(table, drawn, raw, np.random.default_rng(seed))


def cuts(codes: np.ndarray) -> np.ndarray:
    """Where bins of a number begin, but the first: at 32 quantiles, and a value that holds two of them has a bin of its own."""
    found, often = np.unique(np.quantile(codes, np.arange(1, BINS) / BINS, method="lower"), return_counts=True)
    edges = np.unique(np.concatenate([found, found[often > 1] + 1])).astype(np.int64)
    return edges[(edges > codes.min()) & (edges <= codes.max())]


def drawn_codes(table: Table, drawn: np.ndarray, raw: bool, generator: np.random.Generator) -> np.ndarray:
    """Codes of a peer's rows; a number that came as a bin is drawn evenly between the real values at its ends."""
    out = np.zeros(drawn.shape, dtype=np.int64)
    for j, column in enumerate(table.columns):
        if not column.number or raw:
            out[:, j] = encode(column, drawn[:, j]) if column.number else drawn[:, j]
            continue
        codes = table.codes[:, j]
        ends = np.concatenate([[codes.min()], cuts(codes), [codes.max() + 1]])
        low, high = ends[:-1], ends[1:]
        out[:, j] = generator.integers(low[drawn[:, j].astype(int)], high[drawn[:, j].astype(int)])
    return out


def private_learner(table: Table, test: np.ndarray, label: tuple[int, int], run: tuple[str, float, int]) -> dict:
    """A private learner's own AUC, from its own environment."""
    way, epsilon, seed = run
    name = "gbdt" if way in BOOSTING else "ebm"
    python = ENVIRONMENTS / name / "bin/python"
    if not python.exists():
        return {"status": "not installed"}
    train = numbers_of(table, table.codes)
    kinds = [[c.low, c.low + c.step * (c.size - 1)] if c.number else c.ordered for c in table.columns]
    if way == KNOWING:
        kinds = [[x.min(), x.max()] if c.number else c.ordered for c, x in zip(table.columns, train.T, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "rows.npz", train=train, test=numbers_of(table, test))
        facts = {"kinds": kinds, "place": label[0], "yes": label[1], "epsilon": epsilon, "delta": DELTA, "seed": seed}
        facts |= {"sizes": [c.size for c in table.columns], "batches": way == BATCHES}
        (Path(folder) / "facts.json").write_text(json.dumps(facts))
        command = [str(python), "-W", "ignore", str(Path(__file__).with_name(f"run_{name}.py")), folder]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PEERS": str(SOURCES)})
    if done.returncode:
        return {"status": f"failed: {done.stderr.strip().splitlines()[-1][:160]}"}
    auc, seconds = map(float, done.stdout.split()[-2:])
    return {"status": "ok", "trees": auc, "seconds": seconds}


def numbers_of(table: Table, codes: np.ndarray) -> np.ndarray:
    """Numbers in their own units, categories as codes."""
    return np.column_stack([c.values(codes[:, j]) if c.number else codes[:, j] for j, c in enumerate(table.columns)])


OURS: dict[str, tuple[bool, str]] = {
    "covey": (False, "replace-one"),
    "covey, target": (True, "replace-one"),
    "covey, a row added or removed": (False, "add-or-remove-one"),
}
PEERS = [
    "dpsynth MST",
    "private-pgm MST",
    "smartnoise MST",
    "dpsynth SWIFT",
    "dpsynth SWIFT, 1e5 cells",
    "private-pgm AIM, 1 MB",
    "private-pgm AIM, 8 MB",
    "private-pgm AIM",
]
OPTIONS = {"1e5 cells": "swift-large", "1 MB": "aim-small", "8 MB": "aim-hour"}  # what follows a peer's name
REAL, AGAIN, LEARNER = "real rows", "a fresh sample of real rows", "DP-EBM"
KNOWING = "DP-EBM, real limits"  # of numbers, which no private learner knows: this favours it
BOOSTING = [BOOSTED := "private boosting", BATCHES := "private boosting, batches"]
PRIVATE = [LEARNER, KNOWING, *BOOSTING]  # they learn the label and make no rows
WAYS = [REAL, AGAIN, *OURS, *PEERS]
TABLES = list(NUMBERS)
HARD = {"characters": "Artificial Characters", "activity": "Person Activity"}  # of characters.csv
LEARNED, EPSILONS = ["adult", "bank", "telco", "cardio", "shoppers", "credit"], [0.1, 0.5, 1.0, 4.0]


def measure(data: tuple[Table, int, int], way: str, epsilon: float, seed: int, seconds: int) -> dict:
    """One row of the file."""
    every, place, yes = data
    table, test = split(every)
    head = {"table": every.name, "rows": len(table.codes), "columns": len(table.columns), "way": way}
    head |= {"epsilon": epsilon, "seed": seed, "date": date.today().isoformat(), "status": "ok"}
    begin, codes = time.process_time(), None
    if way in PRIVATE:
        return head | private_learner(table, test, (place, yes), (way, epsilon, seed))
    if way == REAL:
        codes = table.codes
    elif way == AGAIN:
        codes = table.codes[np.random.default_rng(seed + 1).integers(0, len(table.codes), len(table.codes))]
    elif way in OURS:
        wanted, neighbours = OURS[way]
        target = table.columns[place].name if wanted else None
        codes = covey_rows(table, epsilon, seed, target, neighbours)
        head["seconds"] = time.process_time() - begin
    else:
        told, codes = peer_rows(table, way, epsilon, seed, seconds)
        head |= {"status": told["status"], "seconds": told.get("processor_seconds", "")}
    if codes is None:
        return head
    trees, logistic = aucs(codes, test, table, place, yes)
    return head | errors(table, codes) | {"trees": trees, "logistic": logistic}


def read(folder: Path) -> dict[tuple[str, ...], dict[str, str]]:
    """The file's rows by table, way, ε and seed."""
    if not (folder / "mixed.csv").exists():
        return {}
    with (folder / "mixed.csv").open(encoding="utf-8", newline="") as file:
        return {key(row): row for row in csv.DictReader(file)}


def key(row: dict) -> tuple[str, ...]:
    return row["table"], row["way"], f"{float(row['epsilon']):g}", str(row["seed"])


def write(known: dict[tuple[str, ...], dict], folder: Path) -> None:
    """mixed.csv and its page, in the order of tables and ways."""
    ways = [*WAYS, *PRIVATE]
    order = sorted(known, key=lambda k: (TABLES.index(k[0]), float(k[2]), ways.index(k[1]), int(k[3])))
    with (folder / "mixed.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: round(v, 4) if isinstance(v, float) else v for k, v in known[k].items()} for k in order)
    (folder / "mixed.md").write_text(page(list(read(folder).values())), encoding="utf-8")


MEASURES = ["KS", "Spearman", "TV2", "TV3", "trees", "logistic"]
HEAD = """# Real tables of numbers and categories

`python -m benchmarks.peers.mixed --data FOLDER` (part of `make bench-peers`), (ε, δ) = (1, 1e-9), code of 18 November 2026. Seven
tenths of the rows are released; the others judge. Columns and their limits are declared, everything else is left at defaults, and
but for the rule of `target` nothing was tuned on these runs. Figures are means over the runs in the last column.

- *KS*: mean distance of distribution functions of numbers; *Spearman*: root mean square error of rank correlations
- *TV2*, *TV3*: mean total variation distance of two and three columns, numbers in twentieths and eighths of the real ones
- *trees*, *logistic*: AUC of boosted trees and of a logistic regression trained on synthetic rows, tested on real ones

covey's promise is for a replaced row, and *added or removed* is the promise of the peers, the weaker one. Seconds are processor
seconds on a machine with other work.
"""


def averages(rows: list[dict], table: str, way: str, epsilon: float = 1.0) -> dict[str, float]:
    """Means of a way's runs; empty where there is none."""
    own = [
        r for r in rows if (r["table"], r["way"], r["status"]) == (table, way, "ok") and float(r["epsilon"]) == epsilon
    ]
    keys = [k for k in [*MEASURES, "seconds"] if own and own[0][k] != ""]
    return {k: mean(float(r[k]) for r in own) for k in keys} | ({"runs": len(own)} if own else {})


def wins(rows: list[dict]) -> list[str]:
    """Where the best peer is better than covey under its own promise, one line for each table."""
    out = []
    for table in TABLES:
        ours = averages(rows, table, "covey")
        lost = []
        for key in MEASURES:
            sign = -1 if key in ("trees", "logistic") else 1
            others = {way: found[key] for way in PEERS if key in (found := averages(rows, table, way))}
            if others and sign * others[best := min(others, key=lambda w: sign * others[w])] < sign * ours[key]:
                lost.append(f"{key} {show(others[best])} against {show(ours[key])} ({best})")
        out.append(f"- **{table}**: {'; '.join(lost) or 'nowhere'}")
    for table in LEARNED:
        lost = []
        for e in EPSILONS:
            ours = averages(rows, table, "covey, target", e).get("trees", 1.0)
            others = {way: averages(rows, table, way, e).get("trees", 0.0) for way in PRIVATE if way != KNOWING}
            if others[best := max(others, key=lambda way: others[way])] > ours:
                lost.append(f"{show(others[best])} against {show(ours)} at ε = {e:g} ({best})")
        words = "a private learner learns more than boosted trees on covey's rows with `target`, AUC"
        out += [f"- **{table}**, label alone: {words} {', '.join(lost)}"] * bool(lost)
    for table, words in HARD.items():
        one = letters(table)
        for epsilon in (1.0, 10.0):
            ours, theirs = (one.get((way, epsilon), {}).get("accuracy", 0) for way in ("covey, target", "Tab-PE"))
            if theirs > ours:
                said = f"accuracy {show(theirs)} against {show(ours)} of covey with `target` at ε = {epsilon:g}"
                out.append(f"- **{words}**, label alone: Tab-PE, {said} (real rows {show(one[REAL, 0.0]['accuracy'])})")
    return out


def show(value: float) -> str:
    return f"{value:.3f}".lstrip("0")


def page(rows: list[dict]) -> str:
    """The page of mixed.csv."""
    lines = [HEAD, "## Where a peer is better than covey", "", *wins(rows), "", FOUND, "## All figures", ""]
    lines += [f"| table | way | {' | '.join(MEASURES)} | seconds | runs |", "|" + "---|" * 10]
    for table in TABLES:
        for way in WAYS:
            found = averages(rows, table, way)
            if not found:
                failed = [r for r in rows if (r["table"], r["way"]) == (table, way)]
                lines += [f"| {table} | {way} | {failed[0]['status']} |" + " |" * 7] if failed else []
                continue
            cells = [show(found[key]) if found[key] else "0" for key in MEASURES]
            cells += [f"{found['seconds']:.0f}" if "seconds" in found else "", str(found["runs"])]
            lines.append(f"| {table} | {way} | {' | '.join(cells)} |")
    lines += [
        "",
        LEARNING,
        "| table | AUC of | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |",
        "|---|---|---|---|---|---|",
    ]
    for table in LEARNED:
        for way, key, words in LEARNERS:
            cells = [averages(rows, table, way, epsilon).get(key) for epsilon in EPSILONS]
            lines.append(f"| {table} | {words} | {' | '.join('' if c is None else show(c) for c in cells)} |")
        real = averages(rows, table, REAL) or {"trees": 0.0, "logistic": 0.0}
        lines.append(f"| {table} | real rows: trees {show(real['trees'])}, logistic {show(real['logistic'])} | | | | |")
    return "\n".join([*lines, "", REST.replace("{characters}", characters())])


def letters(table: str = "characters") -> dict[tuple[str, float], dict[str, float]]:
    """Means of characters.csv by way and ε."""
    with (Path(__file__).parents[2] / "docs/benchmarks/characters.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["table"], row["status"]) == (table, "ok")]
    keys = dict.fromkeys((row["way"], float(row["epsilon"])) for row in rows)
    groups = {key: [r for r in rows if (r["way"], float(r["epsilon"])) == key] for key in keys}
    names = ("accuracy", "TV2", "KS", "seconds")
    return {
        key: {k: mean(float(r[k] or 0) for r in own) for k in names} | {"runs": len(own)} for key, own in groups.items()
    }


def characters() -> str:
    """The table of characters.csv."""
    lines = ["| table | way | ε | accuracy | TV2 | KS | seconds | runs |", "|---|---|---|---|---|---|---|---|"]
    for table, words in HARD.items():
        for (way, epsilon), own in letters(table).items():
            cells = [show(own[k]) if own[k] else "0" for k in ("accuracy", "TV2", "KS")]
            cells += [f"{own['seconds']:.0f}" if own["seconds"] else "", str(own["runs"])]
            lines.append(f"| {words} | {way} | {f'{epsilon:g}' if epsilon else ''} | {' | '.join(cells)} |")
    return "\n".join(lines)


LEARNERS = [
    (LEARNER, "trees", LEARNER),
    (KNOWING, "trees", "DP-EBM with the real limits of numbers, which favours it"),
    (BOOSTED, "trees", BOOSTED),
    (BATCHES, "trees", "private boosting, batches of thirty trees"),
    ("covey", "trees", "boosted trees on covey's rows"),
    ("covey", "logistic", "logistic regression on covey's rows"),
    ("covey, target", "trees", "boosted trees, covey with `target`"),
]
FOUND = """covey measures single columns and pairs, and there it is closer. What a label needs of many columns comes through
less well, and with few rows a method made for the label wins.
"""
LEARNING = """## Private learners

DP-EBM (interpret-core 0.7.8, defaults) and private boosting (PrivateGBDT of "Federated Boosted Decision Trees with Differential
Privacy", CCS 2022, at d3d9a5e, on one machine) learn the label itself under differential privacy, with δ = 1e-9 and the same
limits of numbers. They spend all of their budget on one column; a synthetic table has all columns at once. Figures are AUC on
held-out real rows, means of two seeds.
"""
REST = """## Benchmarks that others defined

**Two tables of Tab-PE** (`python -m benchmarks.peers.characters --data FOLDER`): Artificial Characters has 7,152 rows, seven
numbers and ten letters, and Person Activity 24,729, five numbers, two categories and eleven activities. The label depends on all
columns at once. δ = 1 / (n ln n), as in Tab-PE's examples. *Accuracy* is that of boosted trees on 1,533 and 24,729 held-out rows.
Of Person Activity the validation rows were released, because its larger training part could not be had. Tab-PE gets the real
limits of numbers and shares of labels, without noise, as in its examples.

{characters}

Two others have pages of their own: [the benchmark of SIGMOD 2025](tabbench.md), with its evaluators and methods, and
[SDGym](sdgym.md). Not entered, because they could not be had: MargNet's dense tables other than adult, and GEM+ (no code found).

## What to know

- Peers ran on one core, with at most 600 processor seconds (the first runs on bank 2,500, AIM 3,600), 8 GiB.
- private-pgm's AIM may have models of 80 MB and 16 rounds for each column by default, many hours by its own documentation. Here
  it gets all pairs, double precision, and models of 1 MB with two rounds for each column, or of 8 MB with four, and an hour. With
  its defaults probabilities became NaN after 22 rounds.
- dpsynth's SWIFT gets cliques of 10,000 cells (or 100,000, where its name says 1e5) and 1,000 steps; at its defaults it does not
  finish. dpsynth cuts numbers at 32 private quantiles, its default. It gets the ρ of a Gaussian mechanism with exactly this ε and
  δ, as covey does.
- private-pgm and smartnoise know categories alone. They get numbers cut at 32 quantiles of the real rows, free of charge, which
  is not private and favours them. Common values have a bin of their own, and inside a bin values are drawn evenly.
- telco's 11 blank totals belong to customers of the first month, and count as 0. Names of rows are left out, and adult's
  education in words, which education in years says too.
- Without `target` nothing was tuned on shoppers and credit, which came last.
- `target` tells covey which column is to be predicted. What it does follows from public numbers ([guide](../guides/schema.md)).
  The two limits and the parts of the budget in that rule were set on bank and telco at ε = 0.1 to 1, and checked on adult,
  cardio, shoppers and credit, whose earlier figures were in view.
- DP-EBM counts numbers in 64 bins of equal width first, which impossible blood pressures of cardio spoil. Private boosting begins
  with 32 of them and refines them in its first five rounds. It has 100 trees of depth 4 with random splits and Newton steps,
  settings of its paper's experiments; batches are averaged, its proposal for small ε. Its δ would be 1 / n, and its limits would
  be read from the rows: it got ours. Its promise is for a row that is added or removed.
- Peers had one or two runs for each table, as the last column says, so that differences of a few percent mean nothing.
- Not run: what has no row above, AIM of other packages and at its defaults, dp-xgboost (it has to be compiled), pure ε, and more
  than two seeds.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--ways", nargs="+", default=[*WAYS, *PRIVATE])
    parser.add_argument("--again", nargs="+", default=[])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=1500, help="of processor time for one run of a peer")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for seed in range(given.seeds):
        for way in given.ways:
            for name in given.tables:
                learned = name in LEARNED and way in (*PRIVATE, "covey", "covey, target")
                for epsilon in EPSILONS if learned else [1.0]:
                    known = read(given.out)
                    own = known.get((name, way, f"{epsilon:g}", str(seed)))
                    if way not in given.again and decided(own):
                        continue
                    try:
                        data = load(name, given.data)
                    except FileNotFoundError as problem:
                        print(f"{problem}: skipped")
                        continue
                    row = measure(data, way, epsilon, seed, given.seconds)
                    print({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
                    write(read(given.out) | {key(row): row}, given.out)
    write(read(given.out), given.out)  # the page, if nothing was to be run


if __name__ == "__main__":
    main()
