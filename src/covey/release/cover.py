"""The first page of a report, for whoever must answer for a release: who, what for, which promise, how much is used up.

It prints on two sheets of paper at most, alone. The order of the whole report is that of the pyramid in NIST SP 800-226: what is
promised, and to whom; how it was computed, and how good it is; what all of it stands on.
"""

from __future__ import annotations

from math import exp
from typing import Any

from covey.html import Html, shorten, tag
from covey.privacy.budget import Budget, PrivacyStatement
from covey.release.contents import About
from covey.release.page import Part, facts, section
from covey.release.summary import domain_words
from covey.table.schema import Field, Schema

PRINTED = 24  # columns of the public table on paper: more would not fit two sheets; the others stand on the screen
SPELLED = 90  # characters of a list of categories; schema.json has all of them
LISTED = 2000  # columns in the list
UNSAID = "not stated"


def guess(epsilon: float, delta: float) -> float:
    """The best chance of telling two equally likely neighbours apart: (e^ε + δ)/(e^ε + 1)."""
    other = exp(-epsilon)
    return min(1.0, (1 + delta * other) / (1 + other))


def odds(privacy: PrivacyStatement) -> str:
    """The guarantee as a game against a coin, from ε and δ alone."""
    budget = privacy.budget
    rest = "those of one person" if budget.persons or budget.rows_per_person > 1 else "one"
    chance = 100 * guess(float(budget.epsilon), float(budget.delta))
    said = f"{chance:.1f}%" if chance < 99.95 else f"{chance:.4g}%"
    return (
        f"Suppose an attacker knows every row of the confidential table except {rest}, and must choose between two equally "
        f"likely versions of it. With this whole folder in hand the attacker {'would be' if privacy.seeded else 'is'} right in "
        f"at most {said} of cases; tossing a coin is right in 50%."
    )


def cover(privacy: PrivacyStatement, about: About, accuracy: str, *columns: Html) -> Part:
    """Owner, purpose, promise, budget and what is public, on one page; `columns` are those of `public_columns`."""
    rows: list[tuple[str, Any]] = [
        ("Owner", about.owner or UNSAID),
        ("Purpose", about.purpose or UNSAID),
        ("Promise", odds(privacy)),
        ("Protects", privacy.budget.protects),
        ("Budget used", used(privacy.budget, about)),
        ("Accuracy", accuracy),
    ]
    public = (
        f"The number of {privacy.budget.counted} ({privacy.n:,}), the method and the columns with the limits and categories "
        "below are public. Everything else in this folder was computed with noise and paid for from the budget."
    )
    inside = (facts(rows, "The release at a glance"), tag("p", public), *columns)
    key, title, markup = section("cover", "At a glance", *inside)
    return key, title, Html(markup.replace('class="card"', 'class="card cover"', 1))


def used(budget: Budget, about: About) -> Any:
    """This release's ε, all releases' so far, and the cap: in words, and as a bar of the cap's share that is used up."""
    own = budget.parameters
    if about.spent is None or about.used is None or not about.cap:
        return f"{own} by this release; what other releases have used is not known here"
    share = min(float(about.used), 1.0)
    parts = [("all releases so far", share), ("left", 1 - share)]
    words = (
        f"{own} by this release; ε = {float(about.spent):g} by all releases about these people so far, of a cap of "
        f"{float(about.cap):g} that is final. {share:.1%} of it is used"
    )
    pieces = [
        tag("span", class_=f"part {kind}", style=f"flex-grow:{part * 1000:.0f}", title=f"{name}: {part:.3g}")
        for (name, part), kind in zip(parts, ("p5", "spare"), strict=True)
        if part > 0
    ]
    return [words, tag("div", pieces, class_="stack thin", role="img", aria_label=f"Budget: {words}")]


def public_columns(schema: Schema, of: str = "", file: str = "schema.json") -> Html:
    """The schema as a table: what anyone may know of each column; `of` names the table where there are several."""
    width, of = len(schema.fields), of and f" of {of}"
    listed = []
    for place, own in enumerate(schema.fields[:LISTED]):
        cells = (own.type, domain(own), "always there" if own.required else "may be missing")
        row = [tag("th", shorten(own.name), scope="row"), *(tag("td", cell) for cell in cells)]
        listed.append(tag("tr", row, class_="screen" if place >= PRINTED else None))
    head = [tag("th", words, scope="col") for words in ("column", "type", "limits or categories", "cells")]
    caption = f"What the schema says about the {width:,} columns{of}"
    grid = tag("table", tag("caption", caption), tag("thead", tag("tr", head)), tag("tbody", listed), class_="public")
    table = tag("div", grid, class_="scroll", tabindex="0", role="group", aria_label=caption)
    notes = []
    if width > PRINTED:
        notes.append(tag("p", f"On paper the first {PRINTED} of {width:,} columns; {file} has all.", class_="paper"))
    if width > LISTED:
        notes.append(tag("p", f"The first {LISTED:,} of {width:,} columns are listed; {file} has all.", class_="note"))
    folded = tag("details", tag("summary", f"All {width:,} columns{of}"), table, open=width <= PRINTED)
    return tag("div", folded, notes, class_="apart")


def domain(field: Field) -> str:
    """Limits, or the categories themselves as far as a line has room for them."""
    if field.type != "string" or not field.enum:
        return domain_words(field)
    words = ", ".join(field.enum)
    return words if len(words) <= SPELLED else f"{domain_words(field)}: {shorten(words, SPELLED)}"


def foundations(privacy: PrivacyStatement) -> Part:
    """The lowest layer: what the promise rests on, and what nobody can read off a folder."""
    rows = [
        ("Who saw the real table", "only its owner; the guarantee is about what left the owner’s machine"),
        ("What the owner vouches for", f"that {privacy.budget.protects} is what one person has in the table"),
        *([("What it takes as public", " ".join(privacy.assumed))] if privacy.assumed else []),
        (
            "Noise",
            "whole numbers, drawn exactly, from the secure random source of the operating system"
            if not privacy.seeded
            else "drawn from a declared seed, for tests only",
        ),
        ("Counting the budget", "each measurement is written down and charged before its noise is drawn"),
        (
            "Side channels",
            "file names, sizes, messages and choices depend only on public facts and on noisy figures",
        ),
        ("Checks", "covey verify checks files, rows and budget; the audits of covey replay every kind of measurement"),
    ]
    words = (
        "A guarantee of privacy depends on who held the data, how the noise was made, and who checked. This folder cannot prove "
        "that. The owner vouches for the first two. The source, proofs and audits of covey are open."
    )
    return section(
        "foundations", "What the guarantee rests on", tag("p", words), facts(rows, "What the guarantee rests on")
    )


def example_question(schema: Schema, of: str = "") -> tuple[str, str]:
    """A question that this very table can be asked, for the command line and for Python; `of` stands before columns' names."""
    plain = [own for own in schema.encoded if own.name.isidentifier()]  # no name that would need quoting
    for own in plain:
        if own.type == "boolean":
            return f"share {of}{own.name}={own.flags[1]}", f'release.share({{"{of}{own.name}": True}})'
        if own.type == "string" and own.enum and own.enum[0].isidentifier():
            return f"share {of}{own.name}={own.enum[0]}", f'release.share({{"{of}{own.name}": "{own.enum[0]}"}})'
    numbers = [own.name for own in plain if own.type in ("integer", "number")]
    name = numbers[0] if numbers else "COLUMN"
    return f"mean {of}{name}", f'release.mean("{of}{name}")'
