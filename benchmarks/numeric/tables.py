"""Tables with numbers: two public ones, and simulated ones with skew, spikes, dates and strong ties.

A number is a column of codes: its special values first, then its value in steps of its precision above its lower bound.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from covey.engine.numbers.grid import NumberGrid

DATA = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[3] / "shared" / "data"))


@dataclass(frozen=True)
class Column:
    """Public: a category with `size` codes, or a number on a grid from `low` in steps of `step`, after its special values."""

    name: str
    size: int
    ordered: bool = False
    number: bool = False
    low: float = 0.0
    step: float = 1.0
    missing: bool = False  # code 0 is then "missing"
    common: tuple[float, ...] = ()  # values declared to be common
    after: int | None = None  # the column that this one never lies below

    def values(self, codes):
        """Codes as numbers in the column's unit."""
        return np.where(codes < self.missing, np.nan, self.low + self.step * (codes - self.missing))

    @property
    def grid(self):
        """The public grid of a number."""
        atoms = tuple(int(encode(self, [value])[0]) for value in self.common)
        return NumberGrid(self.size - self.missing, int(self.missing), atoms)


@dataclass(frozen=True)
class Table:
    """A table of codes and what its columns mean."""

    name: str
    columns: tuple[Column, ...]
    codes: np.ndarray

    def values(self, codes=None):
        """Every number's values, NaN where missing."""
        codes = self.codes if codes is None else codes
        return {j: c.values(codes[:, j]) for j, c in enumerate(self.columns) if c.number}


def number(name, low, high, step=1.0, missing=False, common=(), after=None):
    """A number between public bounds."""
    size = round((high - low) / step) + 1 + missing
    return Column(name, size, True, True, low, step, missing, tuple(common), after)


def encode(column, values):
    """Codes of values, rounded and clipped to the grid."""
    values = np.asarray(values, dtype=np.float64)
    empty = np.isnan(values)
    steps = np.rint((np.where(empty, column.low, values) - column.low) / column.step)
    codes = column.missing + np.clip(steps, 0, column.size - 1 - column.missing).astype(np.int64)
    return np.where(empty, 0, codes)


def made(name, parts: Sequence[tuple[Column, np.ndarray]]):
    columns = tuple(column for column, _ in parts)
    return Table(name, columns, np.column_stack([encode(c, v) if c.number else v.astype(np.int64) for c, v in parts]))


def _read(name):
    path = DATA / f"{name}.csv"
    if not path.exists():
        raise FileNotFoundError(f"{name}.csv is not in {DATA}")
    with path.open() as file:
        rows = csv.reader(file)
        names = next(rows)
        return dict(zip(names, zip(*rows, strict=True), strict=True))


def _labels(name, column, listed=(), ordered=False):
    labels = list(dict.fromkeys([*listed, *sorted(set(column))]))
    place = {label: j for j, label in enumerate(labels)}
    return Column(name, len(labels), ordered), np.array([place[x] for x in column])


def national2019():
    """The survey excerpt without its three derived columns (density, industry group, income decile)."""
    raw = _read("national2019")
    facts = json.loads((DATA / "national2019-dictionary.json").read_text())
    nan = float("nan")
    numbers = {
        "AGEP": number("AGEP", 0, 99),
        "NOC": number("NOC", 0, 19, missing=True),
        "NPF": number("NPF", 2, 20, missing=True),
        "PINCP": number("PINCP", -9000, 1_341_000, missing=True, common=(0,)),
        "POVPIP": number("POVPIP", 0, 501, missing=True, common=(501,)),
        "PWGTP": number("PWGTP", 1, 9999),
        "WGTP": number("WGTP", 0, 9999, common=(0,)),
    }
    parts = []
    for name, column in raw.items():
        if name in ("DENSITY", "INDP_CAT", "PINCP_DECILE"):
            continue
        if name in numbers:
            parts.append((numbers[name], np.array([nan if x == "N" else float(x) for x in column])))
        else:
            # Of a category the public dictionary knows more values than occur, and says their order.
            parts.append(_labels(name, column, facts[name].get("values", {}), name == "EDU"))
    return made("national2019", parts)


def randhie():
    """Visits to the doctor: counts with zeros and a tail, logarithms with few values."""
    raw = _read("randhie")
    bounds = {
        "mdvis": (0, 200, 1),
        "lncoins": (0, 5, 1e-5),
        "lpi": (0, 10, 1e-6),
        "fmde": (0, 10, 1e-6),
        "physlm": (0, 1, 1e-6),
        "disea": (0, 100, 1e-5),
    }
    return made(
        "randhie",
        [
            (number(name, *bounds[name]), np.array(column, dtype=np.float64))
            if name in bounds
            else _labels(name, column)
            for name, column in raw.items()
        ],
    )


def prices(n=54_000, seed=1):
    """Like a price list of stones: seven numbers tied to one size, three ordered grades."""
    g = np.random.default_rng(seed)
    modes = np.array([0.31, 0.4, 0.51, 0.7, 0.9, 1.01, 1.2, 1.51, 2.01])
    share = np.array([0.18, 0.12, 0.14, 0.16, 0.08, 0.15, 0.06, 0.08, 0.03])
    carat = np.round(g.choice(modes, n, p=share) + g.exponential(0.06, n), 2)
    colour, clarity, cut = (g.choice(k, n, p=g.dirichlet(np.full(k, 3.0))) for k in (7, 8, 5))
    depth = np.round(61.8 + g.standard_t(5, n) * 1.1, 1)
    table = np.round(57.5 + g.gamma(2, 1.2, n) - 2.4 + (cut < 1) * 1.5, 0)
    x = np.round(6.45 * carat ** (1 / 3) * (61.8 / depth) ** 0.3 * np.exp(g.normal(0, 0.008, n)), 2)
    y = np.round(x * np.exp(g.normal(0, 0.006, n)), 2)
    z = np.round(x * depth / 100, 2)
    price = np.round(np.exp(8.45 + 1.7 * np.log(carat) + 0.09 * (clarity - 3.5) - 0.07 * colour + g.normal(0, 0.13, n)))
    return made(
        "prices",
        [
            (number("carat", 0, 10, 0.01), carat),
            (Column("cut", 5, True), cut),
            (Column("colour", 7, True), colour),
            (Column("clarity", 8, True), clarity),
            (number("depth", 40, 80, 0.1), depth),
            (number("table", 40, 100), table),
            (number("price", 0, 100_000), price),
            (number("x", 0, 20, 0.01), x),
            (number("y", 0, 60, 0.01), y),
            (number("z", 0, 60, 0.01), z),
        ],
    )


def skewed(n=20_000, seed=2):
    """Households: incomes declared 0 to 10⁷, zeros, a top code, hours with a spike, heavy tails, missing answers."""
    g = np.random.default_rng(seed)
    nan = float("nan")
    age = np.minimum(18 + g.gamma(4, 8, n), 95).astype(int)
    school = g.choice(5, n, p=[0.1, 0.3, 0.3, 0.2, 0.1])
    works = g.random(n) < np.where(age < 65, 0.8, 0.15)
    hours = np.where(works, np.where(g.random(n) < 0.6, 40, np.clip(g.normal(36, 10, n), 1, 98).round()), 0)
    skill = g.normal(0, 1, n)
    wage = np.exp(9.3 + 0.25 * school + 0.45 * skill + 0.01 * (age - 40) + 0.012 * hours)
    income = np.where(works, (wage / 100).round() * 100, 0)
    income[g.random(n) < 0.06] = nan
    wealth = np.where(g.random(n) < 0.2, 0, (g.pareto(1.6, n) + 0.1) * 2e4 * np.exp(0.5 * skill + 0.02 * (age - 40)))
    rent = np.where(g.random(n) < 0.4, np.exp(6.4 + 0.2 * skill + g.normal(0, 0.25, n)).round(), nan)
    visits = g.negative_binomial(0.6, 0.6 / (0.6 + 2 + age / 30))
    return made(
        "skewed",
        [
            (number("age", 0, 120), age),
            (Column("school", 5, True), school),
            (Column("region", 12), g.choice(12, n, p=g.dirichlet(np.full(12, 2.0)))),
            (Column("sex", 2), g.integers(0, 2, n)),
            (number("hours", 0, 168, common=(0,)), hours),
            (number("income", 0, 10_000_000, missing=True, common=(0,)), income),
            (number("wealth", 0, 10**9, common=(0,)), wealth),
            (number("rent", 0, 100_000, missing=True), rent),
            (number("visits", 0, 1000), visits),
            (Column("smoker", 2), (g.random(n) < 0.2 + 0.05 * (school < 2)).astype(int)),
            (Column("sector", 9), np.where(works, g.integers(1, 9, n), 0)),
            (
                number("age at marriage", 16, 100, missing=True),
                np.where(g.random(n) < 0.4, nan, np.minimum(age, g.normal(28, 6, n)).clip(16).round()),
            ),
        ],
    )


def dated(n=20_000, seed=3):
    """Stays in hospital: dates, seconds, a time of day, stays that follow admission, charges that follow the stay."""
    g = np.random.default_rng(seed)
    day = 18_262 + np.sort(
        g.choice(
            1461, n, p=(lambda p: p / p.sum())(1 + 0.3 * np.sin(np.arange(1461) / 58) + 0.4 * (np.arange(1461) % 7 < 5))
        )
    )
    clock = (
        g.choice([9, 11, 14, 17, 21, 2], n, p=[0.25, 0.2, 0.2, 0.15, 0.12, 0.08]) * 3600 + g.normal(0, 5400, n)
    ) % 86400
    ward = g.choice(8, n, p=g.dirichlet(np.full(8, 3.0)))
    severity = g.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    stay = np.where(g.random(n) < 0.25, 0, g.gamma(1.2, 1.6 + severity + 0.3 * ward, n)).round()
    born = (day - 365.25 * np.clip(g.normal(50, 22, n), 0, 100)).round()
    charge = (850 * (stay + 1) ** 0.9 * np.exp(0.3 * severity + g.normal(0, 0.3, n))).round(2)
    return made(
        "dated",
        [
            (number("admitted", 14_610, 25_567), day),
            (number("discharged", 14_610, 25_933, after=0), day + stay),
            (number("arrival", 0, 86_399), clock.round()),
            (number("seen", 0, 2 * 86_400, after=2), (clock + g.exponential(2400, n)).round()),
            (number("born", -25_567, 25_567), born),
            (Column("ward", 8), ward),
            (Column("severity", 4, True), severity),
            (Column("insured", 3), g.choice(3, n, p=[0.6, 0.3, 0.1])),
            (number("charge", 0, 1_000_000, 0.01), charge),
            (Column("again", 2), (g.random(n) < 0.1 + 0.04 * severity).astype(int)),
        ],
    )


def claims(n=20_000, seed=4):
    """Policies: claims with a zero spike and a lognormal tail, heaped ages, few deductibles, exclusive causes, missing scores."""
    g = np.random.default_rng(seed)
    nan = float("nan")
    age = np.clip(g.gamma(9, 5, n), 18, 95).round()
    age = np.where(g.random(n) < 0.35, 5 * np.rint(age / 5), age)
    kind = g.choice(6, n, p=[0.35, 0.25, 0.15, 0.12, 0.08, 0.05])
    risk = g.normal(0, 1, n) + 0.02 * np.abs(age - 45)
    count = g.poisson(np.exp(-2.2 + 0.4 * risk + 0.1 * kind))
    paid = np.where(count > 0, np.exp(6.2 + 0.3 * kind + 0.4 * np.log1p(count) + g.normal(0, 1.1, n)).round(2), 0)
    cause = np.where(count > 0, 1 + g.choice(7, n, p=g.dirichlet(np.full(7, 2.0))), 0)
    premium = np.exp(5.6 + 0.12 * kind + 0.15 * risk + g.normal(0, 0.2, n)).round(2)
    score = np.where(g.random(n) < 0.12, nan, np.clip(700 - 40 * risk + g.normal(0, 50, n), 300, 850).round())
    mileage = np.where(g.random(n) < 0.5, 1000, 100) * np.rint(np.exp(2.3 + g.normal(0, 0.5, n)))
    return made(
        "claims",
        [
            (number("age", 16, 110), age),
            (Column("region", 10), g.choice(10, n, p=g.dirichlet(np.full(10, 2.0)))),
            (Column("kind", 6), kind),
            (Column("cause", 8), cause),
            (number("claims", 0, 50), count),
            (number("paid", 0, 10_000_000, 0.01, common=(0,)), paid),
            (number("premium", 0, 100_000, 0.01), premium),
            (number("deductible", 0, 5000), g.choice([0, 100, 250, 500, 1000], n, p=[0.1, 0.2, 0.3, 0.3, 0.1])),
            (number("score", 300, 850, missing=True), score),
            (number("mileage", 0, 1_000_000), mileage),
            (Column("paperless", 2), (g.random(n) < 0.7 - 0.004 * (age - 40)).astype(int)),
            (Column("garage", 3, True), g.choice(3, n, p=[0.5, 0.3, 0.2])),
        ],
    )


def bodies(n=20_000, seed=5):
    """A health survey: sizes tied to each other and rounded by those who answer, incomes in thousands, rare illnesses."""
    g = np.random.default_rng(seed)
    nan = float("nan")
    sex = g.integers(0, 2, n)
    age = g.integers(18, 90, n).astype(np.float64)
    height = np.rint(163 + 13 * sex - 0.04 * (age - 50) + g.normal(0, 6.5, n))
    weight = 23 * (height / 100) ** 2 * np.exp(0.12 + 0.002 * (age - 50) + g.normal(0, 0.16, n))
    told = np.where(g.random(n) < 0.5, 5 * np.rint(weight / 5), np.rint(weight + g.normal(-1, 1.5, n)))
    waist = np.where(g.random(n) < 0.15, nan, np.rint(40 + 0.55 * weight + 0.1 * age + g.normal(0, 4, n)))
    pressure = np.rint(100 + 0.45 * age + 0.2 * (weight - 70) + g.normal(0, 12, n))
    low = np.rint(0.45 * pressure + 22 + g.normal(0, 7, n))
    income = np.where(g.random(n) < 0.1, nan, 1000 * np.rint(np.exp(3.4 + 0.3 * sex + g.normal(0, 0.7, n))))
    illness = np.where(g.random(n) < 0.02 + 0.0008 * np.clip(age - 40, 0, None), 1, 0)
    return made(
        "bodies",
        [
            (Column("sex", 2), sex),
            (number("age", 0, 120), age),
            (number("height", 50, 250), height),
            (number("weight", 20, 300, 0.1), weight.round(1)),
            (number("told", 20, 300), told),
            (number("waist", 30, 250, missing=True), waist),
            (number("systolic", 50, 300), pressure),
            (number("diastolic", 20, 200), low),
            (number("income", 0, 10_000_000, missing=True), income),
            (Column("illness", 2), illness),
            (Column("school", 6, True), g.choice(6, n, p=[0.05, 0.15, 0.3, 0.25, 0.15, 0.1])),
            (Column("county", 20), g.choice(20, n, p=g.dirichlet(np.full(20, 2.0)))),
        ],
    )


TABLES: dict[str, Callable[[], Table]] = {
    "national2019": national2019,
    "prices": prices,
    "randhie": randhie,
    "skewed": skewed,
    "dated": dated,
    "claims": claims,
    "bodies": bodies,
}
