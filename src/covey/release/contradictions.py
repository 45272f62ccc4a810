"""Contradictions: relations that hold in the true rows, nearly always, and not in the synthetic ones.

Confidential like all of the evaluation: which relations hold is read off true rows without noise, as in proposals to their owner
(`methods.relations.exact`), with functions that only the rows tell. The score is the mean over all of them of the share of
synthetic rows that break one, beyond that of true rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from covey._core.arrays import Integers
from covey._methods.relations.exact import LOOKED_AT, MOST_COLUMNS, alone, breaks, exact_relations
from covey.release.numbers import there
from covey.release.summary import every_so_many, point
from covey.table.codec import Codec, Grid

LISTED = 20  # contradictions that a page shows


def contradictions(codec: Codec, cells: tuple[Integers, Integers]) -> dict[str, Any]:
    """The score, the number of relations, and the worst contradictions with shares and a synthetic row of each."""
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
