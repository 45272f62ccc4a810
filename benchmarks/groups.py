"""How much of a small group's own mean survives a release, beside the size that plan, report and evaluation state.

    python benchmarks/groups.py [--out docs/benchmarks/groups.csv]

One group of a column of categories has a mean that lies one standard deviation of a number above that of the other rows; nothing
else is told about it. "kept" is how much of the way from the overall mean to the group's own mean its synthetic rows go: 1 is all
of it, 0 is the overall mean. The stated size should lie where about half is kept.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import covey
from covey.engine.budget import make_budget
from covey.engine.models.predict import small_groups
from covey.synthesizers.learning import expected_codec
from covey.tables.schema import Field, Schema

SEEDS = 2
SHARES = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
COLUMNS = ("table", "rows", "columns", "epsilon", "delta", "stated_rows", "group_rows", "kept")


@dataclass(frozen=True)
class Case:
    """A table: rows, columns beside the group and its number, and a budget."""

    rows: int
    flags: int
    categories: tuple[int, ...]
    numbers: int
    delta: float
    epsilon: float = 1.0


CASES = {
    "visits, pure": Case(5_000, 2, (3,), 2, 0.0),
    "visits": Case(5_000, 2, (3,), 2, 1e-9),
    "survey, pure": Case(30_000, 4, (5, 8, 12), 3, 0.0),
    "survey": Case(30_000, 4, (5, 8, 12), 3, 1e-9),
    "many columns": Case(50_000, 10, (4,) * 10, 10, 1e-9),
}


def schema_of(case: Case) -> Schema:
    """The public schema of a case."""
    sure = {"required": True, "confirmed": True}
    return Schema(
        (
            Field("group", "string", enum=("own", "a", "b", "c"), **sure),
            Field("value", "integer", minimum=0, maximum=100, **sure),
            *(Field(f"f{j}", "boolean", **sure) for j in range(case.flags)),
            *(
                Field(f"c{j}", "string", enum=tuple(map(str, range(size))), **sure)
                for j, size in enumerate(case.categories)
            ),
            *(Field(f"n{j}", "integer", minimum=0, maximum=1000, **sure) for j in range(case.numbers)),
        )
    )


def table_of(case: Case, share: float, seed: int) -> dict[str, list]:
    """Rows whose other columns have a common cause, which the number shares."""
    g = np.random.default_rng(seed)
    n = case.rows
    z, own = g.standard_normal(n), g.random(n) < share
    value = np.clip(np.rint(45 + 15 * (0.6 * z + 0.8 * g.standard_normal(n) + own)), 0, 100).astype(int)
    out = {"group": np.where(own, "own", g.choice(["a", "b", "c"], n)).tolist(), "value": value.tolist()}
    for j in range(case.flags):
        out[f"f{j}"] = (0.6 * z + 0.8 * g.standard_normal(n) > 0.5).tolist()
    for j, size in enumerate(case.categories):
        place = np.clip(size * (0.5 + 0.25 * (0.6 * z + 0.8 * g.standard_normal(n))), 0, size - 1)
        out[f"c{j}"] = [str(int(k)) for k in place]
    for j in range(case.numbers):
        out[f"n{j}"] = (
            np.clip(np.rint(500 + 150 * (0.6 * z + 0.8 * g.standard_normal(n))), 0, 1000).astype(int).tolist()
        )
    return out


def kept(case: Case, share: float, seed: int) -> float:
    """How much of the way to its own mean a group goes."""
    import polars as pl

    true = pl.DataFrame(table_of(case, share, seed))
    synth = covey.PrivateSynthesizer(
        case.epsilon, case.delta, schema=schema_of(case), seed=seed, certificate_share=0.05
    )
    made = synth.fit(true).sample(case.rows)

    def lift(rows) -> float:
        inside = rows.filter(pl.col("group") == "own")["value"].mean()
        return (rows["value"].mean() if inside is None else inside) - rows["value"].mean()

    return lift(made) / lift(true)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks/groups.csv"))
    parser.add_argument("--case", nargs="*", choices=CASES)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name in given.case or CASES:
        case = CASES[name]
        schema = schema_of(case)
        said = small_groups(expected_codec(schema).kinds, case.rows, make_budget(case.epsilon, case.delta)).rows
        for share in SHARES:
            mean = float(np.mean([kept(case, share, seed) for seed in range(1, SEEDS + 1)]))
            facts = (name, case.rows, len(schema.fields), case.epsilon, case.delta, said, round(share * case.rows))
            rows.append(dict(zip(COLUMNS, (*facts, f"{mean:.2f}"), strict=True)))
            print(rows[-1], flush=True)
    with given.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
