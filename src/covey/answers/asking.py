"""Questions in words, as a command line takes them.

share ward=surgery age>=65 given sex=f
mean cost by ward where sex=f
median cost, quantile 0.9 cost where ward=surgery; also quantile cost 0.9
correlation age cost
regress cost ~ age + ward
rate by sex, wait (of persons with events)
logistic readmitted ~ age + ward

The words "of" and "and" may stand where they would in a sentence: mean of cost where sex=f and age>=65.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np

from covey.answers.answer import Answer, AnswerTable
from covey.answers.columns import MISSING, Columns
from covey.answers.linked import LinkedAnswers
from covey.answers.release import Release
from covey.errors import ParameterError, nearest

VERBS = ("share", "mean", "median", "quantile", "correlation", "regress", "logistic")
LINKED_VERBS = ("share", "mean", "rate", "wait")
LINKED_HELP = (
    "Ask for example: share ward=surgery given sex=f; mean cost by ward per person; rate by sex; rate ward=a; wait."
)
FILLERS = ("of", "and")
SIGNS = (">=", "<=", ">", "<", "=")
HELP = (
    "Ask for example: share ward=surgery age>=65; mean cost by ward; correlation age cost; regress cost ~ age + ward."
)


def ask(release: Release | LinkedAnswers, question: str, **options: Any) -> Answer | AnswerTable:
    """The answer to a question in words; options are `confidence` and `about`."""
    if isinstance(release, LinkedAnswers):
        return ask_linked(release, question, **options)
    verb, rest = _verb(question, VERBS, HELP)
    if verb in ("regress", "logistic"):
        return release.regress(rest.strip(), "logistic" if verb == "logistic" else "linear", **options)
    own, by, where, given = _clauses([w for w in _words(rest) if w not in FILLERS or w in release.schema.names])
    wanted = conditions(release.columns, where or given)
    if verb == "share":
        if by is not None or where:
            raise ParameterError("a share takes conditions, and more of them after given. " + HELP)
        return release.share(conditions(release.columns, own), wanted or None, **options)
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
    q, column = (0.5, own) if verb == "median" else _level(own, release.schema.names)
    if len(column) != 1 or by is not None:
        raise ParameterError(f"a {verb} takes one column, and conditions after where. " + HELP)
    return release.quantile(column[0], q, wanted or None, **options)


def _verb(question: str, verbs: tuple[str, ...], hint: str) -> tuple[str, str]:
    """What is asked for, and the rest of a question."""
    verb, _, rest = question.strip().partition(" ")
    verb = verb.lower()
    if verb not in verbs:
        raise ParameterError(
            f"a question begins with what is asked for, not with {verb!r}. {nearest(verb, verbs, 'words')} {hint}"
        )
    return verb, rest


def _words(rest: str) -> list[str]:
    """Words, conditions without blanks around their signs."""
    try:
        return shlex.split(re.sub(r"\s*(>=|<=|>|<|=)\s*", r"\1", rest))
    except ValueError:
        raise ParameterError(f"a quotation mark is not closed in {rest!r}.") from None


def ask_linked(release: LinkedAnswers, question: str, **options: Any) -> Answer | AnswerTable:
    """The same of persons with events: share, mean, rate and wait; "per person" or "per event" may stand at the end."""
    verb, rest = _verb(question, LINKED_VERBS, LINKED_HELP)
    resources = release.described.tables
    names = [name for part in resources for own in part.schema.names for name in (own, f"{part.name}.{own}")]
    words = [w for w in _words(rest) if w not in FILLERS or w in names]
    if "per" in words and "per" not in names:
        place = words.index("per")
        if words[place + 1 :] not in (["person"], ["event"]):
            raise ParameterError(f"a question ends with per person or per event. {LINKED_HELP}")
        options, words = {**options, "per": words[place + 1]}, words[:place]
    if verb == "wait":
        if words or "per" in options:
            raise ParameterError(f"wait stands alone. {LINKED_HELP}")
        return release.wait(**options)
    if verb == "rate":
        if "per" in options:
            raise ParameterError(f"a rate is of events per person: leave out per. {LINKED_HELP}")
        own, by, where, given = _clauses(words if words and words[0] != "by" else ["", *words])
        if where or given:
            raise ParameterError(f"a rate takes conditions before by. {LINKED_HELP}")
        found: Answer | AnswerTable = release.rate(
            _linked(release, [w for w in own if w], names) or None, by, **options
        )
        return found
    own, by, where, given = _clauses(words)
    wanted = _linked(release, where or given, names)
    if verb == "share":
        if by is not None or where:
            raise ParameterError(f"a share takes conditions, and more of them after given. {LINKED_HELP}")
        return release.share(_linked(release, own, names), wanted or None, **options)
    if len(own) != 1 or given:
        raise ParameterError(f"a mean takes one column, and conditions after where. {LINKED_HELP}")
    mean: Answer | AnswerTable = release.mean(own[0], by, wanted or None, **options)
    return mean


def _linked(release: LinkedAnswers, words: list[str], names: Sequence[str]) -> dict[str, Any]:
    """Conditions on columns of either table."""
    out: dict[str, Any] = {}
    for word in words:
        name, sign, text = _split(word, names)
        own = release.evidence.find(name)
        value = _value(release.evidence.fine[own.side], own.name, sign, text)
        if name in out:
            raise ParameterError(f"{name!r} has two conditions: give one.")
        out[name] = value
    return out


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


def conditions(columns: Columns, words: list[str]) -> dict[str, Any]:
    """Conditions such as ward=surgery,medicine or age>=65; two ends of a range may be given one after the other."""
    out: dict[str, Any] = {}
    for word in words:
        name, sign, text = _split(word, columns.codec.schema.names)
        columns.place(name)
        value = _value(columns, name, sign, text)
        if name not in out:
            out[name] = value
        elif isinstance(value, tuple) and isinstance(out[name], tuple):
            out[name] = tuple(b if a is None else a for a, b in zip(out[name], value, strict=True))
        else:
            raise ParameterError(
                f"{name!r} has two conditions: give one, several categories with commas, or the two ends of a range."
            )
    return out


def _split(word: str, names: Sequence[str]) -> tuple[str, str, str]:
    """A column, a sign and a value. A column's own name may hold signs: the longest name that fits is meant."""
    for name in sorted((n for n in names if word.startswith(n)), key=len, reverse=True):
        rest = word[len(name) :]
        sign = next((sign for sign in SIGNS if rest.startswith(sign)), None)
        if sign is not None:
            return name, sign, rest[len(sign) :]
    places = [(word.find(sign), -len(sign), sign) for sign in SIGNS if sign in word]
    if not places:
        raise ParameterError(f"{word!r} is no condition. Write ward=surgery or age>=65.")
    place, _, sign = min(places)
    return word[:place], sign, word[place + len(sign) :]


def _value(columns: Columns, name: str, sign: str, text: str) -> Any:
    scale = columns.scale(name)
    if sign == "=":
        return text.split(",") if "," in text and not _is_category(columns, name, text) else text
    if scale is None:
        raise ParameterError(
            f"{name!r} has categories, which are not ordered: write {name}=… with one or several of them."
        )
    if text == MISSING:
        raise ParameterError(f"missing is no value to compare with. Write {name}=missing.")
    up = sign in (">", ">=")
    if sign in (">", "<"):  # the next step of the column's precision, where there is one
        step, axis = columns.step(scale, text, up=not up) + (1 if up else -1), scale.grid.axis
        if step > axis.high if up else step < axis.low:
            ends = f"{scale.shown(axis.low)} and {scale.shown(axis.high)}"
            raise ParameterError(
                f"no value of {name!r} in the schema meets {name}{sign}{text}: its values lie between {ends}."
            )
        text = scale.shown(int(np.clip(step, axis.low, axis.high)))
    return (text, None) if up else (None, text)


def _is_category(columns: Columns, name: str, text: str) -> bool:
    return columns.scale(name) is None and text in columns.field(name).labels


def _level(words: list[str], names: Sequence[str]) -> tuple[float, list[str]]:
    """The level of a quantile, before or after its column, and the other words; 90% is 0.9."""
    for word in sorted(words, key=names.__contains__):  # a column may be called 2024
        part = word.removesuffix("%")
        try:
            found = float(part) / (100 if part != word else 1)
        except ValueError:
            continue
        rest = list(words)
        rest.remove(word)
        return found, rest
    raise ParameterError(f"a quantile takes a level between 0 and 1, such as 0.9: quantile 0.9 cost. {HELP}")
