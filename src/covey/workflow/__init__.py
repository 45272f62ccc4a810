"""From a table to a bundle and back: the steps that the command line, the local app and exported scripts share.

    draft      a schema that fits a table, and what to look at in it            confidential
    propose    relations between the columns of a table, to confirm             confidential
    check      how many cells do not fit a schema                               confidential
    plan       accuracy, time and memory, from public sizes alone
    release    a differentially private bundle, charged to the ledger
    resume     the report of a bundle that was written without one
    anonymize  an anonymous bundle
    evaluate   a bundle beside the true table                                   confidential

The order of a release never changes (docs/decisions/0007): public parameters and the ledger's remaining budget first, then
the table is read and encoded, then the charge, and only then noise and files. Whoever calls may listen to the stages, and
may say no at the last moment before the charge. Refusals name arguments as Python does; how a screen names them is its own.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from covey.engine.budget import make_budget
from covey.engine.fractions import exact
from covey.engine.unit import ADD_REMOVE, ALL_ROWS, Unit
from covey.errors import (
    ArgumentError,
    CoveyError,
    CoveyWarning,
    InputError,
    InternalError,
    LostReleaseError,
    ParameterError,
)
from covey.ledger import DatasetStatus, Event, Ledger, default_ledger_path
from covey.release.answers.load import stored
from covey.release.bundle import ReportInputs, add_words, claim_target, publish
from covey.release.contents import About, AnonymousRelease
from covey.release.facts import read_facts
from covey.release.places import (
    WORDS_SUMS,
    check_disk,
    check_output,
    check_target,
    claimed,
    private_file,
    refuse_in_bundle,
    refuse_same,
)
from covey.release.verify import bundle_digest, verify_bundle
from covey.synthesizers import AnonymousSynthesizer, PrivateSynthesizer
from covey.synthesizers.learning import too_wide
from covey.tables.column_drafts import LEFT_OUT, TWO_READINGS, strays
from covey.tables.columns import renamed
from covey.tables.description import Description
from covey.tables.document import as_json
from covey.tables.drafting import DOUBTED, UNNAMED
from covey.tables.metadata import imported
from covey.tables.reading import Prepared, TableRead
from covey.tables.schema import LEARN
from covey.tables.sources.databases import Database
from covey.workflow.evaluating import evaluate
from covey.workflow.order import (
    MISFITS,
    OF_ONE_TABLE,
    AnonymousOrder,
    PrivateOrder,
    as_words,
    described,
    from_words,
    not_taken,
    requested_budget,
    said,
)
from covey.workflow.preparing import PLAIN, Drafted, Fit, check, draft, fit_of, plan, propose, with_proposal

# From elsewhere.
__all__ = [
    "MISFITS",
    "OF_ONE_TABLE",
    "AnonymousOrder",
    "Description",
    "Drafted",
    "Fit",
    "PrivateOrder",
    "as_words",
    "check",
    "described",
    "draft",
    "evaluate",
    "from_words",
    "imported",
    "not_taken",
    "plan",
    "propose",
    "requested_budget",
    "said",
    "with_proposal",
]

STAGES = ("checking", "reading", "charging", "measuring", "writing")  # anonymous releases have no charge

OnStage = Callable[[str], None]  # is told each stage as it begins
LEAST_EPSILON = Fraction(1, 10**9)  # below it noise may not fit its sampler, which is seen after the charge
CHARGE_STAYS = "The charge was made before this happened. It is not refunded, since noise may already have been drawn."


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
    relations: tuple[str, ...] = ()
    mended: int | None = None  # rows that were altered after drawing for the rules' sake; None where there are no rules


# A release.


def release(
    order: PrivateOrder, listen: OnStage = lambda _: None, before_charge: Callable[[], None] = lambda: None
) -> Released:
    """Check, read, charge, measure, write. An exception from `before_charge` ends the order with nothing spent."""
    listen("checking")
    epsilon, delta = requested_budget(order)
    found, tables = described(order.table, order.schema)
    _check_asked(order, found)
    persons = order.person is not None or (found is not None and found.schema is None)
    make_budget(epsilon, delta, order.rows_per_person, persons=persons, neighbours=order.neighbours)
    found = None if found is None else public_description(found.read_as(order.dialect), order)
    synth = None if found is None else synthesizer(order, found)
    _check_places(order, tables)
    account = Account(order, ALL_ROWS if persons else order.rows_per_person)
    account.check(None if synth is None else synth.rho)
    listen("reading")
    # The owner's machine; may fail on the table, nothing is charged yet.
    described_before = found is not None
    if found is None or synth is None:
        found = public_description(_learned_draft(order), replace(order, dialect=PLAIN))  # a draft has what was said
        synth = synthesizer(order, found)
    prepared = synth.prepare(tables)
    fit = fit_of(prepared)
    write_log(order.log, fit.log)
    most = exact(order.accept_misfits, "accept_misfits")
    unsaid = order.learn and order.dialect.decimal is None and order.dialect.thousands is None
    for one in fit.tables:
        refuse_other_spelling(one, most, unsaid, guessed=not described_before)
    refuse_misfits(fit.misfits, most)
    units = synth.check(prepared.n)
    budget = make_budget(epsilon, delta, order.rows_per_person, labels=True, persons=persons)
    public = order.neighbours != ADD_REMOVE  # elsewhere no word may depend on how many rows there are
    if public and order.learn and (wide := too_wide(found, prepared.n, budget)):
        warnings.warn(wide, CoveyWarning, stacklevel=2)
    rows = check_disk(units if order.rows is None else order.rows, len(found.fields), order.out)
    # Where the number of rows is secret, as many are drawn as were measured.
    asked = order.rows if order.neighbours == ADD_REMOVE else rows
    return released(order.out, carry_out(account, synth, prepared, asked, listen, before_charge))


def _check_asked(order: PrivateOrder, found: Description | None) -> None:
    """Refuse what does not go together."""
    if found is None and not order.learn:
        way_out = " to learn limits and categories with noise."
        raise ArgumentError("give ", "schema", ", the public description of the table, or ", "learn", way_out)
    for name, why in not_taken(found).items():
        if name in said(order):
            raise ArgumentError(f"{why}: leave out ", name, ".")


def _learned_draft(order: PrivateOrder) -> Description:
    """Names and types of a table that is to be learned. Dates that could be read in two ways are refused: no record may say."""
    drafted = draft(order.table, order.dialect, learning=True)
    for note in drafted.notes:
        if note.choice == UNNAMED:
            raise InputError(f"{UNNAMED}, which are public. Add a line of names, or give them in a ", "schema", ".")
        if note.choice == DOUBTED:
            warnings.warn(f"{DOUBTED}, and its cells are published as names of columns.", CoveyWarning, stacklevel=3)
        if note.reason.startswith(TWO_READINGS) and (note.field in order.columns or not order.columns):
            forms = note.reason.removeprefix(TWO_READINGS).partition(":")[0]
            why = f"the dates of {note.field!r} can be read as {forms}. Give their format with "
            raise InputError(why, "date_format", ", or name the columns to keep with ", "columns", ".")
    if drafted.twice:
        warnings.warn(renamed(drafted.twice), CoveyWarning, stacklevel=3)
    left = [repr(note.field) for note in drafted.notes if note.choice == LEFT_OUT and note.field != order.person]
    if left and not order.columns:
        told = "left out, because the cells look like identifiers, names, addresses, lists or free text:"
        way_out = "To keep one, describe it in a schema."
        warnings.warn(f"{told} {', '.join(left)}. {way_out}", CoveyWarning, stacklevel=3)
    return drafted.description


def released(bundle: Path, told: ReportInputs) -> Released:
    """What came of an order."""
    release, rows = told.release, told.release.parts.m
    if isinstance(release, AnonymousRelease):
        words = f"{release.groups} groups of at least {release.group_size}; NOT differentially private"
        return Released(bundle, rows, words, groups=release.groups)
    privacy = release.privacy
    return Released(
        bundle,
        rows,
        str(privacy),
        release.accuracy,
        learned=privacy.learned,
        left_out=privacy.left_out,
        relations=() if release.described.schema is None else tuple(map(str, release.described.schema.found)),
        mended=told.mended,
    )


def public_description(found: Description, order: PrivateOrder) -> Description:
    """A description that is confirmed, or of whose other fields nothing is used but names and types."""
    found = found.only(order.columns).focus(*order.important, target=order.target, triples=order.triples)
    person = order.person
    if order.learn:
        found = found.to_learn(order.dialect)
    if order.learn_relations:
        found = found.each(lambda part: replace(part.schema, relations=LEARN))
    if person is not None:
        found = found.each(lambda part: part.schema.without(person))
    found.require_confirmed()
    return found


def synthesizer(order: PrivateOrder, found: Description) -> PrivateSynthesizer:
    """What measures and draws for an order, of what its public description says."""
    check_disk(1 if order.rows is None else order.rows, len(found.fields), order.out)
    as_json([found.to_dict(), order.about.to_dict(), order.purpose, str(order.out)], "the order or its schema")
    epsilon, status = exact(order.epsilon, "epsilon"), _status(order)
    if epsilon < LEAST_EPSILON * order.rows_per_person:
        raise ArgumentError("", "epsilon", " must be at least 1e-9 for each row: below that the answer is only noise.")
    return PrivateSynthesizer(
        epsilon,
        exact(order.delta, "delta"),
        schema=found,
        person=order.person,
        rows_per_person=order.rows_per_person,
        neighbours=order.neighbours,
        composition=None if status is None else status.composition,
        prior=order.prior,
        seed=order.seed,
    )


def _status(order: PrivateOrder) -> DatasetStatus | None:
    """What the ledger says of the people of an order; None where nothing will be charged, or it cannot say."""
    if order.seed is not None or order.dataset is None:
        return None
    try:
        return Ledger(order.ledger or default_ledger_path()).dataset(order.dataset)
    except (CoveyError, OSError):  # a charge will say what is wrong with it, and a report does without
        return None


# The charge.


class Account:
    """The ledger that pays for an order, and for whose protection; a seeded run, which is not private, has none."""

    def __init__(self, order: PrivateOrder, unit: Unit) -> None:
        self.order, self.unit, self.dataset = order, unit, order.dataset or ""
        if order.seed is not None and order.dataset is not None:
            raise ArgumentError(
                "a seeded run is not private and cannot be charged: leave out ", "dataset", ", or the seed."
            )
        if order.seed is None and order.dataset is None:
            raise ArgumentError("give ", "dataset", ", the name under which the ledger keeps this table's budget.")
        self.ledger = Ledger(order.ledger or default_ledger_path()) if order.seed is None else None

    def check(self, rho: Fraction | None) -> None:
        """Refuse now what a charge would refuse."""
        if self.ledger is not None:
            self.ledger.check(self.dataset, *requested_budget(self.order), self.unit, rho, self.order.neighbours)

    def charge(self, rho: Fraction | None) -> Event | None:
        """Spend."""
        if self.ledger is None:
            return None
        asked = (self.dataset, *requested_budget(self.order), self.order.purpose)
        return self.ledger.charge(*asked, self.unit, rho, self.order.neighbours)

    @property
    def about(self) -> About:
        """What the owner says, and what the ledger says is used up of how much: both go onto the report's first page."""
        said, status = self.order.about, _status(self.order)
        if status is None:
            return said
        return replace(said, spent=status.spent.epsilon, cap=status.budget.epsilon, used=status.used)

    def mark(self, receipt: Event | None, bundle: Path) -> None:
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


def carry_out(  # the one passage that spends a budget: whose, on what, and who is told or asked
    account: Account,
    synth: PrivateSynthesizer,
    prepared: Prepared,
    rows: int | None,
    listen: OnStage,
    before_charge: Callable[[], None],
) -> ReportInputs:
    """Charge, measure, write and mark: what is in the bundle. `listen` is told of stages, and `before_charge` may refuse.

    All that may fail on the table has happened before; after the charge nothing depends on what a record holds, except through
    noise. The charge is marked with its bundle as soon as the data are safe. What comes then, the words, cannot lose it any more.
    """
    order = account.order
    with claim_target(order.out, order.force) as claim:
        if account.ledger is not None:
            listen("charging")
            before_charge()
        receipt = account.charge(synth.rho)
        # From here on nothing depends on what a record holds.
        with charge_told(receipt):
            listen("measuring")
            synth.fit(prepared)
            listen("writing")
            return publish(
                synth.release(rows),
                order.out,
                claim,
                parquet=order.parquet,
                force=order.force,
                about=account.about,
                written=lambda bundle: account.mark(receipt, bundle),
            )


@contextmanager
def charge_told(receipt: Event | None) -> Iterator[None]:
    """What fails after a charge says that the charge stays. Warnings, of which a caller may make errors, wait for the end."""
    try:
        with warnings.catch_warnings(record=True, action="always") as caught:
            yield
    except BaseException as error:  # a panic of a library is no Exception
        if receipt is None or isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
            raise
        words = str(error) if isinstance(error, CoveyError) else f"{type(error).__name__}, which covey did not expect"
        raise LostReleaseError(f"{(getattr(error, 'strerror', '') or words).rstrip('.')}. {CHARGE_STAYS}") from error
    for one in caught:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


# A bundle without a report, and anonymous bundles.


def resume(bundle: Path) -> Released:
    """Finish a bundle whose data are whole and whose report is missing, from the bundle alone; a finished one stays as it is.

    Needs no true data and no ledger, and costs nothing.
    """
    bundle = bundle.resolve()
    if not bundle.parent.is_dir():
        raise InputError(f"there is no folder {bundle}.")
    if bundle.exists() and not bundle.is_dir():
        raise InputError(f"{bundle} is a file. Name the folder of a bundle.")
    with claimed(bundle) as claim:  # which also puts back a bundle whose writer died while it replaced another one
        try:
            finished = verify_bundle(bundle).finished
        except InputError:
            (bundle / WORDS_SUMS).unlink(missing_ok=True)  # if only words are damaged, the data are still whole
            finished = verify_bundle(bundle).finished
        release, facts = stored(bundle), read_facts(bundle)
        told = ReportInputs(release, About.from_dict(facts["about"]), facts.get("rows_altered_by_rules"))
        done = released(bundle, told)
        if finished:
            return done
        try:
            add_words(bundle, claim, told)
        except (CoveyError, OSError):
            raise
        except Exception as error:
            raise InternalError(
                f"the report of {bundle} could not be made ({type(error).__name__}). Its data are complete and can be used. A "
                "newer covey may make the report. Please report this."
            ) from error
    return done


def anonymize(order: AnonymousOrder, listen: OnStage = lambda _: None) -> Released:
    """Check, read, group, write. Nothing is charged: this is not differential privacy."""
    listen("checking")
    found, table = described(order.table, order.schema)
    if found is None:
        raise ArgumentError("give ", "schema", ", the public description of the table.")
    if (why := not_taken(found).get("group_size")) is not None:
        raise ParameterError(f"{why}.")
    schema = found.unit.schema.read_as(order.dialect)
    schema.require_confirmed()  # it goes out with the bundle
    synth = AnonymousSynthesizer(order.group_size, method=order.method, schema=schema, seed=order.seed)
    for name in order.sensitive:
        if name not in schema.names:
            raise ArgumentError("", "sensitive", f" names {name!r}, which is not a field of the schema.")
    _check_places(order, table)
    check_disk(1 if order.rows is None else order.rows, len(schema.fields), order.out)
    listen("reading")
    prepared = synth.prepare(table)
    write_log(order.log, prepared.log)
    rows = check_disk(prepared.n if order.rows is None else order.rows, len(schema.fields), order.out)
    listen("measuring")
    synth.fit(prepared)
    listen("writing")
    agreeing = synth.homogeneity() if order.sensitive else {}
    told = tuple((name, agreeing.get(name, synth.groups)) for name in order.sensitive)
    release = synth.release(rows)
    with claim_target(order.out, order.force) as claim:
        done = publish(release, order.out, claim, parquet=order.parquet, force=order.force)
    return replace(released(order.out, done), agreeing=told)


def _check_places(order: PrivateOrder | AnonymousOrder, tables: Any) -> None:
    """Refuse, before any data is opened, what cannot be written."""
    read = [order.table, *(tables.values() if isinstance(tables, Mapping) else [tables])]
    for place in dict.fromkeys(read):
        refuse_same(place, order.out)
    check_target(order.out, order.force)
    for place in dict.fromkeys(read):
        check_log(order.log, place, order.out)


def refuse_other_spelling(fit: TableRead, most: Fraction, unsaid: bool, guessed: bool) -> None:
    """Stop before the charge where cells of a learned column are spelled otherwise than its schema has it.

    Unless the call says how numbers are written, or others such as 1.5 show it, 1.234 in a file with semicolons may be a
    thousand, and so may 1,234 wherever a draft has guessed at it.
    """
    shown = any(seen.pointed > strays(fit.rows) for seen in fit.log.columns.values())
    for field, seen in [(field, log) for field in fit.schema.learns if (log := fit.log.columns.get(field.name))]:
        numbers, share = field.type in ("integer", "number"), Fraction(seen.unparseable, fit.rows)
        form, mark = field.spelling.date_format or "2024-12-31 (ISO 8601)", field.spelling.decimal
        what = f"not numbers with decimal mark {mark!r}" if numbers else f"not dates such as {form}"
        doubtful = fit.schema.dialect.separator == ";" if field.spelling.is_plain else guessed
        if share <= most:
            if not (numbers and unsaid and doubtful and not shown and 2 * seen.grouped > fit.rows - seen.missing):
                continue
            share, what = Fraction(seen.grouped, fit.rows), f"numbers such as 1{mark}234, or thousands"
        told = f"{float(share):.1%} of the cells of {field.name!r} are {what}. Nothing was charged. Give the "
        if numbers:
            raise InputError(f"{told}decimal and thousands marks with ", "decimal", " and ", "thousands", ".")
        raise InputError(f"{told}format with ", "date_format", ".")


def refuse_misfits(misfits: Mapping[str, Fraction], most: Fraction) -> None:
    """Stop before the charge where a schema does not fit the table: the release would be whole, certified and wrong."""
    bad = {name: share for name, share in misfits.items() if share > most}
    if bad:
        worst = max(bad, key=lambda name: bad[name])
        raise InputError(
            f"{len(bad)} of {len(misfits)} columns do not fit the schema. In {worst!r} {float(bad[worst]):.1%} of the cells "
            f"would be moved, emptied or filled, and {float(most):.1%} are allowed. Nothing was charged. Check the table to see "
            "what happens to each column. Correct the schema, or allow more with ",
            "accept_misfits",
            ".",
        )


def check_log(path: Path | None, table: Path | Database, out: Path) -> None:
    """The private log must not overwrite anything, nor lie where it would be handed out."""
    if path is None:
        return
    check_output(path)
    if path.exists():
        raise ParameterError(f"the log {path} exists. Choose another name.")
    if out.resolve() in (path.resolve(), *path.resolve().parents):
        raise ParameterError(f"the log {path} would lie in the bundle. It is confidential. Choose another place.")
    refuse_in_bundle(path)
    refuse_same(table, path)


def write_log(path: Path | None, log: Any) -> None:
    """Counts from preparing, for the owner's eyes: a file that nobody else can read."""
    if path is None:
        return
    with private_file(path) as file:
        json.dump({"confidential": "computed on real data", **asdict(log)}, file, indent=2, ensure_ascii=False)
