"""What a release may contain: only types that are public by construction. Nothing here holds a record, a moment or a group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any, Protocol

from covey.engine.arrays import Array, Floats
from covey.engine.budget import PrivacyStatement
from covey.engine.certificate import Certificate, Distances
from covey.engine.fractions import amount
from covey.engine.measurement import Measurements
from covey.engine.model import Fitted
from covey.engine.models.laws import CodeLaw, RowLaw
from covey.engine.models.persons.law import PersonsLaw
from covey.engine.numbers.grid import Cells
from covey.tables.description import Description
from covey.tables.schema import Schema
from covey.tables.sources import ColumnValues

NOT_PRIVATE = "This table is NOT differentially private"
# Beyond it one person can change the odds of a release by more than e^10, 22,000 times: bundles say so.
LARGE_EPSILON = 10


class Parts(Protocol):
    """Synthetic rows, or persons, that come part by part, so that there may be more of them than the memory holds."""

    @property
    def m(self) -> int:
        """How many there are in all."""

    def __iter__(self) -> Iterator[Any]:
        """The parts, the same ones each time: columns, or of several tables the columns of each."""


MEASURED, MODELLED, LOST, DISTANT = "measured", "modelled", "lost in noise", "measured by distance"


@dataclass(frozen=True)
class PairBands:
    """Associations of pairs in the confidential table, as its measurements tell: Cramér's V over the bins of pair tables."""

    value: Floats  # as measured, 0 where it does not stand out of the noise
    low: Floats
    high: Floats
    synthetic: Floats  # that of the synthetic rows, over the same bins
    kind: Array  # one of the four above; of a pair that is measured by distance nothing is said
    distant: tuple[int, ...] = ()  # the columns that were measured by their distance from another one


@dataclass(frozen=True)
class PairTable:
    """The table of two columns in synthetic rows, and of each cell the band in which the confidential table's share lies."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    share: Floats
    low: Floats
    high: Floats


Bounds = Distances | None  # what a certificate says of these very rows, as far as that is known


@dataclass(frozen=True)
class PrivateRelease:
    """Everything a differentially private release of one table, or of persons with events, may contain."""

    parts: Parts
    described: Description
    fitted: Fitted
    privacy: PrivacyStatement
    version: str
    own: Bounds = None  # what its certificate says of these very rows, once that was computed

    @property
    def schema(self) -> Schema:
        """The schema of its one table."""
        return self.described.unit.schema

    @property
    def certificate(self) -> Certificate | None:
        """The private accuracy certificate, if one was bought."""
        return self.fitted.certificate

    @property
    def accuracy(self) -> str | None:
        """The certificate's bound in words: for these very rows where it was computed, otherwise for their model."""
        found, own = self.certificate, self.own
        if found is None or own is None:
            return None if found is None else found.sentence
        if found.persons:
            return replace(found, bound=own or found.bound).sentence
        if found.misplaced is None or own.misplaced is None:
            return found.sentence
        return replace(found.misplaced, bound=own.misplaced, numbers=False).sentence

    @property
    def measurements(self) -> Measurements | None:
        """The noisy numbers that were measured, if they were kept."""
        return self.fitted.measurements

    @property
    def row_law(self) -> RowLaw:
        """The law of the rows of its one table."""
        assert isinstance(self.fitted.law, RowLaw)  # nosec B101 # for the type checker; persons have none
        return self.fitted.law

    @property
    def persons(self) -> PersonsLaw:
        """The law of persons with events."""
        assert isinstance(self.fitted.law, PersonsLaw)  # nosec B101 # for the type checker; a single table has none
        return self.fitted.law

    @property
    def numbers(self) -> CodeLaw | None:
        """The law of categories and numbers; None where every column is a flag, and of persons."""
        return self.fitted.law if isinstance(self.fitted.law, CodeLaw) else None

    @property
    def cells(self) -> Mapping[int, Cells]:
        """The cells of numbers, by their place among all columns."""
        law = self.fitted.law
        return law.cells if isinstance(law, CodeLaw | PersonsLaw) else {}

    @property
    def bands(self) -> Any:
        """Error bands for its report (`answers.bands.ReportBands`), where its measurements are at hand."""
        return None

    def certified(self, tables: Sequence[ColumnValues]) -> Bounds:
        """What its certificate says of these very tables, where it can be computed."""
        return self.own


@dataclass(frozen=True)
class About:
    """What the owner says of a release on its first page. All of it becomes public."""

    title: str = ""  # the schema's own where there is none
    owner: str = ""  # who answers for it
    purpose: str = ""
    spent: Fraction | None = None  # ε of all releases about these people so far, this one among them, by the ledger
    cap: Fraction | None = None
    used: Fraction | None = None  # share of the cap: less plain than spent/cap where the ledger counts by μ²
    made: str = ""  # the day alone: how long a release took may follow from the records

    def dated(self) -> About:
        """The same, of today where no day is named."""
        return self if self.made else replace(self, made=datetime.now(UTC).date().isoformat())

    def to_dict(self) -> dict[str, Any]:
        """What is said, for privacy.json."""
        told = {name: value for name, value in asdict(self).items() if value}
        return {name: str(value) for name, value in told.items()}

    @classmethod
    def from_dict(cls, said: Mapping[str, str]) -> About:
        """Read what a bundle says."""
        words: dict[str, Any] = {name: said.get(name, "") for name in ("title", "owner", "purpose", "made")}
        for name, text in words.items():
            if not isinstance(text, str):
                raise TypeError(f"{name} is no text")
        if words["made"] and date.fromisoformat(words["made"]).isoformat() != words["made"]:
            raise ValueError("it was made on a day that is not written as 2026-03-01")
        numbers: dict[str, Any] = {name: amount(said[name], name) for name in ("spent", "cap", "used") if name in said}
        return cls(**words, **numbers)


NOTHING_SAID = About()


@dataclass(frozen=True)
class AnonymousRelease:
    """Everything an anonymous release may contain. The groups themselves never leave."""

    parts: Parts
    schema: Schema
    group_size: int
    n: int
    groups: int
    covariance_loss: float
    method: str
    seeded: bool
    version: str

    @property
    def described(self) -> Description:
        """Its one table."""
        return Description.of(self.schema)


AnyRelease = PrivateRelease | AnonymousRelease
