"""Artificial Characters, a table of Tab-PE's own benchmark, whose label needs many columns at once: the worst case we know.

    python -m benchmarks.peers.characters --data FOLDER [--seeds 2] [--out docs/benchmarks]

FOLDER holds artificial-characters_train.csv and _test.csv as github.com/toan-vt/cloud-data-store has them (10 letters, seven
numbers). δ is that of Tab-PE's example, 1 / (n ln n). Accuracy is that of boosted trees on the test rows; the example's own
classifier, tabicl, was not to be had. Tab-PE gets limits and shares of labels without noise, as its example does.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import covey
from benchmarks.numeric.measures import judge
from benchmarks.numeric.tables import Column, Table, encode, number
from benchmarks.peers.launch import METHODS, launch
from covey.table.schema import Field, Schema

FIELDS = ["way", "epsilon", "seed", "status", "accuracy", "TV2", "KS", "seconds"]
LIMITS = {"V1": (0, 20), "V2": (0, 100), "V3": (0, 100), "V4": (0, 100), "V5": (-10, 100)}
EXACT = {"V6": (0, 100, 0.01), "V7": (0, 150, 0.01)}
EPSILONS = [1.0, 10.0]


def coded(frame: pd.DataFrame) -> Table:
    """The table on its public grid."""
    columns = [number(name, *bounds) for name, bounds in (LIMITS | EXACT).items()]
    codes = [encode(c, frame[c.name]) for c in columns] + [frame["Class"].to_numpy() - 1]
    return Table("characters", (*columns, Column("Class", 10)), np.column_stack(codes))


def schema(target: bool) -> Schema:
    """What covey is told."""
    fields = [Field(n, "integer", *b, required=True, default=0) for n, b in LIMITS.items()]
    fields += [Field(n, "number", b[0], b[1], required=True, default=1, decimals=2) for n, b in EXACT.items()]
    label = Field("Class", "string", enum=tuple(map(str, range(1, 11))), required=True)
    whole = Schema((*fields, label))
    return whole.focus(target="Class") if target else whole


def accuracy(train: pd.DataFrame, test: pd.DataFrame) -> float:
    """Of boosted trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    names = [*LIMITS, *EXACT]
    model = HistGradientBoostingClassifier(random_state=0).fit(train[names], train["Class"])
    return float(model.score(test[names], test["Class"]))


def ours(train: pd.DataFrame, target: bool, promise: tuple[float, float], seed: int) -> pd.DataFrame:
    frame = train.assign(Class=train["Class"].astype(str))
    synth = covey.PrivateSynthesizer(*promise, schema=schema(target), seed=seed)
    return pd.DataFrame(synth.fit(frame).sample(len(frame))).astype(float)


def theirs(train: pd.DataFrame, promise: tuple[float, float]) -> tuple[dict, pd.DataFrame | None]:
    method = replace(next(m for m in METHODS if m.name == "Tab-PE"), option="labelled", delta=promise[1])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train.to_csv(folder / "table.csv", index=False)
        (folder / "domain.json").write_text(json.dumps(dict.fromkeys(train.columns, 0)))
        told = launch(method, folder, len(train), promise[0], 900, 8)
        return told, pd.read_csv(folder / "synthetic.csv") if told["status"] == "ok" else None


def measure(way: str, epsilon: float, seed: int, frames: list[pd.DataFrame]) -> dict:
    """A row of the file."""
    train, test = frames
    head = {"way": way, "epsilon": epsilon, "seed": seed, "status": "ok"}
    promise, begin = (epsilon, 1 / (len(train) * math.log(len(train)))), time.process_time()
    if way == "real rows":
        made = train
    elif way == "Tab-PE":
        told, made = theirs(train, promise)
        head |= {"status": told["status"], "seconds": told.get("processor_seconds", "")}
    else:
        made = ours(train, way.endswith("target"), promise, seed)
        head["seconds"] = time.process_time() - begin
    if made is None:
        return head
    errors = judge(coded(train), coded(made.astype({"Class": int})).codes)[0]
    return head | {"accuracy": accuracy(made, test), "TV2": errors["2-way TV"], "KS": errors["KS"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    try:
        frames = [pd.read_csv(given.data / f"artificial-characters_{part}.csv") for part in ("train", "test")]
    except FileNotFoundError as problem:
        print(f"{problem}: skipped")
        return
    with (given.out / "characters.csv").open(encoding="utf-8", newline="") as file:
        known = {tuple(row[k] for k in FIELDS[:3]): row for row in csv.DictReader(file)}
    runs = [("real rows", 0.0, 0)]
    runs += [(way, e, s) for way in ("covey", "covey, target", "Tab-PE") for e in EPSILONS for s in range(given.seeds)]
    for run in runs:
        row = {k: f"{v:.4f}" if isinstance(v, float) else str(v) for k, v in measure(*run, frames).items()}
        place = tuple(row[k] for k in FIELDS[:3])
        known[place] = row if row["status"] == "ok" else known.get(place, row)  # who is not at hand keeps his figures
        print(row, flush=True)
    with (given.out / "characters.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(known.values())


if __name__ == "__main__":
    main()
