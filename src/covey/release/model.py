"""What rows are drawn from, on disk: model.npz, beside the measurements. Written and read again.

All of it is what the gate gave back, or was made from that alone. Of one table it holds weighted centres, of persons with events
the models of their sequences; of numbers also the codes at which their cells begin and end ("3 edges", by the place of the column
among all measured ones) and the private measure from which values inside cells are drawn ("3 start", "3 stop", "3 share").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from covey.core.arrays import Array
from covey.core.draw.events import SequenceLaw
from covey.core.fit.events import EventModel
from covey.core.fit.spectrum import Spectrum
from covey.core.fit.triples import Triples
from covey.core.numbers.cells import Cells
from covey.core.numbers.grid import Attribute, Measure, NumberGrid
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.domain import Domain
from covey.core.tables.events import count_bins
from covey.core.tables.zeros import Across
from covey.errors import InputError
from covey.measure.measurement import Measurements
from covey.methods.laws import BitLaw, CodeLaw, RowLaw
from covey.methods.model import Fitted
from covey.methods.persons.law import PersonsLaw
from covey.release.contents import PrivateRelease
from covey.release.measurements import read_measurements, write_measurements
from covey.release.reading import read_arrays
from covey.table.codec import Codec
from covey.table.description import Description
from covey.table.zeros import across_zeros, structural_zeros

MODEL = "model.npz"
PARTS = ("persons", "kinds", "events", "chain", "sticky")  # of a model of persons with events
NUMBER = "number of events"  # what is measured of persons beside their columns


def write_model(release: PrivateRelease, folder: Path) -> None:
    """What rows are drawn from, and the noisy numbers that were measured."""
    np.savez(folder / MODEL, **model_arrays(release.fitted))
    if release.measurements is not None:
        names = [field.name for part in release.described.tables for field in part.measured.encoded]
        more = [NUMBER] if release.described.schema is None else []
        write_measurements(release.measurements, [*names, *more], folder)


def model_arrays(fitted: Fitted) -> dict[str, Any]:
    """The arrays of model.npz: of a law, and the noisy spectrum."""
    arrays = _of_persons(fitted.law) if isinstance(fitted.law, PersonsLaw) else _of_rows(fitted.law)
    if (seen := fitted.spectrum) is not None:
        arrays["spectrum"] = np.array([seen.edge, seen.dimension, *seen.values])
    return arrays


def _of_rows(law: Any) -> dict[str, Any]:
    """Weights and points; ranks that swaps of rows keep; triples that were measured, and their levels."""
    arrays: dict[str, Any] = {"weights": law.cloud.weights, "points": law.cloud.points}
    if not isinstance(law, CodeLaw):
        return arrays
    if law.score is not None:
        arrays["score"] = law.score
    if law.triples:
        arrays["triples"] = np.array(law.triples.names)
        arrays |= {f"{x} level": levels for x, levels in law.triples.levels.items()}
    return arrays | _of_cells(law.cells)


def _of_persons(own: PersonsLaw) -> dict[str, Any]:
    """Models by number, and the law of the number of events."""
    law = own.sequences
    arrays: dict[str, Any] = {"counts": law.counts}
    for k, model in enumerate(law.models):
        arrays |= {f"{k} {name}": np.asarray(getattr(model, name)) for name in PARTS}
    arrays |= {f"tilt {q} {a}": factors for (q, a), factors in law.tilts.items()}
    return arrays | _of_cells(own.cells)


def _of_cells(cells: Mapping[int, Cells]) -> dict[str, Any]:
    arrays: dict[str, Any] = {f"{j} edges": own.edges for j, own in cells.items()}
    names = ("start", "stop", "share")
    return arrays | {f"{j} {name}": getattr(own.measure, name) for j, own in cells.items() for name in names}


def read_model(folder: Path, described: Description) -> Fitted:
    """The model and the measurements of a bundle, without its certificate."""
    model = read_arrays(folder / MODEL)
    codecs = described.codecs
    try:
        if described.schema is not None:
            return _rows(model, codecs[0], read_measurements(folder, codecs[0].sizes))
        return _persons(model, described, folder)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"{MODEL} does not fit to this bundle: {error}.") from None


def _cells(model: Mapping[str, Array], attributes: Sequence[Attribute]) -> dict[int, Cells]:
    found = {}
    for j, kind in enumerate(attributes):
        if isinstance(kind, NumberGrid):
            measure = Measure(kind, *(model[f"{j} {name}"] for name in ("start", "stop", "share")))
            found[j] = Cells(measure, model[f"{j} edges"], measure.mass(model[f"{j} edges"]))
    return found


def _rows(model: Mapping[str, Array], codec: Codec, measured: Measurements | None) -> Fitted:
    """Centres; without cells and categories where every column is a flag."""
    cloud = WeightedPoints(model["weights"], model["points"])
    law: RowLaw = BitLaw(cloud, codec.limits if codec.flags else ())
    width = len(codec.domain_sizes)
    if not codec.flags:
        cells = _cells(model, codec.kinds)
        sizes = tuple(len(cells[j].share) if j in cells else kind.size for j, kind in enumerate(codec.kinds))
        names = tuple((int(a), int(b), int(c)) for a, b, c in model["triples"]) if "triples" in model else ()
        triples = Triples(names, {x: model[f"{x} level"] for triple in names for x in triple})
        domain, width = Domain(sizes, codec.ordered), sum(sizes)
        law = CodeLaw(cloud, domain, cells, model.get("score"), structural_zeros(codec), triples or None)
    if cloud.points.shape != (len(cloud.weights), width):
        raise ValueError("its centres have other columns than the schema")
    spectrum = None
    if "spectrum" in model:
        edge, dimension, *values = map(float, model["spectrum"])
        spectrum = Spectrum(tuple(values), edge, int(dimension))
    return Fitted(law, measured, spectrum)


def _persons(model: Mapping[str, Array], package: Description, folder: Path) -> Fitted:
    """The law of persons with events."""
    attributes = [kind for kinds in package.kinds for kind in kinds]
    cells = _cells(model, attributes)
    first = len(package.kinds[0])
    sizes = [len(cells[j].share) if j in cells else kind.size for j, kind in enumerate(attributes)]
    ordered = [a in own.ordinal for own in package.codecs for a in range(len(own.kinds))]
    counts = model["counts"]
    whole = Domain((*sizes[:first], len(count_bins(len(counts) - 1))), (*ordered[:first], True))
    models = [
        EventModel(**{name: model[f"{k} {name}"] for name in PARTS[:-1]}, sticky=float(model[f"{k} sticky"]))
        for k in range(sum(name.endswith(" sticky") for name in model))
    ]
    starts = [cells[j].edges[:-1] if j in cells else np.arange(size) for j, size in enumerate(sizes)]
    barred, timing = Across.of(across_zeros(package), first, starts), package.events.timing
    named = [name.split()[1:] for name in model if name.startswith("tilt ")]
    tilts = {(int(q), int(a)): model[f"tilt {q} {a}"] for q, a in named}
    law = SequenceLaw(
        models, whole, Domain(tuple(sizes[first:]), tuple(ordered[first:])), counts, barred, timing, tilts
    )
    last = 0 if timing.order is None else attributes[first + timing.order].size - 1
    measured = read_measurements(folder, [*(kind.size for kind in attributes), package.link.at_most + 1])
    if measured is None:
        raise InputError("the bundle has no measurements.")
    return Fitted(PersonsLaw(law, cells, last), measured)
