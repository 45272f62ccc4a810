"""The noisy tables of a release as plain files: counts of columns, pairs and chosen triples, with the noise's deviation."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from string import ascii_lowercase

import numpy as np

from covey.answers import columns as readable
from covey.answers.release import Release
from covey.core.arrays import Integers
from covey.errors import CannotAnswerError, ParameterError
from covey.measure.query import Columns

COLUMNS_FILE, PAIRS_FILE = "columns.csv", "pairs.csv"
TABLES_FILE = {3: "triples.csv"}  # of so many columns together


def write_tables(release: Release, folder: Path) -> list[Path]:
    """The files, in a new folder; tables of several columns only where they were measured and can be told honestly."""
    evidence = release.evidence  # refused before anything is written
    if folder.exists():
        raise ParameterError(f"{folder} exists. Choose another place.")
    folder.mkdir(parents=True)
    every = range(len(release.codec.names))
    written = [
        write_rows(folder / COLUMNS_FILE, ("column", "category", "count", "sd"), cells(release, combinations(every, 1)))
    ]
    parts: list[tuple[str, int, Iterable[Columns]]] = [(PAIRS_FILE, 2, combinations(every, 2))]
    for degree in sorted({m.query.degree for m in evidence.found.found} - {1, 2}):
        parts.append((TABLES_FILE.get(degree, f"{degree}-columns.csv"), degree, evidence.found.chosen(degree)))
    for name, degree, sets in parts:
        names = [f"{what}_{letter}" for letter in ascii_lowercase[:degree] for what in ("column", "category")]
        with suppress(CannotAnswerError):
            if found := list(cells(release, sets)):
                written.append(write_rows(folder / name, (*names, "count", "sd"), iter(found)))
    return written


def cells(release: Release, sets: Iterable[Columns]) -> Iterator[tuple[object, ...]]:
    """Counts of every cell of some tables; those of a table sum to n."""
    evidence, n, names = release.evidence, release.privacy.n, release.codec.names
    for columns in sets:
        alone = len(columns) == 1
        table = evidence.one_way(columns[0]) if alone else evidence.table(columns)
        maps = [np.arange(len(table))] if alone else evidence.maps(columns)
        labels = [labels_of(release.columns, names[a], m) for a, m in zip(columns, maps, strict=True)]
        each = np.eye(table.size).reshape(table.size, *table.shape)
        sds = np.sqrt(evidence.noise({columns: each}).variance).reshape(table.shape)
        for cell in np.ndindex(*table.shape):
            where = [part for a, own, k in zip(columns, labels, cell, strict=True) for part in (names[a], own[k])]
            yield *where, f"{n * table[cell]:.6g}", f"{n * sds[cell]:.6g}"


def labels_of(columns: readable.Columns, name: str, bins: Integers) -> list[str]:
    """What the bins of a column are called; a number that follows another one has bins of their distance."""
    try:
        return [label for label, _ in columns.groups(name, bins)]
    except CannotAnswerError:
        return [f"distance, bin {k + 1}" for k in range(int(bins.max()) + 1)]


def write_rows(path: Path, names: tuple[str, ...], rows: Iterator[tuple[object, ...]]) -> Path:
    """Rows under their names, as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)
    return path
