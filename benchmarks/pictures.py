"""The pictures of the documentation, from public formulas alone.

python benchmarks/pictures.py
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import matplotlib as mpl
import numpy as np

from covey.methods.regain.predict import predicted_error
from covey.privacy.budget import make_budget

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


if __name__ == "__main__":
    choosing_epsilon(Path(__file__).parents[1] / "docs" / "pictures" / "choosing-epsilon.svg")
