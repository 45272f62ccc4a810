"""Attacks that nobody here wrote, on covey's releases: `make attacks`, or with a table `make attacks TABLE=adult.csv`.

Anonymeter's three attacks (singling out, linkability, inference) run on a private release at ε = 1, on an anonymous one
with groups of 20, and on a raw copy: that one must look bad, or the attacks are worth nothing. A membership attack by
distance to the nearest synthetic row asks, at 0.1% false positives, how much more often it is right about members.

Two steps, because Anonymeter wants an older numpy than covey. `release` runs in covey's environment and makes the tables;
`attack` runs in the other one, attacks them and writes the record.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from pathlib import Path

import numpy as np

EPSILON, GROUP, ATTACKS, FALSE_POSITIVES = 1.0, 20, 500, 0.001
NAMES = {
    "private": f"private, ε = {EPSILON:g}",
    "anonymous": f"anonymous, groups of {GROUP}",
    "raw": "raw copy (positive control)",
}


def release(table: Path | None, folder: Path, rows: int, seed: int) -> None:
    """Split a table into members, who are in the releases, and others; release the members in every way."""
    import covey
    from covey.desk.demo import example_visits
    from covey.release.bundle import write_bundle
    from covey.tables.schema import Schema
    from covey.tables.sources import read_table

    folder.mkdir(parents=True, exist_ok=True)
    if table is None:
        table = folder / "visits.csv"
        example_visits(table, 5 * rows)
    head, *lines = table.read_text(encoding="utf-8").splitlines()
    order = np.random.default_rng(seed).permutation(len(lines))
    rows = min(rows, len(lines) // 2)
    chosen = {"members": order[:rows], "others": order[rows : 3 * rows]}
    for name, places in chosen.items():
        (folder / f"{name}.csv").write_text("\n".join([head, *(lines[i] for i in places)]) + "\n", encoding="utf-8")
    schema = Schema.draft(read_table(table))
    schema = schema.confirm(schema.names)  # bounds of a public table are public
    members = folder / "members.csv"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        private = covey.PrivateSynthesizer(EPSILON, schema=schema).fit(members)
        anonymous = covey.AnonymousSynthesizer(GROUP, schema=schema).fit(members)
    for name, synth in (("private", private), ("anonymous", anonymous)):
        write_bundle(synth.release(rows), folder / name, force=True)
    facts = {"table": table.name, "members": rows, "others": len(chosen["others"]), "covey": covey.__version__}
    (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")


def alike(tables):
    """Tables that spell values the same way: flags and numbers as numbers (missing: −1), all else as text."""
    import pandas as pd

    tables = [table.copy() for table in tables]
    for column in tables[0].columns:
        read = [table[column].astype(str).str.lower().replace({"true": "1", "false": "0"}) for table in tables]
        numbers = [pd.to_numeric(values.replace("nan", "-1"), errors="coerce") for values in read]
        found = read if any(values.isna().any() for values in numbers) else [values.astype(float) for values in numbers]
        for table, values in zip(tables, found, strict=True):
            table[column] = values
    return tables


def nearest(X, Z):
    """Distance of each row of X to the nearest of Z: columns that differ, and numbers by share of their range."""
    wide = [X[c].dtype.kind in "if" and X[c].nunique() > 20 for c in X.columns]
    Z = Z.drop_duplicates()
    best = np.full(len(X), np.inf)
    pairs = []
    for column, number in zip(X.columns, wide, strict=True):
        a, b = X[column].to_numpy(), Z[column].to_numpy()
        if number:
            low, high = a.min(), a.max()
            a, b = ((values - low) / (high - low) for values in (a, b))
        else:
            known = {value: i for i, value in enumerate(sorted({*map(str, a), *map(str, b)}))}
            a, b = (np.array([known[str(v)] for v in values]) for values in (a, b))
        pairs.append((a, b, number))
    for start in range(0, len(X), 200):
        part = slice(start, start + 200)
        total = np.zeros((len(best[part]), len(Z)), dtype=np.float32)
        for a, b, number in pairs:
            gap = a[part, None] - b[None]
            total += np.abs(gap) if number else gap != 0
        best[part] = total.min(axis=1)
    return best


def membership(members, others, Z):
    """True positives at 0.1% false positives of "is it close to a synthetic row?"; ties are decided by a coin."""
    inside, outside = nearest(members, Z), nearest(others, Z)
    wanted = FALSE_POSITIVES * len(outside)
    cut = np.sort(outside)[math.ceil(wanted) - 1]
    sure, tied = np.count_nonzero(outside < cut), np.count_nonzero(outside == cut)
    coin = (wanted - sure) / tied
    hits = np.count_nonzero(inside < cut) + coin * np.count_nonzero(inside == cut)
    return hits / len(inside)


def attack(folder: Path, record: Path, seed: int) -> int:
    """Attack every release and write down the risks; fails if the control looks safe or the bound is passed."""
    import pandas as pd
    from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator
    from scipy.stats import binom

    np.random.seed(seed)  # noqa: NPY002 - Anonymeter draws from numpy's global generator
    facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    members, others = (pd.read_csv(folder / f"{name}.csv") for name in ("members", "others"))
    tables = {name: pd.read_csv(folder / name / "synthetic.csv") for name in ("private", "anonymous")} | {
        "raw": members
    }
    columns = list(members.columns)
    members, others, *spoken = alike([members, others, *(Z[columns] for Z in tables.values())])
    tables, control = dict(zip(tables, spoken, strict=True)), others.iloc[: len(members)]
    halves = (columns[: len(columns) // 2], columns[len(columns) // 2 :])
    lines, found = [], {}
    for name, Z in tables.items():
        risks = {}
        for attack_name, evaluator in {
            "singling out": SinglingOutEvaluator(members, Z, n_attacks=ATTACKS, n_cols=4, control=control),
            "linkability": LinkabilityEvaluator(members, Z, aux_cols=halves, n_attacks=ATTACKS, control=control),
            "inference": InferenceEvaluator(
                members, Z, aux_cols=columns[:-1], secret=columns[-1], n_attacks=ATTACKS, control=control
            ),
        }.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                evaluator.evaluate(**({"mode": "multivariate"} if attack_name == "singling out" else {}))
                risk, result = evaluator.risk(confidence_level=0.95), evaluator.results(confidence_level=0.95)
            rates = f"{result.attack_rate.value:.3f} / {result.control_rate.value:.3f}"
            risks[attack_name] = risk.value
            lines.append(
                f"| {NAMES[name]} | {attack_name} | {rates} | {risk.value:.3f} ({risk.ci[0]:.3f} to {risk.ci[1]:.3f}) |"
            )
            print(lines[-1], flush=True)
        risks["membership"] = membership(members, others, Z)
        found[name] = risks
        print(name, f"membership {risks['membership']:.4f}", flush=True)
    bound = math.exp(EPSILON) * FALSE_POSITIVES
    # What chance alone may add to the bound in this many members, one time in a thousand.
    noise = binom.ppf(0.999, len(members), bound) / len(members)
    wrong = []
    if min(found["raw"][name] for name in ("singling out", "inference")) < 0.5 or found["raw"]["membership"] < 0.1:
        wrong.append("the raw copy looks safe: these attacks show nothing")
    if found["private"]["membership"] > noise:
        wrong.append("the membership attack passes e^ε on the private release")
    record.write_text(page(facts, lines, found, bound, noise, wrong), encoding="utf-8")
    print(f"record → {record}", *wrong, sep="\n")
    return 1 if wrong else 0


def page(facts, lines, found, bound, noise, wrong):
    """docs/benchmarks/attacks.md."""
    from importlib.metadata import version

    share = {name: risks["membership"] for name, risks in found.items()}
    rows = [f"| {NAMES[name]} | {rate:.4f} | {rate / FALSE_POSITIVES:.1f} |" for name, rate in share.items()]
    verdict = "; ".join(wrong) or "The raw copy is found out; the private release stays within its bound."
    return PAGE.format(
        **facts,
        version=version("anonymeter"),
        attacks=ATTACKS,
        anonymeter="\n".join(lines),
        membership="\n".join(rows),
        positives=FALSE_POSITIVES,
        epsilon=EPSILON,
        bound=bound,
        noise=noise,
        verdict=verdict,
    )


PAGE = """# Attacks

`make attacks` on `{table}`: {members} rows were released by covey {covey}, {others} others were not.
Anonymeter {version}, {attacks} attacks of each kind.

## Anonymeter

Success against members / against people who are not in the table, and Anonymeter's risk: the success that remains beyond
that against others, with its 95% interval. Singling out uses predicates on four columns; linkability joins the two halves
of the columns by one neighbour; inference guesses the last column from all the others.

| release | attack | members / others | risk |
|---|---|---|---|
{anonymeter}

## Membership by distance

True positives at {positives:.1%} false positives of "is this row closer to a synthetic row than a threshold?". ε = {epsilon:g}
allows {bound:.4f}, e^ε times the false positives; up to {noise:.4f} may be seen by chance one time in a thousand. Others
who have a twin among the members are as close as members are, which is why even a raw copy does not give away everyone.

| release | true positives | times the false positives |
|---|---|---|
{membership}

{verdict}
"""


def main(arguments=None) -> int:
    """One step or the other."""
    parser = argparse.ArgumentParser(prog="python -m trust.attacks", description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=["release", "attack"])
    parser.add_argument("table", nargs="?", type=Path, help="a public CSV table (default: covey's example)")
    parser.add_argument("--folder", type=Path, default=Path("build/attacks"))
    parser.add_argument("--record", type=Path, default=Path("docs/benchmarks/attacks.md"))
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    if options.step == "release":
        release(options.table, options.folder, options.rows, options.seed)
        return 0
    return attack(options.folder, options.record, options.seed)


if __name__ == "__main__":
    sys.exit(main())
