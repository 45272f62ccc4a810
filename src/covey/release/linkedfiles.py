"""The model of persons with events on disk, model.npz, beside the measurements. Written and read again.

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
from covey.core.numbers.grid import Category, Measure, NumberGrid
from covey.core.tables.domain import Domain
from covey.core.tables.events import count_bins
from covey.core.tables.zeros import Across
from covey.errors import InputError
from covey.methods.persons.method import LinkedFitted
from covey.release.measurements import read_measurements, write_measurements
from covey.release.reading import read_arrays
from covey.table.codec import Codec
from covey.table.description import Description
from covey.table.zeros import across_zeros

MODEL = "model.npz"
PARTS = ("persons", "kinds", "events", "chain", "sticky")  # of a model


def write_fitted(fitted: LinkedFitted, package: Description, folder: Path) -> None:
    """The model, and the measurements."""
    np.savez(folder / MODEL, **_model_arrays(fitted))
    own = [field.name for part in (package.unit.schema, package.events.measured) for field in part.encoded]
    write_measurements(fitted.measured, [*own, "number of events"], folder)


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


def read_fitted(folder: Path, package: Description) -> LinkedFitted:
    """The model and the measurements of a bundle, without its certificate."""
    try:
        return _fitted(folder, read_arrays(folder / MODEL), package)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"{MODEL} does not fit to this bundle: {error}.") from None


def _tilts(model: Mapping[str, Array]) -> dict[tuple[int, int], Array]:
    """Factors by class of places and attribute."""
    named = [name.split() for name in model if name.startswith("tilt ")]
    return {(int(q), int(a)): model[f"tilt {q} {a}"] for _, q, a in named}


def _fitted(folder: Path, model: Mapping[str, Array], package: Description) -> LinkedFitted:
    codecs = [Codec(schema) for schema in (package.unit.schema, package.events.measured)]
    attributes = [kind for codec in codecs for kind in codec.kinds]
    if package.unit.bare:
        attributes[0] = Category(1)
    cells: dict[int, Cells] = {}
    for j, kind in enumerate(attributes):
        if isinstance(kind, NumberGrid):
            measure = Measure(kind, *(model[f"cells {j} {name}"] for name in ("start", "stop", "share")))
            edges = model[f"cells {j} edges"]
            cells[j] = Cells(measure, edges, measure.mass(edges))
    first = len(codecs[0].kinds)
    sizes = [len(cells[j].share) if j in cells else kind.size for j, kind in enumerate(attributes)]
    ordered = [a in codec.ordinal for codec in codecs for a in range(len(codec.kinds))]
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
    measured = read_measurements(folder, [*(kind.size for kind in attributes), package.link.at_most + 1])
    if measured is None:
        raise InputError("the bundle has no measurements.")
    return LinkedFitted(law, cells, measured, None, last)
