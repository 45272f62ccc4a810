"""What a steward does with the ledger: open a dataset, charge it, say which bundle a charge paid for, look."""

from __future__ import annotations

import os
import sys
from fractions import Fraction
from pathlib import Path

from covey.engine.unit import ADD_REMOVE, ALL_ROWS, REPLACE, Neighbours, Unit
from covey.errors import ArgumentError, LedgerError, ParameterError, UnknownDatasetError, briefly, whole_number
from covey.ledger.file import FIRST, Books, Event, LedgerFile
from covey.ledger.status import Amount, Composition, DatasetStatus, check_costs, check_rho, check_text, dataset_name

# Opened without a word about δ, a dataset takes a thousand releases at the usual 1e-9, and none at a careless 1e-5.
DEFAULT_DELTA_BUDGET = Fraction(1, 10**6)


def default_ledger_path() -> Path:
    """COVEY_LEDGER, or covey/ledger.sqlite in the user's data folder."""
    if chosen := os.environ.get("COVEY_LEDGER"):
        return Path(chosen).expanduser()
    xdg, local = os.environ.get("XDG_DATA_HOME", ""), os.environ.get("LOCALAPPDATA", "")
    try:
        if os.path.isabs(xdg):  # the XDG specification says to ignore a relative one
            folder = Path(xdg)
        elif sys.platform == "win32":
            folder = Path(local) if local else Path.home() / "AppData" / "Local"
        elif sys.platform == "darwin":
            folder = Path.home() / "Library" / "Application Support"
        else:
            folder = Path.home() / ".local" / "share"
    except RuntimeError:
        raise LedgerError("No home folder is known. Set COVEY_LEDGER to the path of the ledger.") from None
    return folder / "covey" / "ledger.sqlite"


class Ledger(LedgerFile):
    """A file that counts what is spent of each dataset's privacy budget, and refuses what would pass its cap.

    `Ledger(path).open_dataset("visits", Fraction(3))` sets a cap and creates the file. Every method opens the file, verifies it
    and closes it again, so a Ledger may be shared between threads. Whatever is wrong is a LedgerError that says what to do.
    """

    def open_dataset(
        self,
        name: str,
        epsilon_budget: Fraction,
        delta_budget: Fraction = DEFAULT_DELTA_BUDGET,
        composition: Composition | None = None,
        neighbours: Neighbours = REPLACE,
    ) -> None:
        """Set a dataset's cap, and how it is counted, once and for all; digits past nano-ε and atto-δ are cut off.

        A cap is about replaced rows unless `neighbours` says that rows are added or removed and their number is secret. Releases
        for rows added or removed count twice in a cap for replaced ones; a cap for rows added or removed takes no others.

        With "sum" ε and δ of all charges add up; with "gaussian" their μ² do, which lets many more Gaussian releases pass and
        fewer of other kinds. Without a word the first charge decides: "gaussian" if its noise is Gaussian, "sum" if not. The same
        cap again changes nothing; another one is refused.
        """
        name = dataset_name(name)
        epsilon, delta = check_costs(epsilon_budget, delta_budget, "epsilon_budget", "delta_budget")
        cap = Amount.rounded_down(epsilon, delta)
        if cap.nano_epsilon == 0:
            raise ArgumentError("", "epsilon_budget", f" must be at least 1e-9, got {briefly(epsilon_budget)}.")
        if composition not in (None, "sum", "gaussian"):
            raise ParameterError(
                f'composition must be "sum" or "gaussian", or None for the first charge to decide, got {composition!r}.'
            )
        if composition == "gaussian" and not cap.atto_delta:
            raise ParameterError(
                'composition "gaussian" needs a positive delta_budget: a cap of δ = 0 takes pure releases alone.'
            )
        if neighbours not in (REPLACE, ADD_REMOVE):
            raise ParameterError(f"neighbours must be {REPLACE!r} or {ADD_REMOVE!r}, got {neighbours!r}.")
        with self._errors_explained():
            self._create()
        with self._writing() as books:
            known = books.datasets.get(name)
            if known is None:
                way = composition or (FIRST if cap.atto_delta else "sum")
                amounts = {"nano_epsilon": cap.nano_epsilon, "atto_delta": cap.atto_delta}
                books.append("open", name, **amounts, composition=way, neighbours=neighbours)
                return
            counted = known.composition or "as its first charge decides"
            for what, now, asked in (
                ("a budget of", known.budget, cap),
                ("neighbours", known.neighbours, neighbours),
                ("charges counted", counted, composition or counted),
            ):
                if now != asked:
                    raise LedgerError(
                        f"The dataset {name!r} is open with {what} {now}; that is final, so it cannot become {asked}. "
                        "Use it as it is."
                    )

    def check(
        self,
        name: str,
        epsilon: Fraction,
        delta: Fraction,
        rows_per_person: Unit = 1,
        rho: Fraction | None = None,
        neighbours: Neighbours = REPLACE,
    ) -> None:
        """Refuse now what `charge` would refuse: unknown dataset, no budget, another unit, unfit ledger. Writes nothing."""
        name = dataset_name(name)
        unit, costs = _unit(rows_per_person), check_costs(epsilon, delta)
        with self._writing() as books:
            self._known(books, name).after(*costs, unit, rho, neighbours)

    def charge(  # all that a charge is about, in the order in which a release says it
        self,
        name: str,
        epsilon: Fraction,
        delta: Fraction,
        purpose: str,
        rows_per_person: Unit = 1,
        rho: Fraction | None = None,
        neighbours: Neighbours = REPLACE,
    ) -> Event:
        """Spend from a dataset's budget, or refuse; once this returns, the charge is on the disk and stays.

        ε and δ are what up to `rows_per_person` rows lose together, or a person with "all" of theirs. Charges add up for one kind
        of unit alone: a dataset whose first charge was made for several rows takes none for fewer, and rows and whole persons are
        never mixed (docs/proofs/filter.md). A release whose noise is Gaussian throughout also says its ρ = μ²/2, all rows of a
        person together: what counts by μ².
        """
        name = dataset_name(name)
        check_text(purpose, "purpose")
        rows_per_person = _unit(rows_per_person)
        costs, gaussian = check_costs(epsilon, delta), check_rho(rho, delta)
        asked = Amount.rounded_up(*costs)
        with self._writing() as books:
            charged = self._known(books, name).after(*costs, rows_per_person, rho, neighbours)
            return books.append(
                "charge",
                name,
                nano_epsilon=asked.nano_epsilon,
                atto_delta=asked.atto_delta,
                composition=charged.composition,
                neighbours=neighbours,
                rows_per_person=rows_per_person,
                purpose=purpose,
                **({} if gaussian is None else {"quecto_rho": gaussian}),
            )

    def mark_released(self, receipt: Event, bundle_digest: str) -> None:
        """Record which bundle a charge paid for. The same bundle again changes nothing; a second one is refused."""
        check_text(bundle_digest, "bundle_digest")
        with self._writing() as books:
            known = books.events[receipt.sequence - 1] if 0 < receipt.sequence <= len(books.events) else None
            if known is None or known.kind != "charge" or known.hash != receipt.hash:
                raise LedgerError(
                    f"The ledger {self.path} has no charge with this receipt (event {receipt.sequence}). "
                    "Use the ledger that was charged."
                )
            released = books.released.get(receipt.sequence)
            if released is None:
                books.append("release", known.dataset, charge=known.sequence, digest=bundle_digest)
            elif released != bundle_digest:
                raise LedgerError(
                    f"The charge of event {receipt.sequence} already paid for the bundle {released}. "
                    "A further release needs a charge of its own."
                )

    def datasets(self) -> list[DatasetStatus]:
        """Every dataset, in the order of opening; none if there is no ledger yet."""
        with self._reading() as books:
            return list(books.datasets.values())

    def dataset(self, name: str) -> DatasetStatus | None:
        """One dataset, by a name as it is typed; None if there is none."""
        with self._reading() as books:
            return books.datasets.get(dataset_name(name))

    def history(self, name: str) -> list[Event]:
        """Every event of a dataset, oldest first."""
        name = dataset_name(name)
        with self._reading() as books:
            self._known(books, name)
            return [event for event in books.events if event.dataset == name]

    def verify(self) -> None:
        """Check the file's structure, the chain of hashes, the totals and the mark, or say what is wrong."""
        with self._reading() as books:
            if books.connection is None:
                return
            for (finding,) in books.connection.execute("PRAGMA integrity_check(1)"):
                if finding != "ok":
                    raise LedgerError(self._damaged(finding))

    def _known(self, books: Books, name: str) -> DatasetStatus:
        if name not in books.datasets:
            raise UnknownDatasetError(str(self.path), name, tuple(books.datasets))
        return books.datasets[name]


def _unit(rows_per_person: Unit) -> Unit:
    return ALL_ROWS if rows_per_person == ALL_ROWS else whole_number(rows_per_person, "rows_per_person", 1)
