"""Tables of bits to judge by: which of them constants may be tuned on, which are for checking alone, and how some are made.

Tables for checking are never looked at while something is tuned. Three of them are made here out of the tables with categories
and numbers, by rules fixed before anything was measured: one column for each of at most SIXTEEN values or ranges of an attribute
("hot": columns that exclude each other), or for every decile of a number whether it is surpassed ("steps": columns that imply
each other). Further ones come from the collection that most NAME.npz are from and are read where the folder has them.
"""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import numpy as np

DATA = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))
TUNING = ["nltcs", "kdd", "baudio", "accidents", "adult_bits"]
SHARED_CHECKING = ["msnbc", "plants", "bnetflix"]  # older constants were tuned on these too, none since the split
FRESH = ["adult_hot", "national_hot", "randhie_steps", "jester", "connect4", "ocr_letters", "pumsb_star"]
CHECKING = SHARED_CHECKING + FRESH
ROWS = 20_000  # of a made table at most: the size for which the targets are written
SIXTEEN = 16  # columns of an attribute at most
NATIONAL_NAMES = ("PUMA", "SEX", "MSP", "HISP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "INDP_CAT", "EDU")
NATIONAL_NAMES += ("PINCP_DECILE", "DVET", "DREM", "DPHY", "DEYE", "DEAR", "NOC", "NPF")
NATIONAL_NUMBERS = ("AGEP", "POVPIP", "PWGTP")
ADULT_NUMBERS = ("age", "fnlwgt", "hours-per-week")


def load_bits(name):
    """A table of bits by its name; None where the folder has not got what it is read or made from."""
    stored = DATA / f"{name}.npz"
    if stored.exists():
        return np.load(stored)["x"].astype(np.uint8)
    source, make = MADE.get(name, ("", None))
    return make(DATA / source) if make is not None and (DATA / source).exists() else None


def read_columns(path):
    """The columns of a CSV file, and a fixed random choice of ROWS of its rows."""
    with path.open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    keep = np.sort(np.random.default_rng(0).permutation(len(rows))[:ROWS])
    table = np.array(rows, dtype=object)[keep]
    return {name: table[:, i] for i, name in enumerate(names)}


def one_hot(values):
    """A column for each of the most frequent values."""
    labels, counts = np.unique(values.astype(str), return_counts=True)
    return values.astype(str)[:, None] == labels[np.argsort(-counts, kind="stable")][:SIXTEEN]


def hot_ranges(values):
    """A column for each of eight ranges with about equally many rows; what is no number is a range of its own."""
    numbers = np.array([float(v) if v not in ("", "N") else np.nan for v in values])
    edges = np.unique(np.nanquantile(numbers, np.arange(1, 8) / 8))
    codes = np.where(np.isnan(numbers), -1, np.searchsorted(edges, numbers, side="right"))
    return codes[:, None] == np.unique(codes)


def steps(values):
    """For every decile, whether a number surpasses it."""
    numbers = values.astype(np.float64)
    edges = np.unique(np.quantile(numbers, np.arange(0, 10) / 10))
    return numbers[:, None] > edges[edges < numbers.max()]


def adult_hot(path):
    """Census answers as columns that exclude each other."""
    domain = json.loads((path.parent / "adult-domain.json").read_text())
    table = read_columns(path)
    parts = [hot_ranges(table[a]) if a in ADULT_NUMBERS else one_hot(table[a]) for a in domain]
    return np.hstack(parts).astype(np.uint8)


def national_hot(path):
    """Answers of the American Community Survey as columns that exclude each other."""
    table = read_columns(path)
    parts = [one_hot(table[a]) for a in NATIONAL_NAMES] + [hot_ranges(table[a]) for a in NATIONAL_NUMBERS]
    return np.hstack(parts).astype(np.uint8)


def randhie_steps(path):
    """Health, visits and insurance as columns that imply each other."""
    return np.hstack([steps(values) for values in read_columns(path).values()]).astype(np.uint8)


MADE = {
    "adult_hot": ("adult.csv", adult_hot),
    "national_hot": ("national2019.csv", national_hot),
    "randhie_steps": ("randhie.csv", randhie_steps),
}
