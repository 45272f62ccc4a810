"""What a steward asks for, and what came of it: orders of releases, and the stages that whoever waits is told of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from covey.preparing import PLAIN
from covey.release.contents import NOTHING_SAID, About
from covey.table.databases import Database
from covey.table.dialects import Dialect

MISFITS = Fraction(1, 20)  # of a column's cells: more than stray errors, less than a wrong unit or a wrong limit
STAGES = ("checking", "reading", "charging", "measuring", "writing")  # anonymous releases have no charge

OnStage = Callable[[str], None]  # is told each stage as it begins


def ignore_stage(_: str) -> None:
    """Listens to no stage."""


def always_proceed() -> None:
    """Lets every charge go ahead."""


@dataclass(frozen=True)
class PrivateOrder:
    """A differentially private release, as a steward asks for it.

    With `learn`, limits and categories of all fields that the schema does not confirm are learned with noise; without a schema,
    those of all columns, of which names and types are then public.
    """

    table: Path | Database
    schema: Path | None
    out: Path
    epsilon: Fraction | float | None
    delta: Fraction | float = 0
    dataset: str | None = None
    rows: int | None = None
    person: str | None = None
    important: tuple[tuple[str, ...], ...] = ()
    target: str | None = None
    triples: int | None = None
    prior: Path | None = None
    rows_per_person: int = 1
    parquet: bool = False
    confirm_large_epsilon: bool = False
    accept_misfits: Fraction | float = MISFITS
    seed: int | None = None
    log: Path | None = None
    dialect: Dialect = PLAIN
    ledger: Path | None = None
    force: bool = False
    purpose: str = "release"
    learn: bool = False
    about: About = NOTHING_SAID


@dataclass(frozen=True)
class AnonymousOrder:
    """An anonymous release: groups of at least `group_size` rows, not differentially private."""

    table: Path | Database
    schema: Path | None
    out: Path
    group_size: int
    method: Literal["tree", "paper", "mdav", "best"] = "tree"
    sensitive: tuple[str, ...] = ()
    rows: int | None = None
    parquet: bool = False
    seed: int | None = None
    log: Path | None = None
    dialect: Dialect = PLAIN
    force: bool = False


@dataclass(frozen=True)
class Released:
    """What came of an order. `agreeing` (sensitive field, groups that agree on it) is confidential, for the steward."""

    bundle: Path
    rows: int
    privacy: str
    certificate: str | None = None
    groups: int | None = None
    agreeing: tuple[tuple[str, int], ...] = ()
    learned: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    mended: int | None = None  # rows that were altered after drawing for the rules' sake; None where there are no rules
