"""Numbers that prose quotes, and the cells of CSV files that they come from; tests/test_quotes.py compares them.

A quote is a file, some of its words, and a value for each number in them, in order. A value is computed from cells, so that "23
times" is a quotient and "18 to 64" a smallest and a largest one. Who measures again sees here which sentences to rewrite.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "benchmarks"
NUMBER = re.compile(r"(?<![\w.,])\d*\.?\d+(?![\w]|,\d)")
SPELLED = {"half": 0.5, "one": 1.0, "three": 3.0, "four": 4.0, "five": 5.0, "six": 6.0, "seven": 7.0, "twice": 2.0}

# Files in which every number with a point must be quoted here, or stand in GIVEN: what is chosen, not measured.
WATCHED = ("README.md", "docs/faq.md")
GIVEN = {"README.md": {"2.0", "3.11"}}


@dataclass(frozen=True)
class Quote:
    """Words of a file, and what their numbers should be."""

    file: str
    words: str
    values: tuple[float, ...]

    def numbers(self) -> list[tuple[str, float]]:
        """Each number as it is written, in digits or as one of the words of SPELLED, and as a number."""
        spelled = "|".join(SPELLED)
        found = re.findall(rf"\b(?:{spelled})\b|{NUMBER.pattern}", self.words)
        return [(text, SPELLED.get(text) or float(text)) for text in found]

    def wrong(self) -> list[str]:
        """What does not agree: a number that its cell does not round to, or too few of them."""
        numbers = self.numbers()
        if len(numbers) != len(self.values):
            return [f"{self.file}: {len(numbers)} numbers in “{self.words}”, {len(self.values)} values"]
        return [
            f"{self.file}: “{self.words}” says {text}, measured {value:.6g}"
            for (text, number), value in zip(numbers, self.values, strict=True)
            if abs(number - value) > half_a_digit(text)
        ]

    def pattern(self) -> re.Pattern[str]:
        """The words, however lines are broken."""
        return re.compile(r"\s+".join(map(re.escape, self.words.split())))


def half_a_digit(text: str) -> float:
    """By how much a number may differ from what rounds to it. Words round more coarsely: "half" is 0.4 to 0.6."""
    if text in SPELLED:
        return 0.2 * SPELLED[text] + 1e-9
    return 0.5 * 10.0 ** -len(text.partition(".")[2]) * 1.0001


@cache
def rows(name: str) -> list[dict[str, str]]:
    """A CSV file of docs/benchmarks."""
    with (FIGURES / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def cells(name: str, column: str, **where: str) -> list[float]:
    """The column of all rows that have these values; empty cells are left out."""
    own = [row for row in rows(name) if all(row[key] == value for key, value in where.items())]
    found = [float(row[column]) for row in own if row[column]]
    if not found:
        raise LookupError(f"{name} has no {column} for {where}")
    return found


def cell(name: str, column: str, **where: str) -> float:
    """The one cell that there is."""
    (value,) = cells(name, column, **where)
    return value


def readme() -> list[Quote]:
    """README.md: what it claims of accuracy."""
    wide = ("baudio", "bnetflix")  # the tables of 20,000 × 100
    at, pure = "(1, 1e-09)", "pure 1"

    def typical(setting: str) -> float:
        return 100 * sum(cell("regain.csv", "delta2", table=name, setting=setting) for name in wide) / 2

    seconds = [cell("regain.csv", "seconds", table=name, setting=s) for name in wide for s in (at, pure)]
    numbers = {"table": "national2019", "setting": at, "way": "numbers"}
    tables = len({row["table"] for row in rows("numbers.csv")})
    return [
        Quote(
            "README.md",
            "typically off by half a percentage point, at pure ε = 1 by one",
            (typical(at), 1.0, typical(pure)),
        ),
        Quote("README.md", "in three to five seconds", (min(seconds), max(seconds))),
        Quote("README.md", "numbers are off by 0.01 on average", (cell("numbers.csv", "KS", **numbers),)),
        Quote("README.md", "[seven tables](docs/benchmarks/numbers.md)", (tables,)),
    ]


def faq() -> list[Quote]:
    """docs/faq.md: how often intervals hold."""

    def covered(column: str, *statistics: str) -> list[float]:
        found = [row for row in rows("intervals.csv") if row["statistic"] in statistics and row[column]]
        return [100 * float(row[column]) for row in found if float(row["refused"]) < 0.5]

    regressions = covered("population", "linear regression", "logistic regression")
    naive, shares = covered("naive", "linear regression"), covered("naive", "P(A given B)")
    return [
        Quote(
            "docs/faq.md",
            "held the truth in 92 to 97 of 100 cases where most questions were answered",
            (min(regressions), max(regressions), 100),
        ),
        Quote("docs/faq.md", "in 18 to 64 of 100 cases", (min(naive), max(naive), 100)),
        Quote("docs/faq.md", "38 to 82 for conditional shares", (min(shares), max(shares))),
    ]


def nist() -> list[Quote]:
    """docs/benchmarks/nist.md: what was aimed at and reached."""
    return []


def quotes() -> list[Quote]:
    """All of them."""
    return [*readme(), *faq(), *nist()]
