"""Values computed on true records: sealed, so that nothing but a gate (`privacy.gate`) can look at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Concatenate, Generic, NoReturn, ParamSpec, TypeVar

from covey.privacy.pure import frozen, pure

T = TypeVar("T")
U = TypeVar("U")
P = ParamSpec("P")


class Exact(Generic[T]):
    """A value computed on true records. Only a gate opens it.

    `exact.map(f)` applies a pure function and stays sealed; `Exact.of(f, a, b)` does so for several values. Everything else, a
    truth value, a comparison, a number, an iteration, a pickle, raises TypeError.
    """

    __slots__ = ("_sealed",)
    __array_ufunc__: ClassVar[None] = None  # numpy must not look inside either

    def __init__(self, value: T) -> None:
        self._sealed = value

    def map(self, function: Callable[Concatenate[T, P], U], *arguments: P.args, **named: P.kwargs) -> Exact[U]:
        """function(value, …), still sealed. The function is pure, and checked to be (`privacy.pure`)."""
        given: Any = {name: frozen(value) for name, value in named.items()}
        return Exact(pure(function)(self._sealed, *map(frozen, arguments), **given))

    @staticmethod
    def of(function: Callable[..., U], *values: Exact[Any]) -> Exact[U]:
        """function of several exact values, still sealed."""
        return Exact(pure(function)(*(value._sealed for value in values)))

    def __repr__(self) -> str:
        return "Exact(…)"

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(
            "an exact value of true records cannot be looked at, compared, converted or stored: measure it at the gate."
        )

    # Equality is refused as well: to mypy it returns NoReturn, so that what follows a comparison is flagged as unreachable.
    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = _refuse
    __float__ = __int__ = __index__ = __complex__ = __round__ = _refuse
    __array__ = __len__ = __iter__ = __contains__ = __getitem__ = _refuse
    __format__ = __bytes__ = _refuse
    __reduce_ex__ = __copy__ = __deepcopy__ = _refuse
