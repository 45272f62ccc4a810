"""What `benchmarks.intervals` asks of releases, and the public tables that they are made of."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from covey.tables.schema import Field, Schema

DATA = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))
ADULT = ("age", "workclass", "education-num", "marital-status", "relationship", "sex", "hours-per-week", "income>50K")
NUMBERS = ("age", "education-num", "hours-per-week")
QUESTIONS = 20  # of a kind, for each release
REGRESSORS = 8
FUNCTIONS = 6


@dataclass
class Population:
    """A public table by columns: whole numbers, and the schema they are released under."""

    columns: dict
    schema: Schema
    flags: list
    numbers: list
    categories: list

    @property
    def n(self):
        """Rows."""
        return len(next(iter(self.columns.values())))

    def resample(self, generator):
        """As many rows, drawn with replacement."""
        rows = generator.integers(0, self.n, self.n)
        return {name: values[rows] for name, values in self.columns.items()}


def bits(name, most=None):
    X = np.load(DATA / f"{name}.npz")["x"][:, :most]
    X = X[:, X.std(axis=0) > 0]
    names = [f"c{j}" for j in range(X.shape[1])]
    schema = Schema(tuple(Field(n, "boolean", required=True) for n in names))
    return Population({n: X[:, j].astype(np.int64) for j, n in enumerate(names)}, schema, names, names, [])


def adult():
    with (DATA / "adult.csv").open() as file:
        rows = list(csv.DictReader(file))
    columns = {name: np.array([int(row[name]) for row in rows]) for name in ADULT}
    fields = []
    for name, values in columns.items():
        top = int(values.max())
        if name in NUMBERS:
            fields.append(Field(name, "integer", 0, top, required=True))
        elif top == 1:
            fields.append(Field(name, "boolean", required=True))
        else:
            fields.append(Field(name, "string", enum=tuple(f"v{v}" for v in range(top + 1)), required=True))
    flags = [name for name in ADULT if columns[name].max() == 1]
    categories = [name for name in ADULT if name not in NUMBERS and name not in flags]
    return Population(columns, Schema(tuple(fields)), flags, [*NUMBERS, *flags], categories)


# Questions: (kind, what to ask a release, what a table says, what textbooks say of synthetic rows).


def mask(columns, condition):
    out = True
    for name, value in condition.items():
        values = columns[name]
        if isinstance(value, tuple):
            low, high = value
            out = out & (values >= low if low is not None else True) & (values <= high if high is not None else True)
        else:
            out = out & (values == (int(value[1:]) if isinstance(value, str) else int(value)))
    return out


def some_condition(population, generator, name):
    values = population.columns[name]
    if name in population.flags:
        return bool(generator.integers(2))
    if name in population.categories:
        return f"v{generator.choice(np.unique(values))}"
    return (int(generator.choice(values)), None)


def questions(population, generator):
    names, draw = list(population.columns), generator.choice
    for _ in range(QUESTIONS):
        a, b = draw(names, 2, replace=False)
        A = {a: some_condition(population, generator, a)}
        B = {b: some_condition(population, generator, b)}
        yield "share", lambda r, o, A=A: [r.share(A, **o)], lambda t, A=A: [mask(t, A).mean()], proportion(A, {})
        both = A | B
        yield (
            "pair share",
            lambda r, o, q=both: [r.share(q, **o)],
            lambda t, q=both: [mask(t, q).mean()],
            proportion(both, {}),
        )
        yield (
            "P(A given B)",
            lambda r, o, A=A, B=B: [r.share(A, given=B, **o)],
            lambda t, A=A, B=B: [mask(t, A)[mask(t, B)].mean() if mask(t, B).any() else np.nan],
            proportion(A, B),
        )
        x, y = draw(population.numbers, 2, replace=False)
        yield (
            "correlation",
            lambda r, o, x=x, y=y: [r.correlation(x, y, **o)],
            lambda t, x=x, y=y: [np.corrcoef(t[x], t[y])[0, 1]],
            None,
        )
        group = draw([n for n in names if n != x and n in [*population.flags, *population.categories]])
        g = {group: some_condition(population, generator, group)}
        yield (
            "group mean",
            lambda r, o, x=x, g=g: [r.mean(x, where=g, **o)],
            lambda t, x=x, g=g: [t[x][mask(t, g)].mean() if mask(t, g).any() else np.nan],
            None,
        )
    for _ in range(2):
        y, *xs = draw(population.numbers, min(REGRESSORS + 1, len(population.numbers)), replace=False)
        yield "linear regression", *regression(y, xs, "linear")
        y = draw(population.flags)
        xs = draw(
            [n for n in population.numbers if n != y], min(REGRESSORS, len(population.numbers) - 1), replace=False
        )
        yield "logistic regression", *regression(y, list(xs), "logistic")


def proportion(A, B):
    """Textbook half-width of a share."""

    def half(t):
        rows = mask(t, A)[mask(t, B)] if B else mask(t, A)
        p = rows.mean() if len(rows) else np.nan
        return np.array([p]), np.array([1.96 * np.sqrt(p * (1 - p) / max(len(rows), 1))])

    return half


def regression(y, xs, family):
    def ask(r, o):
        formula = f"`{y}` ~ " + " + ".join(f"`{x}`" for x in xs)
        return list(r.regress(formula, family, **o))[1:]

    def fit(t):
        X = np.column_stack([np.ones(len(t[y])), *(t[x] for x in xs)]).astype(float)
        if family == "linear":
            inverse = np.linalg.pinv(X.T @ X)
            beta = inverse @ X.T @ t[y]
            return beta, np.sqrt(np.diag(inverse) * np.var(t[y] - X @ beta))
        beta = np.zeros(X.shape[1])
        for _ in range(40):
            q = 1 / (1 + np.exp(-np.clip(X @ beta, -30, 30)))
            inverse = np.linalg.pinv(X.T @ (X * (q * (1 - q))[:, None]))
            beta = beta + inverse @ X.T @ (t[y] - q)
        return beta, np.sqrt(np.diag(inverse))

    def naive(t):
        beta, se = fit(t)
        return beta[1:], 1.96 * se[1:]

    return ask, lambda t: fit(t)[0][1:], naive


def functions(population, generator):
    """Any function of a frame, with what a table says: a share of three flags, and a ratio of odds."""
    for _ in range(FUNCTIONS):
        a, b, c = generator.choice(population.flags, 3, replace=False)

        def triple(t, a=a, b=b, c=c):
            return float(np.mean(np.asarray(t[a]) * np.asarray(t[b]) * np.asarray(t[c])))

        def odds(t, a=a, b=b):
            x, y = np.asarray(t[a]), np.asarray(t[b])
            cells = [np.mean((x == i) & (y == j)) + 1e-4 for i in (0, 1) for j in (0, 1)]
            return float(np.log(cells[0] * cells[3] / (cells[1] * cells[2])))

        yield "share of three, replicates", triple
        yield "log odds ratio, replicates", odds
