"""Mathematics on arrays: numpy and scipy, no names, files, printing or privacy policy."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any


def __getattr__(name: str) -> Any:
    """Modules of the core are imported when they are first used."""
    if any(module.name == name for module in iter_modules(__path__)):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
