"""Questions in words, as a command line takes them.

share ward=surgery age>=65 given sex=f
mean cost by ward where sex=f
median cost, quantile 0.9 cost where ward=surgery
correlation age cost
regress cost ~ age + ward
logistic readmitted ~ age + ward
"""

from __future__ import annotations

import re
import shlex
from typing import Any

from covey.answers.answer import Answer, AnswerTable
from covey.answers.columns import MISSING
from covey.answers.release import Release
from covey.errors import ParameterError, nearest

VERBS = ("share", "mean", "median", "quantile", "correlation", "regress", "logistic")
SIGNS = (">=", "<=", ">", "<", "=")
HELP = (
    "Ask for example: share ward=surgery age>=65; mean cost by ward; correlation age cost; regress cost ~ age + ward."
)


def ask(release: Release, question: str, **options: Any) -> Answer | AnswerTable:
    """The answer to a question in words; options are `confidence` and `about`."""
    verb, _, rest = question.strip().partition(" ")
    if verb not in VERBS:
        raise ParameterError(
            f"a question begins with what is asked for, not with {verb!r}. {nearest(verb, VERBS, 'words')}"
        )
    if verb in ("regress", "logistic"):
        return release.regress(rest.strip(), "logistic" if verb == "logistic" else "linear", **options)
    try:
        words = shlex.split(re.sub(r"\s*(>=|<=|>|<|=)\s*", r"\1", rest))
    except ValueError:
        raise ParameterError(f"a quotation mark is not closed in {question!r}.") from None
    own, by, where, given = _clauses(words)
    wanted = conditions(release, where or given)
    if verb == "share":
        if by is not None or where:
            raise ParameterError("a share takes conditions, and more of them after given. " + HELP)
        return release.share(conditions(release, own), wanted or None, **options)
    if given:
        raise ParameterError(f"{verb} takes conditions after where. " + HELP)
    if verb == "correlation":
        if len(own) != 2 or where or by is not None:
            raise ParameterError("a correlation takes two columns. " + HELP)
        return release.correlation(*own, **options)
    if verb == "mean":
        if len(own) != 1:
            raise ParameterError("a mean takes one column. " + HELP)
        found: Answer | AnswerTable = release.mean(own[0], by, wanted or None, **options)
        return found
    q = 0.5 if verb == "median" else _number(own.pop(0) if own else "")
    if len(own) != 1 or by is not None:
        raise ParameterError("a quantile takes its level and one column: quantile 0.9 cost. " + HELP)
    return release.quantile(own[0], q, wanted or None, **options)


def _clauses(words: list[str]) -> tuple[list[str], str | None, list[str], list[str]]:
    """What stands before by, where and given, and what follows each."""
    parts: dict[str, list[str]] = {"": []}
    at = ""
    for word in words:
        if word in ("by", "where", "given"):
            if word in parts:
                raise ParameterError(f"{word!r} stands twice in the question.")
            parts[word], at = [], word
        else:
            parts[at].append(word)
    for word, inside in parts.items():
        if not inside:
            raise ParameterError(
                f"nothing follows {word!r}. {HELP}" if word else f"what is asked for is missing. {HELP}"
            )
    by = parts.get("by", [None])
    if len(by) != 1:
        raise ParameterError("groups are those of one column: by ward.")
    return parts[""], by[0], parts.get("where", []), parts.get("given", [])


def conditions(release: Release, words: list[str]) -> dict[str, Any]:
    """Conditions such as ward=surgery,medicine or age>=65; two ends of a range may be given one after the other."""
    out: dict[str, Any] = {}
    for word in words:
        name, sign, text = _split(word)
        release.columns.place(name)
        value = _value(release, name, sign, text)
        if name not in out:
            out[name] = value
        elif isinstance(value, tuple) and isinstance(out[name], tuple):
            out[name] = tuple(b if a is None else a for a, b in zip(out[name], value, strict=True))
        else:
            raise ParameterError(f"{name!r} has two conditions: give one, or the two ends of a range.")
    return out


def _split(word: str) -> tuple[str, str, str]:
    places = [(word.find(sign), -len(sign), sign) for sign in SIGNS if sign in word]
    if not places:
        raise ParameterError(f"{word!r} is no condition. Write ward=surgery or age>=65.")
    place, _, sign = min(places)
    return word[:place], sign, word[place + len(sign) :]


def _value(release: Release, name: str, sign: str, text: str) -> Any:
    scale = release.columns.scale(name)
    if sign == "=":
        return text.split(",") if "," in text and not _is_category(release, name, text) else text
    if scale is None:
        raise ParameterError(
            f"{name!r} has categories, which are not ordered: write {name}=… with one or several of them."
        )
    if text == MISSING:
        raise ParameterError(f"missing is no value to compare with. Write {name}=missing.")
    up = sign in (">", ">=")
    if sign in (">", "<"):  # the next step of the column's precision
        text = scale.shown(release.columns.step(scale, text, up=not up) + (1 if up else -1))
    return (text, None) if up else (None, text)


def _is_category(release: Release, name: str, text: str) -> bool:
    return release.columns.scale(name) is None and text in release.columns.field(name).labels


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"a quantile takes its level first, such as 0.9, got {text!r}.") from None
