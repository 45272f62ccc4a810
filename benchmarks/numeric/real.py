"""Real tables of numbers and categories with a label: telco.csv, bank.csv, cardio.csv, and UCI's raw adult.data."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.numeric.tables import Column, Table, made, number

NUMBERS: dict[str, dict[str, tuple[float, ...]]] = {  # lowest, highest, step: round limits, wider than the rows
    "telco": {"tenure": (0, 120), "MonthlyCharges": (0, 200, 0.05), "TotalCharges": (0, 20_000, 0.05)},
    "bank": {
        "age": (16, 120),
        "balance": (-50_000, 500_000),
        "day": (1, 31),
        "duration": (0, 10_000),
        "campaign": (1, 200),
        "pdays": (-1, 2000),
        "previous": (0, 500),
    },
    "cardio": {
        "age": (0, 40_000),
        "height": (0, 300),
        "weight": (0, 400, 0.1),
        "ap_hi": (-500, 20_000),
        "ap_lo": (-500, 20_000),
    },
    "adult": {
        "age": (0, 120),
        "fnlwgt": (0, 2_000_000),
        "capital-gain": (0, 100_000),
        "capital-loss": (0, 10_000),
        "hours-per-week": (0, 100),
    },
}
LABELS = {"telco": ("Churn", "Yes"), "bank": ("y", "yes"), "cardio": ("cardio", "1"), "adult": ("income", ">50K")}
ORDERED = {"education-num", "cholesterol", "gluc"}
LEFT_OUT = {"customerID", "id", "education_"}  # names of rows, and what another column says too
CENSUS = "age workclass fnlwgt education_ education-num marital-status occupation relationship race sex capital-gain "
CENSUS += "capital-loss hours-per-week native-country income"


def load(name: str, folder: Path) -> tuple[Table, int, int]:
    """A table, the place of its label and the code of the label's positive value."""
    file = folder / ("adult.data" if name == "adult" else f"{name}.csv")
    names = CENSUS.split() if name == "adult" else None
    raw = pd.read_csv(file, sep=";" if name == "cardio" else ",", names=names, dtype=str, skipinitialspace=True)
    raw = raw[raw.iloc[:, 0] != "age"] if name == "adult" else raw  # a copy with a line of names
    parts = []
    for column, cells in raw.items():
        if column in NUMBERS[name]:  # telco's blank totals belong to customers of the first month: nothing so far
            values = pd.to_numeric(cells, errors="coerce").fillna(0).to_numpy()
            parts.append((number(column, *NUMBERS[name][str(column)]), values))
        elif column not in LEFT_OUT:
            labels = sorted(set(cells), key=lambda x: (len(x), x) if x.isdigit() else (0, x))
            place = {label: k for k, label in enumerate(labels)}
            parts.append((Column(str(column), len(labels), column in ORDERED), cells.map(place).to_numpy()))
    table = made(name, parts)
    label, yes = LABELS[name]
    return table, [c.name for c in table.columns].index(label), sorted(set(raw[label])).index(yes)
