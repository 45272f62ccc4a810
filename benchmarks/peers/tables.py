"""The tables: integer codes and the public number of categories of each column."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

XOR = {
    "xor2": (2, 8),
    "xor3": (3, 8),
    "xor4": (4, 8),
    "xor5": (5, 8),
    "xor3 of 20": (3, 20),
}  # so many of so many flags
WRONG = 0.05  # of the labels


def load(name: str, data: Path) -> tuple[pd.DataFrame, dict[str, int]]:
    """NAME.npz with a 0/1 matrix under "x", or NAME.csv with NAME-domain.json; "NAME, N rows" has N of them, at random."""
    if name in XOR:
        return exclusive(*XOR[name])
    name, _, few = name.removesuffix(" rows").partition(", ")
    if few:
        table, domain = load(name, data)
        return table.sample(int(few), random_state=0).reset_index(drop=True), domain
    if (data / f"{name}.npz").exists():
        X = np.load(data / f"{name}.npz")["x"].astype(np.int64)
        table = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
        return table, dict.fromkeys(table.columns, 2)
    table = pd.read_csv(data / f"{name}.csv")
    domain = json.loads((data / f"{name}-domain.json").read_text())
    return table, {column: int(domain[column]) for column in table.columns}


def exclusive(among: int, columns: int, n: int = 20_000) -> tuple[pd.DataFrame, dict[str, int]]:
    """Fair flags, and a label that is the exclusive or of the first few, but for WRONG of the rows: no pair says anything."""
    generator = np.random.default_rng(among)
    X = generator.integers(0, 2, (n, columns))
    label = X[:, :among].sum(axis=1) % 2 ^ (generator.random(n) < WRONG)
    table = pd.DataFrame(np.column_stack([X, label]), columns=[f"x{i}" for i in range(columns)] + ["label"])
    return table, dict.fromkeys(table.columns, 2)


def explained(name: str, table: pd.DataFrame) -> float:
    """The share of rows whose label is the exclusive or: 0.95 in the true ones, 0.5 where nothing was learned."""
    return float((table.iloc[:, : XOR[name][0]].sum(axis=1) % 2 == table["label"]).mean())


def made_up(n: int, p: int, seed: int = 1) -> tuple[pd.DataFrame, dict[str, int]]:
    """n × p flags with eight common causes, for measuring growth."""
    generator = np.random.default_rng(seed)
    causes, weights = generator.random((n, 8), dtype=np.float32), generator.random((8, p), dtype=np.float32) ** 2
    chance = causes @ weights
    X = generator.random((n, p), dtype=np.float32) * chance.mean(axis=0) * 2 < chance
    table = pd.DataFrame(X.astype(np.int8), columns=[f"x{i}" for i in range(p)])
    return table, dict.fromkeys(table.columns, 2)


def save(table: pd.DataFrame, domain: dict[str, int], folder: Path) -> None:
    """Where `one_run.py` looks for them."""
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / "table.csv", index=False)
    (folder / "domain.json").write_text(json.dumps(domain))
