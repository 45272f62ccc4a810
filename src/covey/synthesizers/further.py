"""What further queries are tried on: made-up units in the codes in which a fit will see its tables."""

from __future__ import annotations

from covey.engine.codes.domain import Domain
from covey.engine.made_up import MadeUp, MadeUpPersons, MadeUpRows
from covey.errors import ParameterError
from covey.tables.description import Description
from covey.tables.schema import Schema


def check_declared(declared: Schema | None, learns: bool) -> None:
    """Refuse queries about tables whose codes only a fit decides."""
    if declared is not None and declared.finds_relations:
        raise ParameterError("further queries name columns by their places, which relations that are found may change.")
    if learns:
        raise ParameterError(
            "further queries name codes of columns, and this schema has columns to be learned: declare their limits and "
            "categories."
        )


def made_up_units(described: Description | None, domain: Domain | None, p: int | None) -> MadeUp | None:
    """Units of described tables, of a domain, or of p yes/no columns; None where nothing is known yet."""
    if described is None:
        sizes = (2,) * (p or 0) if domain is None else tuple(domain.sizes)
        return MadeUpRows(sizes) if sizes else None
    if described.schema is not None:
        return MadeUpRows(described.codecs[0].sizes)
    persons, events = ([kind.size for kind in kinds] for kinds in described.kinds)
    return MadeUpPersons(persons, events, described.link.at_most)
