"""From a table to a bundle and back: the steps that the command line, the local app and exported scripts share.

    draft      a schema that fits a table, and what to look at in it            confidential
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
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from covey.answers.load import stored
from covey.charging import Account, carry_out, requested_budget
from covey.errors import ArgumentError, CoveyError, CoveyWarning, InputError, InternalError, ParameterError
from covey.evaluating import Evaluated, evaluate
from covey.methods.learning import too_wide
from covey.orders import AnonymousOrder, OnStage, PrivateOrder, Released, always_proceed, ignore_stage, not_taken, said
from covey.planning import Plan, plan
from covey.preparing import Drafted, Fit, TableFit, check, draft, fit_of, imported
from covey.privacy.budget import exact, make_budget
from covey.privacy.unit import ADD_REMOVE, ALL_ROWS
from covey.release.accuracy import stated
from covey.release.bundle import Told, add_words, claim_target, publish
from covey.release.claim import claimed
from covey.release.contents import About, AnonymousRelease, AnyRelease
from covey.release.places import WORDS_SUMS, check_disk, check_output, check_target, refuse_in_bundle, refuse_same
from covey.release.verify import read_facts, verify_bundle
from covey.synthesizers import AnonymousSynthesizer, PrivateSynthesizer
from covey.table.column_drafts import TWO_READINGS, Note
from covey.table.columns import renamed
from covey.table.databases import Database
from covey.table.description import Description, is_package
from covey.table.persons import without
from covey.table.schema import LEARN

__all__ = [
    "AnonymousOrder",
    "Description",
    "Drafted",
    "Evaluated",
    "Fit",
    "Plan",
    "PrivateOrder",
    "Released",
    "anonymize",
    "check",
    "described",
    "draft",
    "evaluate",
    "imported",
    "plan",
    "public_description",
    "release",
    "resume",
    "synthesizer",
]

# Before a release: `draft` and `check` are those of `preparing`, `plan` is that of `planning`.


def described(table: Path | Database, schema: Path | None) -> tuple[Description | None, Any]:
    """What is known of tables, and where they lie: a schema beside one table, or a package file that says both.

    None where neither is given: then all is to be learned.
    """
    if isinstance(table, Path) and is_package(table):
        if schema is not None:
            raise ArgumentError("a package already describes its tables. Leave out ", "schema", ".")
        found = Description.load(table)
        places = found.places(table)
        return found, next(iter(places.values())) if found.schema is not None else places
    if schema is None:
        return None, table
    found = Description.load(schema)
    if found.schema is None:
        raise ArgumentError("", "schema", f" describes several tables: give {schema} in place of the table.")
    return found, table


# A release.


def release(
    order: PrivateOrder, listen: OnStage = ignore_stage, before_charge: Callable[[], None] = always_proceed
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
    account = Account.of(order, ALL_ROWS if persons else order.rows_per_person)
    account.check(None if synth is None else synth.rho)
    listen("reading")
    # The owner's machine; may fail on the table, nothing is charged yet.
    if found is None or synth is None:
        drafted = draft(order.table, order.dialect, learning=True)
        refuse_two_readings(drafted.notes)
        for name in drafted.twice:
            warnings.warn(renamed(name), CoveyWarning, stacklevel=2)
        found = public_description(drafted.description, order)
        synth = synthesizer(order, found)
    prepared = synth.prepare(tables)
    fit = fit_of(prepared)
    write_log(order.log, fit.log)
    most = exact(order.accept_misfits, "accept_misfits")
    unsaid = order.learn and order.dialect.decimal is None and order.dialect.thousands is None
    for one in fit.tables:
        refuse_other_spelling(one, most, unsaid)
    refuse_misfits(fit.misfits, most)
    synth.check(prepared.n)
    budget = make_budget(epsilon, delta, order.rows_per_person, labels=True)
    public = order.neighbours != ADD_REMOVE  # elsewhere no word may depend on how many rows there are
    if public and order.learn and found.schema is not None and (wide := too_wide(found.schema, prepared.n, budget)):
        warnings.warn(wide, CoveyWarning, stacklevel=2)
    rows = check_disk(prepared.n if order.rows is None else order.rows, len(found.fields), order.out)
    # Where the number of rows is secret, as many are drawn as were measured.
    asked = order.rows if order.neighbours == ADD_REMOVE else rows
    return released(order.out, *carry_out(account, synth, prepared, asked, listen, before_charge))


def _check_asked(order: PrivateOrder, found: Description | None) -> None:
    """Refuse what does not go together."""
    if found is None and not order.learn:
        raise ArgumentError(
            "give ",
            "schema",
            ", the public description of the table, or ",
            "learn",
            " to learn limits and categories with noise.",
        )
    if order.learn and order.person is not None:
        raise ArgumentError(
            "limits and categories cannot be learned by person. Leave out ", "learn", ", or ", "person", "."
        )
    for name, why in not_taken(found).items():
        if name in said(order):
            raise ArgumentError(f"{why}: leave out ", name, ".")


def released(bundle: Path, release: AnyRelease, told: Told) -> Released:
    """What came of an order."""
    rows = release.parts.m
    if isinstance(release, AnonymousRelease):
        words = f"{release.groups} groups of at least {release.group_size}; NOT differentially private"
        return Released(bundle, rows, words, groups=release.groups)
    privacy, certificate = release.privacy, stated(release.certificate, told.whole)
    return Released(
        bundle,
        rows,
        str(privacy),
        certificate,
        learned=privacy.learned,
        left_out=privacy.left_out,
        relations=() if release.described.schema is None else tuple(map(str, release.described.schema.found)),
        mended=told.mended,
    )


def public_description(found: Description, order: PrivateOrder) -> Description:
    """A description that is confirmed, or of whose other fields nothing is used but names and types."""
    schema = found.schema
    if schema is not None:
        schema = schema.only(order.columns).focus(*order.important, target=order.target, triples=order.triples)
        schema = schema.to_learn(dialect=order.dialect) if order.learn else schema
        schema = replace(schema, relations=LEARN) if order.learn_relations else schema
        schema = schema if order.person is None else without(schema, order.person)
        found = replace(found, tables=(replace(found.unit, schema=schema),))
    else:
        found = found.focus(*order.important, target=order.target)
    found.require_confirmed()
    return found


def synthesizer(order: PrivateOrder, found: Description) -> PrivateSynthesizer:
    """What measures and draws for an order, of what its public description says."""
    check_disk(1 if order.rows is None else order.rows, len(found.fields), order.out)
    return PrivateSynthesizer(
        exact(order.epsilon, "epsilon"),
        exact(order.delta, "delta"),
        schema=found,
        person=order.person,
        rows_per_person=order.rows_per_person,
        neighbours=order.neighbours,
        prior=order.prior,
        seed=order.seed,
    )


def resume(bundle: Path) -> Released:
    """Finish a bundle whose data are whole and whose report is missing, from the bundle alone; a finished one stays as it is.

    Needs no true data and no ledger, and costs nothing.
    """
    bundle = bundle.resolve()
    if not bundle.parent.is_dir():
        raise InputError(f"there is no folder {bundle}.")
    with claimed(bundle) as claim:  # which also puts back a bundle whose writer died while it replaced another one
        try:
            finished = verify_bundle(bundle).finished
        except InputError:
            (bundle / WORDS_SUMS).unlink(missing_ok=True)  # if only words are damaged, the data are still whole
            finished = False
        release, facts = stored(bundle), read_facts(bundle)
        told = Told(About.from_dict(facts["about"]), facts.get("rows_altered_by_rules"))
        own = None if isinstance(release, AnonymousRelease) else release.own
        done = released(bundle, release, replace(told, whole=own))
        if finished:
            return done
        try:
            add_words(release, bundle, claim, told)
        except (CoveyError, OSError):
            raise
        except Exception as error:
            raise InternalError(
                f"the report of {bundle} could not be made ({type(error).__name__}). Its data are complete and can be used. A "
                "newer covey may make the report. Please report this."
            ) from error
    return done


def anonymize(order: AnonymousOrder, listen: OnStage = ignore_stage) -> Released:
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
    return replace(released(order.out, release, done), agreeing=told)


def _check_places(order: PrivateOrder | AnonymousOrder, tables: Any) -> None:
    """Refuse, before any data is opened, what cannot be written."""
    read = [order.table, *(tables.values() if isinstance(tables, Mapping) else [tables])]
    for place in dict.fromkeys(read):
        refuse_same(place, order.out)
    check_target(order.out, order.force)
    for place in dict.fromkeys(read):
        check_log(order.log, place, order.out)


def refuse_two_readings(notes: Sequence[Note]) -> None:
    """Stop before the charge where the dates of a column could be read in two ways: no record may say which."""
    for note in notes:
        if note.reason.startswith(TWO_READINGS):
            raise InputError(
                f"the dates of {note.field!r} are not ISO 8601. Give their format with ", "date_format", "."
            )


def refuse_other_spelling(fit: TableFit, most: Fraction, unsaid: bool) -> None:
    """Stop before the charge where cells of a learned column are spelled otherwise than the call has said.

    Where it has not said how numbers are written, 1.234 in a file with semicolons may be a thousand. What is released never
    follows from how cells look: it is read as was said, or not at all.
    """
    semicolons = unsaid and fit.schema.dialect.separator == ";"
    for field in fit.schema.learns:
        seen = fit.log.columns.get(field.name)
        if seen is None:
            continue
        share = Fraction(seen.unparseable, fit.rows)
        if field.type not in ("integer", "number"):
            if share > most:
                raise InputError(
                    f"{float(share):.1%} of the cells of {field.name!r} are not dates in the given format. Nothing was charged. "
                    "Give the format with ",
                    "date_format",
                    ".",
                )
        elif share > most or (semicolons and 2 * seen.grouped > fit.rows - seen.missing):
            what = "not numbers in the given format" if share > most else "numbers such as 1.234, or thousands"
            part = share if share > most else Fraction(seen.grouped, fit.rows)
            raise InputError(
                f"{float(part):.1%} of the cells of {field.name!r} are {what}. Nothing was charged. Give the decimal and "
                "thousands marks with ",
                "decimal",
                " and ",
                "thousands",
                ".",
            )


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
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump({"confidential": "computed on real data", **asdict(log)}, file, indent=2, ensure_ascii=False)
