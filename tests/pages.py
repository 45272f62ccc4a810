"""Pages as their readers follow them: in an environment that holds covey and the extras that the page has named, and no more.

`environment` makes one from the packages that are installed here, by links; it needs no network. `run` plays a page in it: Python
and shell blocks, one after the other. A block with a title is a file of that name.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
INSTALL = re.compile(r"pip install '?(?:covey|\.)(?:\[([\w,]+)\])?'?")
BLOCK = re.compile(r'```(?:(python|sh)|\w+ title="([\w.]+)")\n(.*?)```', re.S)

# What runs inside: it knows nothing of this folder. Commands share a process, as starting Python takes longer than most of them,
# and fits take a few steps: what a page does is looked at, not how well.
PLAYER = (
    f"{(ROOT / 'tests/few.py').read_text('utf-8')}\nfew_steps()\n"
    + """
import contextlib, io, json, shlex, sys
from pathlib import Path

blocks, names = json.load(sys.stdin), {"__name__": "__main__"}
for language, title, code in blocks:
    if title:
        Path(title).write_text(code, encoding="utf-8")
    elif language == "python":
        exec(compile(code, "a block of the page", "exec"), names)
    else:
        for line in code.replace("\\\\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words and words[0] == "covey":
                from covey.desk.cli import main
                from click.testing import CliRunner
                done = CliRunner().invoke(main, words[1:])
                if done.exit_code:
                    sys.exit(f"{line}\\n{done.output}\\n{done.exception!r}")
            elif words and words[:2] not in (["make", "demo"], ["make", "test"], ["pip", "install"]):
                sys.exit(f"not a command that this page explains: {line}")
"""
)


def needed(extras: frozenset[str]) -> dict[str, Distribution]:
    """Distributions that `pip install covey[extras]` would bring, by name."""
    found: dict[str, Distribution] = {}
    todo = [("covey", extras)]
    while todo:
        name, wanted = todo.pop()
        package = distribution(name)
        found[canonicalize_name(name)] = package
        for line in package.requires or ():
            requirement = Requirement(line)
            marker = requirement.marker
            chosen = marker is None or any(marker.evaluate({"extra": extra}) for extra in (wanted or {""}))
            known = found.get(canonicalize_name(requirement.name))
            if chosen and (known is None or requirement.extras):
                try:
                    distribution(requirement.name)
                except PackageNotFoundError:  # for another system or Python
                    continue
                key = (requirement.name, frozenset(requirement.extras))
                if known is None or key not in todo:
                    todo.append(key)
    return found


def environment(folder: Path, extras: frozenset[str]) -> Path:
    """A virtual environment with covey and these extras; its Python."""
    venv.create(folder, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    for package in needed(extras).values():
        for top in {file.parts[0] for file in package.files or () if file.parts[0] not in ("..", "__pycache__")}:
            source = Path(str(package.locate_file(top)))
            if source.exists() and not (site / top).exists() and not top.endswith(".pth"):
                (site / top).symlink_to(source)
    (site / "covey.pth").write_text(f"{ROOT / 'src'}\n")
    return folder / "bin" / "python"


class Environments:
    """One environment for each set of extras, made when it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.python = cache(lambda extras: environment(folder / ("-".join(sorted(extras)) or "plain"), extras))

    def play(self, extras: frozenset[str], blocks: list[tuple[str, str, str]], cwd: Path) -> str:
        """Run blocks there; what went wrong, or nothing."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COVEY"))}
        env |= {"COVEY_LEDGER": str(cwd / "ledger.db"), "PYTHONWARNINGS": "error::ResourceWarning"}
        done = subprocess.run(
            [str(self.python(extras)), "-c", PLAYER],
            input=json.dumps(blocks),
            capture_output=True,
            text=True,
            cwd=cwd,
            env=env,
            check=False,
        )
        return (done.stdout + done.stderr)[-3000:] if done.returncode else ""


def parts(text: str) -> list[tuple[frozenset[str], list[tuple[str, str, str]]]]:
    """The blocks of a page with the extras that it has named up to each: one part for each set of extras."""
    found: list[tuple[frozenset[str], list[tuple[str, str, str]]]] = []
    for block in BLOCK.finditer(text):
        named = INSTALL.findall(text[: block.end()])  # a block may begin with the line that installs
        extras = frozenset(extra for names in named for extra in names.split(",") if extra)
        if not found or found[-1][0] != extras:
            found.append((extras, []))
        language, title, code = block.groups(default="")
        found[-1][1].append((language, title, code))
    return found


if __name__ == "__main__":
    print(sorted(needed(frozenset(sys.argv[1:]))))
