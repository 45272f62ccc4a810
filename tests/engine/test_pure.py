"""What is done to exact values can neither keep nor tell what it sees: anything else fails before it runs."""

import functools
import logging
import warnings  # noqa: F401 # what a wrong function names
from dataclasses import dataclass, field

import numpy as np
import pytest

import covey.engine.exact
from covey.engine.codes.counts import moments
from covey.engine.codes.domain import CodeCounts, PairTables
from covey.engine.exact import frozen, pure
from covey.engine.gate import Exact
from covey.engine.units.rows import then
from covey.errors import InternalError

SEEN: list = []
KEPT: dict = {}
TABLE = np.zeros(3)
LOG = logging.getLogger("test")
LAST = 0
TWO = 2
keep = SEEN.append


def doubled(value, by=TWO):
    return np.sort(value * by)


def remembers(value):
    SEEN.append(value)
    return value


def has_a_list(value, seen=[]):  # noqa: B006 # that is what is wrong with it
    seen.append(value)
    return value


def fills(value, out):
    out[:] = value
    return value


@functools.cache
def cached(value):
    return value


class Box:
    items: list = []  # noqa: RUF012 # that is what is wrong with it

    def take(self, value):
        self.last = value
        return value


@dataclass(frozen=True)
class Fine:
    by: int

    def __call__(self, value):
        return self.times(value)

    def times(self, value):
        return value * self.by


@dataclass(frozen=True)
class WithList:
    seen: list = field(default_factory=list)

    def __call__(self, value):
        self.seen.append(value)
        return value


class TellsInAMethod(Fine):
    def times(self, value):
        return remembers(value)


@dataclass
class Thawed:
    by: int

    def __call__(self, value):
        return value * self.by


class Counter:
    def __call__(self, value):
        self.last = value
        return value


# What a function of one value does before it gives the value back.
STATEMENTS = {
    "a global": "global LAST; LAST = value",
    "an entry of the module": 'KEPT["last"] = value',
    "an array of the module": "TABLE[:] = value",
    "an attribute": "doubled.last = value",
    "a message": "print(value)",
    "a warning": "warnings.warn(str(value), stacklevel=2)",
    "a log": 'LOG.info("%s", value)',
    "a file": 'np.save("exact.npy", value)',
    "random numbers": "value = value + np.random.normal()",
    "an import": "import json",
    "a function that it calls": "value = doubled(remembers(value))",
    "a function inside": "value = [remembers(v) for v in value]",
    "a class": "Box.items.append(value)",
}


def doing(statement):
    made = {}
    exec(f"def kernel(value):\n    {statement}\n    return value", globals(), made)
    return made["kernel"]


WRONG = {name: doing(statement) for name, statement in STATEMENTS.items()} | {
    "a closure": (lambda seen: lambda value: seen.append(value))([]),
    "a method of a list": SEEN.append,
    "the same under another name": keep,
    "a list of the module": remembers,
    "a default": has_a_list,
    "print": print,
    "a file of numpy": np.save,
    "a ufunc of a Python function": np.frompyfunc(SEEN.append, 1, 1),
    "a cache": cached,
    "a method of what can change": Box().take,
    "an object with a list": WithList(),
    "a method that tells": TellsInAMethod(2),
    "an object that is not frozen": Thawed(2),
    "a step that tells": then(TellsInAMethod(2), doubled),
    "a kernel after a step": then(doubled, TellsInAMethod(2)),
    "an object that can be called": Counter(),
    "given a list": functools.partial(fills, out=[]),
    "given an object": functools.partial(fills, out=Box()),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_could_keep_or_tell_is_refused_before_it_runs(name):
    SEEN.clear()
    with pytest.raises(InternalError, match="could keep or tell"):
        Exact(np.arange(3)).map(WRONG[name])
    with pytest.raises(InternalError, match="could keep or tell"):
        Exact.of(WRONG[name], Exact(np.arange(3)))
    assert not SEEN
    with pytest.raises(InternalError):  # the second time too
        pure(WRONG[name])


def test_the_same_passes_where_nobody_looks(monkeypatch):
    """The refusals are those of the look at the code, not of something else on the way."""
    monkeypatch.setattr(covey.engine.exact, "_check", lambda *_: None)
    SEEN.clear()
    Exact(7).map(remembers)
    assert SEEN == [7]


@pytest.mark.parametrize(
    "function",
    [
        doubled,
        lambda value: value + TWO,
        Fine(3),
        Fine(3).times,
        functools.partial(doubled, by=3),
        np.sort,
        max,
        then(np.sort, Fine(3)),
        moments,
        PairTables((2, 3)),
        PairTables((2, 3)).matrix,
        CodeCounts((0, 1), (2, 3)),
    ],
)
def test_what_reads_its_arguments_and_constants_alone_passes(function):
    assert pure(function) is function or isinstance(function, functools.partial)


def test_arrays_are_handed_over_read_only():
    out = np.zeros(3)
    for ask in (
        lambda: Exact(np.arange(3)).map(fills, out),
        lambda: Exact(np.arange(3)).map(fills, out=out),
        lambda: pure(functools.partial(fills, out=out))(np.arange(3)),
        lambda: Exact(np.arange(3)).map(np.add, 1, out=out),
    ):
        with pytest.raises(ValueError, match="read-only"):
            ask()
    assert not out.any()
    assert out.flags.writeable  # for its owner
    assert frozen((1, (out,)))[1][0].base is out


def test_a_function_is_looked_at_once(monkeypatch):
    pure(doubled)
    monkeypatch.setattr(covey.engine.exact, "_look", None)
    pure(doubled)
