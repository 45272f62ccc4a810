"""Questions in words, as a command line takes them; everyday ones (average, 90th percentile, women) are turned into these.

share ward=surgery age>=65 given sex=f; share readmitted=yes by ward; top 5 ward
count ward=surgery
mean cost by ward where sex=f; trend cost by month
median cost, quantile 0.9 cost where ward=surgery; also quantile cost 0.9
difference mean cost sex=f sex=m
correlation age cost
regress cost ~ age + ward
rate by sex, wait, mean cost per event (of persons with events)
logistic readmitted ~ age + ward
relations
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.engine.noise.law import LAPLACE
from covey.errors import CannotAnswerError, ParameterError, nearest
from covey.release.answers.answer import About, Answer, AnswerTable, answers, checked, of_a_release
from covey.release.answers.columns import MISSING, Columns
from covey.release.answers.estimates import Estimate

if TYPE_CHECKING:
    from covey.release.answers.release import Release

VERBS = (
    *("share", "count", "top", "mean", "median", "quantile", "difference", "trend"),
    *("correlation", "regress", "logistic", "rate", "wait", "relations"),
)
PERIODS = ("month", "quarter", "year", "time")  # a grouping by one of them is by the column of dates
FIRST = 5  # groups that `top` shows unless it is told how many
TRIES = 6  # questions that are tried before one is shown as an example: each takes a fraction of a second
SIGNS = (">=", "<=", ">", "<", "=")
# How a question may begin, and what it then asks for.
OPENINGS = (
    (r"(what is|what are|what's|give me|show me|show|tell me|calculate|compute|find) ", ""),
    (r"the ", ""),
    (r"(average|avg|expected) ", "mean "),
    (r"(proportion|percentage|percent|fraction|probability) ", "share "),
    (r"(how many|number of|count of) ", "count "),
    (r"how much ", "mean "),
    (r"(\d+(?:\.\d+)?)(?:st|nd|rd|th)? percentile ", r"quantile \1% "),
    (r"percentile (\d+(?:\.\d+)?)%? ", r"quantile \1% "),
    (r"percentile (\S+) (\d+(?:\.\d+)?)%?", r"quantile \1 \2%"),
    (r"(largest|biggest|most common|most frequent|commonest) (?=\d)", "top "),
    (r"difference (?:in|of|between) ", "difference "),
    (r"difference (?:the )?average ", "difference mean "),
    (r"(relation|relationship|association) ", "correlation "),
    (r"(which |what )?(relations|rules)( hold| are there| were found)?$", "relations"),
)
# Comparisons between a column and a value.
COMPARED = (
    (r"(?:at least|from|no less than)", ">="),
    (r"(?:at most|up to|no more than)", "<="),
    (r"(?:older than|over|above|more than|greater than|larger than|higher than|after)", ">"),
    (r"(?:younger than|under|below|less than|smaller than|lower than|before)", "<"),
    (r"(?:is|are|equals|equal to)", "="),
)
AGED = ((r"\bolder than (?=\d)", "over "), (r"\byounger than (?=\d)", "under "), (r"\baged (?=\d)", "is "))
WOMEN = ("women", "woman", "female", "females", "girls", "f", "w", "weiblich", "frau", "frauen")
MEN = ("men", "man", "male", "males", "boys", "m", "männlich", "mann", "männer")
FILLER = re.compile(
    "of|and|the|a|an|is|are|was|were|with|who|whose|that|have|has|there|all|rows|people|persons|everyone|between|minus|versus|vs"
)
AMONG = ("among", "for", "in", "if", "when", "within")

CONDITIONS = {
    "share": "a share takes conditions, and more of them after given",
    "count": "a count takes conditions, without where or given",
    "rate": "a rate takes conditions before by",
    "correlation": "a correlation takes two columns, and no conditions",
}


@of_a_release
def ask(release: Release, question: str, **options: Any) -> Answer | AnswerTable:
    """The answer to a question in words; options are `confidence` and `about`. A refusal shows a near question that works."""
    try:
        found: Answer | AnswerTable = _ask(release, plain(release.columns, question), options)
        return found
    except ParameterError as error:
        for other in _near(release, question):
            try:
                _ask(release, other, {})
            except ParameterError:
                continue
            raise type(error)(f"{error} Try: {other}") from None
        raise


def _ask(release: Release, question: str, options: dict[str, Any]) -> Any:
    verb, _, rest = question.partition(" ")
    verb = verb.lower()
    if verb not in VERBS:
        raise ParameterError(
            f"a question begins with what is asked for, not with {verb!r}. {nearest(verb, VERBS, 'words')}"
        )
    if verb in ("regress", "logistic"):
        return release.regress(rest.strip(), "logistic" if verb == "logistic" else "linear", **options)
    if verb == "relations":
        if rest:
            raise ParameterError("relations takes no columns and no conditions.")
        return _relations(release, **options)
    columns = release.columns
    words = words_of(rest)
    if "per" in words and "per" not in columns.spoken:
        place = words.index("per")
        if words[place + 1 :] not in (["person"], ["event"]):
            raise ParameterError("a question ends with per person or per event.")
        if verb in ("correlation", "rate", "wait", "count"):
            raise ParameterError(f"a {verb} is of persons, who count equally: leave out per.")
        options, words = {**options, "per": words[place + 1]}, words[:place]
    if verb == "wait":
        if words:
            raise ParameterError("wait takes no columns and no conditions.")
        return release.wait(**options)
    own, by, where, given = _clauses(words, least=verb not in ("rate", "trend"), grouped=verb in ("share", "count"))
    by = _dates(columns) if by in PERIODS and by not in columns.spoken else by
    if verb in ("mean", "median", "quantile", "trend", "top"):  # what stands among the columns is a condition
        where += [word for word in own if _is_condition(columns, word)]
        own = [word for word in own if not _is_condition(columns, word)]
    wanted = conditions(columns, where or given) or None
    if (given and verb != "share") or (where and verb in CONDITIONS):
        raise ParameterError(f"{CONDITIONS.get(verb, f'{verb} takes conditions after where')}.")
    if by is not None and verb not in ("share", "mean", "rate", "difference", "trend", "count", "top"):
        raise ParameterError(f"a {verb} cannot be split by a column.")
    if verb in ("share", "rate"):
        of = conditions(columns, own)
        return release.share(of, wanted, by, **options) if verb == "share" else release.rate(of or None, by, **options)
    if verb == "count":
        return release.count(conditions(columns, own), by, confidence=options.get("confidence", 0.95))
    if verb == "top":
        return _top(release, own, by, wanted, options)
    if verb == "difference":
        return _difference(release, own, by, where, options)
    level, own = _level(own, columns.spoken) if verb == "quantile" else (0.5, own)
    if verb == "trend":
        by = by or _dates(columns)
        return release.mean(own[0], by, wanted, **options) if own else release.share({}, wanted, by, **options)
    if len(own) != (2 if verb == "correlation" else 1):
        raise ParameterError(f"a {verb} takes {'two columns' if verb == 'correlation' else 'one column'}.")
    if verb == "correlation":
        return release.correlation(*own, **options)
    if verb == "mean":
        return release.mean(own[0], by, wanted, **options)
    return release.quantile(own[0], level, wanted, **options)


def _relations(release: Release, confidence: float = 0.95, about: About = "population") -> AnswerTable:
    """The relations that a release found with noise, each with the share of rows that break it."""
    found = () if release.several else release.schema.found
    if not found:
        raise CannotAnswerError("this release found no relations between columns, or did not look for any.")
    broken, sd = np.array([[one.broken, one.sd] for one in found]).T
    share, rows = np.clip(broken, 0.0, 1.0), release.sampled(about)
    variance = sd**2 + (share * (1 - share) / rows if rows else 0.0)
    tails = LAPLACE.tails if release.privacy.budget.pure else 0.0
    estimate, words = Estimate(broken, variance, tails * sd**4, *np.zeros((2, len(found)))), tuple(map(str, found))
    # What was kept follows from the noisy counts, so the intervals hold for all that were counted, together.
    each = 1 - (1 - checked(confidence)) / max(one.looks for one in found)
    note = "relations were kept because few rows seemed to break them: the intervals hold for all that were counted, together"
    rows_that_break = answers(estimate, words, each, about, "share of rows that break it", (0.0, 1.0), note)
    own = tuple(replace(one, confidence=confidence) for one in rows_that_break)
    return AnswerTable(own, words, "relation")


def _top(
    release: Release, own: list[str], by: str | None, where: dict[str, Any] | None, options: dict[str, Any]
) -> AnswerTable:
    """The largest groups of a column, by their share or by a mean: top 5 ward, top 5 ward by cost.

    Which are shown follows from the answers, so the intervals hold for all groups together.
    """
    numbers = [word for word in own if word.isdecimal() and len(word) < 10 and word not in release.columns.spoken]
    names = [word for word in own if word not in numbers]
    if len(names) != 1 or len(numbers) > 1:
        raise ParameterError("top takes a number and one column: top 5 ward, or top 5 ward by cost.")

    def table(confidence: float) -> AnswerTable:
        wish = {**options, "confidence": confidence}
        found: AnswerTable = (
            release.share({}, where, names[0], **wish) if by is None else release.mean(by, names[0], where, **wish)
        )
        return found

    asked = float(options.get("confidence", 0.95))
    groups = sum(not one.refused for one in table(asked))
    found = table(1 - (1 - asked) / groups)
    kept = [k for k in np.argsort([-one.value for one in found]) if not found[int(k)].refused]
    kept = [int(k) for k in kept[: int(numbers[0]) if numbers else FIRST]]
    rows = tuple(replace(found[k], confidence=asked) for k in kept)
    return AnswerTable(rows, tuple(found.labels[k] for k in kept), found.heading)


def _difference(release: Release, own: list[str], by: str | None, where: list[str], options: dict[str, Any]) -> Answer:
    """A mean or a share of one group minus that of another: difference mean cost sex=f sex=m.

    Each is asked with half of the error, so that the interval of the difference errs as seldom as one answer.
    """
    columns, kind = release.columns, own[0] if own and own[0] in ("mean", "share") else None
    groups = [word for word in own[1:] if _is_condition(columns, word)][-2:]
    if by is not None:
        labels = columns.field(by).labels if columns.scale(by) is None else ()
        groups = [f"{by}={label}" for label in labels]
    what = [word for word in own[1:] if word not in groups]
    if kind is None or len(groups) != 2 or not what:
        raise ParameterError(
            "a difference takes a mean or a share, and two groups: difference mean cost sex=f sex=m, or by a column of two."
        )
    asked = float(options.get("confidence", 0.95))
    wish = {**options, "confidence": (1 + asked) / 2}
    sides = []
    for group in groups:
        meant = conditions(columns, [*where, group])
        one = release.mean(what[0], None, meant, **wish) if kind == "mean" else None
        sides.append(one or release.share(conditions(columns, what), meant, **wish))
    first, second = sides
    ends = first.low - second.high, first.high - second.low
    question = f"difference {kind} {' '.join(what)}: {groups[0]} minus {groups[1]}"
    se = float(np.hypot(first.se, second.se))
    return Answer(question, first.value - second.value, *ends, se, asked, first.about, first.method, first.note)


def _dates(columns: Columns) -> str:
    """The one column of dates, by which trends go."""
    found = [name for name in columns.askable if columns.field(name).type in ("date", "datetime")]
    if len(found) != 1:
        known = f"the table has {', '.join(map(repr, found))}: name one after by" if found else "the table has none"
        raise ParameterError(f"a trend needs one column of dates, and {known}.")
    return found[0]


def _near(release: Release, question: str) -> list[str]:
    """Questions near to one that was refused, in the table's own columns; the nearest first."""
    columns, seen = release.columns, list[str]()
    with suppress(ParameterError):
        question = plain(columns, question)
    known = columns.askable
    given: list[str] = []
    for word in question.replace("'", "").split():
        name = next((word.partition(sign)[0] for sign in SIGNS if sign in word), word)
        near = [name] if name in known else get_close_matches(name, known, n=1, cutoff=0.75)
        seen += [one for one in near if one not in seen]
        given += [near[0] + word[len(name) :]] if near and _signed(word) else []
    seen += [name for name in known if name not in seen]
    numbers = [name for name in seen[:50] if columns.kind(name) == "number"]
    groups = [name for name in seen[:50] if columns.kind(name) in ("categories", "flag")]
    found = []
    if given:
        found += [f"share {' '.join(given[:2])}", f"share {given[0]}"]
        found = [f"mean {name} where {given[0]}" for name in numbers[:1] if "mean" in question] + found
    if numbers and groups:
        first = f"mean {numbers[0]} by {groups[0]}"
        found = [*found, first] if given else [first, *found]
    found += [f"mean {name}" for name in numbers[:1]] + [f"top {FIRST} {name}" for name in groups[:1]]
    return found[:TRIES]


def _clauses(words: list[str], least: bool, grouped: bool) -> tuple[list[str], str | None, list[str], list[str]]:
    """What stands before by, where and given, and what follows each; before by there may be nothing if it is `grouped`."""
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
        if not inside and (word or (least and not (grouped and "by" in parts))):
            raise ParameterError(f"nothing follows {word!r}." if word else "what is asked for is missing.")
    by = parts.get("by", [None])
    if len(by) != 1:
        raise ParameterError("groups are those of one column: by ward.")
    return parts[""], by[0], parts.get("where", []), parts.get("given", [])


def _signed(word: str) -> bool:
    return any(sign in word for sign in SIGNS)


def _is_condition(columns: Columns, word: str) -> bool:
    """Whether a word compares a column with a value, and is no column itself: one may be called x>1."""
    return _signed(word) and word not in columns.spoken


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
        if word in names:
            raise ParameterError(f"{word!r} is no condition. It needs a value: {word}=…, {word}>=… or {word}=missing.")
        raise ParameterError(f"{word!r} is no condition. Write ward=surgery or age>=65.")
    place, _, sign = min(places)
    return word[:place], sign, word[place + len(sign) :]


def _value(columns: Columns, name: str, sign: str, text: str) -> Any:
    scale = columns.scale(name)
    if sign == "=":
        category = scale is None and text in columns.field(name).labels
        return text.split(",") if "," in text and not category else text
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
    raise ParameterError("a quantile takes a level between 0 and 1, such as 0.9: quantile 0.9 cost.")


# Everyday words.


def plain(columns: Columns, question: str) -> str:
    """The question in the words of `asking`; what is not understood stays as it is and is refused there."""
    asked = question.strip().rstrip("?!. ")
    text = re.sub(
        r"""("[^"]*"|'[^']*')|\s+""", lambda found: found[1] or " ", asked
    )  # names in quotes stay as they are
    for _ in range(2):  # "what is the average …" opens three times
        for opening, verb in OPENINGS:
            text = re.sub(f"^{opening}", verb, text, flags=re.IGNORECASE)
    verb, _, rest = text.partition(" ")
    if verb.lower() in ("regress", "logistic") or "~" in rest:
        return text
    words = [_meant(columns, word) for word in words_of(_compared(columns, rest))]
    clause = "given" if verb.lower() == "share" else "where"
    out: list[str] = []
    for word in words:
        if word in AMONG and word not in columns.spoken:
            if out and clause not in out and verb.lower() in ("share", "mean", "median", "quantile"):
                out.append(clause)
        elif not FILLER.fullmatch(word) or word in columns.spoken:
            out.append(word)
    return " ".join([verb, *map(shlex.quote, out)])


def words_of(rest: str) -> list[str]:
    """Words, conditions without blanks around their signs."""
    try:
        return shlex.split(re.sub(r"\s*(>=|<=|>|<|=)\s*", r"\1", rest))
    except ValueError:
        raise ParameterError(f"a quotation mark is not closed in {rest!r}.") from None


def _compared(columns: Columns, rest: str) -> str:
    """Comparisons in words as signs: "cost above 100", and "older than 65" where a column is called age."""
    ages = [name for name in columns.spoken if "age" in re.split(r"[^a-z]+", name.lower())]
    if len(ages) == 1:
        for words, sign in AGED:
            rest = re.sub(rf"(?<!{re.escape(ages[0])} ){words}", f"{ages[0]} {sign}", rest, flags=re.IGNORECASE)
    for name in columns.spoken:
        own = rf"(?<!\S)({re.escape(name)})"
        rest = re.sub(rf"{own} between (\d\S*) and (\d\S*)", r"\1>=\2 \1<=\3", rest)
        for words, sign in COMPARED:
            rest = re.sub(rf"{own} (?:is |are |was )?{words} (?=\S)", rf"\1{sign}", rest, flags=re.IGNORECASE)
    return rest


def _meant(columns: Columns, word: str) -> str:
    """A label that one column alone has, as a condition on it; "women" and "men" where a column tells them apart."""
    if word in columns.spoken or FILLER.fullmatch(word) or _signed(word):
        return word
    found = []
    for name in columns.askable:
        if columns.kind(name) != "categories":
            continue
        labels = {label.lower(): label for label in columns.field(name).labels}
        same, other = (WOMEN, MEN) if word.lower() in WOMEN else (MEN, WOMEN)
        if word.lower() in labels:
            found.append(f"{name}={labels[word.lower()]}")
        elif word.lower() in same and any(label in other for label in labels):
            found += [f"{name}={labels[label]}" for label in labels if label in same]
    return found[0] if len(found) == 1 else word
