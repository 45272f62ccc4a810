"""True against synthetic: confidential figures for the steward, computed on true data without noise, and their page."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from itertools import combinations
from math import comb, prod
from pathlib import Path
from typing import Any

import numpy as np

from covey.engine.arrays import Bits, Floats, Integers
from covey.engine.codes.counts import moments
from covey.engine.models.predict import small_groups
from covey.engine.points import one_hot
from covey.engine.unit import ALL_ROWS
from covey.errors import ArgumentError, InputError, MissingExtraError
from covey.evaluation.changed import Changes
from covey.markup import shorten
from covey.release.charts import percent
from covey.release.facts import promised
from covey.release.numbers import number_figures, quantile_tables, there
from covey.release.page import Part, lines, render, section
from covey.release.pictures import beside
from covey.release.places import private_file, refuse_in_bundle
from covey.release.summary import Column, describe, every_so_many, point
from covey.release.verify import as_written, described_by, rows_path, verify_bundle
from covey.synthesizers.proposed_relations import LOOKED_AT, MOST_COLUMNS, alone, breaks, exact_relations
from covey.tables.codec import Codec, Grid
from covey.tables.columns import named
from covey.tables.dialects import Dialect
from covey.tables.drafting import has_layout, layout
from covey.tables.schema import Schema
from covey.tables.sources import read_table

WATERMARK = "confidential: computed on real data"
TABLES = 1000  # so many tables of each degree are compared, at most
WORST = 10  # pairs that are listed: as many as someone looks into
COMPARED_CATEGORIES = 1500  # beyond so many categories the covariance is not compared
COMPARED = 2_000_000  # rows that persons are spread over, at most, so that each has as many
LEARNED = 20_000  # rows that a classifier learns from, at most
TARGETS = 3  # fields that are predicted unless some are named: each takes seconds
CLASSES = 12  # a field of more categories is no outcome that a classifier is judged by
CHARTS = 36  # columns that are drawn, the worst ones: a page that still opens at once
MAPPED = 40  # columns on the map of pairs: beyond it their names can no longer be read
CELLS = 6  # of each of the worst pairs
LISTED = 20  # contradictions that the page shows
ALARMS = 5  # that stand above all else: more would not be read
KINDS = ("real", "synthetic")


@dataclass(frozen=True)
class Comparison:
    """Cells of the true table and of the synthetic one, as the schema reads them; what it changed. It has no serializer."""

    codec: Codec
    read: Integers
    drawn: Integers
    bundle: dict[str, Any]
    changes: Changes = Changes()  # noqa: RUF009 # frozen

    @cached_property
    def true(self) -> Integers:
        """Category codes of the true table."""
        return codes_of(self.codec, self.read)

    @cached_property
    def synthetic(self) -> Integers:
        """Category codes of the synthetic table."""
        return codes_of(self.codec, self.drawn)

    @cached_property
    def cells(self) -> tuple[Integers, Integers]:
        """Cells of both tables, those of true numbers as they stand, beyond their limits too."""
        return self.changes.stand(self.codec, self.read), self.drawn

    def tables(self, as_read: bool = False) -> tuple[Integers, Integers, tuple[int, ...]]:
        """Codes of both tables for tables of counts, and their numbers.

        A true cell that the schema changed has a code of its own, which no synthetic row has; `as_read` it counts as what the
        schema made of it.
        """
        cells = (self.read, self.drawn) if as_read else self.cells
        true, synthetic, sizes = quantile_tables(self.codec, (self.true, self.synthetic), cells)
        own = list(sizes)
        for j, name in enumerate(self.codec.names):
            lost = None if as_read else self.changes.lost(name)
            if lost is not None:
                true[lost, j] = own[j]
                own[j] += 1
        return true, synthetic, tuple(own)

    def __repr__(self) -> str:
        return f"Comparison({len(self.true)} real and {len(self.synthetic)} synthetic rows)"


def compare(
    table: Any, folder: Path, dialect: Dialect | None = None, person: str | None = None, known: Schema | None = None
) -> Comparison:
    """Read the true table under the bundle's schema, and the bundle's rows.

    How the true table is written, the dialect and `known` say; where they do not, it is as its release read it.
    """
    facts = dict(verify_bundle(folder).facts)
    described = described_by(folder)
    schema = described.unit.schema
    codec = Codec(schema)
    if person is None and facts.get("rows_per_person") == ALL_ROWS:
        said = "this bundle counts persons, not rows. Give "
        raise ArgumentError(said, "person", ", the column that identifies the person.")
    [source] = as_written(described, facts).tables
    written = written_so(table, source.schema, dialect or Dialect(), known, person)
    read = read_table(table, written.beside(person))
    reader = Codec(written)
    true, _ = reader.encode(read, "cells")
    changes = Changes.of(reader, read, true, binned="group_size" not in facts)
    if person is not None:
        places = once_a_person(*named(read.columns[person], written.missing_values))
        true, changes = true[places], changes.taking(places)
    synthetic, _ = codec.encode(read_table(rows_path(folder), schema), "cells")
    return Comparison(codec, true, synthetic, facts, changes)


def written_so(
    table: Any, source: Schema, said: Dialect, known: Schema | None = None, key: str | None = None
) -> Schema:
    """The schema under which a real table is read: written as was said, as a known schema has it, or as its release read it.

    Besides the columns of the schema the table has one for its key, if one is named.
    """
    before = source if known is None else source.written_as(known)
    schema = before.read_as(said)
    if not has_layout(table):
        return schema
    needed = [field.name for field in schema.beside(key).encoded]
    return replace(schema, dialect=layout(Path(table), needed, said.of_file, before.dialect))


def codes_of(codec: Codec, cells: Integers) -> Integers:
    """Category codes of a table of cells."""
    return np.stack([codec.attributes[name].codes(cells[:, j]) for j, name in enumerate(codec.names)], axis=1)


def once_a_person(names: Sequence[str | None], places: Integers) -> Integers:
    """Places of rows such that every person has equally many: a person's rows in turn, as often as it takes.

    Sixty a person where there are few of them: what has one to six rows then counts exactly, others nearly so.
    """
    found = {name: j for j, name in enumerate(dict.fromkeys(name for name in names if name is not None))}
    whose = np.array([-1 if name is None else found[name] for name in names], dtype=np.int64)[places]
    order = np.argsort(whose, kind="stable")
    order = order[whose[order] >= 0]
    if not len(order):
        raise InputError("the column that identifies the person is empty in every row, so there is nothing to compare.")
    _, starts, rows = np.unique(whose[order], return_index=True, return_counts=True)
    each = int(np.clip(COMPARED // len(starts), 1, 60))
    first = np.random.default_rng(0).integers(0, rows)
    turn = (first[:, None] + np.arange(each)) % rows[:, None]
    return np.asarray(order[(starts[:, None] + turn).ravel()])


def evaluate(rows: Comparison, targets: Sequence[str] = (), predicting: bool = True) -> dict[str, Any]:
    """What the schema changed, numbers in their own units, total variation of 1-, 2- and 3-way tables, covariance, predictions.

    True numbers are those of the table itself, and a cell that the schema changed is out of place in every table. Tables have
    numbers without declared bins in bins of a twentieth of the true rows each. `targets` names the fields to predict. Without
    any, a few with few categories are taken where scikit-learn is installed; that is the slow part, and `predicting` leaves it
    out.
    """
    names = rows.codec.names
    true, synthetic, sizes = rows.tables()
    found = {
        d: [(total_variation(true, synthetic, sizes, s), s) for s in subsets_of(len(sizes), d)]
        for d in (1, 2, 3)
        if d <= len(sizes)
    }
    pairs = sorted(found.get(2, []), key=lambda x: -x[0])
    private = "epsilon" in rows.bundle  # anonymous tables have no noise
    groups = small_groups(rows.codec.kinds, rows.bundle["n"], promised(rows.bundle)) if private else None
    again = true[np.random.default_rng(0).integers(0, len(true), len(synthetic))]
    resampled = {d: [total_variation(true, again, sizes, s) for _, s in tables] for d, tables in found.items()}
    return {
        "watermark": WATERMARK,
        "rows": {"true": len(true), "synthetic": len(synthetic)},
        "changed": rows.changes.figures(rows.codec),
        "numbers": number_figures(rows.codec, rows.cells),
        "average_total_variation": _average(rows, found, resampled),
        "small_groups": None if groups is None else groups.sentence,  # public, unlike all else here
        "contradictions": contradictions(rows.codec, (rows.read, rows.drawn)),
        "total_variation": {str(d): float(np.mean([v for v, _ in tables])) for d, tables in found.items()},
        "total_variation_of_resampled_true_rows": {str(d): float(np.mean(values)) for d, values in resampled.items()},
        "tables_compared": {str(d): [len(tables), comb(len(sizes), d)] for d, tables in found.items()},
        "columns": {names[s[0]]: value for value, s in found[1]},
        "worst_pairs": [(names[a], names[b], value) for value, (a, b) in pairs[:WORST]],
        "covariance": covariance_difference(rows.true, rows.synthetic, rows.codec.domain_sizes),
        "prediction": predictions(rows, targets) if predicting else [],
    }


Distances = Sequence[tuple[float, tuple[int, ...]]]  # of tables, with their columns


def _average(
    rows: Comparison, found: Mapping[int, Distances], resampled: Mapping[int, Sequence[float]]
) -> dict[str, Any]:
    """The yardstick of certificates and plans, computed exactly: the mean total variation of two-way tables, and the worst.

    `as_read` is the mean over the same tables where changed cells count as what the schema made of them.
    """
    d, tables = max(k for k in found if k <= 2), rows.tables(as_read=True)
    worst, where = max(found[d], key=lambda x: x[0])
    return {
        "columns": d,
        "average": float(np.mean([value for value, _ in found[d]])),
        "fresh_sample_of_real_rows": float(np.mean(resampled[d])),
        "worst": worst,
        "worst_table": [rows.codec.names[a] for a in where],
        "as_read": float(np.mean([total_variation(*tables, own) for _, own in found[d]])),
    }


def total_variation(X: Integers, Z: Integers, sizes: Any, subset: tuple[int, ...]) -> float:
    """Half the ℓ1 distance between two tables of the attributes in the subset."""
    shape = tuple(int(sizes[a]) for a in subset)
    codes, cells = [np.ravel_multi_index(tuple(table[:, a] for a in subset), shape) for table in (X, Z)], prod(shape)
    if cells > 1 << 16:
        _, where = np.unique(np.concatenate(codes), return_inverse=True)
        codes, cells = [where[: len(X)], where[len(X) :]], int(where.max()) + 1
    one, two = (np.bincount(code, minlength=cells) / len(code) for code in codes)
    return float(np.abs(one - two).sum() / 2)


def subsets_of(q: int, degree: int) -> list[tuple[int, ...]]:
    """All subsets of columns, or TABLES different ones of them, chosen once and for all."""
    if degree < 2 or comb(q, degree) <= TABLES:
        return list(combinations(range(q), degree))
    generator, found = np.random.default_rng(0), dict[tuple[int, ...], None]()
    while len(found) < TABLES:
        found[tuple(sorted(map(int, generator.choice(q, degree, replace=False))))] = None
    return list(found)


def share_compared(figures: Mapping[str, Any], degree: str) -> str:
    """How many tables of a degree a mean is over, in words."""
    done, there = figures["tables_compared"][degree]
    return f"all {there:,} tables" if done == there else f"{done:,} of {there:,} tables, chosen at random"


def pair_variation(rows: Comparison, most: int) -> Floats:
    """Total variation of every pair of the first columns."""
    q = min(most, len(rows.codec.names))
    out = np.zeros((q, q))
    tables = rows.tables()
    for a, b in combinations(range(q), 2):
        out[a, b] = out[b, a] = total_variation(*tables, (a, b))
    return out


def covariance_difference(X: Integers, Z: Integers, sizes: Sequence[int]) -> dict[str, float] | None:
    """‖Cov true − Cov synthetic‖ in Frobenius norm, of category indicators, beside ‖Cov true‖; None for very wide tables."""
    if sum(sizes) > COMPARED_CATEGORIES:
        return None
    true, synthetic = (_covariance(one_hot(every_so_many(codes, 100_000), sizes)) for codes in (X, Z))
    return {"loss": float(np.linalg.norm(true - synthetic)), "true": float(np.linalg.norm(true))}


def _covariance(bits: Bits) -> Floats:
    seen = moments(bits)
    mean = seen.first / seen.n
    return np.asarray(seen.second_moment_matrix - np.outer(mean, mean))


# Contradictions.


def contradictions(codec: Codec, cells: tuple[Integers, Integers]) -> dict[str, Any]:
    """Relations that hold in the true rows, nearly always, and not in the synthetic ones: the worst with a row of each.

    Which relations hold is read off true rows without noise, as in proposals to their owner (`_fitting.proposed_relations`), with
    functions that only the rows tell. The score is the mean over all of them of the share of synthetic rows that break one,
    beyond that of true rows.
    """
    bare, listed = alone(codec.schema, MOST_COLUMNS), list[dict[str, Any]]()
    if bare is None:
        return {"relations": 0, "score": 0.0, "worst": []}
    some = (codec.columns(dict(zip(codec.names, every_so_many(own, LOOKED_AT).T, strict=True))) for own in cells)
    true, drawn = (np.stack([own[name] for name in bare.names], axis=1) for own in some)
    for relation in exact_relations(bare.schema, bare, true, read_off=True, homes=codec.schema.home):
        broken = breaks(relation, bare, drawn)
        example = drawn[int(broken.argmax())]
        row = {name: _shown(bare, name, example) for name in relation.columns} if broken.any() else {}
        shares = {"true": relation.broken / relation.rows, "synthetic": float(broken.mean())}
        listed.append({"relation": relation.words, **shares, "example": row})
    listed.sort(key=lambda one: one["true"] - one["synthetic"])
    excess = [max(0.0, one["synthetic"] - one["true"]) for one in listed]
    return {"relations": len(listed), "score": float(np.mean(excess)) if listed else 0.0, "worst": listed[:LISTED]}


def _shown(codec: Codec, name: str, row: Integers) -> str:
    """A cell of a row as a reader writes it."""
    attribute, cell = codec.attributes[name], row[codec.names.index(name)]
    if not there(cell):
        return "no value"
    return point(attribute.field, cell) if isinstance(attribute, Grid) else attribute.field.labels[cell]


# Train on synthetic, test on real.


def predictions(rows: Comparison, targets: Sequence[str]) -> list[dict[str, Any]] | None:
    """`predicted` of single tables. None where scikit-learn is missing."""
    names = rows.codec.names
    check_targets(names, targets)
    chosen = [names.index(name) for name in targets] or default_targets(rows.codec)
    if not targets and not has_learner():
        return None
    return predicted(rows.true, rows.synthetic, {a: names[a] for a in chosen}, rows.codec.domain_sizes)


def predicted(
    true: Integers, synthetic: Integers, targets: Mapping[int, str], sizes: Sequence[int]
) -> list[dict[str, Any]]:
    """How well a classifier that learned from synthetic rows predicts true ones, beside one that learned from true rows.

    Half of the true rows teach the second classifier, the other half tests both.
    """
    if len(sizes) < 2 or len(true) < 4:
        return []
    order = np.random.default_rng(0).permutation(len(true))
    half = len(order) // 2
    teach, test = true[order[:half]], true[order[half:]]
    out = []
    for a, name in targets.items():
        own: dict[str, Any] = {"target": name}
        own["most_frequent"] = float(np.mean(test[:, a] == np.bincount(teach[:, a]).argmax()))
        for kind, table in (("trained_on_true", teach), ("trained_on_synthetic", synthetic)):
            own[kind] = learn(every_so_many(table, LEARNED), every_so_many(test, LEARNED), a, sizes)
        out.append(own)
    return out


def check_targets(names: Sequence[str], targets: Sequence[str]) -> None:
    """Refuse what cannot be predicted, and say what is missing to predict the rest."""
    for name in targets:
        if name not in names:
            wrong = f" names {name!r}, which is not a field that varies. Name a field of the schema."
            raise ArgumentError("", "target", wrong)
    if targets and not has_learner():
        raise MissingExtraError("predicting needs scikit-learn: pip install 'covey[evaluate]'")


def has_learner() -> bool:
    """Whether scikit-learn is installed."""
    return find_spec("sklearn") is not None


def default_targets(codec: Codec) -> list[int]:
    """The last few fields with few categories: tables tend to end with outcomes."""
    unordered = [not codec.attributes[name].ordered for name in codec.names]
    few = [a for a, size in enumerate(codec.domain_sizes) if size <= CLASSES and unordered[a]]
    return few[-TARGETS:]


def learn(teach: Integers, test: Integers, target: int, sizes: Sequence[int]) -> dict[str, float]:
    """Accuracy on the test rows, and AUC averaged over classes, of a logistic regression on the other columns."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.preprocessing import OneHotEncoder

    known, truth = np.unique(teach[:, target]), test[:, target]
    if len(known) < 2:
        return {"accuracy": float(np.mean(truth == known[0])), "auc": 0.5}
    others = [a for a in range(len(sizes)) if a != target]
    encoder = OneHotEncoder(categories=[np.arange(sizes[a]) for a in others], dtype=np.float32)
    model = LogisticRegression(max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that stops early is still a fit, on both sides
        model.fit(encoder.fit_transform(teach[:, others]), teach[:, target])
    chances = model.predict_proba(encoder.transform(test[:, others]))
    areas = [
        roc_auc_score(truth == value, chances[:, k])
        for k, value in enumerate(model.classes_)
        if 0 < np.count_nonzero(truth == value) < len(truth)
    ]
    guessed = model.classes_[chances.argmax(axis=1)]
    return {"accuracy": float(np.mean(guessed == truth)), "auc": float(np.mean(areas)) if areas else 0.5}


# In words and pictures, watermarked, and kept out of bundles. The words are in `templates`.


def write_confidential(path: Path, text: str) -> None:
    """Write a file that only its owner can read, and never into a bundle."""
    refuse_in_bundle(path)
    path.unlink(missing_ok=True)  # a new file, so that old permissions and links do not live on
    with private_file(path) as file:
        file.write(text)


def evaluation_html(rows: Comparison, figures: Mapping[str, Any]) -> str:
    """The page for the figures of `evaluate`."""
    columns, own = describe(rows.codec), figures["average_total_variation"]
    tiles = [
        ("of the rows would have to move in an average table", f"{100 * own['average']:.2f}%"),
        ("in a fresh sample of real rows, by chance alone", f"{100 * own['fresh_sample_of_real_rows']:.2f}%"),
        (f"in the worst table, {shorten(' × '.join(own['worst_table']), 60)}", f"{100 * own['worst']:.2f}%"),
    ]
    given = {"figures": figures, "bundle": rows.bundle, "share_compared": share_compared}
    sections = [
        section("overview", "In short", "overview.html", **given),
        *_numbers(figures["numbers"]),
        _one_way(rows, columns, figures),
        _two_way(rows, columns, figures),
        *contradiction_section(figures["contradictions"]),
        *prediction(figures["prediction"]),
    ]
    return render(
        "evaluation.html",
        watermark=WATERMARK,
        badges=[("confidential", "alarm"), (str(rows.bundle["guarantee"]), "")],
        real=len(rows.true),
        drawn=len(rows.synthetic),
        changed=lines("changed.txt", changed=figures["changed"]),
        alarms=figures["numbers"]["alarms"][:ALARMS],
        tiles=tiles,
        sections=sections,
    )


def evaluation_words(figures: Mapping[str, Any]) -> list[str]:
    """The figures of `evaluate` in lines for a screen."""
    changed = lines("changed.txt", changed=figures["changed"])
    return lines("evaluation.txt", figures=figures, changed=changed, share_compared=share_compared)


def _numbers(figures: Mapping[str, Any]) -> list[Part]:
    """Numbers and dates in their own units, the worst first."""
    columns = [(name, own) for name, own in figures["columns"].items() if "mean" in own][:CHARTS]
    worst = {"correlations": figures["rank_correlations"][:WORST], "means": figures["group_means"][:WORST]}
    title = "Numbers in their own units"
    return [section("numbers", title, "numbers.html", columns=columns, **worst)] if columns else []


def _one_way(rows: Comparison, columns: Sequence[Column], figures: Mapping[str, Any]) -> Part:
    """Each column, true beside synthetic, the worst first."""
    errors = list(figures["columns"].values())
    changed = {name: own["share"] for name, own in figures["changed"]["columns"].items()}
    cards = []
    for j in np.argsort(-np.array(errors), kind="stable")[:CHARTS]:
        both = np.stack([columns[j].shares(codes[:, j]) for codes in (rows.true, rows.synthetic)])
        cards.append(beside(columns[j], both, KINDS, errors[j], changed.get(columns[j].name, 0)))
    return section("one", "Column by column", "one_way.html", cards=cards, width=len(columns), kinds=KINDS)


def _two_way(rows: Comparison, columns: Sequence[Column], figures: Mapping[str, Any]) -> Part:
    """Errors of pairs as a map, and the cells that are furthest off in the worst of them."""
    names, places = [column.name for column in columns], {name: j for j, name in enumerate(rows.codec.names)}
    cells = [row for a, b, _ in figures["worst_pairs"][:5] for row in worst_cells(rows, columns, places[a], places[b])]
    given = {"figures": figures, "share_compared": share_compared, "mapped": MAPPED}
    distances = pair_variation(rows, MAPPED)
    return section("two", "Pair by pair", "two_way.html", names=names, cells=cells, distances=distances, **given)


def worst_cells(rows: Comparison, columns: Sequence[Column], a: int, b: int) -> list[tuple[str, str, str, str]]:
    """The cells of one pair, as a reader sees its values, whose shares differ most."""
    one, two = columns[a], columns[b]
    shape = (len(one.labels), len(two.labels))
    if shape[0] * shape[1] > 1_000_000:
        return []
    tables = [
        np.bincount(one.group[c[:, a]] * shape[1] + two.group[c[:, b]], minlength=shape[0] * shape[1]) / len(c)
        for c in (rows.true, rows.synthetic)
    ]
    off = tables[1] - tables[0]
    out = []
    for k in np.argsort(-np.abs(off), kind="stable")[:CELLS]:
        i, j = divmod(int(k), shape[1])
        sign = "+" if off[k] >= 0 else "−"
        label = f"{one.name} = {one.labels[i]}, {two.name} = {two.labels[j]}"
        out.append((label, percent(tables[0][k], 2), percent(tables[1][k], 2), f"{sign}{100 * abs(off[k]):.2f} points"))
    return out


def contradiction_section(found: Mapping[str, Any]) -> list[Part]:
    """Relations of the true rows that synthetic ones break."""
    return [section("contradictions", "Contradictions", "contradictions.html", found=found)] if found["worst"] else []


def prediction(found: Sequence[Mapping[str, Any]] | None) -> list[Part]:
    """Train on synthetic, test on real; None where scikit-learn is missing."""
    title = "Train on synthetic, test on real"
    return [section("prediction", title, "prediction.html", found=found)] if found is None or found else []
