"""Packages that covey[table] and other extras bring: imported when they are needed, so that covey starts at once."""

from __future__ import annotations

import importlib
from typing import Any

from covey.errors import MissingExtraError


def optional(module: str, extra: str = "table") -> Any:
    """Import a package of an extra such as covey[table], or name the line that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = "pandas" if module == "pandas" else f"'covey[{extra}]'"  # pandas is the caller's own choice: no extra
        raise MissingExtraError(f"this needs {module}: pip install {package}") from None
