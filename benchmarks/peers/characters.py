"""Two tables of Tab-PE's own benchmark, whose labels need many columns at once: the worst cases we know.

    python -m benchmarks.peers.characters --data FOLDER [--seeds 2] [--out docs/benchmarks]

FOLDER holds artificial-characters_train.csv and _test.csv (10 letters, seven numbers), and person-activity_val.csv and _test.csv
(11 activities, five numbers, two categories), as github.com/toan-vt/cloud-data-store has them. Training rows of person-activity
could not be had. δ is that of Tab-PE's example, 1 / (n ln n). Accuracy is that of boosted trees on the test rows; the example's
own classifier, tabicl, was not to be had. Tab-PE gets limits and shares of labels without noise, as its example does.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import tempfile
import time
import warnings
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

import covey
from benchmarks.numeric.measures import judge
from benchmarks.numeric.tables import Column, Table, encode, number
from benchmarks.peers.launch import METHODS, launch
from covey.tables.schema import Field, Schema

FIELDS = ["table", "way", "epsilon", "seed", "status", "accuracy", "TV2", "KS", "seconds"]
EPSILONS = [1.0, 10.0]
LABEL = "Class"


@dataclass(frozen=True)
class Labelled:
    """A table: its files, categories (how many), numbers (lowest, highest, and a step that is not 1), labels from 1 on.

    Tab-PE's example for the table evolves so many rows.
    """

    files: tuple[str, str]
    categories: dict[str, int]
    numbers: dict[str, tuple[float, ...]]
    labels: int
    evolved: int

    @property
    def names(self) -> list[str]:
        """Of what the label is learned from."""
        return [*self.categories, *self.numbers]

    def coded(self, frame: pd.DataFrame) -> Table:
        """The table on its public grid."""
        numbers = [number(name, *bounds) for name, bounds in self.numbers.items()]
        columns = [Column(n, k) for n, k in self.categories.items()], numbers, [Column(LABEL, self.labels)]
        codes = [frame[n] - 1 for n in self.categories], [encode(c, frame[c.name]) for c in numbers], [frame[LABEL] - 1]
        return Table("labelled", tuple(chain(*columns)), np.column_stack([np.asarray(own) for own in chain(*codes)]))

    def schema(self, target: bool) -> Schema:
        """What covey is told."""
        fields = [Field(n, "string", enum=words(k), required=True) for n, k in self.categories.items()]
        for name, (low, high, *step) in self.numbers.items():
            kind = {"type": "number", "decimals": 2} if step else {"type": "integer"}
            fields.append(Field(name, **kind, minimum=low, maximum=high, required=True, default=low))
        whole = Schema((*fields, Field(LABEL, "string", enum=words(self.labels), required=True)))
        return whole.focus(target=LABEL) if target else whole


def words(size: int) -> tuple[str, ...]:
    return tuple(map(str, range(1, size + 1)))


LETTERS = {"V1": (0, 20), "V2": (0, 100), "V3": (0, 100), "V4": (0, 100), "V5": (-10, 100)}
LETTERS |= {"V6": (0, 100, 0.01), "V7": (0, 150, 0.01)}
TABLES = {
    "characters": Labelled(
        ("artificial-characters_train.csv", "artificial-characters_test.csv"), {}, LETTERS, 10, 1_000
    ),
    "activity": Labelled(
        ("person-activity_val.csv", "person-activity_test.csv"),
        {"V1": 5, "V2": 4},
        {f"V{j}": (0, 200_000) for j in range(3, 8)},
        11,
        5_000,
    ),
}


def accuracy(train: pd.DataFrame, test: pd.DataFrame, names: list[str]) -> float:
    """Of boosted trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(random_state=0).fit(train[names], train[LABEL])
    return float(model.score(test[names], test[LABEL]))


def ours(of: Labelled, train: pd.DataFrame, target: bool, promise: tuple[float, float], seed: int) -> pd.DataFrame:
    frame = train.astype(dict.fromkeys([*of.categories, LABEL], str))
    synth = covey.PrivateSynthesizer(*promise, schema=of.schema(target), seed=seed)
    return pd.DataFrame(synth.fit(frame).sample(len(frame))).astype(float)


def theirs(of: Labelled, train: pd.DataFrame, promise: tuple[float, float]) -> tuple[dict, pd.DataFrame | None]:
    method = replace(next(m for m in METHODS if m.name == "Tab-PE"), option=f"labelled {of.evolved}", delta=promise[1])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train.to_csv(folder / "table.csv", index=False)
        (folder / "domain.json").write_text(json.dumps(dict.fromkeys(train.columns, 0) | of.categories))
        told = launch(method, folder, len(train), promise[0], 900, 8)
        return told, pd.read_csv(folder / "synthetic.csv") if told["status"] == "ok" else None


def measure(table: str, way: str, epsilon: float, seed: int, frames: list[pd.DataFrame]) -> dict:
    """A row of the file."""
    (train, test), of = frames, TABLES[table]
    head = {"table": table, "way": way, "epsilon": epsilon, "seed": seed, "status": "ok"}
    promise, begin = (epsilon, 1 / (len(train) * math.log(len(train)))), time.process_time()
    if way == "real rows":
        made = train
    elif way == "Tab-PE":
        told, made = theirs(of, train, promise)
        head |= {"status": told["status"], "seconds": told.get("processor_seconds", "")}
    else:
        made = ours(of, train, way.endswith("target"), promise, seed)
        head["seconds"] = time.process_time() - begin
    if made is None:
        return head
    errors = judge(of.coded(train), of.coded(made.astype(dict.fromkeys([*of.categories, LABEL], int))).codes)[0]
    return head | {"accuracy": accuracy(made, test, of.names), "TV2": errors["2-way TV"], "KS": errors["KS"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    ways = [(way, e, s) for way in ("covey", "covey, target", "Tab-PE") for e in EPSILONS for s in range(given.seeds)]
    for table in given.tables:
        try:
            frames = [pd.read_csv(given.data / name) for name in TABLES[table].files]
        except FileNotFoundError as problem:
            print(f"{problem}: skipped")
            continue
        for run in (("real rows", 0.0, 0), *ways):
            row = {k: f"{v:.4f}" if isinstance(v, float) else str(v) for k, v in measure(table, *run, frames).items()}
            print(row, flush=True)
            write(row, given.out / "characters.csv")


def write(row: dict[str, str], path: Path) -> None:
    """A row in its place; who is not at hand keeps his figures."""
    with path.open(encoding="utf-8", newline="") as file:
        known = {tuple(own[k] for k in FIELDS[:4]): own for own in csv.DictReader(file)}
    place = tuple(row[k] for k in FIELDS[:4])
    known[place] = row if row["status"] == "ok" else known.get(place, row)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(known.values())


if __name__ == "__main__":
    main()
