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
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from covey.answers.load import statement, stored
from covey.charging import Account, asked, carry_out
from covey.errors import ArgumentError, CoveyError, CoveyWarning, InputError, InternalError, ParameterError
from covey.methods.learning import expected_attributes, expected_sizes, with_known_domains
from covey.methods.regain.plan_tables import Focus, TablePlan, TripleForecast, forecast
from covey.methods.regain.plan_tables import expected_focus as focus
from covey.methods.regain.predict import LEFT_AFTER_DENOISING, Prediction, predict
from covey.methods.regain.tables import RegainTables
from covey.orders import AnonymousOrder, OnStage, PrivateOrder, Released, agreed, nobody
from covey.preparing import PLAIN, Drafted, Fit, check, draft, imported
from covey.privacy.budget import Budget, budget_for, exact, make_budget
from covey.privacy.unit import ALL_ROWS, Unit
from covey.release import evaluation
from covey.release.bundle import Told, add_words, write_bundle
from covey.release.claim import claimed
from covey.release.confidential import evaluation_html
from covey.release.contents import About
from covey.release.places import WORDS_SUMS, check_disk, check_output, check_target, refuse_in_bundle, refuse_same
from covey.release.verify import verify_bundle
from covey.synthesizers import AnonymousSynthesizer, Prepared, PrivateSynthesizer
from covey.table.codec import Codec
from covey.table.columns import renamed
from covey.table.databases import Database
from covey.table.dialects import Dialect
from covey.table.document import read_document
from covey.table.numbers import NumberCodec
from covey.table.persons import without
from covey.table.proposing import TWO_READINGS, Note
from covey.table.schema import Schema

__all__ = [
    "AnonymousOrder",
    "Drafted",
    "Evaluated",
    "Fit",
    "PrivateOrder",
    "Released",
    "anonymize",
    "check",
    "draft",
    "evaluate",
    "imported",
    "plan",
    "release",
    "resume",
]

# Before a release: `draft` and `check` are those of `preparing`.


def plan(
    sizes: Sequence[int] | Schema,
    rows: int,
    epsilon: Fraction | None,
    delta: Fraction,
    target_error: Fraction | None = None,
    rows_per_person: Unit = 1,
) -> Prediction:
    """What a release would be like, from public sizes alone; with a target error instead of ε, also that ε.

    A schema in place of the sizes says more about memory; of fields that are to be learned sizes are guessed.
    With `rows_per_person` "all" the first number counts persons, as a release with a column of persons does.
    """
    if (epsilon is None) == (target_error is None):
        raise ArgumentError("give epsilon, or ", "target_error", " to find it.")
    if not isinstance(sizes, Schema):
        return predict(sizes, rows, epsilon, delta, target_error, rows_per_person)
    attributes, learning = expected_attributes(sizes), bool(with_known_domains(sizes).learns)
    found = predict(expected_sizes(sizes), rows, epsilon, delta, target_error, rows_per_person)
    budget = budget_for(found.epsilon, delta, rows_per_person, labels=learning)
    return found.described(attributes, rows, budget)


def expected_focus(schema: Schema, n: int, budget: Budget) -> Focus | None:
    """What the important columns of a schema gain, and the others lose, from public sizes alone; None if there are none."""
    plan = _table_plan(schema, budget)
    return focus(plan, n, budget, LEFT_AFTER_DENOISING) if plan.important.pairs else None


def expected_triples(schema: Schema, n: int, budget: Budget) -> TripleForecast | None:
    """How many triples would be chosen and measured, from public sizes alone; None if none are wanted."""
    plan = _table_plan(schema, budget)
    return forecast(plan, n, budget) if plan.wish else None


def _table_plan(schema: Schema, budget: Budget) -> TablePlan:
    return RegainTables.of(NumberCodec(Codec(schema)), Fraction(0), budget.pure).plan


# A release.


def release(order: PrivateOrder, listen: OnStage = nobody, before_charge: Callable[[], None] = agreed) -> Released:
    """Check, read, charge, measure, write. An exception from `before_charge` ends the order with nothing spent."""
    listen("checking")
    epsilon, delta = asked(order)
    if order.schema is None and not order.learn:
        raise ArgumentError(
            "give ", "schema", ", the public description of the table, or ", "learn", " to have it learned with noise."
        )
    if order.learn and order.person is not None:
        raise ArgumentError("domains are learned from rows, not by person: leave out ", "learn", ", or ", "person", ".")
    make_budget(epsilon, delta, order.rows_per_person, persons=order.person is not None)
    unit = order.rows_per_person if order.person is None else ALL_ROWS
    schema = None if order.schema is None else _public(Schema.load(order.schema).read_as(order.dialect), order)
    synth = None if schema is None else _private(order, schema)
    _check_places(order)
    account = Account.of(order, unit)
    account.check(None if synth is None else synth.rho)
    listen("reading")
    # The owner's machine; may fail on the table, nothing is charged yet.
    if schema is None or synth is None:
        drafted = draft(order.table, order.dialect, learning=True)
        refuse_two_readings(drafted.notes)
        for name in drafted.twice:
            warnings.warn(renamed(name), CoveyWarning, stacklevel=2)
        schema = _public(drafted.schema, order)
        synth = _private(order, schema)
    prepared = _prepare(order, synth)
    fit = Fit(prepared.records, prepared.log, schema, order.person, prepared.n, prepared.nobodys)
    most = exact(order.accept_misfits, "accept_misfits")
    refuse_other_spelling(
        fit, most, unsaid=order.learn and order.dialect.decimal is None and order.dialect.thousands is None
    )
    refuse_misfits(fit.misfits, most)
    synth.check(prepared.n)
    rows = check_disk(prepared.n if order.rows is None else order.rows, len(schema.fields), order.out)
    return released(carry_out(account, synth, prepared, rows, (listen, before_charge)), rows)


def released(bundle: Path, rows: int) -> Released:
    """What came of an order, as its bundle of so many rows, or persons, says it."""
    facts, place, certificate = read_document(bundle / "privacy.json"), bundle / "certificate.json", None
    if "group_size" in facts:
        words = f"{facts['groups']} groups of at least {facts['group_size']}; NOT differentially private"
        return Released(bundle, rows, words, groups=facts["groups"])
    if place.is_file():
        said = read_document(place)
        certificate = said.get("this_table", said.get("this_release", said))["sentence"]
    learned, left_out = (tuple(facts.get(name, ())) for name in ("learned", "left_out"))
    mended = facts.get("rows_altered_by_rules")
    return Released(bundle, rows, str(statement(facts)), certificate, learned=learned, left_out=left_out, mended=mended)


def _public(schema: Schema, order: PrivateOrder) -> Schema:
    """A schema that is confirmed, or of whose other fields nothing is used but names and types."""
    schema = schema.focus(*order.important, target=order.target, triples=order.triples)
    schema = schema.to_learn(dialect=order.dialect) if order.learn else schema
    schema = schema if order.person is None else without(schema, order.person)
    schema.require_confirmed()
    return schema


def _private(order: PrivateOrder, schema: Schema) -> PrivateSynthesizer:
    """The synthesizer of an order."""
    epsilon, delta = exact(order.epsilon, "epsilon"), exact(order.delta, "delta")
    check_disk(1 if order.rows is None else order.rows, len(schema.fields), order.out)
    return PrivateSynthesizer(
        epsilon,
        delta,
        schema=schema,
        person=order.person,
        rows_per_person=order.rows_per_person,
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
            found = verify_bundle(bundle)
            if found.finished:
                return released(bundle, found.rows)
        except InputError:
            (bundle / WORDS_SUMS).unlink(missing_ok=True)  # if only words are damaged, the data are still whole
        release = stored(bundle)
        facts = read_document(bundle / "privacy.json")
        told = Told(About.from_dict(facts.get("about", {})).dated(), facts.get("rows_altered_by_rules"))
        try:
            add_words(release, bundle, claim, told)
        except (CoveyError, OSError):
            raise
        except Exception as error:
            raise InternalError(
                f"the report of {bundle} could not be made ({type(error).__name__}). Its data are whole and can be used; a newer "
                "covey may make it. Please report this."
            ) from error
    return released(bundle, release.parts.m)


def anonymize(order: AnonymousOrder, listen: OnStage = nobody) -> Released:
    """Check, read, group, write. Nothing is charged: this is not differential privacy."""
    listen("checking")
    schema = Schema.load(order.schema).read_as(order.dialect)
    schema.require_confirmed()  # it goes out with the bundle
    synth = AnonymousSynthesizer(order.group_size, method=order.method, schema=schema, seed=order.seed)
    for name in order.sensitive:
        if name not in schema.names:
            raise ArgumentError("", "sensitive", f" names {name!r}, which is not a field of the schema.")
    _check_places(order)
    check_disk(1 if order.rows is None else order.rows, len(schema.fields), order.out)
    listen("reading")
    prepared = _prepare(order, synth)
    rows = check_disk(prepared.n if order.rows is None else order.rows, len(schema.fields), order.out)
    listen("measuring")
    synth.fit(prepared)
    listen("writing")
    agreeing = synth.homogeneity() if order.sensitive else {}
    told = tuple((name, agreeing.get(name, synth.groups)) for name in order.sensitive)
    bundle = write_bundle(synth.release(rows), order.out, parquet=order.parquet, force=order.force)
    return replace(released(bundle, rows), agreeing=told)


def _check_places(order: PrivateOrder | AnonymousOrder) -> None:
    """Refuse, before any data is opened, what cannot be written."""
    refuse_same(order.table, order.out)
    check_target(order.out, order.force)
    check_log(order.log, order.table, order.out)


def _prepare(order: PrivateOrder | AnonymousOrder, synth: PrivateSynthesizer | AnonymousSynthesizer) -> Prepared:
    prepared = synth.prepare(order.table)
    write_log(order.log, prepared.log)
    return prepared


def refuse_two_readings(notes: Sequence[Note]) -> None:
    """Stop before the charge where the dates of a column could be read in two ways: no record may say which."""
    for note in notes:
        if note.reason.startswith(TWO_READINGS):
            raise InputError(
                f"the dates of {note.field!r} are not ISO 8601. Name their format with ", "date_format", "."
            )


def refuse_other_spelling(fit: Fit, most: Fraction, unsaid: bool) -> None:
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
                    f"of {field.name!r}, {float(share):.1%} of the cells are no dates as they were said to be written. Nothing "
                    "was charged. Name their format with ",
                    "date_format",
                    ".",
                )
        elif share > most or (semicolons and 2 * seen.grouped > fit.rows - seen.missing):
            what = (
                "no numbers as they were said to be written" if share > most else "numbers such as 1.234, or thousands"
            )
            part = share if share > most else Fraction(seen.grouped, fit.rows)
            raise InputError(
                f"of {field.name!r}, {float(part):.1%} of the cells are {what}. Nothing was charged. Name their marks with ",
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
            f"{len(bad)} of {len(misfits)} columns do not fit the schema: of {worst!r} {float(bad[worst]):.1%} of the "
            f"cells would be moved, emptied or filled (up to {float(most):.1%} is allowed). Nothing was charged. Check "
            "the table to see what happens to each column; mend the schema, or allow more with ",
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
        raise ParameterError(f"the log {path} would lie in the bundle. It is private: choose another place.")
    refuse_in_bundle(path)
    refuse_same(table, path)


def write_log(path: Path | None, log: Any) -> None:
    """Counts from preparing, for the owner's eyes: a file that nobody else can read."""
    if path is None:
        return
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump({"confidential": "computed on true data", **asdict(log)}, file, indent=2, ensure_ascii=False)


# After a release.


@dataclass(frozen=True)
class Evaluated:
    """A bundle beside the true table. Private: it holds true records and has no serializer."""

    rows: evaluation.Comparison
    figures: dict[str, Any]

    def page(self) -> str:
        """The same in pictures: a confidential page."""
        return evaluation_html(self.rows, self.figures)

    def __repr__(self) -> str:
        return f"Evaluated({self.rows!r})"


def evaluate(
    table: Path | Database,
    bundle: Path,
    targets: Sequence[str] = (),
    dialect: Dialect = PLAIN,
    person: str | None = None,
    predicting: bool = True,
) -> Evaluated:
    """Compare a bundle with the true table. Confidential: computed on true data, without noise.

    A bundle that counts persons is compared with a table in which every person counts once: that needs the column of persons.
    """
    if targets:
        evaluation.check_targets(Codec(Schema.load(bundle / "schema.json")), targets)
    rows = evaluation.compare(table, bundle, dialect, person)
    return Evaluated(rows, evaluation.evaluate(rows, targets, predicting))
