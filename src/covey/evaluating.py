"""After a release: a bundle beside the true tables. Confidential, computed on true data without noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from covey.core.tables.events import Linked, LinkedTable, places_within
from covey.errors import InputError, ParameterError
from covey.methods.persons.certify import WORDS, Reference
from covey.preparing import PLAIN, fit_of
from covey.release import evaluation
from covey.release.changed import changed_words
from covey.release.confidential import evaluation_html
from covey.release.numbers import number_words
from covey.release.verify import described_by, tables_of, verify_bundle
from covey.table.codec import Codec
from covey.table.databases import Database
from covey.table.description import Description, is_package
from covey.table.dialects import Dialect
from covey.tree import TreeReader

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
            raise ParameterError("persons with events have figures alone: there is no page of pictures.")
        return evaluation_html(self.rows, self.figures)

    def __repr__(self) -> str:
        return f"Evaluated({self.rows!r})"


def evaluate(  # what is compared, and how
    table: Path | Database,
    bundle: Path,
    targets: Sequence[str] = (),
    dialect: Dialect = PLAIN,
    person: str | None = None,
    predicting: bool = True,
) -> Evaluated:
    """Compare a bundle with the true table, or with those that a package file names.

    A bundle that counts persons is compared with a table in which every person counts once: that needs the column of persons.
    """
    own = described_by(bundle)
    if own.schema is None:
        return _of_persons(table, bundle, own, wanted=bool(targets or person))
    if targets:
        evaluation.check_targets(Codec(own.schema), targets)
    if isinstance(table, Path) and is_package(table):
        [table] = Description.load(table).places(table).values()
    rows = evaluation.compare(table, bundle, dialect, person)
    figures = evaluation.evaluate(rows, targets, predicting)
    return Evaluated(figures, tuple(_words(figures)), rows)


def _words(facts: dict[str, Any]) -> list[str]:
    words = ["CONFIDENTIAL: computed on true data"]
    words += [f"NOT AS IN THE TABLE: {line}" for line in changed_words(facts["changed"])]
    words += number_words(facts["numbers"])
    words += evaluation.out_of_place_words(facts)
    for entry in facts["prediction"] or []:
        true, synthetic = (entry[f"trained_on_{kind}"]["auc"] for kind in ("true", "synthetic"))
        words += [f"AUC for {entry['target']}: {synthetic:.3f} trained on synthetic, {true:.3f} trained on true rows"]
    if facts["prediction"] is None:
        words += ["predictions left out: pip install 'covey[evaluate]'"]
    return words


def _of_persons(file: Path | Database, bundle: Path, own: Description, wanted: bool) -> Evaluated:
    """Total variation by group of tables, beside true persons drawn again."""
    if not isinstance(file, Path) or not is_package(file):
        raise ParameterError("the bundle holds linked tables: give the package file that names the true ones.")
    if wanted:
        raise ParameterError("linked tables have figures alone: leave out --target, --report and --person.")
    verify_bundle(bundle)
    described = Description.load(file)
    if [part.name for part in described.tables] != [part.name for part in own.tables]:
        raise InputError("the package and the bundle name different tables.")
    reader = TreeReader(described)
    read = reader.read(described.places(file))
    changed = fit_of(reader.prepared(read), described).words
    drawn = TreeReader(own).read({part.name: path for part, path in tables_of(bundle, own)}).linked
    binned, sizes = _same_bins(read.linked, drawn)
    several = own.link.at_most > 1
    tables = _all_tables(sizes, own.link.order is not None and several, several)
    found = Reference.of(binned[1], tables, sizes).distances(binned[0])
    again = Reference.of(_resampled(binned[0]), tables, sizes).distances(binned[0])
    figures = {
        "confidential": evaluation.WATERMARK,
        "changed": changed,
        "persons": {"true": binned[0].n, "synthetic": binned[1].n},
        "events": {"true": len(binned[0].events), "synthetic": len(binned[1].events)},
        "total_variation": {WORDS[kind]: value for kind, value in found.items()},
        "total_variation_of_resampled_true_persons": {WORDS[kind]: value for kind, value in again.items()},
    }
    words = [
        "CONFIDENTIAL: computed on true data",
        *(f"NOT AS IN THE TABLES: {line}" for line in changed),
        "mean total variation of tables, and of true persons drawn again:",
        *(f"  {WORDS[kind]}: {value:.4f} ({again[kind]:.4f})" for kind, value in found.items()),
    ]
    return Evaluated(figures, tuple(words))


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
