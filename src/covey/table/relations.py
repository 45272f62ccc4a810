"""Relations between columns that a search found with noise: sentences that a schema carries beside what it makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from covey.errors import ParameterError
from covey.table.document import refuse_unknown

LEARN, NONE = "learn", "none"


@dataclass(frozen=True)
class Relation:
    """A relation in words, how the schema uses it, and the noisy share of rows that break it, with its deviation."""

    words: str
    use: str  # "rule", "derived" or "expected"
    columns: tuple[str, ...]
    broken: float
    sd: float

    def __post_init__(self) -> None:
        for word in ("broken", "sd"):
            object.__setattr__(self, word, round(getattr(self, word), 6))  # as files write it

    def __str__(self) -> str:
        return f"{self.words}: {max(self.broken, 0):.1%} ± {2 * self.sd:.1%} of rows differ"

    def to_dict(self) -> dict[str, Any]:
        """As it stands in a file."""
        own = {"words": self.words, "use": self.use, "columns": list(self.columns)}
        return own | {"broken": self.broken, "sd": self.sd}


def read_relations(given: Any) -> str | tuple[Relation, ...]:
    """What stands under "relations": a wish, or what was found."""
    if given in (LEARN, NONE, None):
        return str(given or "")
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(x, Mapping) for x in given):
        raise ParameterError(f'relations of a schema must be "learn" or "none", got {given!r}.')
    for one in given:
        refuse_unknown(one, ("words", "use", "columns", "broken", "sd"), "a relation")
    try:
        return tuple(
            Relation(str(x["words"]), str(x["use"]), tuple(x["columns"]), float(x["broken"]), float(x["sd"]))
            for x in given
        )
    except (KeyError, TypeError, ValueError):
        raise ParameterError("a relation needs words, use, columns, broken and sd, as a release wrote them.") from None
