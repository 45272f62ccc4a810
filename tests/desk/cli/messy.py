"""Some thirty tables as people keep them, each with a way to be wrong, all made here: nobody in them exists.

Every table has the same 300 patients: a name and a number that identify them, ward and age, and what makes the file messy.
"""

import csv
import datetime as dt
import gzip
import io
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

N = 300
_generator = np.random.default_rng(29)
SECRETS = {
    "name": [f"Quintana-{a}{b} Okonkwo" for a in "abcdefghijklmnopqrst" for b in "abcdefghijklmno"],
    "record": [f"MRN-{j:06}" for j in _generator.choice(10**6, N, replace=False)],
}
WARD = _generator.choice(["surgery", "medicine", "maternity"], N).tolist()
AGE = _generator.integers(1, 98, N).tolist()
COST = (_generator.integers(10_000, 999_999, N) / 100).tolist()
DAY = [dt.date(2023, 1, 1) + dt.timedelta(int(d)) for d in _generator.integers(0, 700, N)]
BASE = {**SECRETS, "ward": WARD, "age": AGE}


@dataclass(frozen=True)
class Messy:
    """One file: its bytes, the types that its messy columns should get, and the one edit it may need.

    `options` are what a steward says on the command line, `mend` what they change in the file: at most one of the two is used.
    """

    data: Callable[[], bytes]
    types: dict[str, str]
    suffix: str = ".csv"
    options: tuple[str, ...] = ()
    mend: Callable[[bytes], bytes] | None = None
    secrets: dict[str, list[str]] = field(default_factory=lambda: SECRETS)


def text(columns, separator=",", end="\n", quoting=csv.QUOTE_MINIMAL):
    """Columns as delimited text."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator=end, quoting=quoting)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue()


def with_column(name, cells, **style):
    """The patients and one more column."""
    listed = list(cells)
    return lambda: text({**BASE, name: listed}, **style).encode()


def every(k, word, cells):
    """Each k-th cell replaced."""
    return [word if j % k == 0 else cell for j, cell in enumerate(cells)]


def comma(value):
    return f"{value:.2f}".replace(".", ",")


def frame(columns):
    import polars as pl

    return pl.DataFrame(columns)


def arrow_bytes(columns, form):
    out = io.BytesIO()
    table = frame(columns)
    table.write_parquet(out) if form == "parquet" else table.write_ipc(out)
    return out.getvalue()


def workbook_bytes(rows, notes=False):
    import xlsxwriter

    out = io.BytesIO()
    with xlsxwriter.Workbook(out, {"in_memory": True, "default_date_format": "yyyy-mm-dd"}) as book:
        if notes:
            book.add_worksheet("Notes").write(0, 0, "The data are on the next sheet.")
        page = book.add_worksheet("Data")
        for i, row in enumerate(rows):
            page.write_row(i, 0, row)
    return out.getvalue()


def table_rows(columns):
    return [list(columns), *(list(row) for row in zip(*columns.values(), strict=True))]


def lone_returns():
    """What pandas writes on Linux for a cell with a carriage return in it."""
    import pandas as pd

    return pd.DataFrame({**BASE, "ward": every(9, "sur\rgery", WARD)}).to_csv(index=False).encode()


PLAIN = text(BASE)
CODES = _generator.choice(["I10", "I10.9", "E11.2", "E11.9", "J45.0"], N).tolist()
ZIPS = [f"0{z}" for z in _generator.choice([1067, 4109, 8056, 9111, 6108], N)]
INCOME = (np.exp(_generator.normal(8, 2, N)) // 1).astype(int).tolist()
FILES = {
    "as pandas writes it": Messy(lambda: PLAIN.encode(), {"age": "integer"}),
    "semicolons and decimal commas": Messy(with_column("cost", map(comma, COST), separator=";"), {"cost": "number"}),
    "tabs": Messy(with_column("cost", COST, separator="\t"), {"cost": "number"}, suffix=".tsv"),
    "thousands": Messy(with_column("cost", (f"{c + 1000:,.2f}" for c in COST)), {"cost": "number"}),
    "German thousands": Messy(
        with_column("cost", (f"{c + 1000:,.2f}".translate(str.maketrans(",.", ".,")) for c in COST), separator=";"),
        {"cost": "number"},
    ),
    "German dates": Messy(with_column("seen", (f"{d:%d.%m.%Y}" for d in DAY)), {"seen": "date"}),
    "American dates": Messy(with_column("seen", (f"{d:%m/%d/%Y}" for d in DAY)), {"seen": "date"}),
    "dates that are both d/m and m/d": Messy(
        with_column("seen", (f"{d.day % 12 + 1:02}/{d.month:02}/{d.year}" for d in DAY)),
        {"seen": "date"},
        options=("--date-format", "%d/%m/%Y"),
    ),
    "offsets from UTC": Messy(with_column("seen", (f"{d}T10:15:00+02:00" for d in DAY)), {"seen": "datetime"}),
    "sentinels": Messy(with_column("cost", every(7, -99, COST)), {"cost": "number"}),
    "censored counts": Messy(with_column("visits", every(4, "<5", [5 + a for a in AGE])), {"visits": "integer"}),
    "postal codes": Messy(with_column("zip", ZIPS), {"zip": "string"}),
    "diagnoses": Messy(with_column("icd10", CODES), {"icd10": "string"}),
    "incomes": Messy(with_column("income", INCOME), {"income": "integer"}),
    "long account numbers": Messy(
        with_column("account", (10**17 + 7919 * j for j in range(N))),
        {},
        secrets={**SECRETS, "account": [str(10**17 + 7919 * j) for j in range(N)]},
    ),
    "addresses and prose": Messy(
        lambda: text(
            {
                **BASE,
                "mail": [f"pat{j}@clinic{j}.example" for j in range(N)],
                "remark": [f"seen by nurse {j} twice, felt rather unwell" for j in range(N)],
            }
        ).encode(),
        {},
        secrets={
            **SECRETS,
            "mail": [f"pat{j}@clinic{j}.example" for j in range(N)],
            "remark": [f"nurse {j} twice" for j in range(N)],
        },
    ),
    "three lines before the header": Messy(lambda: f"Costs of 2024\nall wards\n\n{PLAIN}".encode(), {"age": "integer"}),
    "a word to the spreadsheet": Messy(lambda: b"sep=;\n" + text(BASE, ";").encode(), {"age": "integer"}),
    "Windows": Messy(
        lambda: text({**BASE, "Größe": map(comma, COST)}, ";", "\r\n").replace("medicine", "Médecine").encode("cp1252"),
        {"Größe": "number"},
    ),
    "UTF-16": Messy(lambda: text(BASE, "\t").encode("utf-16"), {"age": "integer"}, options=("--encoding", "utf-16")),
    "lines inside cells": Messy(
        with_column("unit", every(5, "day\nclinic", WARD), quoting=csv.QUOTE_ALL), {"unit": "string"}
    ),
    "returns inside cells": Messy(lone_returns, {"ward": "string"}),
    "blank column": Messy(lambda: "\n".join(f"{line}," for line in PLAIN.splitlines()).encode(), {"age": "integer"}),
    "a column of nothing": Messy(with_column("fax", [""] * N), {"fax": "string"}),
    "a row of totals": Messy(
        lambda: PLAIN.encode() + b"TOTAL,,,14411\n",
        {"age": "integer"},
        mend=lambda d: b"\n".join([*d.split(b"\n")[:-2], b""]),
    ),
    "compressed": Messy(lambda: gzip.compress(PLAIN.encode()), {"age": "integer"}, suffix=".csv.gz"),
    "a workbook": Messy(
        lambda: workbook_bytes(table_rows({**BASE, "seen": DAY, "cost": COST})),
        {"seen": "date", "cost": "number"},
        suffix=".xlsx",
    ),
    "a workbook with notes before it": Messy(
        lambda: workbook_bytes(table_rows(BASE), notes=True),
        {"age": "integer"},
        suffix=".xlsx",
        options=("--sheet", "Data"),
    ),
    "Parquet with lists": Messy(
        lambda: arrow_bytes({**BASE, "tests": [[a, a + 1] for a in AGE], "seen": DAY}, "parquet"),
        {"seen": "date"},
        suffix=".parquet",
    ),
    "Arrow with categories": Messy(
        lambda: arrow_bytes({**BASE, "unit": frame({"u": WARD})["u"].cast(__import__("polars").Categorical)}, "arrow"),
        {"unit": "string"},
        suffix=".arrow",
    ),
}
