"""What is chosen at the privacy step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from covey.privacy.unit import ALL_ROWS, Unit


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

    def for_linked(self) -> Choices:
        """What of it concerns linked tables: all rows of a person are protected, and no column is singled out."""
        return replace(self, mode="private", person="", rows_per_person=1, important=(), target="", sensitive=())

    @property
    def about(self) -> dict[str, str]:
        """What stands on the first page of the report, as far as anything was said."""
        said = {"title": self.title, "owner": self.owner, "purpose": self.purpose}
        return said if any(said.values()) else {}
