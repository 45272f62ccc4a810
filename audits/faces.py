"""Everything that leaves a fit, by name: rows, centres, statements, whole bundles, and whatever was said meanwhile."""

from __future__ import annotations

import io
import logging
import warnings
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from audits import events
from covey.engine.progress import listening
from covey.errors import CoveyError
from covey.release.bundle import write_bundle
from covey.release.model import model_arrays, pack

ROWS = 20  # synthetic rows that are drawn and compared


@contextmanager
def hearing():
    """A list of all that is said: warnings, log lines, standard output and error, progress."""
    told, said = [], io.StringIO()

    class Ear(logging.Handler):
        def emit(self, record):
            told.append(("log", record.name, record.levelname, record.getMessage()))

    root, ear = logging.getLogger(), Ear(logging.NOTSET)
    level = root.level
    root.addHandler(ear)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as advice, redirect_stdout(said), redirect_stderr(said):
            warnings.simplefilter("always")
            with listening(lambda share, stage: told.append(("progress", stage, share))):
                yield told
    finally:
        root.removeHandler(ear)
        root.setLevel(level)
        told += [("warning", warning.category.__name__, str(warning.message)) for warning in advice]
        told.append(("output", said.getvalue()))


def leaving(subject, files):
    """What leaves a fitted synthesizer, as text in which floats are exact and a hole, which is NaN, agrees with a hole."""
    if hasattr(subject, "leaving"):  # a whole command, which writes its own bundle
        return subject.leaving()
    if events.is_linked(subject):
        found = events.face(subject)
    else:
        cloud = subject.centres
        facts, arrays = ({}, {}) if subject.measurements is None else pack(subject.measurements)
        arrays |= model_arrays(subject._fitted)
        spectrum = {} if subject._fitted.spectrum is None else vars(subject._fitted.spectrum)
        found = {
            "centres": (cloud.weights.tolist(), cloud.points.tolist()),
            "spectrum": {name: np.asarray(values).tolist() for name, values in spectrum.items()},
            "measurements": (facts, {name: values.tolist() for name, values in arrays.items()}),
            "rows": rows_in(subject.sample(ROWS)),
            "certificate": subject.certificate,
            "privacy": (subject.privacy, subject.privacy.left_out),
            "schema": None if subject.schema is None else subject.schema.to_dict(),
            "line": repr(subject),
        }
    found["words"] = (str(subject), str(subject.privacy), str(subject.certificate))
    found = {name: repr(part) for name, part in found.items()}
    return found | (bundle_of(subject) if files else {})


def rows_in(sample):
    """The rows of an array, or of a frame, whose columns differ in type."""
    return sample.rows() if hasattr(sample, "rows") else np.asarray(sample).tolist()


def bundle_of(subject):
    """Every file of a bundle by its name; a bundle that cannot be written says why."""
    with TemporaryDirectory() as folder:
        try:
            write_bundle(subject.release(ROWS), Path(folder) / "bundle")
        except CoveyError as error:
            return {"no bundle": repr(error)}
        return files_in(Path(folder) / "bundle")


def files_in(folder):
    """The bytes of all files below a folder, by name."""
    return {
        f"file {path.relative_to(folder)}": path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
