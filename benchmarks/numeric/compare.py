"""Tables with numbers: twenty bins, numbers at their own precision, a peer, and a bootstrap of the true rows, in one run.

python -m benchmarks.numeric.compare [--seeds 3] [--tables national2019,prices] [--settings "1,1e-9;1,0"] [--out docs/benchmarks]
    [--ways bootstrap,bins,numbers,dpsynth] [--bin-seeds 1]
python -m benchmarks.numeric.compare --speed

Reads national2019.csv and randhie.csv from the folder in COVEY_DATA; other tables are simulated. Settings were chosen on
national2019, prices, randhie and skewed, the slopes of tails also with claims and dated in view; bodies was only looked at
afterwards. "bins" declares twenty equal bins for every number, which was the default before numbers had measures of their own,
and "dpsynth" is a peer that cuts numbers at private quantiles, with the same zCDP budget, for tables that gain or lose a row
(`peer.py` says how it is installed). Errors are those of `measures.py`, in the columns' own units. The bootstrap resamples the
true rows and is not private. Rows that are not run again are those of numbers.csv.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

import covey
from benchmarks.numeric.measures import judge
from benchmarks.numeric.peer import installed, peer_rows
from benchmarks.numeric.tables import TABLES, Table, encode
from covey.tables.fields import Follows
from covey.tables.schema import Field, Schema

MEASURES = ["KS", "mean", "median", "q90", "top10", "Spearman max", "Spearman RMS", "groups", "2-way TV"]
BOOTSTRAPS = 5  # more than seeds: a quantile at a gap jumps once in a few tables
# At ε = 1, δ = 1e-9 and 20,000 rows; pure 2.2 times, 8,000 rows three times as much.
TARGETS = {
    "KS": 0.012,
    "median": 0.01,
    "q90": 0.03,
    "top10": 0.02,
    "groups": 0.15,
    "Spearman max": 0.08,
    "2-way TV": 0.045,
}


NOTES = """Medians and quantiles that lie at a gap jump from one side to the other: the median of randhie's visits, the 90%
quantile of its diseases, of national2019's children and, by construction, of claims' deductible, which 90% of the policies
have at 500 or less. Two hundred bootstraps of the true rows move medians by .017 (randhie) and .010 (bodies) on average, and
90% quantiles by .046 (claims), .021 (national2019; .050 with 8,000 rows) and .017 (randhie): where that is above a target,
the bootstrap misses it too.

Group means of randhie rest on a group of 302 rows: at (1, 1e-9) the noise on its tables with numbers is as large as what they
say, and so large in the sums of ranks that these would not help. 2-way tables of bodies lie .037 from the true ones in a
bootstrap: the rest is spread over all pairs, and .24 at the weight that people tell beside their weight. In prices pairs of
two numbers in a narrow band (x and y, carat and x) are .14 to .22 off, which forty bins do not resolve, and pairs with a
category .03.

Tails and holes (`python -m benchmarks.numeric.tails`), before and after bins without one-way mass were left empty. A panel
of 5,294 persons, pure ε = 1, eight seeds: up to 1.7% of the years at the maximum of 121 visits, now none; up to 1.7% of a
column missing where nothing is, now none; KS .058, now .044; pairs .064, now .060. A simulated table of 1,000 rows, four
seeds: pure ε = 1, a mean of 7.3 instead of 1.3 in the worst release, now 0.5; KS .126, now .112; pairs .200, now .152; at
(1, 1e-9) KS .081, now .066; pairs .116, now .078. What noise alone lifts two deviations above zero is still missing (4.2%
once).

dpsynth ended with an IndexError on claims, where numbers have missing cells; other tables with such cells were not tried with it.
"""


def schema_of(table: Table, bins=None):
    """The public schema of a benchmark table."""
    fields = []
    for c in table.columns:
        if not c.number:
            labels = tuple(f"v{k}" for k in range(c.size))
            fields.append(Field(c.name, "string", enum=labels, required=True, ordered=c.ordered))
            continue
        decimals = max(0, round(-np.log10(c.step)))
        high = round(c.low + c.step * (c.size - 1 - c.missing), decimals)
        follows = Follows(table.columns[c.after].name) if c.after is not None and bins is None else None
        own = {"bins": bins, "required": not c.missing, "decimals": decimals, "follows": follows}
        fields.append(Field(c.name, "number", c.low, high, **own))
    return Schema(tuple(fields))


def frame_of(table: Table):
    """The table as a frame."""
    columns = {}
    for j, c in enumerate(table.columns):
        codes = table.codes[:, j]
        columns[c.name] = pl.Series(c.values(codes)).fill_nan(None) if c.number else pl.Series([f"v{k}" for k in codes])
    return pl.DataFrame(columns)


def codes_of(table: Table, frame):
    """Codes of a synthetic frame."""
    out = np.empty((len(frame), len(table.columns)), dtype=np.int64)
    for j, c in enumerate(table.columns):
        column = frame[c.name]
        if c.number:
            out[:, j] = encode(c, column.cast(pl.Float64).fill_null(float("nan")).to_numpy())
        else:
            out[:, j] = column.str.slice(1).cast(pl.Int64).to_numpy()
    return out


def synthetic(table: Table, epsilon, delta, bins, seed):
    """Codes of as many synthetic rows, the seconds that fit and sample took, and the certificate's bound."""
    frame, schema = frame_of(table), schema_of(table, bins)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        synth = covey.PrivateSynthesizer(epsilon, delta, schema=schema, seed=seed).fit(frame)
        rows = synth.sample(len(frame))
    return codes_of(table, rows), time.perf_counter() - begin, max(synth.certificate.bound.values())


def fewer(table: Table, n, seed=0):
    """A table of n of the rows."""
    rows = np.random.default_rng(seed).choice(len(table.codes), n, replace=False)
    return replace(table, name=f"{table.name}, {n:,} rows", codes=table.codes[np.sort(rows)])


def averaged(found):
    return {key: float(np.mean([one[key] for one in found])) for key in found[0]}


def compare(table: Table, settings, seeds, ways):
    """Rows of the report for one table; `seeds` are those of bins and of numbers."""
    if "bootstrap" in ways:
        n, generator = len(table.codes), np.random.default_rng(0)
        found = [judge(table, table.codes[generator.integers(0, n, n)])[0] for _ in range(BOOTSTRAPS)]
        yield {"table": table.name, "setting": "bootstrap", "way": "", **averaged(found), "seeds": BOOTSTRAPS}
    for epsilon, delta in settings:
        name = f"({epsilon:g}, {delta:g})" if delta else f"pure {epsilon:g}"
        for way, bins, runs in (("bins", 20, seeds[0]), ("numbers", None, seeds[1])):
            if way not in ways:
                continue
            found, worst = [], ""
            for seed in range(runs):
                codes, seconds, bound = synthetic(table, epsilon, delta, bins, seed)
                errors, _, pair = judge(table, codes)
                found.append({**errors, "seconds": seconds, "bound": bound})
                worst = " × ".join(pair)
            row = {
                "table": table.name,
                "setting": name,
                "way": way,
                **averaged(found),
                "worst pair": worst,
                "seeds": runs,
            }
            print({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
            yield row
        if "dpsynth" in ways:
            yield from peers(table, (epsilon, delta), name)


def peers(table: Table, promise, name):
    """A row for dpsynth, one seed; nothing where it is not installed or has no such guarantee."""
    rows, seconds = peer_rows(table.columns, frame_of(table), promise, 0)
    if isinstance(rows, str):
        print(f"{table.name}, {name}: dpsynth {rows}", flush=True)
        return
    errors, _, pair = judge(table, codes_of(table, rows.with_columns(pl.col(pl.String).fill_null("v0"))))
    row = {"table": table.name, "setting": name, "way": "dpsynth", **errors, "seconds": seconds, "seeds": 1}
    print({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
    yield {**row, "worst pair": " × ".join(pair)}


def place(row):
    """Where a row stands in the report: by table, then bootstrap, then by setting."""
    tables = [*TABLES, "national2019, 8,000 rows"]
    ways = ["", "bins", "numbers", "dpsynth"]
    return tables.index(row["table"]), row["setting"] != "bootstrap", row["setting"], ways.index(row["way"])


def kept(out: Path):
    """The rows of an earlier report, by table, setting and way."""
    path = out / "numbers.csv"
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        found = [{k: _cell(k, v) for k, v in row.items() if v != ""} for row in csv.DictReader(file)]
    return {(row["table"], row["setting"], row.setdefault("way", "")): row for row in found}


def _cell(key, value):
    return value if key in ("table", "setting", "way", "worst pair") else float(value)


def report(rows, out: Path):
    """The rows as numbers.csv, and as a table in numbers.md."""
    rows = sorted(rows, key=place)
    keys = list(dict.fromkeys(key for row in rows for key in row))
    with (out / "numbers.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, keys)
        writer.writeheader()
        writer.writerows(rows)
    text = (__doc__ or "").split("\n\n")
    lines = [f"# {text[0]}", "", text[2].replace("\n", " "), ""]
    goals = ", ".join(f"{key} {value:g}" for key, value in TARGETS.items())
    lines += [
        "Means over numbers; mean, median, 90% quantile and group means in standard deviations; lower is better. "
    ]
    lines[-1] += (
        f"Targets at (1, 1e-9) and 20,000 rows: {goals}. Seconds are those of a machine that had other work to do. "
        "The last column says how many seeds a row is a mean of."
    )
    lines += ["", f"| table | setting | way | {' | '.join(MEASURES)} | order broken | seconds | seeds |"]
    lines.append("|" + "---|" * (len(MEASURES) + 6))
    for row in rows:
        cells = [f"{row[key]:.3f}".lstrip("0") or "0" for key in MEASURES]
        cells.append(f"{row['disorder']:.1%}" if "disorder" in row else "")
        cells.append(f"{row['seconds']:.1f}" if "seconds" in row else "")
        cells.append(f"{row.get('seeds', 1):.0f}")
        lines.append(f"| {row['table']} | {row['setting']} | {row['way']} | {' | '.join(cells)} |")
    if not any(row["way"] == "dpsynth" for row in rows):
        lines += ["", "dpsynth was not installed." if not installed() else "dpsynth gave no table."]
    lines += ["", *(part.replace("\n", " ").strip() + "\n" for part in NOTES.split("\n\n")), *missed(rows)]
    (out / "numbers.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def room(row):
    """How many times the targets a row may be off."""
    return (2.2 if row["setting"].startswith("pure") else 1) * (3 if "8,000" in row["table"] else 1)


def missed(rows):
    """What the targets ask for and numbers do not reach, and where they are worse than bins."""
    lines = ["Targets are 2.2 times as wide for pure ε, and three times for 8,000 rows. Missed:", ""]
    bins = {(row["table"], row["setting"]): row for row in rows if row["way"] == "bins"}
    for row in rows:
        if row["way"] != "numbers":
            continue
        goals = {key: room(row) * goal for key, goal in TARGETS.items()}
        short = [f"{k} {row[k]:.4f} (target {goal:.3f})" for k, goal in goals.items() if row[k] > goal]
        before = bins.get((row["table"], row["setting"]), {})
        worse = [f"{k} {row[k]:.3f}, with bins {before[k]:.3f}" for k in MEASURES if row[k] > before.get(k, np.inf)]
        words = "; ".join([*short, *(f"worse than bins: {w}" for w in worse)])
        lines.append(f"- {row['table']}, {row['setting']}: {words or 'nothing'}")
    return lines


def speed(n=1_000_000):
    """A million rows of twenty-four columns, from frame to rows."""
    parts = [TABLES["skewed"](), TABLES["dated"]()]
    columns = tuple(replace(c, name=f"{k} {c.name}", after=None) for k, t in enumerate(parts) for c in t.columns)
    rows = np.random.default_rng(0).integers(0, 20_000, n)
    codes = np.hstack([t.codes[rows] for t in parts])
    table = Table("a million rows", columns + columns[:2], np.hstack([codes, codes[:, :2]]))
    named = tuple(replace(c, name=f"{j} {c.name}") for j, c in enumerate(table.columns))
    table = replace(table, columns=named)
    frame, schema = frame_of(table), schema_of(table)
    begin, busy = time.perf_counter(), time.process_time()
    synth = covey.PrivateSynthesizer(1.0, 1e-9, schema=schema, seed=0).fit(frame)
    fitted, used = time.perf_counter() - begin, time.process_time() - busy
    synth.sample(100_000)
    rest = time.perf_counter() - begin - fitted
    print(f"{n} rows × {len(named)} columns: fit {fitted:.1f} s, {used:.1f} s of processors; 100,000 rows {rest:.1f} s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--bin-seeds", type=int, default=1)
    parser.add_argument("--tables", default=",".join([*TABLES, "national2019:8000"]))
    parser.add_argument("--settings", default="1,1e-9;1,0")
    parser.add_argument("--ways", default="bootstrap,bins,numbers,dpsynth")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    parser.add_argument("--speed", action="store_true")
    given = parser.parse_args()
    if given.speed:
        return speed()
    settings = [tuple(map(float, s.split(","))) for s in given.settings.split(";")]
    rows, ways = kept(given.out), given.ways.split(",")
    for name in given.tables.split(","):
        try:
            table = TABLES[name.removesuffix(":8000")]()
        except FileNotFoundError as error:
            print(f"{error}: skipped")
            continue
        if name.endswith(":8000"):
            table = fewer(table, 8000)
        for row in compare(table, settings, (given.bin_seeds, given.seeds), ways):
            rows[row["table"], row["setting"], row["way"]] = row
            report(list(rows.values()), given.out)
    return None


if __name__ == "__main__":
    main()
