"""The oldest versions that covey says it works with: `python -m trust.minimum` writes them as constraints for pip.

Direct dependencies get their lower bound of pyproject.toml; what only the tests use is taken from constraints.txt, and what
those need in turn is left to pip.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = ("test", "dev", "bench", "docs", "trust")  # extras for whoever works on covey, not with it
LEFT_OUT = ("gpu",)  # torch is not part of the tests


def name_of(requirement):
    """The package that a requirement names, as package indexes compare names."""
    return re.match(r"[A-Za-z0-9_.-]+", requirement)[0].lower().replace("_", "-")


def oldest(project):
    """name → lower bound, for every dependency that a user may get."""
    extras = {k: v for k, v in project["optional-dependencies"].items() if k not in (*TOOLS, *LEFT_OUT)}
    found = {}
    for requirement in [*project["dependencies"], *(r for wanted in extras.values() for r in wanted)]:
        if not requirement.startswith("covey["):
            name, bound = requirement.split(">=")  # a dependency without a lower bound fails here
            found[name_of(name)] = bound
    return found


def main():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = oldest(project)
    tools = {name_of(requirement) for requirement in project["optional-dependencies"]["test"]} - found.keys()
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    for name, version in (line.split("==") for line in pinned if "==" in line):
        if name_of(name) in tools:
            found[name_of(name)] = version
    for name, version in sorted(found.items()):
        print(f"{name}=={version}")


if __name__ == "__main__":
    main()
