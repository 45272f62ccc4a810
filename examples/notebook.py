"""A hook of mkdocs: the tutorial "From Python" as a notebook to download, made from the page itself."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "tutorials" / "python.md"


def notebook(page: str) -> dict[str, Any]:
    """Cells in the order of the page: Python blocks are code, what they print is left out, everything else is text."""
    cells: list[dict[str, Any]] = []
    for text, language, code in re.findall(r"(.*?)(?:^```(\w*)[^\n]*\n(.*?)^```\n|\Z)", page, re.S | re.M):
        if text.strip():
            cells.append({"cell_type": "markdown", "metadata": {}, "source": text.strip()})
        if language == "python":
            cells.append(
                {"cell_type": "code", "metadata": {}, "source": code.strip(), "outputs": [], "execution_count": None}
            )
        elif language in ("sh", "json"):
            cells.append({"cell_type": "markdown", "metadata": {}, "source": f"```{language}\n{code}```"})
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    return {"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}


def on_files(files: Any, config: Any) -> Any:
    """Add tutorials/python.ipynb."""
    from mkdocs.structure.files import File

    made = json.dumps(notebook(PAGE.read_text(encoding="utf-8")), indent=1, ensure_ascii=False)
    files.append(File.generated(config, "tutorials/python.ipynb", content=made))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Offer the notebook under the title of its page."""
    offered = "\n\n[Download this page as a notebook](python.ipynb)\n\n"
    return markdown.replace("\n\n", offered, 1) if page.file.src_uri == "tutorials/python.md" else markdown
