"""Differentially private synthetic tables. Start with `PrivateSynthesizer`, or `load` for a bundle that you received.

Names are imported when they are first used, so that `import covey` and the command line start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from covey.version import __version__ as __version__

if TYPE_CHECKING:
    from covey import errors as errors
    from covey import paper as paper
    from covey.engine import bodies as bodies
    from covey.engine.codes.distance import marginal_error as marginal_error
    from covey.ledger import Ledger as Ledger
    from covey.paper import covariance_loss as covariance_loss
    from covey.release.answers.load import load as load
    from covey.release.bundle import write_bundle as write_bundle
    from covey.release.verify import verify_bundle as verify_bundle
    from covey.synthesizers import AnonymousSynthesizer as AnonymousSynthesizer
    from covey.synthesizers import PrivateSynthesizer as PrivateSynthesizer
    from covey.tables.description import Description as Description
    from covey.tables.schema import AtMost as AtMost
    from covey.tables.schema import Condition as Condition
    from covey.tables.schema import Field as Field
    from covey.tables.schema import Forbid as Forbid
    from covey.tables.schema import LessEqual as LessEqual
    from covey.tables.schema import Linear as Linear
    from covey.tables.schema import Schema as Schema
    from covey.tables.sources.databases import Database as Database
    from covey.tables.spark.frames import SparkParquet as SparkParquet

_HOMES = {
    "AnonymousSynthesizer": "covey.synthesizers",
    "AtMost": "covey.tables.schema",
    "Condition": "covey.tables.schema",
    "Database": "covey.tables.sources.databases",
    "Description": "covey.tables.description",
    "Field": "covey.tables.schema",
    "Forbid": "covey.tables.schema",
    "Ledger": "covey.ledger",
    "LessEqual": "covey.tables.schema",
    "Linear": "covey.tables.schema",
    "PrivateSynthesizer": "covey.synthesizers",
    "Schema": "covey.tables.schema",
    "SparkParquet": "covey.tables.spark.frames",
    "bodies": "covey.engine.bodies",
    "covariance_loss": "covey.paper",
    "errors": "covey.errors",
    "load": "covey.release.answers.load",
    "marginal_error": "covey.engine.codes.distance",
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
