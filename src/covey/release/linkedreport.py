"""report.html of persons with events: guarantee, accuracy, budget and one-way pictures of both tables. All of it is public."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from covey.core.arrays import Integers
from covey.html import Html, shorten, tag, text
from covey.methods.persons.certify import WORDS
from covey.release import charts
from covey.release.accuracy import NO_CERTIFICATE
from covey.release.contents import NOTHING_SAID, About
from covey.release.cover import cover, public_columns
from covey.release.linked import LinkedRelease
from covey.release.looks import distributions
from covey.release.page import Part, attempted, facts, page, section
from covey.release.sections import budget_bar, epsilon_words, guarantee, marks
from covey.release.summary import describe
from covey.table.codec import Codec
from covey.table.resources import Resource
from covey.table.schema import Schema


def linked_report(release: LinkedRelease, digests: Mapping[str, str], about: About = NOTHING_SAID) -> str:
    """The page of a bundle whose files have these SHA-256 digests."""
    privacy, budget, package = release.privacy, release.privacy.budget, release.package
    _, badges, banners = marks(privacy)
    tiles = [("persons", f"{release.parts.m:,}"), (epsilon_words(budget), f"{float(budget.epsilon):g}")]
    if release.stated is not None:
        bound = charts.up(max(release.stated.bound.values()), 2)
        tiles.append(("certified mean error of a table, in total variation", f"≤ {bound}"))
    first = release.first
    events = _counts(release, first)
    schemas = (package.unit.schema, package.events.written)
    looks = [
        shown
        for part, columns, schema in zip(package.tables, first, schemas, strict=True)
        for shown in attempted(f"What {part.name} look like", _looks, part, columns, schema)
    ]
    heading = shorten(str(about.title or package.notes.get("title") or "Synthetic data"), 120)
    public = [public_columns(part.schema, part.name, "datapackage.json") for part in package.tables if not part.bare]
    bound = NO_CERTIFICATE if release.stated is None else release.stated.sentence
    lead = f"Two linked tables that stand in for confidential ones of {privacy.n:,} persons. No row of them belongs to a person."
    sections = [
        cover(privacy, about, bound, *public),
        _released(release, digests, about.dated().made, len(events)),
        guarantee(privacy),
        *attempted("How accurate it is", _accuracy, release),
        *attempted("How the budget was spent", budget_bar, privacy),
        _events(release, np.bincount(events, minlength=package.link.at_most + 1)),
        *looks,
    ]
    last = f"Written by covey {release.version}. This page is one file without scripts; it loads nothing and sends nothing."
    return page(heading, "Release report", lead, badges, banners, tiles, sections, tag("p", last))


def _looks(part: Resource, columns: Mapping[str, object], schema: Schema) -> Part | None:
    """The columns of one of the tables; nothing of one without columns or rows."""
    if part.bare or not len(next(iter(columns.values()))):  # type: ignore[arg-type]
        return None
    codec = Codec(schema)
    codes, _ = codec.encode({name: columns[name] for name in schema.names})
    counts = [np.bincount(codes[:, j], minlength=size) for j, size in enumerate(codec.domain_sizes)]
    key, old, markup = distributions(describe(codec), counts, private=True)
    place, title = f"{key}-{part.name}", f"What {part.name} look like"  # a page has each key once
    shown = markup.replace(f'"{key}"', f'"{place}"').replace(old, text(title))  # names have letters, digits, _ and -
    return place, title, Html(shown)


def _counts(release: LinkedRelease, first: Sequence[Mapping[str, object]]) -> Integers:
    """How many events each synthetic person of the first part has."""
    one, two = release.package.tables
    ids, owners = (np.asarray(columns[part.link]) for columns, part in zip(first, (one, two), strict=True))
    return np.bincount(np.searchsorted(ids, owners), minlength=len(ids))


def _released(release: LinkedRelease, digests: Mapping[str, str], made: str, shown: int) -> Part:
    """What was released; pictures and numbers of events are those of so many persons."""
    (one, two), m = release.package.tables, release.parts.m
    rows = [
        ("Made from", f"confidential tables of {release.privacy.n:,} persons and their events"),
        ("Made by", f"covey {release.version}, {release.privacy.mechanism}"),
        ("Date", made),
        ("Link", f"{two.name}.{two.link} refers to {one.name}.{one.link}; numbers without meaning"),
        ("Events of a person", f"{release.package.link.at_most} at most"),
        *([("Pictures", f"of the first {shown:,} of {m:,} persons, who come in random order")] if shown < m else []),
        *((name, [tag("code", digest), tag("span", "SHA-256", class_="note")]) for name, digest in digests.items()),
    ]
    words = (
        "Persons and their events were drawn at random from a private model. The package, the number of persons and the method "
        "are public; the true number of events is not."
    )
    return section("released", "What was released", tag("p", words), facts(rows, "About this release"))


def _accuracy(release: LinkedRelease) -> Part:
    found, title = release.stated, "How accurate it is"
    if found is None:
        return section("accuracy", title, tag("p", NO_CERTIFICATE))
    rows = [(WORDS[kind], f"≤ {charts.up(bound, 2)}") for kind, bound in found.bound.items()]
    words = (
        "Total variation is the largest error of the share of any set of cells of a table, from 0 to 1. The bound is about the "
        "mean over the tables of each group, was measured on the true data with noise, and is private too. It does not speak of "
        "single rare cells."
    )
    return section(
        "accuracy",
        title,
        tag("p", found.sentence, class_="statement"),
        tag("p", words),
        facts(rows, "Bounds by group of tables"),
    )


def _events(release: LinkedRelease, counts: Integers) -> Part:
    share = counts / max(1, counts.sum())
    rows = [(str(k), f"{100 * float(value):.1f}%") for k, value in enumerate(share)]
    return section(
        "events",
        f"How many {release.package.events.name} a synthetic person has",
        tag("details", tag("summary", "Shares of persons"), facts(rows, "Number of events and share of persons")),
    )
