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

from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.domain import Domain
from covey.entropy import Streams
from covey.errors import ArgumentError, InputError, ParameterError
from covey.methods.draws import Draw, DrawBits, DrawCodes
from covey.release.verify import Verified, verify_bundle
from covey.table.codec import Codec
from covey.table.schema import Field, Schema

PART_ROWS = 1 << 16  # rows that are drawn and decoded at a time
PATIENCE = 50  # parts without a single row that keeps both the rules and the condition, before that is an answer
MISSING = "missing"


@dataclass(frozen=True)
class Centres:
    """What a bundle says of the distribution that its rows come from. Public."""

    codec: Codec
    cloud: WeightedPoints
    checked: Verified

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
        cloud = WeightedPoints(file["weights"], file["points"])
    codec = Codec(Schema.load(folder / "schema.json"))
    found = Centres(codec, cloud, checked)
    width = len(codec.domain_sizes) if found.flags else sum(codec.domain_sizes)
    if cloud.points.shape != (len(cloud.weights), width):
        raise InputError(f"the centres of {folder} do not belong to its schema.")
    return found


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
    starts = np.concatenate([[0], np.cumsum(centres.codec.domain_sizes)])
    for name, text in where.items():
        if name not in centres.codec.names:
            raise ArgumentError("", "where", f" names {name!r}, which is no column that varies.")
        a, code = centres.codec.names.index(name), category(centres.codec.schema[name], centres.codec, text)
        if centres.flags:
            weights *= points[:, a] if code else 1 - points[:, a]
            points[:, a] = code
        else:
            block = slice(int(starts[a]), int(starts[a + 1]))
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
    draw: Draw = (
        DrawBits(codec.limits)
        if centres.flags
        else DrawCodes(Domain(codec.domain_sizes, tuple(a in codec.ordinal for a in range(len(codec.names)))))
    )
    wanted = {codec.names.index(name): category(codec.schema[name], codec, text) for name, text in where.items()}
    return _parts(codec, lambda count, own: draw(cloud, count, own), m, wanted, streams)


def _parts(
    codec: Codec, draw: Callable[[int, Streams], Any], m: int, wanted: Mapping[int, int], streams: Streams
) -> Iterator[Mapping[str, Any]]:
    """Parts of decoded rows, until m of them have the wanted codes."""
    left, part, idle = m, 0, 0
    while left:
        own = streams.child(f"part {part}")
        rows = draw(min(PART_ROWS, left), own)
        columns: Mapping[str, Any] = codec.decode(np.asarray(rows).astype(np.int64), own.postprocessing("decode"))
        keep = np.ones(len(rows), dtype=bool)
        if wanted:
            codes, _ = codec.encode(columns)
            keep = np.all([codes[:, a] == code for a, code in wanted.items()], axis=0)
            columns = {name: values.filter(keep) for name, values in columns.items()}
        part, left, idle = part + 1, left - int(keep.sum()), 0 if keep.any() else idle + 1
        if idle == PATIENCE:
            raise ParameterError("the rules of the schema leave no such rows: nothing can be drawn.")
        if keep.any():
            yield columns
