"""Differentially private synthetic tables. Start with `PrivateSynthesizer`, or `load` for a bundle that you received.

Names are imported when they are first used, so that `import covey` and the command line start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from covey.version import __version__ as __version__

if TYPE_CHECKING:
    from covey import errors as errors
    from covey import paper as paper
    from covey._core.paper import bodies as bodies
    from covey._core.tables.distance import marginal_error as marginal_error
    from covey.answers.load import load as load
    from covey.paper import covariance_loss as covariance_loss
    from covey.privacy.ledger import Ledger as Ledger
    from covey.release.bundle import write_bundle as write_bundle
    from covey.release.verify import verify_bundle as verify_bundle
    from covey.synthesizers import AnonymousSynthesizer as AnonymousSynthesizer
    from covey.synthesizers import PrivateSynthesizer as PrivateSynthesizer
    from covey.table.databases import Database as Database
    from covey.table.description import Description as Description
    from covey.table.schema import AtMost as AtMost
    from covey.table.schema import Condition as Condition
    from covey.table.schema import Field as Field
    from covey.table.schema import Forbid as Forbid
    from covey.table.schema import LessEqual as LessEqual
    from covey.table.schema import Linear as Linear
    from covey.table.schema import Schema as Schema
    from covey.table.spark import SparkParquet as SparkParquet

_HOMES = {
    "AnonymousSynthesizer": "covey.synthesizers",
    "AtMost": "covey.table.schema",
    "Condition": "covey.table.schema",
    "Database": "covey.table.databases",
    "Description": "covey.table.description",
    "Field": "covey.table.schema",
    "Forbid": "covey.table.schema",
    "Ledger": "covey.privacy.ledger",
    "LessEqual": "covey.table.schema",
    "Linear": "covey.table.schema",
    "PrivateSynthesizer": "covey.synthesizers",
    "Schema": "covey.table.schema",
    "SparkParquet": "covey.table.spark",
    "bodies": "covey._core.paper.bodies",
    "covariance_loss": "covey.paper",
    "errors": "covey.errors",
    "load": "covey.answers.load",
    "marginal_error": "covey._core.tables.distance",
    "paper": "covey.paper",
    "verify_bundle": "covey.release.verify",
    "write_bundle": "covey.release.bundle",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'covey' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return getattr(home, name, home)  # some names are those of modules


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
