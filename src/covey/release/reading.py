"""What a bundle's files hold, from whoever sent it: refused in words where it is no JSON, or no table of numbers."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from covey.core.arrays import Array
from covey.errors import InputError

EXPANSION = 50  # how many times its size a file may unfold to: covey's own are not compressed
SMALL = 1 << 24  # bytes that any file may unfold to


def read_json(path: Path) -> Any:
    """The contents of a JSON file of a bundle."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        deep = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise InputError(f"{path} is not JSON: {deep}.") from None


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file: numbers alone, all finite, and no more of them than the file has room for."""
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(part.file_size for part in packed.infolist())
        if size > max(SMALL, EXPANSION * path.stat().st_size):
            raise InputError(
                f"{path} unfolds to {size} bytes, far more than it has: it is not a file that covey wrote."
            )
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
    except (ValueError, EOFError, zipfile.BadZipFile, MemoryError) as error:
        raise InputError(f"{path} holds no plain arrays of numbers: {error}.") from None
    for name, values in arrays.items():
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "biuf":
            raise InputError(f"{name!r} in {path} is no array of numbers.")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise InputError(f"{name!r} in {path} holds numbers that are not finite.")
    return arrays
