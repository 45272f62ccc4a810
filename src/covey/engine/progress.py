"""A progress line on a terminal or in a notebook, a listener where one asked, and silence everywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Self, TextIO

DELAY = 1.0  # seconds before anything is shown: quick fits stay silent

Listener = Callable[[float, str], None]
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)
_SILENT: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def silent() -> Iterator[None]:
    """Fits inside show nothing: they are many, and something else tells how far they have come."""
    token = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(token)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell the listener how far every fit inside has come: the share done, and the stage's name."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


class Progress:
    """Shows how far a fit has come. Progress depends on public sizes and noisy values, never on a record."""

    def __init__(self, stages: tuple[tuple[str, float], ...], stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._names = [name for name, _ in stages]
        total = sum(weight for _, weight in stages)
        self._ends = [sum(w for _, w in stages[: i + 1]) / total for i in range(len(stages))]
        self._stage = -1
        self._begin = time.monotonic()
        self._shown = False
        terminal = bool(getattr(self._stream, "isatty", lambda: False)())
        self._live = not _SILENT.get() and (terminal or "ipykernel" in sys.modules)

    def __enter__(self) -> Self:
        return self

    def next(self) -> None:
        """Go on to the next stage."""
        self._stage = min(self._stage + 1, len(self._names) - 1)
        self.tick(0.0)

    def tick(self, share: float) -> None:
        """Say how much of this stage is done."""
        stage = max(self._stage, 0)
        before = self._ends[stage - 1] if stage else 0.0
        done = before + (self._ends[stage] - before) * min(max(share, 0.0), 1.0)
        if (listener := _LISTENER.get()) is not None:
            listener(done, self._names[stage])
        if not self._live or time.monotonic() - self._begin < DELAY:
            return
        bar = "█" * round(24 * done) + "░" * (24 - round(24 * done))
        self._stream.write(f"\r{bar} {100 * done:3.0f}%  {self._names[stage]:<12}")
        self._stream.flush()
        self._shown = True

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._stream.write("\r" + " " * 48 + "\r")
            self._stream.flush()
