"""The two synthesizers: fit on a table, then sample as many rows as you like."""

from covey.synthesizers.anonymous import AnonymousSynthesizer
from covey.synthesizers.private import PrivateSynthesizer
from covey.tables.reading import Prepared

__all__ = ["AnonymousSynthesizer", "Prepared", "PrivateSynthesizer"]
