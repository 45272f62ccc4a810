"""What looks doubtful in a draft, by column: the notes that carry a warning, for programs that show nothing else of them.

Hints are computed on true data, like the draft they belong to: they are for its owner and never part of a release.
"""

from __future__ import annotations

from covey.table.columns import Table
from covey.table.drafting import draft
from covey.table.schema import Schema


def hints(table: Table, schema: Schema) -> dict[str, str]:
    """For each doubtful column of a draft, what to look at. The schema was drafted from this table, read whole."""
    notes = draft(table, schema.dialect).notes
    return {note.field: f"{note.reason}; {note.warning}" for note in notes if note.field is not None and note.warning}
