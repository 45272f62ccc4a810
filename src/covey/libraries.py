"""Libraries of the extra covey[table], imported where something of them is used first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from covey.errors import optional

__all__ = ["pa", "pd", "pl"]


class Library:
    """A module that is imported when one of its names is asked for, or the line that installs it."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__[name] = getattr(optional(self._module), name)
        return found


pa, pd = Library("pyarrow"), Library("pandas")
if TYPE_CHECKING:
    import polars as pl
else:
    pl = Library("polars")
