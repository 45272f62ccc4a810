"""What is chosen at the privacy step."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from covey.orders import AnonymousOrder, PrivateOrder
from covey.privacy.unit import ALL_ROWS, REPLACE, Neighbours, Unit
from covey.release.contents import About


@dataclass(frozen=True)
class Choices:
    """What the steward chose at the privacy step."""

    mode: str = "private"
    epsilon: Fraction = Fraction(1)
    delta: Fraction = Fraction(0)
    dataset: str = ""
    rows: int | None = None
    person: str = ""  # the column that says whose a row is; none where it is empty
    rows_per_person: int = 1
    neighbours: Neighbours = REPLACE
    important: tuple[str, ...] = ()  # columns that get more of the budget
    target: str = ""  # the column that others are to predict; none where it is empty
    confirm_large_epsilon: bool = False
    group_size: int = 20
    sensitive: tuple[str, ...] = ()
    parquet: bool = False
    title: str = ""  # title, owner and purpose stand on the first page of the report
    owner: str = ""
    purpose: str = ""

    @property
    def unit(self) -> Unit:
        """How many rows of a person the promise covers."""
        return ALL_ROWS if self.person else self.rows_per_person

    def without(self, names: Iterable[str]) -> Choices:
        """The choices without those that the tables do not take."""
        plain, left = Choices(), set(names)
        mode = "private" if "group_size" in left else self.mode
        return replace(self, mode=mode, **{name: getattr(plain, name) for name in left if hasattr(plain, name)})

    @property
    def about(self) -> About:
        """What stands on the first page of the report."""
        return About(self.title, self.owner, self.purpose)

    def order(
        self, table: Path, schema: Path | None, out: Path, kept: Collection[str]
    ) -> PrivateOrder | AnonymousOrder:
        """What was chosen, as the command line and the workflow understand it; `kept` are the columns that are left."""
        if self.mode == "anonymous":
            sensitive = tuple(name for name in self.sensitive if name in kept)
            return AnonymousOrder(
                table, schema, out, self.group_size, sensitive=sensitive, rows=self.rows, parquet=self.parquet
            )
        return PrivateOrder(
            table,
            schema,
            out,
            self.epsilon,
            self.delta,
            self.dataset,
            rows=self.rows,
            person=self.person or None,
            important=tuple((name,) for name in self.important if name in kept),
            target=self.target if self.target in kept else None,
            rows_per_person=self.rows_per_person,
            neighbours=self.neighbours,
            parquet=self.parquet,
            confirm_large_epsilon=self.confirm_large_epsilon,
            about=self.about,
        )
