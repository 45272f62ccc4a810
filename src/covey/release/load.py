"""A private bundle as a source of rows: more of them, or those with a given category, drawn from its centres at no cost.

A centre is a product distribution: column by column, the probability of each category. Conditioning on a category is
therefore exact inside the centres: by Bayes' rule a centre's weight is multiplied by the probability it gives the category,
and within the centre that column becomes certain. What is drawn this way is post-processing of what was published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from covey.core.numbers.cells import Cells
from covey.core.numbers.grid import NumberGrid
from covey.core.numbers.measure import Measure
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.domain import Domain
from covey.entropy import Streams
from covey.errors import ArgumentError, InputError, ParameterError
from covey.methods.draws import NumberCells, draw_of
from covey.release.verify import Verified, verify_bundle
from covey.table.codec import Codec
from covey.table.numbers import NumberCodec
from covey.table.schema import Field, Schema
from covey.table.zeros import structural_zeros

PART_ROWS = 1 << 16  # rows that are drawn and decoded at a time
PATIENCE = 50  # parts without a single row that keeps both the rules and the condition, before that is an answer
MISSING = "missing"


@dataclass(frozen=True)
class Centres:
    """What a bundle says of the distribution that its rows come from. Public."""

    codec: Codec
    cloud: WeightedPoints
    checked: Verified
    numbers: NumberCells | None = None  # what its cells of numbers are

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many categories or cells each column has."""
        return self.codec.domain_sizes if self.numbers is None else self.numbers.domain.sizes

    @property
    def domain(self) -> Domain:
        """Those, and which columns are ordered."""
        return Domain(self.sizes, tuple(a in self.codec.ordinal for a in range(len(self.sizes))))

    def place(self, a: int, code: int) -> int:
        """Where a category stands among those of its column: of a number only "missing" is one, behind the special values."""
        if self.numbers is None or a not in self.numbers.cells:
            return code
        return self.numbers.cells[a].measure.grid.specials - 1 - (self.codec.names[a] in self.codec.schema.links)

    @property
    def flags(self) -> bool:
        """Whether every column is a flag: then a centre has one probability for each."""
        return all(size == 2 for size in self.codec.domain_sizes)


def load_centres(folder: Path) -> Centres:
    """The centres of a bundle that is whole and consistent."""
    checked = verify_bundle(folder)
    if not (folder / "centres.npz").is_file():
        raise InputError(f"{folder} has no centres: it is an anonymous bundle, whose rows are all there is.")
    with np.load(folder / "centres.npz", allow_pickle=False) as file:
        arrays = dict(file)
    cloud = WeightedPoints(arrays["weights"], arrays["points"])
    codec = Codec(Schema.load(folder / "schema.json"))
    found = Centres(codec, cloud, checked, _numbers(codec, arrays))
    width = len(codec.domain_sizes) if found.flags else sum(found.sizes)
    if cloud.points.shape != (len(cloud.weights), width):
        raise InputError(f"the centres of {folder} do not belong to its schema.")
    return found


def _numbers(codec: Codec, arrays: Mapping[str, Any]) -> NumberCells | None:
    """The cells of numbers that a bundle's centres speak of."""
    if "score" not in arrays:
        return None
    cells: dict[int, Cells] = {}
    fine = NumberCodec(codec)
    for j, kind in enumerate(fine.attributes):
        if isinstance(kind, NumberGrid):
            measure = Measure(kind, *(arrays[f"{j} {name}"] for name in ("start", "stop", "share")))
            cells[j] = Cells(measure, arrays[f"{j} edges"], measure.mass(arrays[f"{j} edges"]))
    sizes = tuple(len(cells[j].share) if j in cells else kind.size for j, kind in enumerate(fine.attributes))
    domain = Domain(sizes, tuple(a in codec.ordinal for a in range(len(sizes))))
    return NumberCells(domain, cells, arrays["score"], structural_zeros(fine))


def category(field: Field, codec: Codec, text: str) -> int:
    """The place of a category among those of its column."""
    attribute = codec.attributes[field.name]
    known = () if attribute.ordered else field.labels
    if text == MISSING and not field.required and MISSING not in known:
        return int(codec.domain_sizes[codec.names.index(field.name)]) - 1  # the last category
    if attribute.ordered:
        raise ArgumentError("", "where", f" takes a category, and {field.name!r} is measured in steps.")
    labels = [str(label).lower() if field.type == "boolean" else str(label) for label in known]
    if text not in labels:
        raise ArgumentError("", "where", f" names {text!r}, which is no category of {field.name!r}.")
    return labels.index(text)


def conditioned(centres: Centres, where: Mapping[str, str]) -> WeightedPoints:
    """The centres given that some columns have these categories (Bayes' rule, centre by centre)."""
    weights, points = centres.cloud.weights.copy(), centres.cloud.points.copy()
    starts = np.concatenate([[0], np.cumsum(centres.sizes)])
    for name, text in where.items():
        if name not in centres.codec.names:
            raise ArgumentError("", "where", f" names {name!r}, which is no column that varies.")
        a, code = centres.codec.names.index(name), category(centres.codec.schema[name], centres.codec, text)
        if centres.flags:
            weights *= points[:, a] if code else 1 - points[:, a]
            points[:, a] = code
        else:
            block, code = slice(int(starts[a]), int(starts[a + 1])), centres.place(a, code)
            weights *= points[:, starts[a] + code]
            points[:, block] = 0.0
            points[:, starts[a] + code] = 1.0
    total = weights.sum()
    if not total > 0:
        raise ParameterError("no centre of this bundle has such rows: nothing can be drawn.")
    kept = weights > 0
    return WeightedPoints(weights[kept] / total, points[kept])


def draw_rows(centres: Centres, m: int, where: Mapping[str, str], streams: Streams) -> Iterator[Mapping[str, Any]]:
    """m rows as columns of values, part by part. A row that its schema's rules move out of the condition is drawn again."""
    cloud, codec = conditioned(centres, where), centres.codec  # refused here, before anything is written
    draw = draw_of(None if centres.flags else centres.domain, codec.limits, centres.numbers)
    wanted = {codec.names.index(name): category(codec.schema[name], codec, text) for name, text in where.items()}
    fine = codec if centres.numbers is None else NumberCodec(codec)

    def rows(count: int, own: Streams) -> Mapping[str, Any]:
        drawn = np.asarray(draw(cloud, count, own)).astype(np.int64)
        return fine.decode(drawn, own.postprocessing("decode"))

    return _parts(codec, rows, m, wanted, streams)


def _parts(
    codec: Codec,
    draw: Callable[[int, Streams], Mapping[str, Any]],
    m: int,
    wanted: Mapping[int, int],
    streams: Streams,
) -> Iterator[Mapping[str, Any]]:
    """Parts of drawn rows, until m of them have the wanted codes."""
    left, part, idle = m, 0, 0
    while left:
        own = streams.child(f"part {part}")
        columns = draw(min(PART_ROWS, left), own)
        keep = np.ones(min(PART_ROWS, left), dtype=bool)
        if wanted:
            codes, _ = codec.encode(columns)
            keep = np.all([codes[:, a] == code for a, code in wanted.items()], axis=0)
            columns = {name: values.filter(keep) for name, values in columns.items()}
        part, left, idle = part + 1, left - int(keep.sum()), 0 if keep.any() else idle + 1
        if idle == PATIENCE:
            raise ParameterError("the rules of the schema leave no such rows: nothing can be drawn.")
        if keep.any():
            yield columns
