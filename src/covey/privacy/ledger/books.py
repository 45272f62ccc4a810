"""The ledger's events as a chain of hashes, and the totals that follow from them. No file is touched here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from covey.privacy.ledger.amounts import Amount
from covey.privacy.ledger.status import Composition, DatasetStatus, covers
from covey.privacy.unit import ADD_REMOVE, ALL_ROWS, REPLACE, Neighbours, Unit

GENESIS = "0" * 64  # what the first event is chained to
FIRST = "first"  # the composition of a dataset whose first charge decides it

_KEYS = {
    "open": {"kind", "time", "dataset", "nano_epsilon", "atto_delta", "composition", "neighbours"},
    "charge": {
        *("kind", "time", "dataset", "nano_epsilon", "atto_delta", "composition", "neighbours"),
        *("rows_per_person", "purpose"),
    },
    "release": {"kind", "time", "dataset", "charge", "digest"},
}
_GAUSSIAN = "quecto_rho"  # only charges of Gaussian releases have it
_COMPOSITIONS: dict[str, set[str | None]] = {
    "open": {FIRST, "sum", "gaussian"},
    "charge": {"sum", "gaussian"},
    "release": {None},
}
_WHOLE = {"nano_epsilon", "atto_delta", "rows_per_person", "charge", _GAUSSIAN}

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class Event:
    """One line of the ledger; `amount` is the cap of an "open" and the cost of a "charge", `composition` how both are counted."""

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
    composition: Composition | None = None
    neighbours: Neighbours = REPLACE


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
            self.datasets[event.dataset] = DatasetStatus(
                event.dataset, event.amount, event.composition, neighbours=event.neighbours
            )
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
            charged = status.with_charge(event.amount, rows, event.quecto_rho, event.neighbours)
            if charged is None:
                raise Tampered(f"event {event.sequence} takes {event.dataset!r} past its cap")
            if charged.composition != event.composition:
                raise Tampered(f"event {event.sequence} counts {event.dataset!r} in another way")
            self.datasets[event.dataset] = charged


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
        composition = value.get("composition")
        fits = fits and Amount().within(amount) and composition in _COMPOSITIONS[kind]
        fits = fits and value.get("neighbours", REPLACE) in (REPLACE, ADD_REMOVE)
        # What is Gaussian has a μ, and so a δ.
        gaussian = _GAUSSIAN in value or (kind == "open" and composition == "gaussian")
        if not fits or value.get(_GAUSSIAN, 1) < 1 or (gaussian and not amount.atto_delta):
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
        composition=None if composition == FIRST else composition,
        neighbours=value.get("neighbours", REPLACE),
    )
