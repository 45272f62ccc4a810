"""Real tables of numbers and categories with a label: telco.csv, bank.csv, cardio.csv, and three from UCI.

adult.data is as it is; shoppers.csv is "online shoppers' intention", credit.csv "default of credit card clients", with the names
of columns that most copies have.
"""

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
    "shoppers": {
        "Administrative": (0, 100),
        "Administrative_Duration": (0, 10_000, 0.01),
        "Informational": (0, 100),
        "Informational_Duration": (0, 10_000, 0.01),
        "ProductRelated": (0, 2000),
        "ProductRelated_Duration": (0, 100_000, 0.01),
        "BounceRates": (0, 1, 0.0001),
        "ExitRates": (0, 1, 0.0001),
        "PageValues": (0, 1000, 0.01),
    },
    "credit": {"LIMIT_BAL": (0, 2_000_000), "AGE": (18, 100)}
    | {f"PAY_{month}": (-2, 10) for month in (0, 2, 3, 4, 5, 6)}
    | {f"BILL_AMT{month}": (-1_000_000, 5_000_000) for month in range(1, 7)}
    | {f"PAY_AMT{month}": (0, 5_000_000) for month in range(1, 7)},
}
LABELS = {"telco": ("Churn", "Yes"), "bank": ("y", "yes"), "cardio": ("cardio", "1"), "adult": ("income", ">50K")}
LABELS |= {"shoppers": ("Revenue", "1"), "credit": ("Default", "1")}
ORDERED = {"education-num", "cholesterol", "gluc", "SpecialDay"}
LEFT_OUT = {"customerID", "id", "ID", "education_"}  # names of rows, and what another column says too
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
            labels = sorted(set(cells), key=lambda x: (float(x), x) if x[:1].isdigit() else (-1, x))
            place = {label: k for k, label in enumerate(labels)}
            parts.append((Column(str(column), len(labels), column in ORDERED), cells.map(place).to_numpy()))
    table = made(name, parts)
    label, yes = LABELS[name]
    return table, [c.name for c in table.columns].index(label), sorted(set(raw[label])).index(yes)
