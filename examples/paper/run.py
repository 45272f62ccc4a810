"""Run the notebooks of this folder without Jupyter: `make figures` draws every picture of docs/paper.md.

python examples/paper/run.py [--small] [NAME …]

Code cells run one after the other in one namespace, and what they print and draw is stored in the notebook. With --small, the
sizes in the cell tagged "parameters" are replaced by those that the notebook's metadata names, so that a test can run all of them
within seconds; then nothing is stored.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


def notebooks() -> list[Path]:
    """The notebooks, in the order in which the story is told."""
    return sorted(FOLDER.glob("*.ipynb"))


def run(path: Path, small: bool = False) -> dict[str, Any]:
    """Run a notebook and store its outputs; its names at the end."""
    import common

    document = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(code, 1):
        common.saved.clear()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), f"{path.name}, code cell {number}", "exec"), names)
        if small and "parameters" in cell["metadata"].get("tags", ()):
            names.update(document["metadata"]["covey"]["small"])
        cell["execution_count"], cell["outputs"] = number, outputs(printed.getvalue(), common.saved)
    if not small:
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return names


def outputs(text: str, pictures: list[Path]) -> list[dict[str, Any]]:
    """What a cell printed and drew, as Jupyter stores it."""
    found: list[dict[str, Any]] = []
    if text:
        found.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    for picture in pictures:
        drawn = {"image/svg+xml": picture.read_text(encoding="utf-8").splitlines(keepends=True)}
        found.append({"data": drawn, "metadata": {}, "output_type": "display_data"})
    return found


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
