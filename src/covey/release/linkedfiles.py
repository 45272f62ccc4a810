"""The model and the noisy tables of persons with events on disk: model.npz, tables.npz, tables.json. Written and read again.

All of it is what the gate gave back, or was made from that alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from covey.core.arrays import Array
from covey.core.draw.events import LinkedLaw
from covey.core.fit.events import LinkedModel
from covey.core.numbers.cells import Cells
from covey.core.numbers.grid import Category, NumberGrid
from covey.core.numbers.measure import Measure
from covey.core.tables.across import Across
from covey.core.tables.domain import Domain
from covey.core.tables.events import LinkedTable, count_bins
from covey.errors import InputError
from covey.methods.persons.certify import WORDS
from covey.methods.persons.measure import LinkedMeasured, NoisyTable, ToBins
from covey.methods.persons.method import LinkedFitted
from covey.methods.regain.measured import MeasuredRanges
from covey.release.reading import read_arrays, read_json
from covey.table.codec import Codec
from covey.table.description import Description
from covey.table.document import write_document
from covey.table.numbers import NumberCodec
from covey.table.zeros import across_zeros

FORMAT = 1  # of these files; a reader refuses the others
MODEL, TABLES, DESCRIPTION = "model.npz", "tables.npz", "tables.json"
PARTS = ("persons", "kinds", "events", "chain", "sticky")  # of a model
NOTE = (
    "values are numbers of persons, with noise; 'edges j' are the codes at which the cells of number j begin, 'bins j' cell → "
    "bin, 'one-way j' counts of the ranges of codes between 'ranges j', with deviations 'noise j'"
)


def write_fitted(fitted: LinkedFitted, package: Description, folder: Path) -> None:
    """All three files."""
    np.savez(folder / MODEL, **_model_arrays(fitted))
    facts, arrays = _measured(fitted.measured, package)
    np.savez(folder / TABLES, **arrays)
    write_document(folder / DESCRIPTION, facts)


def _model_arrays(fitted: LinkedFitted) -> dict[str, Any]:
    """Models by number, the law of the number of events, and for numbers what their cells are."""
    law = fitted.law
    arrays: dict[str, Any] = {"counts": law.counts}
    for k, own in enumerate(law.models):
        arrays |= {f"{k} {name}": np.asarray(getattr(own, name)) for name in PARTS}
    arrays |= {f"tilt {q} {a}": factors for (q, a), factors in law.tilts.items()}
    for j, cells in fitted.cells.items():
        arrays[f"cells {j} edges"] = cells.edges
        arrays |= {f"cells {j} {name}": getattr(cells.measure, name) for name in ("start", "stop", "share")}
    return arrays


def _measured(found: LinkedMeasured, package: Description) -> tuple[dict[str, Any], dict[str, Any]]:
    """The noisy tables in persons: what each is, the deviation of its noise, and its values."""
    own = [field.name for field in package.unit.schema.encoded]
    its = [field.name for field in package.events.measured.encoded]
    person = [*own, "number of events"]
    arrays: dict[str, Any] = {"events": found.counts.counts}
    facts: list[dict[str, Any]] = [
        {"array": "events", "about": WORDS["events"], "columns": ["number of events"], "sd": float(found.counts.sds[0])}
    ]
    for i, table in enumerate(found.tables):
        kind, (one, other) = table.table.kind, (table.table.one, table.table.other)
        left = (person if kind in ("person", "across") else its)[one]
        right = (person if kind == "person" else its)[other]
        said = {"kind": kind, "one": one, "other": other}
        facts.append({"array": f"table {i}", "about": WORDS[kind], "columns": [left, right], **said, "sd": table.sd})
        arrays[f"table {i}"] = table.values
    for j, ranges in enumerate(found.one_way):
        arrays |= {f"one-way {j}": ranges.counts, f"ranges {j}": ranges.edges, f"noise {j}": ranges.sds}
    arrays |= {f"bins {j}": to for j, to in enumerate(found.bins.maps)}
    arrays |= {f"edges {j}": edges for j, edges in enumerate(found.bins.edges) if edges is not None}
    law = "laplace" if found.pure else "gaussian"
    return {"format": FORMAT, "n": found.n, "law": law, "note": NOTE, "tables": facts}, arrays


def read_fitted(folder: Path, package: Description) -> LinkedFitted:
    """The model and the tables of a bundle, without its certificate."""
    facts = read_json(folder / DESCRIPTION)
    if facts.get("format") != FORMAT:
        raise InputError(
            f"{DESCRIPTION} has format {facts.get('format')}, and this covey reads {FORMAT}: update covey, or ask for the bundle "
            "to be written again."
        )
    try:
        return _fitted(facts, _arrays(folder / MODEL), _arrays(folder / TABLES), package)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"{MODEL}, {TABLES} and {DESCRIPTION} do not fit together: {error}.") from None


def _tilts(model: Mapping[str, Array]) -> dict[tuple[int, int], Array]:
    """Factors by class of places and attribute."""
    named = [name.split() for name in model if name.startswith("tilt ")]
    return {(int(q), int(a)): model[f"tilt {q} {a}"] for _, q, a in named}


def _arrays(path: Path) -> dict[str, Array]:
    return read_arrays(path)


def _fitted(
    facts: Mapping[str, Any], model: Mapping[str, Array], arrays: Mapping[str, Array], package: Description
) -> LinkedFitted:
    codecs = [NumberCodec(Codec(schema)) for schema in (package.unit.schema, package.events.measured)]
    attributes = [kind for codec in codecs for kind in codec.attributes]
    if package.unit.bare:
        attributes[0] = Category(1)
    cells: dict[int, Cells] = {}
    for j, kind in enumerate(attributes):
        if isinstance(kind, NumberGrid):
            measure = Measure(kind, *(model[f"cells {j} {name}"] for name in ("start", "stop", "share")))
            edges = model[f"cells {j} edges"]
            cells[j] = Cells(measure, edges, measure.mass(edges))
    first = len(codecs[0].attributes)
    sizes = [len(cells[j].share) if j in cells else kind.size for j, kind in enumerate(attributes)]
    ordered = [a in codec.codec.ordinal for codec in codecs for a in range(len(codec.attributes))]
    counts = model["counts"]
    persons = Domain((*sizes[:first], len(count_bins(len(counts) - 1))), (*ordered[:first], True))
    models = [
        LinkedModel(**{name: model[f"{k} {name}"] for name in PARTS[:-1]}, sticky=float(model[f"{k} sticky"]))
        for k in range(sum(name.endswith(" sticky") for name in model))
    ]
    starts = [cells[j].edges[:-1] if j in cells else np.arange(size) for j, size in enumerate(sizes)]
    barred = Across.of(across_zeros(package, *codecs), first, starts)
    events = Domain(tuple(sizes[first:]), tuple(ordered[first:]))
    law = LinkedLaw(models, persons, events, counts, barred, package.events.timing, _tilts(model))
    last = 0 if package.events.timing.order is None else attributes[first + package.events.timing.order].size - 1
    bins = ToBins(
        tuple(arrays.get(f"edges {j}") for j in range(len(sizes))),
        tuple(arrays[f"bins {j}"] for j in range(len(sizes))),
        first,
    )
    one_way = [
        MeasuredRanges(arrays[f"ranges {j}"], arrays[f"one-way {j}"], arrays[f"noise {j}"]) for j in range(len(sizes))
    ]
    listed = facts["tables"]
    tables = [
        NoisyTable(LinkedTable(one["kind"], one["one"], one["other"]), arrays[one["array"]], one["sd"])
        for one in listed[1:]
    ]
    number = arrays["events"]
    own = MeasuredRanges(np.arange(len(number) + 1), number, np.full(len(number), listed[0]["sd"]))
    measured = LinkedMeasured(facts["n"], facts["law"] == "laplace", own, one_way, tables, bins)
    return LinkedFitted(law, cells, measured, None, last)
