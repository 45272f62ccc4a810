"""PACKAGE.md, the page of a package index: README with whole addresses, since an index shows no files beside it.

python -m trust.package
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def page(readme: str, repository: str | None) -> str:
    """README with links into the repository; without an address of one, their words alone and no pictures."""

    def whole(found: re.Match[str]) -> str:
        mark, words, target = found.groups()
        if target.startswith("https://"):
            return found[0]
        if repository is None:
            return "" if mark else words
        return f"{mark}[{words}]({repository}/{'raw' if mark else 'blob'}/main/{target})"

    text = re.sub(r"(!?)\[([^\]]*)\]\(([^)]+)\)", whole, readme)
    return re.sub(r"\n{3,}", "\n\n", text)


def made() -> str:
    """The page of this version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return page((ROOT / "README.md").read_text(encoding="utf-8"), project["urls"].get("Repository"))


if __name__ == "__main__":
    (ROOT / "PACKAGE.md").write_text(made(), encoding="utf-8")
