"""Tails and holes: where rows of skewed numbers end up, on linked and single tables, over several seeds.

python -m benchmarks.numeric.tails [--seeds 4] [--tables panel,visits,cardio,compas,counts] [--out docs/benchmarks]

Reads randhie.csv, cardio.csv and compas.csv from the folder in COVEY_DATA. "panel" has persons (rows of randhie that follow each
other with the same fixed attributes) and their years, with the visits to a doctor and simulated stays in hospital; "visits" are
5,000 of these rows as one table; "counts" is simulated, 1,000 rows. Numbers may be missing, and none is. Maxima are far away.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl

import covey
from benchmarks.numeric.measures import kolmogorov
from benchmarks.numeric.tables import DATA
from covey.tables.description import Description
from covey.tables.resources import Parent, Resource
from covey.tables.schema import Field, Schema

SETTINGS = (1.0, 0.0), (1.0, 1e-9)
FIFTHS = 8  # bins by true quantiles, in which pairs are compared


@dataclass(frozen=True)
class Case:
    """One or two tables with what is public of them; columns that may be missing are numbers."""

    frames: dict[str, pl.DataFrame]
    schema: Schema | Description


def number(name, high, low=0, decimals=0):
    return Field(name, "number" if decimals else "integer", low, high, decimals=decimals if decimals else None)


def labels(name, column):
    return Field(name, "string", enum=tuple(sorted(set(column))), required=True)


def read(name, separator=","):
    return pl.read_csv(DATA / f"{name}.csv", separator=separator, infer_schema_length=None)


def randhie():
    """Years with simulated stays in hospital, and whose they are."""
    raw = read("randhie").with_columns(pl.col("hlthg", "hlthf", "hlthp", "idp").cast(pl.Int64).cast(pl.String))
    fixed = raw.drop("mdvis")
    owner = (fixed != fixed.shift(1)).select(pl.any_horizontal(pl.all()).fill_null(True))
    raw = raw.with_columns(pl.col("lpi", "physlm").round(2), pl.col("disea").round(1))
    mean = 0.05 + 0.028 * raw["mdvis"].to_numpy().clip(0, 30)
    stays = np.random.default_rng(0).poisson(mean * np.random.default_rng(1).gamma(0.5, 2.0, len(raw)))
    return raw.with_columns(stays=pl.Series(stays), who=owner.to_series().cum_sum().cast(pl.String))


def attributes(raw):
    return [
        labels("idp", raw["idp"]),
        number("lpi", 10, decimals=2),
        number("physlm", 1, decimals=2),
        number("disea", 100, decimals=1),
        *(labels(name, raw[name]) for name in ("hlthg", "hlthf", "hlthp")),
    ]


YEARS = [number("mdvis", 121), number("stays", 60)]


def panel():
    raw, place = randhie(), Field("year", "integer", 1, 50, required=True, default=1)
    raw = raw.with_columns(year=pl.int_range(pl.len()).over("who") + 1)
    own = attributes(raw)
    persons = raw.group_by("who", maintain_order=True).first().select("who", *(f.name for f in own))
    events = raw.select("who", "mdvis", "stays", "year")
    link = Parent("persons", "who", 5, "year", numbered=True)
    years = Resource("years", Schema((*YEARS, place)), parent=link)
    package = Description((Resource("persons", Schema(tuple(own)), "who"), years))
    return Case({"persons": persons, "years": events}, package)


def visits():
    raw = randhie().sample(5000, seed=0)
    schema = Schema((*YEARS, *attributes(raw)))
    return Case({"": raw.select(schema.names)}, schema)


def cardio():
    raw = read("cardio", ";").sample(10_000, seed=0)
    raw = raw.with_columns(pl.col("gender", "cholesterol", "gluc", "smoke", "cardio").cast(pl.String))
    fields = [number("age", 40_000), number("height", 300), number("weight", 400), number("ap_hi", 20_000, -500)]
    schema = Schema(
        (*fields, *(labels(name, raw[name]) for name in ("gender", "cholesterol", "gluc", "smoke", "cardio")))
    )
    return Case({"": raw.select(schema.names).with_columns(pl.col("weight").round().cast(pl.Int64))}, schema)


def compas():
    raw = read("compas").with_columns(pl.col("is_recid").cast(pl.String))
    counts = [number(name, 100) for name in ("juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count")]
    words = [labels(name, raw[name]) for name in ("sex", "race", "age_cat", "is_recid")]
    schema = Schema((number("age", 120), number("decile_score", 20, -1), *counts, *words))
    return Case({"": raw.select(schema.names)}, schema)


def counts():
    g = np.random.default_rng(5)
    stays, days = g.poisson(g.gamma(0.3, 0.4, 1000)), np.floor(np.exp(g.normal(0, 1, 1000)))
    frame = pl.DataFrame({"stays": stays, "days": days.astype(int), "age": g.integers(18, 95, 1000)})
    frame = frame.with_columns(ward=pl.Series(g.choice(list("abcd"), 1000)), sex=pl.Series(g.choice(["f", "m"], 1000)))
    fields = number("stays", 60), number("days", 365), number("age", 120)
    return Case({"": frame}, Schema((*fields, labels("ward", frame["ward"]), labels("sex", frame["sex"]))))


TABLES = {"panel": panel, "visits": visits, "cardio": cardio, "compas": compas, "counts": counts}


def parts(case):
    """The schema of each table."""
    if isinstance(case.schema, Description):
        return {own.name: own.schema for own in case.schema.tables}
    return {"": case.schema}


def released(case, epsilon, delta, seed):
    """Synthetic frames by name, as many rows or persons as there are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = next(iter(case.frames.values()))
        synth = covey.PrivateSynthesizer(epsilon, delta, schema=case.schema, seed=seed)
        if isinstance(case.schema, Description):
            return synth.fit(case.frames).sample(len(first))
        return {"": synth.fit(first).sample(len(first))}


def judged(case, made):
    """A row for each number (means, shares at the maximum and missing, Kolmogorov), and the mean distance of pairs of columns."""
    found = []
    distances = []
    for name, schema in parts(case).items():
        true, drawn = case.frames[name], made[name]
        codes = []
        for field in schema.fields:
            x, z = (frame[field.name] for frame in (true, drawn))
            if field.type == "string":
                place = {word: k for k, word in enumerate(field.enum)}
                codes.append([np.array([place[word] for word in column]) for column in (x, z)])
                continue
            own = [column.cast(pl.Float64).fill_null(float("nan")).to_numpy() for column in (x, z)]
            edges = np.unique(np.quantile(own[0], np.arange(1, FIFTHS) / FIFTHS))
            codes.append([np.where(np.isnan(v), len(edges) + 1, np.searchsorted(edges, v, side="right")) for v in own])
            if field.name == "year":
                continue
            x, z = (v[~np.isnan(v)] for v in own)
            found.append(
                {
                    "column": field.name,
                    "true mean": x.mean(),
                    "mean": z.mean(),
                    "at maximum": float((z == field.maximum).mean() - (x == field.maximum).mean()),
                    "missing": 1 - len(z) / len(own[1]),
                    "KS": kolmogorov(x, z),
                    "off": abs(z.mean() - x.mean()) / x.std(),
                }
            )
        for a, b in combinations(codes, 2):
            tables = [np.unique(np.stack([a[k], b[k]]), axis=1, return_counts=True) for k in (0, 1)]
            laws = [dict(zip(map(tuple, t.T.tolist()), c / c.sum(), strict=True)) for t, c in tables]
            distances.append(sum(abs(laws[0].get(k, 0) - laws[1].get(k, 0)) for k in {*laws[0], *laws[1]}) / 2)
    return found, float(np.mean(distances))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks/tails.csv"))
    given = parser.parse_args()
    rows = []
    for table in given.tables.split(","):
        case = TABLES[table]()
        for epsilon, delta in SETTINGS:
            setting = f"({epsilon:g}, {delta:g})" if delta else f"pure {epsilon:g}"
            for seed in range(given.seeds):
                found, pairs = judged(case, released(case, epsilon, delta, seed))
                rows += [{"table": table, "setting": setting, "seed": seed, **own, "pairs": pairs} for own in found]
            print(summary([row for row in rows if (row["table"], row["setting"]) == (table, setting)]), flush=True)
    with given.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({k: round(v, 5) if isinstance(v, float) else v for k, v in row.items()} for row in rows)


def summary(rows):
    """A line of the page's table: the worst over columns and seeds, and means over all."""
    first = rows[0]
    worst = max(rows, key=lambda row: row["off"])
    return (
        f"| {first['table']} | {first['setting']} | {worst['column']}: {worst['mean']:.3g} ({worst['true mean']:.3g}) "
        f"| {np.mean([row['off'] for row in rows]):.3f} | {max(row['at maximum'] for row in rows):.2%} "
        f"| {max(row['missing'] for row in rows):.2%} | {np.mean([row['KS'] for row in rows]):.4f} "
        f"| {np.mean([row['pairs'] for row in rows]):.4f} |"
    )


if __name__ == "__main__":
    main()
