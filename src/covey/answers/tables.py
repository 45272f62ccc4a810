"""The noisy tables of a release as plain files: counts of columns, pairs and chosen triples, with the noise's deviation."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from covey.answers.columns import Columns
from covey.answers.release import Release
from covey.answers.triples import three_ways
from covey.core.arrays import Integers
from covey.errors import CannotAnswerError, ParameterError

COLUMNS_FILE, PAIRS_FILE, TRIPLES_FILE = "columns.csv", "pairs.csv", "triples.csv"


def write_tables(release: Release, folder: Path) -> list[Path]:
    """The files, in a new folder; pairs and triples only where they were measured and can be told honestly."""
    release.evidence  # noqa: B018 # refused before anything is written
    if folder.exists():
        raise ParameterError(f"{folder} exists. Choose another place.")
    folder.mkdir(parents=True)
    written = [write_rows(folder / COLUMNS_FILE, ("column", "category", "count", "sd"), one_way(release))]
    names = ["column_a", "category_a", "column_b", "category_b", "column_c", "category_c"]
    with suppress(CannotAnswerError):
        found = list(pairs(release))
        written.append(write_rows(folder / PAIRS_FILE, (*names[:4], "count", "sd"), iter(found)))
    if three_ways(release):
        written.append(write_rows(folder / TRIPLES_FILE, (*names, "count", "sd"), triples(release)))
    return written


def one_way(release: Release) -> Iterator[tuple[object, ...]]:
    """Counts of every category of every column; they sum to n."""
    evidence, n = release.evidence, release.privacy.n
    for a, name in enumerate(release.codec.names):
        labels = labels_of(release.columns, name, np.arange(evidence.sizes[a]))
        sds = np.sqrt(evidence.noise({a: np.eye(len(labels))}, {}).variance)
        for label, share, sd in zip(labels, evidence.one_way(a), sds, strict=True):
            yield name, label, f"{n * share:.6g}", f"{n * sd:.6g}"


def pairs(release: Release) -> Iterator[tuple[object, ...]]:
    """Counts of every pair of bins of every two columns."""
    evidence, n, names = release.evidence, release.privacy.n, release.codec.names
    groups = [labels_of(release.columns, name, evidence.bins(a)) for a, name in enumerate(names)]
    for a in range(len(names)):
        for b in range(a + 1, len(names)):
            table = evidence.pair(a, b)
            each = np.eye(table.size).reshape(table.size, *table.shape)
            sds = np.sqrt(evidence.noise({}, {(a, b): each}).variance).reshape(table.shape)
            for i, j in np.ndindex(*table.shape):
                yield names[a], groups[a][i], names[b], groups[b][j], f"{n * table[i, j]:.6g}", f"{n * sds[i, j]:.6g}"


def triples(release: Release) -> Iterator[tuple[object, ...]]:
    """Counts of every cell of every triple that was chosen."""
    n, names = release.privacy.n, release.codec.names
    for found in three_ways(release):
        parts = zip(found.triple, found.levels, strict=True)
        labels = [labels_of(release.columns, names[a], levels) for a, levels in parts]
        one = np.zeros(found.shares.shape)
        one[0, 0, 0] = 1.0
        sd = found.noise(one)[0] ** 0.5  # the same in every cell
        for cell in np.ndindex(*found.shares.shape):
            where = [part for a, own, k in zip(found.triple, labels, cell, strict=True) for part in (names[a], own[k])]
            yield *where, f"{n * found.shares[cell]:.6g}", f"{n * sd:.6g}"


def labels_of(columns: Columns, name: str, bins: Integers) -> list[str]:
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
