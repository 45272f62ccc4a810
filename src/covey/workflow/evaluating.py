"""After a release: a bundle beside the true tables. Confidential, computed on true data without noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from covey.engine.arrays import Array, Integers
from covey.engine.certificate import WORDS
from covey.engine.codes.events import Histories as Persons
from covey.engine.models.persons.law import Reference
from covey.engine.models.persons.method import count_factor
from covey.engine.query import Factor, Query
from covey.errors import ArgumentError, InputError, ParameterError
from covey.evaluation import comparison as evaluation
from covey.release.page import lines
from covey.release.places import SUMS
from covey.release.verify import as_written, described_by, tables_of, verify_bundle
from covey.tables.codec import Codec
from covey.tables.description import Description, is_package
from covey.tables.dialects import Dialect
from covey.tables.reading import Reader
from covey.tables.sources.databases import Database
from covey.workflow.preparing import PLAIN, fit_of

BINS = 20  # of a number in an evaluation: twentieths of the true rows, as for single tables


@dataclass(frozen=True)
class Evaluated:
    """A bundle beside the true tables. Private: it holds true records and has no serializer."""

    figures: dict[str, Any]
    words: tuple[str, ...]
    rows: evaluation.Comparison | None = None

    def page(self) -> str:
        """The same in pictures: a confidential page."""
        if self.rows is None:
            raise ParameterError("there is no page of pictures for persons with events, only figures.")
        return evaluation.evaluation_html(self.rows, self.figures)

    def __repr__(self) -> str:
        return f"Evaluated({self.rows!r})"


def evaluate(  # what is compared, and how
    table: Path | Database,
    bundle: Path,
    targets: Sequence[str] = (),
    dialect: Dialect = PLAIN,
    person: str | None = None,
    predicting: bool = True,
    schema: Path | None = None,
) -> Evaluated:
    """Compare a bundle with the true table, or with those that a package file names, given in either order.

    The table is read as its release read it, unless the dialect or its schema says otherwise. A bundle that counts persons is
    compared with a table in which every person counts once: that needs the column of persons.
    """
    table, bundle = in_order(table, bundle)
    own = described_by(bundle)
    if own.schema is None:
        if person or schema:
            said = "the package already names the column that identifies the person, and its schemas: leave out "
            raise ArgumentError(said, "person" if person else "schema", ".")
        return _of_persons(table, bundle, own, targets, dialect)
    if targets:
        targets = [own.schema.home.get(name, name) for name in targets]  # of a category all its columns
        evaluation.check_targets(Codec(own.schema).names, targets)
    known = None if schema is None else Description.load(schema).unit.schema
    if isinstance(table, Path) and is_package(table):
        described = Description.load(table)
        known, [table] = described.unit.schema, described.places(table).values()
    rows = evaluation.compare(table, bundle, dialect, person, known)
    figures = evaluation.evaluate(rows, targets, predicting)
    return Evaluated(figures, tuple(evaluation.evaluation_words(figures)), rows)


def in_order(table: Any, bundle: Any) -> tuple[Any, Any]:
    """The table and the bundle, whichever came first: a folder with checksums is the bundle."""
    return (bundle, table) if _is_bundle(table) and not _is_bundle(bundle) else (table, bundle)


def _is_bundle(place: Any) -> bool:
    return isinstance(place, str | Path) and (Path(place) / SUMS).is_file()


def _of_persons(
    file: Path | Database, bundle: Path, own: Description, targets: Sequence[str], dialect: Dialect
) -> Evaluated:
    """Total variation by group of tables, beside a fresh sample of true persons; predictions of the targets."""
    named = [f"{p.name}.{p.schema.home.get(field.name, field.name)}" for p, field in map(own.find, targets)]
    columns = [
        f"{part.name}.{name}" for part, codec in zip(own.tables, own.codecs, strict=True) for name in codec.names
    ]
    evaluation.check_targets(columns, named)
    if not isinstance(file, Path) or not is_package(file):
        raise ParameterError("the bundle holds several tables: give the package file that names the real ones.")
    facts = verify_bundle(bundle).facts
    described = Description.load(file)
    if [part.name for part in described.tables] != [part.name for part in own.tables]:
        raise InputError("the package and the bundle name different tables.")
    # Limits and categories are those of the bundle, which may have been learned; how cells are written the package says too.
    places, schemas = described.places(file), []
    for part, known in zip(as_written(own, facts).tables, described.tables, strict=True):
        key = part.link if part.name in places else None
        schemas.append(evaluation.written_so(places.get(part.name), part.schema, dialect, known.schema, key))
    reader = Reader(described.with_schemas(schemas))
    true, read = reader.open(places)
    changed = list(map(str, fit_of(reader.sealed(true, read)).findings))
    synthetic, _ = Reader(own).open({part.name: path for part, path in tables_of(bundle, own)})
    groups = compared_tables(true, synthetic, own.link.order is not None)
    found = Reference.of(synthetic, groups).distances(true)
    fresh = true.resampled(true.n, np.random.default_rng(0))  # what sampling alone would do
    again = Reference.of(fresh, groups).distances(true)
    factors = groups["across"][0].factors
    rows = _one_event_each(true, factors), _one_event_each(synthetic, factors)
    chosen = {columns.index(name): name for name in named}
    predicted = evaluation.predicted(*rows, chosen, [factor.size for factor in factors.values()])
    figures = {
        "confidential": evaluation.WATERMARK,
        "changed": changed,
        "prediction": predicted,
        "persons": {"true": true.n, "synthetic": synthetic.n},
        "events": {"true": len(true.events), "synthetic": len(synthetic.events)},
        "total_variation": {WORDS[kind]: value for kind, value in found.items()},
        "total_variation_of_resampled_true_persons": {WORDS[kind]: value for kind, value in again.items()},
    }
    return Evaluated(figures, tuple(lines("evaluation_persons.txt", figures=figures)))


def compared_tables(true: Persons, drawn: Persons, ordered: bool) -> dict[str, list[Query]]:
    """Every table of two columns, by kind: columns of many codes in twentieths of the true rows."""
    first, several = true.persons.shape[1], true.most > 1
    both = zip((*true.persons.T, *true.events.T), (*drawn.persons.T, *drawn.events.T), strict=True)
    factors = {a: _twentieths(*codes) for a, codes in enumerate(both)}
    count = len(factors)
    factors[count] = count_factor(true.most)
    own, its = [*range(first), count], range(first, count)
    sets = {
        "person": list(combinations(own, 2)),
        "across": [(a, b) for a in own for b in its],
        "event": list(combinations(its, 2)),
        "step": [(a, a) for a in its if ordered and several],
        "two": [(a, a) for a in its if several],
    }
    events = Query([(count,)], {count: Factor.plain(true.most + 1)}, of="person", total=False)
    tables = {kind: [Query(found, factors, of=kind, total=False)] for kind, found in sets.items() if found}
    return {"events": [events]} | tables


def _twentieths(true: Array, drawn: Array) -> Factor:
    """The bins of a column."""
    size = 1 + max(int(true.max(initial=0)), int(drawn.max(initial=0)))
    if size < 3 * BINS:
        return Factor.plain(size)
    cuts = np.unique(np.quantile(true.astype(np.int64), np.arange(1, BINS) / BINS, method="higher"))
    edges = np.concatenate([[0], cuts[cuts > 0], [size]])
    return Factor(edges, np.arange(len(edges) - 1))


def _one_event_each(linked: Persons, factors: Mapping[int, Factor]) -> Integers:
    """Persons who have events, in bins: their own columns, those of one of their events by chance, and how many they have."""
    having = np.flatnonzero(linked.counts)
    starts = (np.cumsum(linked.counts) - linked.counts)[having]
    chosen = starts + (np.random.default_rng(0).random(len(having)) * linked.counts[having]).astype(np.int64)
    codes = [*linked.persons[having].T, *linked.events[chosen].T, linked.counts[having]]
    return np.column_stack([factor.at(own) for factor, own in zip(factors.values(), codes, strict=True)])
