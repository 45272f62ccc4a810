"""The pictures of the documentation: from public formulas, and from a table that covey's own code makes up.

python benchmarks/pictures.py
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import matplotlib as mpl
import numpy as np

from covey.engine.budget import make_budget
from covey.engine.models.predict import predicted_error

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "covey"
ROWS = 20_000


def choosing_epsilon(path: Path) -> None:
    """Predicted error of a two-way share against ε."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    epsilons = np.geomspace(0.05, 10, 40)
    for p, colour in ((20, "#0f766e"), (100, "#b45309"), (500, "#6d28d9")):
        for delta, line, name in ((0.0, "-", "pure"), (1e-9, "--", "δ = 10⁻⁹")):
            errors = [predicted_error([2] * p, ROWS, make_budget(Fraction(e), Fraction(delta))) for e in epsilons]
            axes.loglog(epsilons, errors, line, color=colour, label=f"{p} flags, {name}")
    axes.set_xlabel("ε")
    axes.set_ylabel("predicted error of a two-way share")
    axes.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    axes.set_yticks([0.001, 0.003, 0.01, 0.03, 0.1, 0.3], ["0.1%", "0.3%", "1%", "3%", "10%", "30%"])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def beside(path: Path) -> None:
    """Columns of the fictitious hospital, real beside synthetic, released at ε = 1 and δ = 1e-9 as `make demo` does."""
    from tempfile import TemporaryDirectory

    import polars
    from matplotlib import pyplot

    import covey
    from covey.desk.demo import example_hospital, public_schema

    with TemporaryDirectory() as folder:
        table = Path(folder) / "patients.csv"
        example_hospital(table, ROWS)
        real = polars.read_csv(table, try_parse_dates=True)
        schema = public_schema(covey.Schema.draft(table))
        synth = covey.PrivateSynthesizer(1, Fraction(1, 10**9), schema=schema, seed=1).fit(table).sample(ROWS)
    figure, axes = pyplot.subplots(2, 4, figsize=(10, 4.4))
    colours = {"real": "#94a3b8", "synthetic": "#0f766e"}
    numbers = {"weight": np.linspace(0, 140, 29), "cost": np.geomspace(150, 15_000, 30)}
    for ax, name in zip(axes.flat, ("sex", "ward", "diabetes", "weight", "cost"), strict=False):
        for k, (word, frame) in enumerate((("real", real), ("synthetic", synth))):
            if name in numbers:
                values = frame[name].drop_nulls().to_numpy()
                ax.hist(values, numbers[name], weights=np.full(len(values), 1 / ROWS), color=colours[word],
                        histtype="stepfilled" if k == 0 else "step", linewidth=1.4, label=word)  # fmt: skip
                if name == "cost":
                    ax.set_xscale("log")
            else:
                words = sorted(set(real[name].drop_nulls()))
                shares = [(frame[name] == w).sum() / ROWS for w in words]
                ax.bar(np.arange(len(words)) + 0.4 * k, shares, 0.38, color=colours[word], label=word)
                ax.set_xticks(np.arange(len(words)) + 0.2, words, fontsize=7)
        ax.set_title(name, fontsize=9)
    years = np.arange(1900, 2026, 5)
    panels = (("born", "year of birth"), ("admitted", "month of admission"))
    for ax, (name, title) in zip(axes.flat[5:7], panels, strict=True):
        for k, (word, frame) in enumerate((("real", real), ("synthetic", synth))):
            dates = frame[name].drop_nulls().cast(polars.Date)
            values = (dates.dt.year() if name == "born" else dates.dt.month()).to_numpy()
            bins = years if name == "born" else np.arange(0.5, 13)
            ax.hist(values, bins, weights=np.full(len(values), 1 / ROWS), color=colours[word],
                    histtype="stepfilled" if k == 0 else "step", linewidth=1.4)  # fmt: skip
        ax.set_title(title, fontsize=9)
    ax = axes.flat[7]
    wards = sorted(set(real["ward"].drop_nulls()))
    for k, (word, frame) in enumerate((("real", real), ("synthetic", synth))):
        means = [frame.filter(polars.col("ward") == w)["weight"].mean() for w in wards]
        ax.bar(np.arange(len(wards)) + 0.4 * k, means, 0.38, color=colours[word], label=word)
    ax.set_xticks(np.arange(len(wards)) + 0.2, wards, fontsize=7)
    ax.set_title("mean weight by ward", fontsize=9)
    for ax in axes.flat:
        ax.set_yticks([])
        ax.tick_params(labelsize=7)
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=2, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    pictures = Path(__file__).parents[1] / "docs" / "pictures"
    choosing_epsilon(pictures / "choosing-epsilon.svg")
    beside(pictures / "beside.svg")
