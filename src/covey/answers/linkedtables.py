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
    (own,) = release.evidence.found.holding((release.evidence.count,))
    for k, (value, sd) in enumerate(zip(own.values, np.broadcast_to(own.sd, own.values.shape), strict=True)):
        yield k, f"{value:.6g}", f"{sd:.6g}"


def _tables(release: LinkedAnswers) -> Iterator[tuple[object, ...]]:
    """Entry by entry; of two events in no order those on and above the diagonal, which hold both orders."""
    evidence, most = release.evidence, release.described.link.at_most
    starts = [*(int(start) for start in count_bins(most)), most + 1]
    number = [str(a) if b == a + 1 else f"{a} to {b - 1}" for a, b in pairwise(starts)]
    sides = [(side, j, name) for side, codec in enumerate(evidence.codecs) for j, name in enumerate(codec.names)]
    names = [*((name, _labels(release, Attribute(side, j, name))) for side, j, name in sides), (NUMBER, number)]
    for m in evidence.found.found:
        for columns in (s for s in m.query.sets if len(s) == 2):
            (one, left), (two, right), table = names[columns[0]], names[columns[1]], m.counts(columns)
            for i, j in np.ndindex(*table.shape):
                if j >= i or not m.query.folded(columns):
                    yield WORDS[m.query.of], one, left[i], two, right[j], f"{table[i, j]:.6g}", f"{m.sd:.6g}"


def _labels(release: LinkedAnswers, own: Attribute) -> list[str]:
    """What the bins of a column are called."""
    evidence, columns, j = release.evidence, release.evidence.binned[own.side], release.evidence.index(own)
    bins = np.arange(columns.size(own.name)) if evidence.number(j) else evidence.factors[j].bins
    return labels_of(columns, own.name, bins)
