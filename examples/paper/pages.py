"""A hook of mkdocs: the notebooks of this folder become pages, with the pictures that `make figures` drew."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


def page(path: Path) -> str:
    """A notebook as Markdown; links out of this folder become links between pages."""
    document = json.loads(path.read_text(encoding="utf-8"))
    parts = []
    for cell in document["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```py\n{text}\n```")
    return re.sub(r"\]\(\.\./\.\./docs/", "](../", "\n\n".join(parts)) + "\n"


def on_files(files: Any, config: Any) -> Any:
    """Add a page for every notebook: notebooks/NAME.md."""
    from mkdocs.structure.files import File

    for path in sorted(FOLDER.glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=page(path)))
    return files
