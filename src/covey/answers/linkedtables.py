"""The noisy tables of persons with events as plain files, in persons, with the deviation of the noise."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from covey.answers.linked import LinkedAnswers
from covey.answers.linkedevidence import Attribute
from covey.answers.tables import labels_of, write_rows
from covey.core.tables.events import count_bins
from covey.errors import ParameterError
from covey.methods.persons.certify import WORDS
from covey.methods.persons.measure import folded

EVENTS_FILE, TABLES_FILE = "events.csv", "tables.csv"
NUMBER = "number of events"


def write_linked_tables(release: LinkedAnswers, folder: Path) -> list[Path]:
    """The number of events, and all tables of two attributes, in a new folder."""
    if folder.exists():
        raise ParameterError(f"{folder} exists. Choose another place.")
    folder.mkdir(parents=True)
    names = ("about", "column_a", "category_a", "column_b", "category_b", "persons", "sd")
    return [
        write_rows(folder / EVENTS_FILE, ("number_of_events", "persons", "sd"), _counts(release)),
        write_rows(folder / TABLES_FILE, names, _tables(release)),
    ]


def _counts(release: LinkedAnswers) -> Iterator[tuple[object, ...]]:
    own = release.fitted.measured.counts
    for k, (value, sd) in enumerate(zip(own.counts, own.sds, strict=True)):
        yield k, f"{value:.6g}", f"{sd:.6g}"


def _tables(release: LinkedAnswers) -> Iterator[tuple[object, ...]]:
    """Entry by entry; of two events in no order those on and above the diagonal, which hold both orders."""
    most, sides = release.package.link.at_most, [codec.names for codec in release.evidence.codecs]
    starts = [*(int(start) for start in count_bins(most)), most + 1]
    number = [str(a) if b == a + 1 else f"{a} to {b - 1}" for a, b in pairwise(starts)]
    labels = [
        [_labels(release, Attribute(side, j, name)) for j, name in enumerate(own)] for side, own in enumerate(sides)
    ]
    person = [*zip(sides[0], labels[0], strict=True), (NUMBER, number)]
    event = [*zip(sides[1], labels[1], strict=True)]
    for found in release.fitted.measured.tables:
        kind = found.table.kind
        one = (person if kind in ("person", "across") else event)[found.table.one]
        two = (person if kind == "person" else event)[found.table.other]
        for i, j in np.ndindex(*found.values.shape):
            if j >= i or not folded(found.table):
                yield WORDS[kind], one[0], one[1][i], two[0], two[1][j], f"{found.values[i, j]:.6g}", f"{found.sd:.6g}"


def _labels(release: LinkedAnswers, own: Attribute) -> list[str]:
    """What the bins of a column are called."""
    measured, j = release.fitted.measured.bins, release.evidence.index(own)
    columns = release.evidence.binned[own.side]
    bins = measured.maps[j] if measured.edges[j] is None else np.arange(columns.size(own.name))
    return labels_of(columns, own.name, bins)
