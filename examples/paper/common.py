"""What the notebooks share: a table to try things on, and pictures that look alike."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures" / "paper"
saved: list[Path] = []  # the pictures that a cell has drawn
TEAL, OCHRE, VIOLET, GREY, RED = "#0f766e", "#b45309", "#6d28d9", "#64748b", "#be123c"

mpl.rcParams.update(
    {
        "svg.hashsalt": "covey",
        "figure.facecolor": "white",
        "axes.grid": True,
        "grid.alpha": 0.3,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "legend.fontsize": 8,
        "font.size": 9,
    }
)


def questionnaire(n: int, p: int, seed: int = 1) -> np.ndarray:
    """n records of p flags that follow three hidden traits, as answers of people do."""
    generator = np.random.default_rng(seed)
    loadings = generator.standard_normal((3, p)) * np.array([[1.6], [1.0], [0.7]])
    lean = generator.normal(-0.4, 0.9, p)
    logits = generator.standard_normal((n, 3)) @ loadings + lean
    return (generator.random((n, p)) < 1 / (1 + np.exp(-logits))).astype(np.uint8)


def panels(columns: int = 1, height: float = 3.4):
    """A figure with some axes beside each other."""
    figure, axes = pyplot.subplots(1, columns, figsize=(4.4 * columns + 1.2 * (columns == 1), height), squeeze=False)
    return figure, axes[0]


def save(figure, name: str) -> None:
    """Write docs/pictures/paper/NAME.svg, the same bytes for the same numbers. In Jupyter the picture shows as well."""
    figure.tight_layout()
    figure.savefig(PICTURES / f"{name}.svg", metadata={"Date": None})
    saved.append(PICTURES / f"{name}.svg")
