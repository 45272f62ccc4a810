"""The models for what a description says: attributes, combinations that cannot occur, and what matters most, in codes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from covey.engine.models.persons.method import RegainPersons
from covey.engine.models.persons.plan import PersonsPlan
from covey.engine.models.tables.important import Important
from covey.engine.models.tables.method import RegainTables
from covey.tables.codec import Codec
from covey.tables.description import Description
from covey.tables.zeros import across_zeros, structural_zeros


def table_model(codec: Codec, certificate: Fraction, pure: bool) -> RegainTables:
    """The model for one table."""
    important = Important.of(codec.important, len(codec.names), pure, codec.target, codec.schema.triples_wanted)
    important = replace(important, unasked=codec.schema.triples is None)
    return RegainTables(certificate, codec.kinds, structural_zeros(codec), important)


def persons_model(description: Description, certificate: Fraction) -> RegainPersons:
    """The model for persons with events."""
    persons, events = (structural_zeros(codec) for codec in description.codecs)
    return RegainPersons(certificate, persons_plan(description), (persons, events), across_zeros(description))


def persons_plan(description: Description) -> PersonsPlan:
    """Its public formulas."""
    link, (persons, events) = description.link, description.kinds
    groups, target = description.matters
    single = frozenset(group[0] for group in groups if len(group) == 1)
    pairs = tuple(sorted((min(group), max(group)) for group in groups if len(group) == 2))
    important = Important(single, pairs, target, description.triples)
    timing = description.events.timing
    return PersonsPlan(persons, events, link.at_most, link.order is not None, timing, description.alone, important)
