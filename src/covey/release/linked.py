"""What a release of persons with events may contain: only types that are public by construction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from covey.methods.persons.certify import LinkedCertificate
from covey.methods.persons.method import LinkedFitted
from covey.privacy.budget import PrivacyStatement
from covey.table.description import Description


class LinkedParts(Protocol):
    """Synthetic persons with their events that come part by part."""

    @property
    def m(self) -> int:
        """How many persons there are in all."""

    def __iter__(self) -> Iterator[Sequence[Mapping[str, Any]]]:
        """Columns of persons and of events, the same ones each time."""


@dataclass(frozen=True)
class LinkedRelease:
    """Everything a differentially private release of persons with events may contain."""

    parts: LinkedParts
    package: Description
    fitted: LinkedFitted
    privacy: PrivacyStatement
    version: str
    own: LinkedCertificate | None = None  # the certificate of these very tables, where it was computed before
    mended: int | None = None  # events that were drawn anew for rules across the tables; None where there are none
    drawn: Sequence[Mapping[str, Any]] = ()  # the first part, where it was drawn before

    @property
    def first(self) -> Sequence[Mapping[str, Any]]:
        """Columns of both tables: of the first part."""
        return self.drawn or next(iter(self.parts))

    @property
    def certificate(self) -> LinkedCertificate | None:
        """The private accuracy certificate, if one was bought."""
        return self.fitted.certificate

    @property
    def stated(self) -> LinkedCertificate | None:
        """The certificate for these very tables, where it is known; otherwise for the draw that was compared."""
        return self.certificate if self.own is None else self.own
