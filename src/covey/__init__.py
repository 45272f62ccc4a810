"""Private synthetic tables: see `PrivateSynthesizer` and `AnonymousSynthesizer`.

Names are imported when they are first used, so that `import covey` and the command line start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from covey.version import __version__ as __version__

if TYPE_CHECKING:
    from covey import errors, paper
    from covey.answers.load import load
    from covey.core.paper import bodies
    from covey.core.tables.distance import covariance_loss, marginal_error
    from covey.synthesizers import AnonymousSynthesizer, PrivateSynthesizer
    from covey.table.databases import Database
    from covey.table.description import Description
    from covey.table.schema import Schema
    from covey.table.spark import SparkParquet

__all__ = [
    "AnonymousSynthesizer",
    "Database",
    "Description",
    "PrivateSynthesizer",
    "Schema",
    "SparkParquet",
    "bodies",
    "covariance_loss",
    "errors",
    "load",
    "marginal_error",
    "paper",
]

_HOMES = {
    "AnonymousSynthesizer": "covey.synthesizers",
    "Database": "covey.table.databases",
    "Description": "covey.table.description",
    "PrivateSynthesizer": "covey.synthesizers",
    "Schema": "covey.table.schema",
    "SparkParquet": "covey.table.spark",
    "load": "covey.answers.load",
    "covariance_loss": "covey.core.tables.distance",
    "marginal_error": "covey.core.tables.distance",
}
_MODULES = {
    "bodies": "covey.core.paper.bodies",
    "errors": "covey.errors",
    "paper": "covey.paper",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'covey' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
