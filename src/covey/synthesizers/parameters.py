"""What every synthesizer has: parameters that are remembered, as scikit-learn's tools ask for them, and randomness."""

from __future__ import annotations

import inspect
from typing import Any, Self

from covey.entropy import Streams
from covey.errors import ParameterError, whole_number


class Parameterized:
    """Remembers what it was made with, and hands out fresh randomness, or that of a declared seed."""

    _given: dict[str, Any]
    _seed: int | None
    _streams_taken: int

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        """Remember what was given, so that a clone can be given the same."""
        made = super().__new__(cls)
        if arguments or options:
            given = inspect.signature(cls.__init__).bind(made, *arguments, **options)
            given.apply_defaults()
            made._given = {name: value for name, value in given.arguments.items() if name != "self"}
        return made

    def _seed_with(self, seed: int | None) -> None:
        """Begin with this seed, or with none."""
        self._seed = None if seed is None else whole_number(seed, "seed", 0)
        self._streams_taken = 0

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters that this synthesizer was made with."""
        return dict(self._given)

    def set_params(self, **changes: Any) -> Self:
        """Start again, not fitted, with some parameters changed."""
        unknown = sorted(set(changes) - set(self._given))
        if unknown:
            raise ParameterError(f"{type(self).__name__} has no parameter {unknown[0]!r}: {', '.join(self._given)}.")
        given = self._given | changes
        type(self).__init__(self, **given)
        self._given = given
        return self

    @property
    def seeded(self) -> bool:
        """Whether a seed was given. Whatever a seeded run makes is not private."""
        return self._seed is not None

    def _next_streams(self) -> Streams:
        """Fresh randomness for one fit or sample. No key is kept, so that copies of a synthesizer share no noise."""
        self._streams_taken += 1
        if self._seed is None:
            return Streams.from_system()
        return Streams.from_seed(self._seed).child(f"call {self._streams_taken}")
