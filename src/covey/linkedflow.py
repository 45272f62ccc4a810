"""The steps of `workflow` for persons with events: draft a package, check, plan, release and evaluate two linked tables.

The order of a release is that of `workflow.release`: public parameters and the ledger's remaining budget first, then both tables
are read, encoded and linked, then the charge, and only then noise and files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from covey.charging import Account, asked, carry_out
from covey.core.tables.linked import Linked, LinkedTable, places_within
from covey.errors import ArgumentError, InputError, ParameterError, nearest
from covey.linking import PackageReader, places_of
from covey.methods.persons.certify import WORDS, Reference
from covey.methods.persons.plan import LinkedPlan, few_persons
from covey.orders import OnStage, PrivateOrder, Released, agreed, nobody
from covey.preparing import Fit
from covey.privacy.budget import exact, make_budget
from covey.privacy.unit import ALL_ROWS
from covey.release.evaluation import WATERMARK
from covey.release.linkedverify import DESCRIBED, table_paths
from covey.release.places import check_disk, check_target, refuse_same
from covey.release.verify import verify_bundle
from covey.synthesizers.linked import LinkedSynthesizer
from covey.table.codec import EncodeLog
from covey.table.dialects import Dialect
from covey.table.document import read_document
from covey.table.drafting import Draft
from covey.table.drafting import draft as look
from covey.table.package import MOST_EVENTS, Package, Resource, persons_beside
from covey.table.persons import named
from covey.table.resources import BARE, LONGEST
from covey.table.schema import Schema
from covey.table.sources import SIZE_LIMIT
from covey.workflow import check_log, refuse_misfits, write_log

# What an order of linked tables may say; all else must be left at its default.
TAKEN = {
    *("table", "out", "epsilon", "delta", "dataset", "rows", "parquet", "confirm_large_epsilon", "accept_misfits"),
    *("seed", "log", "ledger", "force", "purpose", "about"),
}
# What a draft leaves to its reader.
OF_EVENTS = (
    "at_most {}: the largest number there is; if it is public knowledge that a person has fewer events, say so",
    "order: name the column of the events that orders them, if there is one, and require it",
)
BINS = 20  # of a number in an evaluation: twentieths of the true rows, as for single tables


# Before a release.


@dataclass(frozen=True)
class PackageDraft:
    """A package that fits tables, what was looked at, and what was chosen and why. Private data until it is confirmed."""

    package: Package
    found: tuple[Draft, ...]  # of persons and of events, or of events alone
    notes: tuple[str, ...]


def draft_package(
    tables: Mapping[str, Path], person: str | None, dialect: Dialect, size_limit: int = SIZE_LIMIT
) -> PackageDraft:
    """A package that fits two files, persons first, by the names that their owner calls them.

    `person` names the column of the events that says whose each is; without it the only one that could be is taken.

    `at_most` is the largest number there is, whatever the tables hold: it is public, and nobody is asked to confirm it.
    """
    names = [called(file) for file in tables]
    found = [look(path, dialect, size_limit) for path in tables.values()]
    key, link = find_key(found[0].table.columns, found[1].table.columns, names, person)
    parts = [
        Resource(name, _without(one, column), column, file)
        for name, one, column, file in zip(names, found, (key, link), tables, strict=True)
    ]
    notes = [
        f"{names[1]}.{link} → {names[0]}.{key}: the key; both columns are left out, and synthetic persons are numbered",
        *(note.format(MOST_EVENTS) for note in OF_EVENTS),
    ]
    notes += [str(note) for one in found for note in one.notes if note.field not in (key, link)]
    return PackageDraft(Package(parts[0], parts[1], MOST_EVENTS), tuple(found), tuple(notes))


def draft_alone(
    tables: Mapping[str, Path], person: str, dialect: Dialect, size_limit: int = SIZE_LIMIT
) -> PackageDraft:
    """The same for one file of events, a column of which says whose each is."""
    [(file, path)] = tables.items()
    name, found = called(file), look(path, dialect, size_limit)
    if person not in found.table.columns:
        raise ParameterError(
            f"{file} has no column {person!r}. {nearest(person, list(found.table.columns), 'columns')}"
        )
    notes = [
        f"{name}.{person}: whose each row is; it is left out, and synthetic persons are numbered",
        *(note.format(MOST_EVENTS) for note in OF_EVENTS),
        *(str(note) for note in found.notes if note.field != person),
    ]
    own = Resource(name, _without(found, person), person, file)
    persons = Resource(persons_beside(name), BARE, "id")
    return PackageDraft(Package(persons, own, MOST_EVENTS, alone=True), (found,), tuple(notes))


def called(file: str) -> str:
    """The name of a table in a package, from that of its file."""
    return re.sub(r"[^\w-]+", "_", file.split(".")[0])[:LONGEST] or "table"


def _without(found: Draft, column: str) -> Schema:
    """The drafted schema of a table without its key."""
    fields = tuple(field for field in found.fields if field.name != column)
    if not fields:
        raise ParameterError(f"a table has no column besides its key {column!r} that a draft could describe.")
    return Schema(fields, found.missing_values, drafted=True, dialect=found.dialect)


def find_key(persons: Any, events: Any, names: list[str], person: str | None = None) -> tuple[str, str]:
    """The column that has a value of its own in every row of persons, and the one of events whose values are all among these.

    Whom a release protects hangs on it, so that nothing is guessed: of several that could be, `person` names the events', and
    where it could refer to several of persons also which ("patient=id").
    """
    sets = {name: _values(column) for name, column in persons.items()}
    keys = {name: set(found) for name, found in sets.items() if None not in found and len(set(found)) == len(found)}
    link, _, key = (person or "").partition("=")
    links = []
    for name, column in events.items():
        own = set(_values(column)) - {None}
        links += [(key, name) for key, there in keys.items() if own and own <= there]
    if not links:
        raise InputError(
            f"no column of {names[1]} holds only values that {names[0]} has once each: which column names the person? Name the "
            "table of persons first, and see that each person has one row there."
        )
    left = [pair for pair in links if link in ("", pair[1]) and key in ("", pair[0])]
    said = ", ".join(f"{name}={key}" for key, name in left or links)
    if not left:
        raise ParameterError(f"{person} does not link {names[1]} to {names[0]}. What could: {said}.")
    if len(left) > 1:
        raise ParameterError(
            f"several columns of {names[1]} could name the person in {names[0]}: {said}. Say which it is (--person on the "
            "command line): it decides whose rows are protected together."
        )
    return left[0]


def _values(column: Any) -> list[str | None]:
    words, places = named(column, ("",))
    return [words[place] for place in places]


@dataclass(frozen=True)
class LinkedFit:
    """How two tables fit a package. Computed on true data: for the owner alone."""

    persons: Fit
    events: Fit
    cut: int
    broken: int = 0

    @property
    def words(self) -> list[str]:
        """What would happen to cells and rows."""
        said = [f"{name}.{line}" for name, fit in self.named for line in fit.words]
        said += [f"{self.cut:,} of {self.events.rows:,} events are beyond at_most and left out"] * (self.cut > 0)
        broken = f"{self.broken:,} of {self.events.rows:,} events break a rule across the tables: no synthetic one will"
        return said + [broken] * (self.broken > 0)

    @property
    def named(self) -> list[tuple[str, Fit]]:
        """Both, by what they are."""
        return [("persons", self.persons), ("events", self.events)]

    @property
    def misfits(self) -> dict[str, Fraction]:
        """Shares of cells, by column, and of events that would be left out."""
        found = {f"{name}.{column}": share for name, fit in self.named for column, share in fit.misfits.items()}
        return found | {"events beyond at_most": Fraction(self.cut, max(1, self.events.rows))}


def check_package(file: Path) -> LinkedFit:
    """`check_tables` for a package file, whose paths say where the tables lie."""
    package = Package.load(file)
    return check_tables(package, places_of(package, file))


def check_tables(package: Package, tables: Mapping[str, Any]) -> LinkedFit:
    """Read both tables as the package says, confirmed or not, and count what does not fit. Nothing is charged."""
    return _fit_of(PackageReader(package).prepare(tables))


def _fit_of(prepared: Any) -> LinkedFit:
    one, two = prepared.package.resources
    persons = Fit(prepared.n, prepared.logs[0], one.schema)
    return LinkedFit(persons, Fit(prepared.read, prepared.logs[1], two.schema), prepared.cut, prepared.broken)


@dataclass(frozen=True)
class LinkedPrediction:
    """What a release of linked tables would be like, from public sizes alone."""

    persons: int
    epsilon: float
    tables: dict[str, int]
    noise: float  # of an entry of a table, as a share of the persons
    unlinked: float  # of a table of one event, if events were released alone with the same budget
    warning: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def plan_package(package: Package, n: int, epsilon: Any, delta: Any) -> LinkedPrediction:
    """Tables, noise and advice for n persons, from the package alone."""
    reader, budget = PackageReader(package), make_budget(epsilon, delta, n=n, persons=True)
    _, events = reader.attributes
    plan = LinkedPlan(*reader.attributes, package.at_most, package.order is not None, package.timing)
    tables, share = plan.tables(n, budget), plan.shares(n, budget, Fraction(5, 100))["tables"]
    kinds = [table.kind for table, _ in tables]
    alone = LinkedPlan((), events, 1, False)
    pairs = [weight for table, weight in alone.tables(n, budget) if table.kind == "event"]
    q = max(1, len(pairs))
    one = budget.part(Fraction(3, 4)).deviation(2 * q, 2 * q)
    return LinkedPrediction(
        n,
        float(budget.epsilon),
        {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)},
        plan.table_sd(n, budget.part(share)) / n,
        one / n,
        few_persons(n, budget),
    )


# A release.


def release_package(
    order: PrivateOrder,
    listen: OnStage = nobody,
    before_charge: Callable[[], None] = agreed,
) -> Released:
    """Check, read, charge, measure, write; `order.table` is the package file, whose paths say where the tables lie."""
    listen("checking")
    file, (epsilon, delta) = _package_file(order), asked(order)
    package = Package.load(file)
    synth = LinkedSynthesizer(epsilon, delta, schema=package, seed=order.seed)
    tables, width = places_of(package, file), len(package.fields)
    for path in (file, *tables.values()):
        refuse_same(path, order.out)
        check_log(order.log, path, order.out)
    check_target(order.out, order.force)
    account = Account.of(order, ALL_ROWS)
    account.check(synth.rho)
    listen("reading")
    prepared = synth.prepare(tables)
    write_log(order.log, _both_logs(package, prepared.logs))
    refuse_misfits(_fit_of(prepared).misfits, exact(order.accept_misfits, "accept_misfits"))
    synth.check(prepared.n)
    rows = check_disk(prepared.n if order.rows is None else order.rows, width, order.out)
    bundle = carry_out(account, synth, prepared, rows, (listen, before_charge))
    certificate = stated_in(bundle) if synth.certificate else None
    return Released(bundle, rows, str(synth.privacy), certificate)


def _both_logs(package: Package, logs: tuple[EncodeLog, EncodeLog]) -> EncodeLog:
    """What encoding met in both tables, by table.field."""
    one, two = logs
    both = zip(package.resources, logs, strict=True)
    columns = {f"{part.name}.{name}": seen for part, log in both for name, seen in log.columns.items()}
    ragged = one.short_rows + two.short_rows, one.long_rows + two.long_rows
    return EncodeLog(columns, *ragged, (*one.ignored, *two.ignored))


def _package_file(order: PrivateOrder) -> Path:
    """The package of an order; what does not go with one is refused by its name."""
    for field in fields(order):
        if field.name not in TAKEN and getattr(order, field.name) != (
            None if field.name == "schema" else field.default
        ):
            raise ArgumentError(
                "a package says all about its tables, and its release does not take this yet: leave out ",
                field.name,
                ".",
            )
    if not isinstance(order.table, Path):
        raise ParameterError("a package is a file.")
    return order.table


# After a release.


def stated_in(bundle: Path) -> str:
    """What a bundle's certificate says of its very tables, or where there are too many of the draw that was compared."""
    said = read_document(bundle / "certificate.json")
    return str(said.get("this_release", said)["sentence"])


def is_linked(bundle: Path) -> bool:
    """Whether a bundle holds persons with events."""
    return (bundle / DESCRIBED).is_file()


def evaluate_package(file: Path, bundle: Path) -> dict[str, Any]:
    """Total variation by group of tables, beside true persons drawn again. Confidential: computed on true data."""
    verify_bundle(bundle)
    true_package, own = Package.load(file), Package.load(bundle / DESCRIBED)
    if [part.name for part in true_package.resources] != [part.name for part in own.resources]:
        raise InputError("the package and the bundle name different tables.")
    read = PackageReader(true_package).read(places_of(true_package, file))
    fits = [
        Fit(n, log, part.schema)
        for n, log, part in zip((read.linked.n, read.events), read.logs, true_package.resources, strict=True)
    ]
    true, changed = read.linked, LinkedFit(fits[0], fits[1], read.events - len(read.linked.owner), 0).words
    paths = dict(zip((part.name for part in own.resources), table_paths(bundle, own), strict=True))
    binned, sizes = _same_bins(true, PackageReader(own).read(paths).linked)
    tables = _all_tables(sizes, own.order is not None and own.at_most > 1, own.at_most > 1)
    figures = Reference.of(binned[1], tables, sizes).distances(binned[0])
    again = Reference.of(_resampled(binned[0]), tables, sizes).distances(binned[0])
    return {
        "confidential": WATERMARK,
        "changed": changed,
        "persons": {"true": binned[0].n, "synthetic": binned[1].n},
        "events": {"true": len(binned[0].events), "synthetic": len(binned[1].events)},
        "total_variation": {WORDS[kind]: value for kind, value in figures.items()},
        "total_variation_of_resampled_true_persons": {WORDS[kind]: value for kind, value in again.items()},
    }


def _same_bins(true: Linked, drawn: Linked) -> tuple[list[Linked], tuple[tuple[int, ...], tuple[int, ...]]]:
    """Both with columns of many codes in twentieths of the true rows."""
    tables, sizes = [], []
    for name in ("persons", "events"):
        both, own = [getattr(linked, name).astype(np.int64) for linked in (true, drawn)], []
        for j in range(both[0].shape[1]):
            if max(int(codes[:, j].max(initial=0)) for codes in both) >= 3 * BINS:
                cuts = np.unique(np.quantile(both[0][:, j], np.arange(1, BINS) / BINS, method="higher"))
                for codes in both:
                    codes[:, j] = np.searchsorted(cuts, codes[:, j], side="right")
            own.append(1 + max(int(codes[:, j].max(initial=0)) for codes in both))
        tables.append(both)
        sizes.append(tuple(own))
    found = [linked.recoded(tables[0][k], tables[1][k]) for k, linked in enumerate((true, drawn))]
    return found, (sizes[0], sizes[1])


def _all_tables(sizes: tuple[tuple[int, ...], tuple[int, ...]], ordered: bool, several: bool) -> list[LinkedTable]:
    own, its = range(len(sizes[0]) + 1), range(len(sizes[1]))
    found = [LinkedTable("person", a, b) for a in own for b in own if a < b]
    found += [LinkedTable("across", a, b) for a in own for b in its]
    found += [LinkedTable("event", a, b) for a in its for b in its if a < b]
    found += [LinkedTable("step", a, a) for a in its if ordered]
    return found + [LinkedTable("two", a, a) for a in its if several]


def _resampled(true: Linked) -> Linked:
    """As many true persons, drawn with replacement: what sampling alone would do."""
    chosen = np.sort(np.random.default_rng(0).integers(0, true.n, true.n))
    counts = true.counts
    starts = np.cumsum(counts) - counts
    owner = np.repeat(np.arange(true.n), counts[chosen])
    rows = starts[chosen][owner] + places_within(owner)
    return Linked(true.persons[chosen], true.events[rows], owner, true.most)


__all__ = ["check_package", "draft_package", "evaluate_package", "plan_package", "release_package"]
