"""Values computed on true records: sealed, so that nothing but a gate (`privacy.gate`) can look at them.

What may be done to them: functions that can neither keep nor tell what they see. A kernel over records and a function that is
mapped over a sealed value read their arguments and constants, and return. So they have no closure, and reach nothing that can
change: no list or dictionary of a module, no attribute that they set, no file, no message, no random number. Their arguments
cannot change either: numbers, texts, tuples, frozen dataclasses, and arrays, which they get read-only. The code itself is looked
at, with all functions of covey that it names, once for each code object. What a method of an argument does is not looked at; the
replay odometer (audits/odometer.py) sees what it lets out.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cached_property, partial
from inspect import getattr_static
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, ClassVar, Concatenate, Generic, NoReturn, ParamSpec, TypeVar

import numpy as np

from covey.errors import InternalError

F = TypeVar("F", bound=Callable[..., Any])

CONSTANTS = (int, float, complex, str, bytes, bool, type(None), Fraction, slice, range, np.generic, np.dtype, type)
LIBRARIES = ("numpy", "scipy", "math", "itertools", "functools", "collections", "operator", "fractions", "builtins")
# By name, wherever they stand in code: what writes, tells, draws, or makes other code.
TELL = ("print", "open", "input", "breakpoint", "warnings", "logging", "os", "sys", "io", "time")
MAKE = ("exec", "eval", "compile", "setattr", "delattr", "globals", "locals", "vars", "__import__", "__dict__")
DRAW = ("random", "default_rng")
WRITE = ("save", "savez", "savez_compressed", "savetxt", "tofile", "memmap")
EFFECTS = frozenset((*TELL, *MAKE, *DRAW, *WRITE))
WRITES = ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "IMPORT_NAME")
_sound: set[CodeType] = set()


def pure(function: F) -> F:
    """The function, if it can keep and tell nothing; its arrays are read-only then. Anything else is our mistake."""
    if isinstance(function, partial):
        given = {name: frozen(value) for name, value in function.keywords.items()}
        return partial(pure(function.func), *map(frozen, function.args), **given)  # type: ignore[return-value]
    if isinstance(function, MethodType):
        frozen(function.__self__)
        _check(function.__func__, type(function.__self__))
    elif is_dataclass(function):
        frozen(function)
    else:
        _name(function)
    return function


def frozen(value: Any) -> Any:
    """An argument that no function can change: arrays read-only, other things as they are, or a refusal."""
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    if isinstance(value, tuple | frozenset):
        return type(value)(map(frozen, value)) if type(value) in (tuple, frozenset) else value
    if isinstance(value, CONSTANTS):
        return value
    if not is_dataclass(value):
        return pure(value) if callable(value) else _refuse(f"reaches a {type(value).__name__}, which can change")
    if not type(value).__dataclass_params__.frozen:  # type: ignore[union-attr]
        _refuse(f"reaches a {type(value).__name__}, which is not frozen")
    for field in fields(value):
        frozen(getattr(value, field.name))
    if callable(value):
        _check(type(value).__call__, type(value))
    return value


def _check(function: Any, owner: type | None = None) -> None:
    """Look at a Python function, and at those that it names; `owner` is the class whose method it is."""
    if not isinstance(function, FunctionType):
        _refuse(f"is {function!r}, whose code cannot be looked at")
    if function.__code__ in _sound:
        return
    if function.__closure__:
        names = ", ".join(function.__code__.co_freevars)
        _refuse(f"{function.__qualname__} has a closure: give it {names} as arguments")
    for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        frozen(default)
    _sound.add(function.__code__)  # now: functions may name each other
    try:
        _look(function.__code__, function.__globals__, owner)
    except InternalError:
        _sound.clear()  # also those that were found sound because they name this one
        raise


def _look(code: CodeType, outside: dict[str, Any], owner: type | None) -> None:
    """Refuse code that writes to anything but its own variables, or names what can change."""
    if effects := EFFECTS.intersection(code.co_names):
        _refuse(f"{code.co_qualname} names {', '.join(sorted(effects))}")
    steps = list(dis.get_instructions(code))
    for place, step in enumerate(steps):
        if step.opname in WRITES:
            _refuse(f"{code.co_qualname} writes to or imports {step.argval}")
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            found = outside.get(step.argval, getattr(builtins, step.argval, None))
            for after in steps[place + 1 :]:  # module.function, and what a class holds
                if after.opname not in ("LOAD_ATTR", "LOAD_METHOD") or not isinstance(found, ModuleType | type):
                    break
                found = getattr_static(found, after.argval, None)
            _name(found)
    for name in code.co_names if owner is not None else ():
        member = getattr_static(owner, name, None)
        member = getattr(member, "fget", getattr(member, "func", getattr(member, "__func__", member)))
        if isinstance(member, FunctionType):
            _check(member, owner)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            _look(inner, outside, owner)


def _name(found: Any) -> None:
    """Refuse what code finds outside of its arguments, unless it stays as it is."""
    found = found.__func__ if isinstance(found, staticmethod | classmethod) else found
    if isinstance(found, property | cached_property | type):
        return
    home = found.__name__ if isinstance(found, ModuleType) else str(getattr(found, "__module__", None))
    known = home.split(".")[0] in LIBRARIES and getattr(found, "__name__", None) not in EFFECTS
    if isinstance(found, np.ufunc):  # numpy's own; one that is made of a Python function is none
        known = getattr(np, found.__name__, None) is found
    if isinstance(found, BuiltinFunctionType):  # list.append of some list is one, too
        known = known and isinstance(found.__self__, ModuleType | type(None))
    if known or (isinstance(found, ModuleType) and home.startswith("covey.")):
        return
    if isinstance(found, FunctionType):
        _check(found)
    elif isinstance(found, np.ndarray) and found.flags.writeable:
        _refuse("reaches an array of a module, which can change")
    elif callable(found) and not is_dataclass(found):  # a cache, say, or an object with a state
        _refuse(f"reaches a {type(found).__name__}, whose code cannot be looked at")
    else:
        frozen(found)


def _refuse(what: str) -> NoReturn:
    raise InternalError(f"a function of exact values {what}: it could keep or tell what it sees. Nothing is released.")


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
            "an exact value of real records cannot be shown, compared, converted or stored. Measure it at the gate."
        )

    # Equality is refused as well: to mypy it returns NoReturn, so that what follows a comparison is flagged as unreachable.
    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = _refuse
    __float__ = __int__ = __index__ = __complex__ = __round__ = _refuse
    __array__ = __len__ = __iter__ = __contains__ = __getitem__ = _refuse
    __format__ = __bytes__ = _refuse
    __reduce_ex__ = __copy__ = __deepcopy__ = _refuse
