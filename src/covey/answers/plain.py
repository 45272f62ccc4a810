"""Everyday words of a question, turned into those that `asking` reads: average, 90th percentile, older than 65, women."""

from __future__ import annotations

import re
import shlex

from covey.answers.columns import Columns
from covey.errors import CannotAnswerError, ParameterError

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
FILLERS = (
    *(
        "of",
        "and",
        "the",
        "a",
        "an",
        "is",
        "are",
        "was",
        "were",
        "with",
        "who",
        "whose",
        "that",
        "have",
        "has",
        "there",
    ),
    *("all", "rows", "people", "persons", "everyone", "between", "minus", "versus", "vs"),
)
AMONG = ("among", "for", "in", "if", "when", "within")


def plain(columns: Columns, question: str) -> str:
    """The question in the words of `asking`; what is not understood stays as it is and is refused there."""
    text = " ".join(question.strip().rstrip("?!. ").split())
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
            out += (
                []
                if clause in out or not out or verb.lower() not in ("share", "mean", "median", "quantile")
                else [clause]
            )
        elif word not in FILLERS or word in columns.spoken:
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
    if word in columns.spoken or word in FILLERS or any(sign in word for sign in SIGNS):
        return word
    found = []
    for name in columns.askable:
        try:
            if columns.scale(name) is not None or columns.field(name).type == "boolean":
                continue
        except CannotAnswerError:
            continue
        labels = {label.lower(): label for label in columns.field(name).labels}
        same, other = (WOMEN, MEN) if word.lower() in WOMEN else (MEN, WOMEN)
        if word.lower() in labels:
            found.append(f"{name}={labels[word.lower()]}")
        elif word.lower() in same and any(label in other for label in labels):
            found += [f"{name}={labels[label]}" for label in labels if label in same]
    return found[0] if len(found) == 1 else word
