"""Small tables of which the truth is known: columns that hang together, in rows, in rows of persons, or in persons with events.

What a question is about is a *view*: columns of cells, and what each row weighs. Persons count once each; rows of a person, and
events per person, share the weight of that person.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl

from fuzz.cases import Chance

FIRST_DAY = date(2020, 1, 1)
KINDS = ("category", "flag", "few", "many", "skewed", "decimal", "date")
NAMES = ("age", "ward", "cost", "stay", "score", "blood group", "seen", "level", "dose", "site")
WORDS = ("north", "south", "east", "west", "centre", "isle")
SPECIAL = "unknown"
Mask = np.ndarray


@dataclass(frozen=True)
class Column:
    """Cells as they are written, None where they are missing, and as numbers (days of dates, 0 and 1 of flags), else NaN."""

    name: str
    kind: str
    texts: np.ndarray
    numbers: np.ndarray

    @property
    def is_number(self) -> bool:
        """Whether it has a mean."""
        return self.kind in ("few", "many", "skewed", "decimal")

    @property
    def is_ordered(self) -> bool:
        """Whether its values may be held against others."""
        return self.is_number or self.kind == "date"

    def take(self, places: np.ndarray) -> Column:
        """Some of its cells."""
        return Column(self.name, self.kind, self.texts[places], self.numbers[places])

    def read(self, text: str) -> float:
        """A value as a number."""
        if self.kind == "date":
            return float((date.fromisoformat(text) - FIRST_DAY).days)
        return float(text)

    def beside(self, text: str, steps: int) -> str:
        """The value so many steps of the column's precision above another one."""
        if self.kind == "date":
            return (date.fromisoformat(text) + timedelta(days=steps)).isoformat()
        decimals = len(text.partition(".")[2])
        return f"{float(text) + steps * 10.0**-decimals:.{decimals}f}"

    def meets(self, label: str) -> Mask | None:
        """The rows in a group that an answer names; None for a group whose name was shortened."""
        out = np.zeros(len(self.texts), dtype=bool)
        for part in label.split(" or "):
            ends = part.split(" to ")
            if part == "missing":
                out |= np.equal(self.texts, None)
            elif part.endswith(" more") or "…" in part:
                return None
            elif self.is_ordered and part != SPECIAL:
                out |= (self.numbers >= self.read(ends[0]) - 1e-9) & (self.numbers <= self.read(ends[-1]) + 1e-9)
            else:
                out |= self.texts == part
        return out


@dataclass(frozen=True)
class View:
    """Columns by name, and the weights of rows, which sum to 1."""

    columns: Mapping[str, Column]
    weights: np.ndarray

    def share(self, of: Mask, among: Mask | None = None) -> float:
        """The weight of some rows among others; NaN where there are none."""
        base = self.weights if among is None else self.weights * among
        return float((base * of).sum() / base.sum()) if base.sum() > 0 else float("nan")

    def mean(self, name: str, among: Mask) -> float:
        """The mean of a number over rows that have it."""
        x = self.columns[name].numbers
        there = np.isfinite(x) & among
        total = self.weights[there].sum()
        return float(self.weights[there] @ x[there] / total) if total > 0 else float("nan")

    def deviation(self, name: str) -> float:
        """The standard deviation of a number."""
        x, everyone = self.columns[name].numbers, np.ones(len(self.weights), dtype=bool)
        there, centre = np.isfinite(x), self.mean(name, everyone)
        total = self.weights[there].sum()
        return float(np.sqrt(self.weights[there] @ (x[there] - centre) ** 2 / total)) if total > 0 else 0.0

    def quantile(self, name: str, q: float, among: Mask) -> tuple[float, float]:
        """The values between which a quantile lies: one, unless the level falls between two."""
        x = self.columns[name].numbers
        there = np.isfinite(x) & among
        order = np.argsort(x[there], kind="stable")
        values, weights = x[there][order], self.weights[there][order]
        if not len(values):
            return float("nan"), float("nan")
        running = np.cumsum(weights) / weights.sum()
        low, high = (min(int(np.searchsorted(running, q + slip)), len(values) - 1) for slip in (-1e-6, 1e-6))
        return float(values[low]), float(values[high])


@dataclass(frozen=True)
class Known:
    """A table, or persons with events, whose truth is known."""

    kind: str  # rows, person or events
    document: dict[str, Any]
    tables: Any
    n: int
    views: Mapping[str, View]  # rows; of persons with events persons, single (events per person) and events
    options: Mapping[str, Any] = field(default_factory=dict)
    of_events: frozenset[str] = frozenset()

    def view(self, *names: str, per: str = "person") -> View:
        """What a question about columns is about."""
        if self.kind != "events":
            return self.views["rows"]
        if per == "event":
            return self.views["events"]
        return self.views["single" if self.of_events & {*names} else "persons"]


def draw_known(seed: int) -> Known:
    """A table, from a number alone."""
    chance, g = Chance(seed), np.random.default_rng(seed)
    kind = chance.choice(["rows", "rows", "rows", "person", "events"])
    n = chance.choice([300, 800, 2000])
    names = chance.sample(NAMES, chance.choice([3, 4, 5, 6]))
    latent = g.standard_normal(n)
    if kind != "events":
        columns, fields = draw_columns(chance, g, latent, names)
        more, follow = draw_following(chance, g, columns)
        columns |= more
        document: dict[str, Any] = {"fields": fields + follow}
        frame = as_frame(columns)
        weights, options = np.full(n, 1 / n), {}
        if kind == "person":
            persons = np.sort(g.integers(0, n // 2, n))
            counts = np.bincount(persons)
            weights = 1 / counts[persons] / np.count_nonzero(counts)
            frame, options = frame.with_columns(pl.Series("whose", persons)), {"person": "whose"}
        return Known(kind, document, frame, n, {"rows": View(columns, weights)}, options)
    return draw_events(chance, g, latent, names)


def draw_events(chance: Chance, g: np.random.Generator, latent: np.ndarray, names: list[str]) -> Known:
    """Persons, and events of theirs."""
    n, most = len(latent), chance.choice([1, 3, 6])
    many = g.binomial(most, 1 / (1 + np.exp(-latent)))
    owner = np.repeat(np.arange(n), many)
    people, fields = draw_columns(chance, g, latent, names[:2])
    events, more = draw_columns(chance, g, latent[owner] + 0.7 * g.standard_normal(len(owner)), names[2:])
    key = [{"fields": "whose", "reference": {"resource": "persons", "fields": "id"}}]
    document = {
        "resources": [
            {
                "name": "persons",
                "path": "persons.csv",
                "schema": {"primaryKey": "id", "fields": [{"name": "id", "type": "string"}, *fields]},
            },
            {
                "name": "events",
                "path": "events.csv",
                "covey": {"at_most": most},
                "schema": {"foreignKeys": key, "fields": [{"name": "whose", "type": "string"}, *more]},
            },
        ]
    }
    keys = np.array([f"p{i}" for i in range(n)])
    tables = {
        "persons": as_frame(people).with_columns(pl.Series("id", keys)),
        "events": as_frame(events).with_columns(pl.Series("whose", keys[owner])),
    }
    both = {**{name: own.take(owner) for name, own in people.items()}, **events}
    single = 1 / many[owner] / np.count_nonzero(many)
    views = {
        "persons": View(people, np.full(n, 1 / n)),
        "single": View(both, single),
        "events": View(both, np.full(len(owner), 1 / len(owner))),
    }
    return Known("events", document, tables, n, views, {}, frozenset(events))


def as_frame(columns: Mapping[str, Column]) -> pl.DataFrame:
    """Cells as text, as a file has them."""
    return pl.DataFrame({name: pl.Series(own.texts.tolist(), dtype=pl.String) for name, own in columns.items()})


def draw_columns(
    chance: Chance, g: np.random.Generator, latent: np.ndarray, names: list[str]
) -> tuple[dict[str, Column], list[dict[str, Any]]]:
    """Columns that hang together by something unseen, and their fields."""
    columns, fields = {}, []
    for name in names:
        kind = chance.choice(KINDS)
        loading = chance.choice([0.0, 0.5, 0.9])
        score = loading * latent + np.sqrt(1 - loading**2) * g.standard_normal(len(latent))
        column, entry = MAKERS[kind](chance, name, score)
        if chance.once_in(4):
            column.texts[g.random(len(latent)) < chance.choice([0.02, 0.2])] = None
        else:
            entry["constraints"]["required"] = True
        if kind in ("few", "many") and chance.once_in(6):
            column.texts[g.random(len(latent)) < 0.1] = SPECIAL
            entry.setdefault("covey", {})["special"] = [SPECIAL]
        lost = np.equal(column.texts, None) | (column.texts == SPECIAL)
        columns[name] = Column(name, kind, column.texts, np.where(lost, np.nan, column.numbers))
        fields.append(entry)
    return columns, fields


def category(chance: Chance, name: str, score: np.ndarray) -> tuple[Column, dict[str, Any]]:
    labels = np.array(WORDS[: chance.randint(2, len(WORDS))], dtype=object)
    places = np.clip(np.floor((score + 2) / 4 * len(labels)), 0, len(labels) - 1).astype(int)
    numbers = np.full(len(score), np.nan)
    entry = {"name": name, "type": "string", "constraints": {"enum": labels.tolist()}}
    return Column(name, "category", labels[places], numbers), entry


def flag(chance: Chance, name: str, score: np.ndarray) -> tuple[Column, dict[str, Any]]:
    yes = score > chance.choice([-0.5, 0.0, 1.0])
    texts = np.array(["false", "true"], dtype=object)[yes.astype(int)]
    return Column(name, "flag", texts, yes.astype(float)), {"name": name, "type": "boolean", "constraints": {}}


def _number(
    name: str, kind: str, values: np.ndarray, limits: tuple[int, int], decimals: int = 0
) -> tuple[Column, dict[str, Any]]:
    values = np.round(np.clip(values, *limits), decimals)
    texts = np.array([f"{v:.{decimals}f}" for v in values], dtype=object)
    entry: dict[str, Any] = {"name": name, "type": "number" if decimals else "integer"}
    entry["constraints"] = {"minimum": limits[0], "maximum": limits[1]}
    if decimals:
        entry["covey"] = {"decimals": decimals}
    return Column(name, kind, texts, values), entry


def few(chance: Chance, name: str, score: np.ndarray) -> tuple[Column, dict[str, Any]]:
    return _number(name, "few", np.floor(3 + 1.5 * score), (0, 7))


def many(chance: Chance, name: str, score: np.ndarray) -> tuple[Column, dict[str, Any]]:
    column, entry = _number(name, "many", np.floor(50 + 18 * score), (0, chance.choice([100, 130])))
    if chance.once_in(6):
        entry["covey"] = {"bins": 50}
    return column, entry


def skewed(chance: Chance, name: str, score: np.ndarray) -> tuple[Column, dict[str, Any]]:
    values = np.floor(np.exp(1.2 * score) * chance.choice([3, 60]) - 1)
    return _number(name, "skewed", values, (0, chance.choice([400, 3000])))


def decimal(chance: Chance, name: str, score: np.ndarray) -> tuple[Column, dict[str, Any]]:
    return _number(name, "decimal", 20 + 5 * score + 2 * np.sin(3 * score), (0, 40), chance.choice([1, 2]))


def days(chance: Chance, name: str, score: np.ndarray) -> tuple[Column, dict[str, Any]]:
    count = np.clip(np.floor(180 + 80 * score), 0, 364)
    texts = np.array([(FIRST_DAY + timedelta(days=int(k))).isoformat() for k in count], dtype=object)
    ends = {"minimum": FIRST_DAY.isoformat(), "maximum": (FIRST_DAY + timedelta(days=364)).isoformat()}
    return Column(name, "date", texts, count), {"name": name, "type": "date", "constraints": ends}


MAKERS: Mapping[str, Callable[[Chance, str, np.ndarray], tuple[Column, dict[str, Any]]]] = {
    "category": category,
    "flag": flag,
    "few": few,
    "many": many,
    "skewed": skewed,
    "decimal": decimal,
    "date": days,
}


def draw_following(
    chance: Chance, g: np.random.Generator, columns: Mapping[str, Column]
) -> tuple[dict[str, Column], list[dict[str, Any]]]:
    """A number that comes after another one, usually is what others say, or is computed from them."""
    whole = [own for own in columns.values() if own.kind in ("few", "many") and np.isfinite(own.numbers).all()]
    if not whole or chance.once_in(2):
        return {}, []
    base, other = chance.choice(whole), chance.choice(whole)
    away = np.where(g.random(len(base.numbers)) < 0.1, g.integers(1, 5, len(base.numbers)), 0)
    later = g.integers(0, 20, len(base.numbers))
    ways = {
        "after": (base.numbers + later, {"after": base.name}),
        "expected": (2 * base.numbers + 1 + away, {"expected": {"expression": f"2 * '{base.name}' + 1"}}),
        "product": (base.numbers * other.numbers, {"expected": {"expression": f"'{base.name}' * '{other.name}'"}}),
        "derived": (3 * base.numbers - 1, {"derived": {"expression": f"3 * '{base.name}' - 1"}}),
    }
    way = chance.choice(list(ways))
    values, own = ways[way]
    name = "follows"
    entry: dict[str, Any] = {"name": name, "type": "integer", "covey": own}
    if way != "derived":
        entry["constraints"] = {"minimum": 0, "maximum": int(max(values.max(), 300)), "required": True}
    texts = np.array([f"{v:.0f}" for v in values], dtype=object)
    return {name: Column(name, "many", texts, values)}, [entry]
