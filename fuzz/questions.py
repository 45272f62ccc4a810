"""Every kind of question about every column of a release; an answer has finite numbers, or a reason."""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from covey.errors import CoveyError
from covey.release.answers.answer import Answer
from covey.release.answers.asking import ask
from fuzz.cases import Chance, draw_value

KINDS = ("share", "range", "given", "mean", "by", "where", "median", "quantile", "correlation", "regress", "logistic")
LINKED_KINDS = (
    "share",
    "range",
    "given",
    "mean",
    "by",
    "per event",
    "rate",
    "rate by",
    "rate of",
    "wait",
    "position",
    "gap",
)


def asked(chance: Chance, fields: list[Mapping[str, Any]], linked: bool) -> Iterator[tuple[str, str]]:
    """Questions, each with its kind."""
    for entry in fields:
        name, other = entry["name"], chance.choice(fields)
        own, theirs = condition(chance, entry), condition(chance, other)
        quoted, beside = shlex.quote(name), shlex.quote(other["name"])
        yield "share", f"share {own}"
        yield "range", "share " + shlex.quote(f"{name}{chance.choice(['>=', '<', '>', '<='])}{plain(chance, entry)}")
        yield "given", f"share {own} given {theirs}"
        yield "mean", f"mean {quoted}"
        yield "by", f"mean {quoted} by {beside}"
        if linked:
            yield "per event", f"share {own} per event"
            yield "per event", f"mean {quoted} by {beside} per event"
            yield "rate by", f"rate by {quoted}"
            yield "rate of", f"rate {own}"
            yield "position", f"share {own} given position=1"
        yield "where", f"mean {quoted} where {theirs}"
        yield "median", f"median {quoted}"
        yield "quantile", f"quantile {chance.choice(['0.9', '1%', '0.5'])} {quoted} where {theirs}"
        yield "correlation", f"correlation {quoted} {beside}"
        terms = " + ".join(f"`{one['name']}`" for one in chance.some(fields, 1, 3))
        yield "regress", f"regress `{name}` ~ {terms}"
        outcome = name if entry["type"] == "boolean" else f"{name}={plain(chance, entry)}"
        yield "logistic", f"logistic {outcome} ~ {terms}"
    if linked:
        yield from (("rate", "rate"), ("wait", "wait"), ("gap", "mean gap"))


def plain(chance: Chance, entry: Mapping[str, Any]) -> str:
    """A value that a field may have."""
    if entry["type"] == "string" and not entry.get("constraints", {}).get("enum"):
        return "x"
    value = draw_value(chance, dict(entry))
    return str(value).lower() if isinstance(value, bool) else str(value)


def condition(chance: Chance, entry: Mapping[str, Any]) -> str:
    """A condition on a field."""
    special = entry.get("covey", {}).get("special", [])
    value = chance.choice(["missing", *special, *(plain(chance, entry) for _ in range(4))])
    return shlex.quote(f"{entry['name']}={value}")


def ask_all(
    release: Any, chance: Chance, fields: list[Mapping[str, Any]], linked: bool
) -> tuple[Counter[str], list[str]]:
    """How many questions of each kind were answered, and what is wrong with answers."""
    answered: Counter[str] = Counter()
    wrong: list[str] = []
    for kind, question in asked(chance, fields, linked):
        options = {"confidence": chance.choice([0.95, 0.5]), "about": chance.choice(["population", "table"])}
        try:
            found = ask(release, question, **options)
        except CoveyError as error:
            wrong += [] if str(error).strip() else [f"{question}: refused without a word"]
            continue
        single = [found] if isinstance(found, Answer) else list(found)
        answered[kind] += any(not one.refused for one in single)
        wrong += [f"{question}: {words}" for one in single for words in troubles(one, kind)]
        json.dumps(found.as_dict(), allow_nan=False)
        _ = repr(found), found._repr_html_(), found.frame()
    return answered, wrong


def troubles(answer: Answer, kind: str) -> list[str]:
    """What is wrong with an answer."""
    if answer.refused:
        return [] if answer.note else ["no number and no reason"]
    numbers = (answer.value, answer.low, answer.high, answer.se)
    if not all(map(math.isfinite, numbers)):
        return [f"{numbers} are not finite"]
    if not answer.low <= answer.value <= answer.high:
        return [f"{answer.value} is not from {answer.low} to {answer.high}"]
    if kind in ("share", "range", "given") and not 0 <= answer.low <= answer.high <= 1:
        return [f"{numbers} is no share"]
    return []
