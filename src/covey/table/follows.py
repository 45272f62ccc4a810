"""What a field says of the one that it follows: {"after": name} or {"difference_from": name}, and bounds of the difference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from covey.errors import ParameterError
from covey.table.document import refuse_unknown


@dataclass(frozen=True)
class Follows:
    """A number, date or time is measured from another field; bounds of the difference are in its unit (days, seconds).

    Args:
        base: the other field.
        minimum: the least difference; None for 0, or if it may be negative for all that bounds allow.
        maximum: the largest one; None for all that bounds allow.
        signed: whether the difference may be negative.
    """

    base: str
    minimum: float | None = None
    maximum: float | None = None
    signed: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.base, str):
            raise ParameterError(f"a field follows another one, named by text, got {self.base!r}.")
        for bound in (self.minimum, self.maximum):
            plain = isinstance(bound, int | float) and not isinstance(bound, bool) and math.isfinite(bound)
            if bound is not None and not plain:
                raise ParameterError(f"a difference is bounded by {bound!r}. Give numbers, in the field's unit.")
        if not self.signed and self.minimum is not None and self.minimum < 0:
            raise ParameterError(
                'a field that comes after another one has no negative difference. Use "difference_from".'
            )

    @classmethod
    def from_dict(cls, own: Mapping[str, Any], name: Any) -> Follows | None:
        """Read what stands under "covey" of a field."""
        named, bounds = (
            [word for word in ("after", "difference_from") if own.get(word) is not None],
            own.get("difference"),
        )
        if len(named) > 1:
            raise ParameterError(
                f"field {name!r} has after and difference_from. after is for differences that are never negative."
            )
        if not named and bounds is not None:
            raise ParameterError(f"field {name!r} has a difference. Say from which field: after, or difference_from.")
        if not named:
            return None
        bounds = {} if bounds is None else bounds
        if not isinstance(bounds, Mapping):
            raise ParameterError(
                f"difference of field {name!r} must be an object with minimum and maximum, got {bounds!r}."
            )
        refuse_unknown(bounds, ("minimum", "maximum"), f"difference of field {name!r}")
        return cls(own[named[0]], bounds.get("minimum"), bounds.get("maximum"), named == ["difference_from"])

    def to_dict(self) -> dict[str, Any]:
        """The same, for a file."""
        bounds = {"minimum": self.minimum, "maximum": self.maximum}
        given = {word: bound for word, bound in bounds.items() if bound is not None}
        return {"difference_from" if self.signed else "after": self.base} | ({"difference": given} if given else {})
