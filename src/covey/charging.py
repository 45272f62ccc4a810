"""The one passage of every private release that spends a budget: charge, measure, write, and mark the charge with its bundle.

The order never changes (docs/decisions/0007). All that may fail on the table has happened before; after the charge nothing
depends on what a record holds, except through noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from covey.errors import ArgumentError, CoveyError, CoveyWarning, LostReleaseError
from covey.orders import OnStage, PrivateOrder
from covey.privacy.budget import exact
from covey.privacy.ledger import Ledger, Receipt, default_ledger_path
from covey.privacy.unit import Unit
from covey.release.bundle import Told, claim_target, publish
from covey.release.contents import LARGE_EPSILON, About, PrivateRelease
from covey.release.verify import bundle_digest

CHARGE_STAYS = (
    "The charge was made before this happened. It is not refunded, because noise may already have been drawn."
)


class Synthesizer(Protocol):
    """What a charge needs to know of a synthesizer."""

    @property
    def rho(self) -> Fraction | None:
        """What a ledger composes where the noise is Gaussian."""

    def fit(self, prepared: Any) -> Any:
        """Measure."""

    def release(self, rows: int | None = None) -> Any:
        """Everything that may leave; without a number as many rows as units were measured."""


def requested_budget(order: PrivateOrder) -> tuple[Fraction, Fraction]:
    """ε and δ of an order, exactly; a weak guarantee needs a word of its own."""
    if order.epsilon is None:
        raise ArgumentError("give ", "epsilon", ", the privacy budget of this release.")
    epsilon, delta = exact(order.epsilon, "epsilon"), exact(order.delta, "delta")
    if epsilon > LARGE_EPSILON and not order.confirm_large_epsilon:
        weak = f"epsilon = {float(epsilon):g} is above {LARGE_EPSILON}, a weak guarantee."
        raise ArgumentError(f"{weak} Say ", "confirm_large_epsilon", " to go on.")
    return epsilon, delta


@dataclass(frozen=True)
class Account:
    """Whose budget pays for an order, and for whose protection; a seeded run has no ledger."""

    order: PrivateOrder
    unit: Unit
    ledger: Ledger | None
    dataset: str

    @classmethod
    def of(cls, order: PrivateOrder, unit: Unit) -> Account:
        """The ledger of an order, or none for a seeded one, which is not private."""
        if order.seed is not None:
            if order.dataset is not None:
                raise ArgumentError(
                    "a seeded run is not private and cannot be charged: leave out ", "dataset", ", or the seed."
                )
            return cls(order, unit, None, "")
        if order.dataset is None:
            raise ArgumentError("give ", "dataset", ", the name under which the ledger keeps this table's budget.")
        return cls(order, unit, Ledger(order.ledger or default_ledger_path()), order.dataset)

    def check(self, rho: Fraction | None) -> None:
        """Refuse now what a charge would refuse."""
        if self.ledger is not None:
            self.ledger.check(self.dataset, *requested_budget(self.order), self.unit, rho, self.order.neighbours)

    def charge(self, rho: Fraction | None, listen: OnStage, before: Callable[[], None]) -> Receipt | None:
        """Spend, unless whoever is asked at the last moment says no."""
        if self.ledger is None:
            return None
        listen("charging")
        before()
        epsilon, delta = requested_budget(self.order)
        asked = (self.dataset, epsilon, delta, self.order.purpose)
        return self.ledger.charge(*asked, self.unit, rho, self.order.neighbours)

    @property
    def about(self) -> About:
        """What the owner says, and what the ledger says is used up of how much: both go onto the report's first page."""
        if self.ledger is None:
            return self.order.about
        try:
            status = next(status for status in self.ledger.datasets() if status.name == self.dataset)
        except (CoveyError, OSError):  # the report does without; the charge is in the ledger
            return self.order.about
        return replace(self.order.about, spent=status.spent.epsilon, cap=status.budget.epsilon, used=status.used)

    def mark(self, receipt: Receipt | None, bundle: Path) -> None:
        """Write down which bundle the charge paid for. If that fails, the charge and the bundle stand all the same."""
        if self.ledger is None or receipt is None:
            return
        try:
            self.ledger.mark_released(receipt, bundle_digest(bundle))
        except (CoveyError, OSError) as error:
            warnings.warn(
                f"the bundle {bundle} is written and its charge stands, but the ledger could not note which bundle it paid for: "
                f"{error}",
                CoveyWarning,
                stacklevel=2,
            )


def carry_out(
    account: Account,
    synth: Synthesizer,
    prepared: Any,
    rows: int | None,
    listen: OnStage,
    before_charge: Callable[[], None],
) -> tuple[PrivateRelease, Told]:
    """Charge, measure, write and mark: what is in the bundle. `listen` is told of stages, and `before_charge` may refuse.

    The charge is marked with its bundle as soon as the data are safe. What comes then, the words, cannot lose it any more.
    """
    order = account.order
    with claim_target(order.out, order.force) as claim:
        receipt = account.charge(synth.rho, listen, before_charge)
        # From here on nothing depends on what a record holds.
        with charge_told(receipt):
            listen("measuring")
            synth.fit(prepared)
            listen("writing")
            release = synth.release(rows)
            told = publish(
                release,
                order.out,
                claim,
                parquet=order.parquet,
                force=order.force,
                about=account.about,
                written=partial(account.mark, receipt),
            )
            return release, told


@contextmanager
def charge_told(receipt: Receipt | None) -> Iterator[None]:
    """What fails after a charge says that the charge stays: a disk that is full, a file or a connection that is gone."""
    try:
        yield
    except (CoveyError, OSError) as error:
        if receipt is None:
            raise
        words = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise LostReleaseError(f"{words.rstrip('.')}. {CHARGE_STAYS}") from error
