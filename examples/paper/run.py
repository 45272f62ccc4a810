"""Run the notebooks of this folder without Jupyter: `make figures` draws every picture of docs/paper.md.

python examples/paper/run.py [--small] [NAME …]

Code cells run one after the other in one namespace. With --small, the sizes in the cell tagged "parameters" are replaced by those
that the notebook's metadata names, so that a test can run all of them within seconds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


def notebooks() -> list[Path]:
    """The notebooks, in the order in which the story is told."""
    return sorted(FOLDER.glob("*.ipynb"))


def run(path: Path, small: bool = False) -> dict[str, Any]:
    """Run a notebook; its names at the end."""
    document = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(document["cells"]):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
            if small and "parameters" in cell["metadata"].get("tags", ()):
                names.update(document["metadata"]["covey"]["small"])
    return names


def main(arguments: list[str]) -> None:
    """Run all notebooks, or those whose name contains one of the words given."""
    import matplotlib

    matplotlib.use("svg")
    sys.path.insert(0, str(FOLDER))
    words = [word for word in arguments if word != "--small"]
    for path in notebooks():
        if not words or any(word in path.stem for word in words):
            print(path.stem, flush=True)
            run(path, "--small" in arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
