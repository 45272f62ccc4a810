"""From a table to a bundle: the one path that the command line, the local app and exported scripts share.

The order never changes (docs/decisions/0007): public parameters and the ledger's remaining budget first, then the table is
read and encoded, then the charge, and only then noise and files. Whoever calls may listen to the stages, and may say no
at the last moment before the charge.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from covey.errors import CoveyError, LostReleaseError, ParameterError
from covey.privacy.budget import exact
from covey.privacy.ledger import Ledger, Receipt, default_ledger_path
from covey.release.bundle import SUMS, check_rows, check_target, claim_target, write_bundle
from covey.release.confidential import refuse_in_bundle
from covey.synthesizers import AnonymousSynthesizer, Prepared, PrivateSynthesizer
from covey.table.databases import Database
from covey.table.schema import Schema
from covey.table.sources import check_encoding

LARGE_EPSILON = 10
STAGES = ("checking", "reading", "charging", "measuring", "writing")  # anonymous releases have no charge

CHARGE_STAYS = "The charge was made before this happened and stays: noise may have been drawn for it."

Listener = Callable[[str], None]


def _nobody(_: str) -> None:
    """Listens to no stage."""


def _agreed() -> None:
    """Lets every charge go ahead."""


@dataclass(frozen=True)
class PrivateOrder:
    """A differentially private release, as a steward asks for it."""

    table: Path | Database
    schema: Path
    out: Path
    epsilon: Fraction | float | None
    delta: Fraction | float = 0
    dataset: str | None = None
    rows: int | None = None
    rows_per_person: int = 1
    parquet: bool = False
    confirm_large_epsilon: bool = False
    seed: int | None = None
    log: Path | None = None
    encoding: str = "utf-8"
    ledger: Path | None = None
    force: bool = False
    purpose: str = "release"


@dataclass(frozen=True)
class AnonymousOrder:
    """An anonymous release: groups of at least `group_size` rows, not differentially private."""

    table: Path | Database
    schema: Path
    out: Path
    group_size: int
    method: Literal["tree", "paper", "mdav", "best"] = "tree"
    sensitive: tuple[str, ...] = ()
    rows: int | None = None
    parquet: bool = False
    seed: int | None = None
    log: Path | None = None
    encoding: str = "utf-8"
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


def release_private(
    order: PrivateOrder, listen: Listener = _nobody, before_charge: Callable[[], None] = _agreed
) -> Released:
    """Check, read, charge, measure, write. An exception from `before_charge` ends the order with nothing spent."""
    listen("checking")
    if order.epsilon is None:
        raise ParameterError("give --epsilon, the privacy budget of this release.")
    epsilon, delta = exact(order.epsilon, "epsilon"), exact(order.delta, "delta")
    if epsilon > LARGE_EPSILON and not order.confirm_large_epsilon:
        raise ParameterError(
            f"epsilon = {float(epsilon):g} is above {LARGE_EPSILON}, a weak guarantee. Say --confirm-large-epsilon to go on."
        )
    check_encoding(order.encoding)
    schema = Schema.load(order.schema)
    schema.require_confirmed()
    synth = PrivateSynthesizer(epsilon, delta, schema=schema, rows_per_person=order.rows_per_person, seed=order.seed)
    _check_places(order, schema)
    ledger = None
    if order.seed is None:
        if order.dataset is None:
            raise ParameterError("give --dataset, the name under which the ledger keeps this table's budget.")
        ledger = Ledger(order.ledger or default_ledger_path())
        ledger.check(order.dataset, epsilon, delta, order.rows_per_person)
    elif order.dataset is not None:
        raise ParameterError("a seeded run is not private and cannot be charged: leave out --dataset, or the seed.")
    listen("reading")
    # The owner's machine; may fail on the table, nothing is charged yet.
    prepared = _prepare(order, synth)
    synth.check(prepared.n)
    rows = check_rows(prepared.n if order.rows is None else order.rows, len(schema.fields), order.out)
    with claim_target(order.out, order.force) as claim:
        receipt: Receipt | None = None
        if ledger is not None and order.dataset is not None:
            listen("charging")
            before_charge()
            receipt = ledger.charge(order.dataset, epsilon, delta, order.purpose, order.rows_per_person)
        # From here on nothing depends on what a record holds.
        with _charge_told(receipt):
            listen("measuring")
            synth.fit(prepared)
            listen("writing")
            bundle = write_bundle(synth.release(rows), order.out, parquet=order.parquet, force=order.force, claim=claim)
        if ledger is not None and receipt is not None:
            ledger.mark_released(receipt, bundle_digest(bundle))
    certificate = synth.certificate.sentence if synth.certificate else None
    return Released(bundle, rows, str(synth.privacy), certificate)


def release_anonymous(order: AnonymousOrder, listen: Listener = _nobody) -> Released:
    """Check, read, group, write. Nothing is charged: this is not differential privacy."""
    listen("checking")
    check_encoding(order.encoding)
    schema = Schema.load(order.schema)
    schema.require_confirmed()  # it goes out with the bundle
    synth = AnonymousSynthesizer(order.group_size, method=order.method, schema=schema, seed=order.seed)
    for name in order.sensitive:
        if name not in schema.names:
            raise ParameterError(f"--sensitive names {name!r}, which is not a field of the schema.")
    _check_places(order, schema)
    listen("reading")
    prepared = _prepare(order, synth)
    rows = check_rows(prepared.n if order.rows is None else order.rows, len(schema.fields), order.out)
    listen("measuring")
    synth.fit(prepared)
    listen("writing")
    bundle = write_bundle(synth.release(rows), order.out, parquet=order.parquet, force=order.force)
    agreeing = synth.homogeneity() if order.sensitive else {}
    words = f"{synth.groups} groups of at least {order.group_size}; NOT differentially private"
    told = tuple((name, agreeing.get(name, synth.groups)) for name in order.sensitive)
    return Released(bundle, rows, words, groups=synth.groups, agreeing=told)


@contextmanager
def _charge_told(receipt: Receipt | None) -> Iterator[None]:
    """What fails after a charge says that the charge stays: a disk that is full, a file or a connection that is gone."""
    try:
        yield
    except (CoveyError, OSError) as error:
        if receipt is None:
            raise
        words = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise LostReleaseError(f"{words.rstrip('.')}. {CHARGE_STAYS}") from error


def _check_places(order: PrivateOrder | AnonymousOrder, schema: Schema) -> None:
    """Refuse, before any data is opened, what cannot be sampled or written."""
    refuse_same(order.table, order.out)
    check_target(order.out, order.force)
    check_rows(1 if order.rows is None else order.rows, len(schema.fields), order.out)
    _check_log(order.log, order.table, order.out)


def _prepare(order: PrivateOrder | AnonymousOrder, synth: PrivateSynthesizer | AnonymousSynthesizer) -> Prepared:
    prepared = synth.prepare(order.table, order.encoding)
    _write_log(order.log, prepared.log)
    return prepared


def _check_log(path: Path | None, table: Path | Database, out: Path) -> None:
    """The private log must not overwrite anything, nor lie where it would be handed out."""
    if path is None:
        return
    check_output(path)
    if path.exists():
        raise ParameterError(f"the log {path} exists. Choose another name.")
    if out.resolve() in (path.resolve(), *path.resolve().parents):
        raise ParameterError(f"the log {path} would lie in the bundle. It is private: choose another place.")
    refuse_in_bundle(path)
    refuse_same(table, path)


def _write_log(path: Path | None, log: Any) -> None:
    """Counts from preparing, for the owner's eyes: a file that nobody else can read."""
    if path is None:
        return
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump({"confidential": "computed on true data", **asdict(log)}, file, indent=2, ensure_ascii=False)


def check_output(path: Path) -> None:
    """Refuse, before any data is opened, a file that cannot be written: its folder must exist."""
    try:
        taken, folder = path.is_dir(), path.parent.is_dir()
    except OSError as error:  # a name too long for the system, for example
        raise ParameterError(f"{path} cannot be written: {error.strerror}. Choose another name.") from None
    if taken:
        raise ParameterError(f"{path} is a folder. Name a file in it.")
    if not folder:
        raise ParameterError(f"{path} cannot be written: there is no folder {path.parent}. Make it, or choose another.")
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise ParameterError(f"{path} cannot be written: you may not write there. Choose another place.")


def refuse_same(source: Path | Database, out: Path) -> None:
    """The input is never overwritten, nor the folder that holds it."""
    table = source if isinstance(source, Path) else source.path
    if table is not None and out.resolve() in (table.resolve(), *table.resolve().parents):
        raise ParameterError(f"{out} is the input table, or holds it. Choose another output.")


def bundle_digest(bundle: Path) -> str:
    """The digest under which the ledger knows a bundle: that of its list of checksums."""
    return hashlib.sha256((bundle / SUMS).read_bytes()).hexdigest()
