"""The noisy tables of a release as plain files: counts of columns, pairs and chosen triples, with the noise's deviation."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path
from string import ascii_lowercase

import numpy as np

from covey.engine.arrays import Integers
from covey.engine.certificate import THREE, WORDS
from covey.engine.measurement import Measurement
from covey.engine.query import OWN, Columns
from covey.errors import CannotAnswerError, ParameterError
from covey.paths import local_output
from covey.release.answers.release import Release
from covey.release.model import NUMBER
from covey.tables.columns import guarded

COLUMNS_FILE, PAIRS_FILE = "columns.csv", "pairs.csv"
OWN_FILE = "own-{}.csv"  # of a query whose kernel counts a unit more than once
TABLES_FILE = {3: "triples.csv"}  # of so many columns together


def write_tables(release: Release, folder: Path) -> list[Path]:
    """The files, in a new folder; tables of several columns only where they were measured and can be told honestly.

    Of persons with events counts are of persons, and tables of two columns say what of a person they are about.
    """
    local_output(folder)
    found = release.evidence.found  # refused before anything is written
    if folder.exists():
        raise ParameterError(f"{folder} exists. Choose another place.")
    folder.mkdir(parents=True)
    every = [*release.columns.places, *([len(release.columns.names)] if release.several else [])]
    written = [
        write_rows(folder / COLUMNS_FILE, ("column", "category", "count", "sd"), cells(release, combinations(every, 1)))
    ]
    for degree in sorted({2, *(m.query.degree for m in found.of_units)} - {1}):
        sets: Iterable[Columns] = combinations(every, 2) if degree == 2 else found.chosen(degree)
        kinds = dict.fromkeys(m.query.of for m in found.of_units if m.query.degree == degree) if release.several else ()
        names = [f"{what}_{letter}" for letter in ascii_lowercase[:degree] for what in ("column", "category")]
        rows: list[tuple[object, ...]] = []
        with suppress(CannotAnswerError):
            for kind in kinds:
                own = [
                    s for m in found.of_units if m.query.of == kind and m.query.degree == degree for s in m.query.sets
                ]
                own = [s for s in own if {*s} <= {*every}]
                rows += [(WORDS[kind if degree < 3 else THREE], *row) for row in cells(release, own, (kind,))]
            rows = rows or list(cells(release, sets))
        if rows:
            head = (*(["about"] if kinds else []), *names, "count", "sd")
            place = folder / (PAIRS_FILE if degree == 2 else TABLES_FILE.get(degree, f"{degree}-columns.csv"))
            written.append(write_rows(place, head, iter(rows)))
    further = [m for m in found.found if m.query.of == OWN]
    for k, measurement in enumerate(further, 1):
        names = [
            f"{what}_{letter}"
            for letter in ascii_lowercase[: measurement.query.degree]
            for what in ("column", "category")
        ]
        rows_of_it = own_cells(release, measurement)
        written.append(write_rows(folder / OWN_FILE.format(k), (*names, "count", "sd"), rows_of_it))
    return written


def own_cells(release: Release, measurement: Measurement) -> Iterator[tuple[object, ...]]:
    """What a kernel of one's own counted, as it was measured: its cells are no shares of units."""
    query, evidence, names = measurement.query, release.evidence, (*release.columns.called, NUMBER)
    for columns in query.sets:
        table, sds = measurement.counts(columns), np.broadcast_to(measurement.sds(columns), query.shape(columns))
        labels = [_labels(release, a, query.factors[a].at(evidence.margins[a].edges[:-1])) for a in columns]
        for cell in np.ndindex(*table.shape):
            where = [part for a, own, k in zip(columns, labels, cell, strict=True) for part in (names[a], own[k])]
            yield *map(guarded, where), f"{table[cell]:.6g}", f"{measurement.per * sds[cell]:.6g}"


def cells(release: Release, sets: Iterable[Columns], of: tuple[str, ...] | None = None) -> Iterator[tuple[object, ...]]:
    """Counts of every cell of some tables, of these kinds alone; of two events in no order what has both orders."""
    evidence = release.evidence if of is None else replace(release.evidence, of=of)
    n, names = release.privacy.n, (*release.columns.called, NUMBER)
    for columns in sets:
        alone = len(columns) == 1
        table = evidence.one_way(columns[0]) if alone else evidence.table(columns)
        maps = [np.arange(len(table))] if alone else evidence.maps(columns)
        labels = [_labels(release, a, m) for a, m in zip(columns, maps, strict=True)]
        each = {columns: np.eye(table.size).reshape(table.size, *table.shape)}
        sds = np.sqrt(evidence.noise(each).variance).reshape(table.shape)
        folded = of == ("two",) and columns[0] == columns[1]
        for cell in np.ndindex(*table.shape):
            if folded and cell[1] < cell[0]:
                continue
            where = [part for a, own, k in zip(columns, labels, cell, strict=True) for part in (names[a], own[k])]
            yield *map(guarded, where), f"{n * table[cell]:.6g}", f"{n * sds[cell]:.6g}"


def _labels(release: Release, a: int, bins: Integers) -> list[str]:
    """What the bins of an attribute are called."""
    if a < len(release.columns.names):
        try:
            return [label for label, _ in release.columns.groups(release.columns.called[a], bins)]
        except CannotAnswerError:  # a number that follows another one has bins of their distance
            return [f"distance, bin {k + 1}" for k in range(int(bins.max()) + 1)]
    members = [np.flatnonzero(bins == k) for k in range(int(bins.max()) + 1)]
    return [f"{own[0]} to {own[-1]}" if len(own) > 1 else f"{own[0]}" for own in members]


def write_rows(path: Path, names: tuple[str, ...], rows: Iterator[tuple[object, ...]]) -> Path:
    """Rows under their names, as CSV."""
    with local_output(path).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(chain([names], rows))
    return path
