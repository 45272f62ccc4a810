"""Private synthetic tables: see `PrivateSynthesizer` and `AnonymousSynthesizer`."""

from covey import core, errors
from covey.core import bingham, bodies
from covey.core.marginals import covariance_loss, marginal_error
from covey.synthesizers import AnonymousSynthesizer, PrivateSynthesizer

__version__ = "0.1.0"

__all__ = [
    "AnonymousSynthesizer",
    "PrivateSynthesizer",
    "bingham",
    "bodies",
    "core",
    "covariance_loss",
    "errors",
    "marginal_error",
]
