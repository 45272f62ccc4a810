"""The ledger's events as a chain of hashes, and the totals that follow from them. No file is touched here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import sha256
from typing import Any, Literal

from covey.privacy.gaussian import delta_above, epsilon_above
from covey.privacy.ledger.amounts import ATTO, QUECTO, Amount, check_rho
from covey.privacy.unit import ALL_ROWS, Unit

NOTHING = Amount()
GENESIS = "0" * 64  # what the first event is chained to

_KEYS = {
    "open": {"kind", "time", "dataset", "nano_epsilon", "atto_delta"},
    "charge": {"kind", "time", "dataset", "nano_epsilon", "atto_delta", "rows_per_person", "purpose"},
    "release": {"kind", "time", "dataset", "charge", "digest"},
}
_GAUSSIAN = "quecto_rho"  # only charges of Gaussian releases have it
_WHOLE = {"nano_epsilon", "atto_delta", "rows_per_person", "charge", _GAUSSIAN}

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class DatasetStatus:
    """A dataset's cap, what has been spent of it, and in how many charges.

    What is spent is spent by a person with up to `rows_per_person` rows, or "all" of them, as the first charge has it. ε and δ
    of the charges in `plain` add up; Gaussian charges compose as Gaussian differential privacy does, by their ρ = μ²/2, and the
    two together by adding ε and δ once more. `gaussian` is what the Gaussian ones promised, added up: never less than they cost.
    """

    name: str
    budget: Amount
    plain: Amount
    charges: int
    rows_per_person: Unit | None = None
    gaussian: Amount = NOTHING
    quecto_rho: int = 0

    @property
    def rho(self) -> Fraction:
        """ρ = μ²/2 of all Gaussian charges together."""
        return Fraction(self.quecto_rho, QUECTO)

    @property
    def within_cap(self) -> bool:
        """Whether all charges together keep the cap. They did before if they do now: nothing that is spent ever shrinks."""
        if (self.plain + self.gaussian).within(self.budget):
            return True
        left = self.budget - self.plain
        if not self.quecto_rho or min(left.nano_epsilon, left.atto_delta) < 0:
            return False
        return delta_above(self.rho, left.epsilon) <= left.delta

    @property
    def spent(self) -> Amount:
        """An ε and a δ that hold for all charges together, within the cap.

        Gaussian charges are counted at the sum of their δ, as far as the cap has it, or at the ε that the cap has left.
        """
        if not self.quecto_rho:
            return self.plain
        left = self.budget - self.plain
        delta = min(self.gaussian.atto_delta, left.atto_delta)
        epsilon = min(epsilon_above(self.rho, Fraction(delta, ATTO)), self.gaussian.epsilon) if delta else left.epsilon
        if epsilon > left.epsilon:
            return self.plain + Amount.rounded_up(left.epsilon, delta_above(self.rho, left.epsilon))
        return self.plain + Amount.rounded_up(epsilon, Fraction(delta, ATTO))

    @property
    def remaining(self) -> Amount:
        """What the cap has beyond what is spent; Gaussian releases may take a little more than that together."""
        return self.budget - self.spent

    def after(
        self, epsilon: Fraction, delta: Fraction, rows_per_person: Unit, rho: Fraction | None
    ) -> DatasetStatus | None:
        """The status that a charge would leave; None where the ledger would refuse it."""
        if not covers(rows_per_person, self.rows_per_person or 1):
            return None
        charged = self.with_charge(Amount.rounded_up(epsilon, delta), rows_per_person, check_rho(rho))
        return charged if charged.within_cap else None

    def with_charge(self, amount: Amount, rows_per_person: Unit, quecto_rho: int | None) -> DatasetStatus:
        """The status after one more charge."""
        unit = self.rows_per_person or rows_per_person
        one_more = replace(self, charges=self.charges + 1, rows_per_person=unit)
        if quecto_rho is None:
            return replace(one_more, plain=self.plain + amount)
        return replace(one_more, gaussian=self.gaussian + amount, quecto_rho=self.quecto_rho + quecto_rho)


@dataclass(frozen=True)
class Event:
    """One line of the ledger; `amount` is the cap of an "open" and the cost of a "charge"."""

    sequence: int
    kind: Literal["open", "charge", "release"]
    time: str
    dataset: str
    amount: Amount
    purpose: str | None
    charge: int | None
    digest: str | None
    hash: str
    rows_per_person: Unit | None = None
    quecto_rho: int | None = None


@dataclass(frozen=True)
class Receipt:
    """Proof that a charge is in the ledger: noise may be drawn, and one release may name it."""

    sequence: int
    time: str
    dataset: str
    amount: Amount
    purpose: str
    hash: str


class Tampered(Exception):
    """An event that covey cannot have written; always turned into a LedgerError."""


@dataclass
class Books:
    """The events read so far and what follows from them."""

    events: list[Event] = field(default_factory=list)
    datasets: dict[str, DatasetStatus] = field(default_factory=dict)
    released: dict[int, str] = field(default_factory=dict)
    hash: str = GENESIS

    def read(self, sequence: object, body: object, stored: object) -> Event:
        """Check a row against the chain and the rules, then count it."""
        expected = len(self.events) + 1
        if type(sequence) is not int or sequence != expected:
            raise Tampered(f"event {expected} is missing")
        if type(body) is not str or (chained := chained_hash(self.hash, body)) != stored:
            raise Tampered(f"the hash of event {sequence} does not match")
        event = parse(sequence, body, chained)
        self._count(event)
        self.events.append(event)
        self.hash = event.hash
        return event

    def _count(self, event: Event) -> None:
        status = self.datasets.get(event.dataset)
        if (event.kind == "open") != (status is None):
            state = "was already open" if status else "had not been opened"
            raise Tampered(f"at event {event.sequence} the dataset {event.dataset!r} {state}")
        if status is None:
            self.datasets[event.dataset] = DatasetStatus(event.dataset, event.amount, Amount(), 0)
        elif event.charge is not None:
            charge = self.events[event.charge - 1] if 0 < event.charge < event.sequence else None
            if charge is None or (charge.kind, charge.dataset) != ("charge", event.dataset):
                raise Tampered(f"event {event.sequence} releases a charge that does not exist")
            if event.charge in self.released:
                raise Tampered(f"event {event.sequence} releases a charge for the second time")
            self.released[event.charge] = event.digest or ""
        else:
            rows = event.rows_per_person or 0
            if not covers(rows, status.rows_per_person or 1):
                raise Tampered(f"event {event.sequence} charges {event.dataset!r} in another unit")
            charged = status.with_charge(event.amount, rows, event.quecto_rho)
            # Composing Gaussians takes a millisecond. It is looked at once all events are read: `check_caps`.
            if not charged.quecto_rho and not charged.within_cap:
                raise Tampered(f"event {event.sequence} takes {event.dataset!r} past its cap")
            self.datasets[event.dataset] = charged

    def check_caps(self) -> None:
        """Whether every dataset with Gaussian charges keeps its cap, and so kept it at every event."""
        for status in self.datasets.values():
            if not status.within_cap:
                raise Tampered(f"the charges of {status.name!r} are past its cap")


def covers(rows: Unit, needed: Unit) -> bool:
    """Whether a promise to persons with so many rows holds for persons with as many as needed."""
    return rows == ALL_ROWS or (isinstance(needed, int) and isinstance(rows, int) and rows >= needed)


def _has_type(key: str, item: object) -> bool:
    if key == "rows_per_person" and item == ALL_ROWS:
        return True
    return type(item) is (int if key in _WHOLE else str)


def canonical(value: Mapping[str, object]) -> str:
    """The one way to write an object as JSON, so that equal events have equal hashes."""
    return _ENCODER.encode(value)


def chained_hash(previous: str, body: str) -> str:
    """The hash of an event, which fixes all events before it."""
    return sha256((previous + body).encode()).hexdigest()


def parse(sequence: int, body: str, chained: str) -> Event:
    """An event from its JSON, or Tampered where covey would not have written it so."""
    try:
        value: Any = json.loads(body)
        kind = value["kind"]
        optional = {_GAUSSIAN} if kind == "charge" and value.get(_GAUSSIAN, 0) else set()
        fits = value.keys() == _KEYS[kind] | optional and canonical(value) == body
        fits = fits and all(_has_type(key, item) for key, item in value.items())
        amount = Amount(value.get("nano_epsilon", 0), value.get("atto_delta", 0))
        if not fits or not Amount().within(amount) or value.get(_GAUSSIAN, 1) < 1:
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Tampered(f"event {sequence} is not one that covey writes") from None
    return Event(
        sequence=sequence,
        kind=kind,
        time=value["time"],
        dataset=value["dataset"],
        amount=amount,
        purpose=value.get("purpose"),
        charge=value.get("charge"),
        digest=value.get("digest"),
        hash=chained,
        rows_per_person=value.get("rows_per_person"),
        quecto_rho=value.get(_GAUSSIAN),
    )
