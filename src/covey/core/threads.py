"""How many threads BLAS may use: all processors for one large product, one for many small ones.

Left alone, BLAS may start more threads than there are processors, which makes a product several times slower, or share a
small product among threads, which makes a fit of many small products up to ten times slower.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _pools() -> ThreadpoolController:
    """The thread pools of this process; finding them takes a millisecond, so they are found once."""
    return ThreadpoolController()


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def blas_threads(count: int) -> AbstractContextManager[object]:
    """Within this context BLAS uses so many threads."""
    context: AbstractContextManager[object] = _pools().limit(limits=count)
    return context
