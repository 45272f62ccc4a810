"""Questions in words, as a command line takes them.

share ward=surgery age>=65 given sex=f
mean cost by ward where sex=f
median cost, quantile 0.9 cost where ward=surgery; also quantile cost 0.9
correlation age cost
regress cost ~ age + ward
rate by sex, wait, mean cost per event (of persons with events)
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
from covey.answers.release import Release
from covey.errors import ParameterError, nearest

VERBS = ("share", "mean", "median", "quantile", "correlation", "regress", "logistic", "rate", "wait")
FILLERS = ("of", "and")
SIGNS = (">=", "<=", ">", "<", "=")
HELP = (
    "Ask for example: share ward=surgery age>=65; mean cost by ward; correlation age cost; regress cost ~ age + ward. "
    "Of persons with events: mean cost by ward per person; rate by sex; rate ward=a; wait."
)

CONDITIONS = {
    "share": "a share takes conditions, and more of them after given",
    "rate": "a rate takes conditions before by",
    "correlation": "a correlation takes two columns, and no conditions",
}


def ask(release: Release, question: str, **options: Any) -> Answer | AnswerTable:
    """The answer to a question in words; options are `confidence` and `about`."""
    verb, rest = _verb(question)
    if verb in ("regress", "logistic"):
        return release.regress(rest.strip(), "logistic" if verb == "logistic" else "linear", **options)
    columns = release.columns
    words = [w for w in _words(rest) if w not in FILLERS or w in columns.spoken]
    if "per" in words and "per" not in columns.spoken:
        place = words.index("per")
        if words[place + 1 :] not in (["person"], ["event"]):
            raise ParameterError(f"a question ends with per person or per event. {HELP}")
        if verb in ("correlation", "rate", "wait"):
            raise ParameterError(f"a {verb} is of persons, who count equally: leave out per. {HELP}")
        options, words = {**options, "per": words[place + 1]}, words[:place]
    if verb == "wait":
        if words:
            raise ParameterError(f"wait stands alone. {HELP}")
        return release.wait(**options)
    own, by, where, given = _clauses(words, least=verb != "rate")
    wanted = conditions(columns, where or given) or None
    if (given and verb != "share") or (where and verb in ("share", "correlation", "rate")):
        raise ParameterError(f"{CONDITIONS.get(verb, f'{verb} takes conditions after where')}. {HELP}")
    if by is not None and verb not in ("mean", "rate"):
        raise ParameterError(f"groups are of means and rates: {verb} takes no by. {HELP}")
    if verb in ("share", "rate"):
        of = conditions(columns, own)
        return release.share(of, wanted, **options) if verb == "share" else release.rate(of or None, by, **options)
    level, own = _level(own, columns.spoken) if verb == "quantile" else (0.5, own)
    if len(own) != (2 if verb == "correlation" else 1):
        raise ParameterError(f"a {verb} takes {'two columns' if verb == 'correlation' else 'one column'}. {HELP}")
    if verb == "correlation":
        return release.correlation(*own, **options)
    found: Answer | AnswerTable
    found = (
        release.mean(own[0], by, wanted, **options)
        if verb == "mean"
        else release.quantile(own[0], level, wanted, **options)
    )
    return found


def _verb(question: str) -> tuple[str, str]:
    """What is asked for, and the rest of a question."""
    verb, _, rest = question.strip().partition(" ")
    verb = verb.lower()
    if verb not in VERBS:
        raise ParameterError(
            f"a question begins with what is asked for, not with {verb!r}. {nearest(verb, VERBS, 'words')} {HELP}"
        )
    return verb, rest


def _words(rest: str) -> list[str]:
    """Words, conditions without blanks around their signs."""
    try:
        return shlex.split(re.sub(r"\s*(>=|<=|>|<|=)\s*", r"\1", rest))
    except ValueError:
        raise ParameterError(f"a quotation mark is not closed in {rest!r}.") from None


def _clauses(words: list[str], least: bool) -> tuple[list[str], str | None, list[str], list[str]]:
    """What stands before by, where and given, which may be nothing unless `least`, and what follows each."""
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
        if not inside and (word or least):
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
        name, sign, text = _split(word, columns.spoken)
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
