"""The two synthesizers: fit on a table, then sample as many rows as you like."""

from covey._reading import Prepared
from covey.synthesizers.anonymous import AnonymousSynthesizer
from covey.synthesizers.private import PrivateSynthesizer

__all__ = ["AnonymousSynthesizer", "Prepared", "PrivateSynthesizer"]
