"""Accuracy of `regain` on the public benchmark tables, beside two yardsticks from the same run.

python benchmarks/regain.py [--seeds 5] [--tables nltcs,plants] [--out docs/benchmarks]

Reads NAME.npz (a 0/1 matrix under "x") and adult.csv from the folder in COVEY_DATA. Writes regain.csv,
regain.md and regain.svg. Yardsticks: "bootstrap" resamples the true rows (not private), "product" draws independent columns with
the exact means (not private), "private means" spends the whole budget on means.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import warnings
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np

import covey
from covey.engine.budget import make_budget
from covey.engine.codes.distance import marginals, subset_sample
from covey.engine.driver import run
from covey.engine.entropy import Streams
from covey.engine.gate import Gate
from covey.engine.models.bits import measure_means, shrunken_means
from covey.engine.units.local import ArrayRows
from covey.evaluation.comparison import total_variation

DATA = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))
TABLES = ["nltcs", "msnbc", "kdd", "plants", "baudio", "bnetflix", "accidents", "adult_bits", "nips", "moviereview"]
JUDGED = TABLES[:7]  # p ≤ 163 and n > 10,000
SETTINGS = [(0.1, 0.0), (1.0, 0.0), (10.0, 0.0), (0.1, 1e-9), (1.0, 1e-9), (10.0, 1e-9)]
ADULT_ORDINAL = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}


class Truth:
    """A table and its marginals, to compare others with."""

    def __init__(self, X):
        self.X = X
        self.subsets = {d: subset_sample(X.shape[1], d, 5000) for d in (3, 4)}
        self.high = {d: marginals(X, s) for d, s in self.subsets.items()}

    def errors(self, Z):
        """δ_1 … δ_4 of a synthetic table."""
        low = [covey.marginal_error(self.X, Z, d) for d in (1, 2)]
        high = [np.sqrt(np.mean((self.high[d] - marginals(Z, s)) ** 2)) for d, s in self.subsets.items()]
        return np.array(low + high)


def name_of(epsilon, delta):
    return f"({epsilon:g}, {delta:g})" if delta else f"pure {epsilon:g}"


def private_means(X, epsilon, delta, seed):
    budget, streams = make_budget(epsilon, delta), Streams.from_seed(seed)
    gate = Gate(budget, {"means": Fraction(1)}, streams)
    m = shrunken_means(run(measure_means, ArrayRows(X), gate)).points[0]
    return (np.random.default_rng(seed).random(X.shape) < m).astype(np.uint8)


def bit_tables(names, seeds):
    for name in names:
        X = np.load(DATA / f"{name}.npz")["x"].astype(np.uint8)
        truth, generator = Truth(X), np.random.default_rng(0)
        n, p = X.shape
        draws = 4 * seeds  # the bootstrap's δ varies from draw to draw more than ours
        boot = np.mean([truth.errors(X[generator.integers(0, n, n)]) for _ in range(draws)], axis=0)
        product = np.mean(
            [truth.errors((generator.random(X.shape) < X.mean(axis=0)).astype(np.uint8)) for _ in range(seeds)], axis=0
        )
        yield {"table": name, "n": n, "p": p, "setting": "bootstrap", "errors": boot}
        yield {"table": name, "n": n, "p": p, "setting": "product", "errors": product}
        for epsilon, delta in SETTINGS:
            errors, bounds, means = [], [], []
            for seed in range(seeds):
                synth = covey.PrivateSynthesizer(epsilon, delta, seed=seed).fit(X)
                Z = synth.sample(n)
                errors.append(truth.errors(Z))
                bounds.append(synth.certificate.bound[2])
                means.append(truth.errors(private_means(X, epsilon, delta, seed)))
            yield {
                "table": name,
                "n": n,
                "p": p,
                "setting": name_of(epsilon, delta),
                "errors": np.mean(errors, axis=0),
                "bound": float(np.mean(bounds)),
                "means": np.mean(means, axis=0),
            }


def mean_variation(X, Z, sizes, degree):
    """Mean total variation over all tables of so many attributes."""
    subsets = combinations(range(len(sizes)), degree)
    return float(np.mean([total_variation(X, Z, sizes, subset) for subset in subsets]))


def adult(seeds):
    path = DATA / "adult.csv"
    if not path.exists():
        print(f"adult.csv is not in {DATA}: skipped")
        return
    with path.open() as file:
        names = file.readline().strip().split(",")
    X = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64)
    domain = json.loads((DATA / "adult-domain.json").read_text())
    sizes = [domain[name] for name in names]
    ordinal = [i for i, name in enumerate(names) if name in ADULT_ORDINAL]
    generator = np.random.default_rng(0)
    boot = [
        [mean_variation(X, X[generator.integers(0, len(X), len(X))], sizes, d) for d in (1, 2, 3)] for _ in range(seeds)
    ]
    yield {"setting": "bootstrap", "errors": np.mean(boot, axis=0)}
    for epsilon, delta in SETTINGS:
        errors = []
        for seed in range(seeds):
            Z = covey.PrivateSynthesizer(epsilon, delta, domain=sizes, ordinal=ordinal, seed=seed).fit(X).sample(len(X))
            errors.append([mean_variation(X, Z, sizes, d) for d in (1, 2, 3)])
        yield {"setting": name_of(epsilon, delta), "errors": np.mean(errors, axis=0)}


def show(values, digits=5):
    """Numbers side by side, without the zero before the point of those below 1: .42 and 10.59."""
    return " ".join(f"{v:.{digits}f}".removeprefix("0") for v in values)


def write(rows, grown, out, seeds):
    """The Markdown page, the CSV file and the plot."""
    rows = [r | {"errors": np.array([float(f"{v:.6g}") for v in r["errors"]])} for r in rows]  # as the file has them
    boot = {r["table"]: r["errors"] for r in rows if r["setting"] == "bootstrap"}
    text = [
        "# regain on public tables",
        "",
        f"`make bench`, {seeds} seeds, as many synthetic rows as true ones.",
        "RMSE₁ RMSE₂ RMSE₃ RMSE₄ are root mean square errors of 1- to 4-way shares; ratios are to the bootstrap of the",
        "true rows from the same run. Constants were tuned on most of these tables: [unseen.md](unseen.md) has tables",
        "that nothing was tuned on.",
        "",
        "| table | n × p | setting | RMSE₁ RMSE₂ RMSE₃ RMSE₄ | ratio to bootstrap | certificate (δ ≤) | private means alone |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        ratio = show(r["errors"] / boot[r["table"]], 2) if r["table"] in boot else ""
        means = show(r["means"]) if "means" in r else ""
        bound = f"{r['bound']:.4f}" if "bound" in r else ""
        cells = [r["table"], f"{r['n']} × {r['p']}", r["setting"], show(r["errors"]), ratio, bound, means]
        text.append("| " + " | ".join(cells) + " |")
    text += ["", "Geometric mean of the ratios over the tables with n > 10,000 and p ≤ 163:", ""]
    text += ["| setting | RMSE₁ | RMSE₂ | RMSE₃ | RMSE₄ |", "|---|---|---|---|---|"]
    for setting in [name_of(*s) for s in SETTINGS] + ["product"]:
        ratios = [r["errors"] / boot[r["table"]] for r in rows if r["setting"] == setting and r["table"] in JUDGED]
        if ratios:
            mean = np.exp(np.mean(np.log(ratios), axis=0))
            text.append(f"| {setting} | " + " | ".join(f"{v:.2f}" for v in mean) + " |")
    if grown:
        text += [
            "",
            "adult.csv, 14 attributes, 588 categories, mean total variation of all 1-, 2- and 3-way tables:",
            "",
        ]
        text += ["| setting | 1-way | 2-way | 3-way |", "|---|---|---|---|"]
        for r in grown:
            text.append(f"| {r['setting']} | " + " | ".join(f"{v:.4f}" for v in r["errors"]) + " |")
    out.mkdir(parents=True, exist_ok=True)
    (out / "regain.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    with (out / "regain.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["table", "n", "p", "setting", "delta1", "delta2", "delta3", "delta4", "bound"])
        for r in rows:
            errors = [f"{v:.6g}" for v in r["errors"]]
            writer.writerow([r["table"], r["n"], r["p"], r["setting"], *errors, r.get("bound", "")])
    plot(rows, out / "regain.svg")


def plot(rows, path):
    """RMSE₂ of every table and setting, beside the yardsticks."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(r["table"] for r in rows))
    marks = {"bootstrap": ("k", "_"), "product": ("0.6", "_")}
    colours = plt.get_cmap("viridis")(np.linspace(0.05, 0.85, 3))
    for i, epsilon in enumerate((0.1, 1.0, 10.0)):
        marks[name_of(epsilon, 0.0)] = (colours[i], "s")
        marks[name_of(epsilon, 1e-9)] = (colours[i], "o")
    figure, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
    for setting, (colour, marker) in marks.items():
        points = [(names.index(r["table"]), r["errors"][1]) for r in rows if r["setting"] == setting]
        if points:
            size = 220 if marker == "_" else 34
            axes.scatter(*zip(*points, strict=True), color=[colour], marker=marker, label=setting, s=size)
    axes.set_yscale("log")
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_ylabel("RMSE₂: typical error of a 2-way share")
    axes.legend(ncols=4, fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.18))
    axes.grid(axis="y", alpha=0.3)
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    options = parser.parse_args()
    names = [name for name in options.tables.split(",") if (DATA / f"{name}.npz").exists()]
    if not names:
        print(f"no benchmark tables in {DATA}: set COVEY_DATA to a folder with NAME.npz files. Nothing was measured.")
        return
    warnings.simplefilter("ignore", covey.errors.CoveyWarning)
    rows, grown = [], []
    for row in bit_tables(names, options.seeds):
        rows.append(row)
        print(f"{row['table']:12} {row['setting']:12} {show(row['errors'])}", flush=True)
    for row in adult(options.seeds):
        grown.append(row)
        print(f"adult.csv    {row['setting']:12} {show(row['errors'])}", flush=True)
    write(rows, grown, options.out, options.seeds)
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
