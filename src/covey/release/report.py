"""report.html: what a bundle holds, for a person who opens it; and two releases side by side. Made from these alone: public.

The pictures show the synthetic rows, the certificate, the budget and the noisy spectrum; no true row is within reach here. The
order is that of the pyramid in NIST SP 800-226: what is promised, and to whom; how it was computed, and how good it is; what all
of it stands on. The words are in `templates`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp
from typing import Any

import numpy as np

from covey.engine.arrays import Floats, Integers, blas_threads
from covey.engine.certificate import WORDS, Distances, of_hundred
from covey.engine.codes.counts import moments
from covey.engine.codes.distance import DEGREES, bit_distances, category_distances, misplaced_bits, misplaced_rows
from covey.engine.models.predict import small_groups
from covey.errors import ParameterError
from covey.markup import Html, shorten
from covey.release import charts
from covey.release.contents import NOTHING_SAID, About, AnonymousRelease, AnyRelease, Bounds, PrivateRelease
from covey.release.page import Part, attempted, render, section
from covey.release.pictures import beside, distributions, pair_map
from covey.release.statements import guarantee_words, risks, why
from covey.release.summary import Column, ReleaseTally, domain_words
from covey.release.verify import PACKAGE, SCHEMA
from covey.tables.codec import Codec
from covey.tables.description import Description
from covey.tables.schema import Field, Schema

FIRST = 5  # rows that a report opens with: enough to see what the table is
SAMPLED = 12  # columns of these rows: more do not fit on a screen
PRINTED = 24  # columns of the public table on paper: more would not fit two sheets; the others stand on the screen
SPELLED = 90  # characters of a list of categories; schema.json has all of them
LISTED = 2000  # columns in the list
DISTANCE_WORK = 2_000_000_000  # steps that finding the distance of rows and centres may take
CHARTS = 48  # columns of two releases that are drawn, the most different ones: a page that still opens at once
KINDS = ("first", "second")  # of two releases
NO_CERTIFICATE = "No part of the budget was set aside for a certificate, so this release has no bound on its error."


def _files(release: AnyRelease, seen: ReleaseTally, digests: Mapping[str, str], about: About) -> dict[str, Any]:
    """What both kinds of page say about the files of a bundle."""
    described, several = release.described, release.described.schema is None
    notes = described.notes if described.schema is None else described.schema.notes
    columns = list[Html]()
    for part in (part for part in described.tables if not part.bare):
        rows = [(shorten(own.name), own.type, _domain(own), own.required) for own in part.schema.fields[:LISTED]]
        given = {"of": f" of {part.name}" if several else "", "file": PACKAGE if several else SCHEMA}
        columns.append(
            render("public_columns.html", rows=rows, width=len(part.schema.fields), printed=PRINTED, **given)
        )
    return {
        "described": described,
        "several": several,
        "rows": seen.rows,
        "units": next(iter(seen.rows.values())),
        "width": len(described.fields),
        "columns": columns,
        "digests": digests,
        "version": release.version,
        "about": about,
        "notes": notes,
        "title": shorten(str(about.title or notes.get("title") or "Synthetic data"), 120),
    }


def _domain(field: Field) -> str:
    """Limits, or the categories themselves as far as a line has room for them."""
    if field.type != "string" or not field.enum:
        return domain_words(field)
    words = ", ".join(field.enum)
    return words if len(words) <= SPELLED else f"{domain_words(field)}: {shorten(words, SPELLED)}"


def report_html(
    release: AnyRelease, digests: Mapping[str, str], seen: ReleaseTally | None = None, about: About = NOTHING_SAID
) -> str:
    """The page of a bundle whose rows are in files with these SHA-256 digests; `seen` has counted these rows."""
    seen = ReleaseTally.of(release) if seen is None else seen
    files = _files(release, seen, digests, about.dated())
    if isinstance(release, AnonymousRelease):
        return _anonymous_page(release, files, _pictures(release, seen))
    known = release if release.own is not None else replace(release, own=rows_bounds(release, seen))
    return _private_page(known, files, seen)


def _pictures(release: AnyRelease, seen: ReleaseTally) -> list[Part]:
    """What every table looks like."""
    private, several = isinstance(release, PrivateRelease), release.described.schema is None
    found = list[Part]()
    for part in release.described.tables:
        if (table := seen.tables.get(part.name)) is None or not table.rows:
            continue
        columns, of = table.columns, part.name if several else ""
        # Of events, persons count equally in what was measured, and events in these pictures: no band would fit.
        bands = release.bands if isinstance(release, PrivateRelease) and part.parent is None else None
        title = f"What {of} look like" if of else "What the table looks like"
        found += attempted(title, distributions, columns, table.counts, private, bands, of)
        found += attempted("What became coarser", _limits, bands, release.described)
        paired = None if several else bands
        fine = table.some_fine if paired is not None else None
        found += attempted("What goes together", pair_map, columns, table.some, table.rows, paired, fine, of)
    return found


def _private_page(release: PrivateRelease, files: Mapping[str, Any], seen: ReleaseTally) -> str:
    privacy, budget = release.privacy, release.privacy.budget
    chance = guess(float(budget.epsilon), float(budget.delta))
    given = {"privacy": privacy, "budget": budget, "files": files, "chance": chance, "headline": headline(release)}
    bound, spending = release.accuracy or NO_CERTIFICATE, "How the budget was spent"
    sections = attempted("The first synthetic rows", _first_rows, given, seen)
    sections += [
        section("cover", "At a glance", "cover.html", accuracy=bound, **given),
        section("protects", "What it protects", "guarantee.html", guarantee_words=guarantee_words, **given),
        *attempted(spending, section, "budget", spending, "budget.html", **given),
        *attempted("How accurate it is", accuracy, release),
    ]
    if files["several"]:
        share = [f"{100 * value:.1f}%" for value in seen.events / max(1, seen.events.sum())]
        title = f"How many {files['described'].events.name} a synthetic person has"
        sections.append(section("events", title, "events.html", shares=list(enumerate(share))))
    sections += _pictures(release, seen)
    if (spectrum := release.fitted.spectrum) is not None:
        title = "What is stronger than the noise"
        sections += attempted(title, section, "noise", title, "spectrum.html", seen=spectrum)
    sections += [
        section("released", "What was released", "released.html", **given),
        section("foundations", "What the guarantee rests on", "foundations.html", **given),
        *attempted("Cite and reuse", _reuse, given),
    ]
    return render("private.html", sections=sections, **given)


def _anonymous_page(release: AnonymousRelease, files: Mapping[str, Any], pictures: list[Part]) -> str:
    """It says first what it is not, and carries no budget."""
    given = {"release": release, "files": files, "privacy": None}
    r, title = release.group_size, "What it protects, and what it does not"
    sections = [
        section("released", "What was released", "released.html", **given),
        section("protects", title, "anonymity.html", release=release, risks=risks(r), why=why(r)),
        section("accuracy", "What averaging lost", "averaging.html", release=release),
        *pictures,
        section("reuse", "Cite and reuse", "reuse.html", **given),
    ]
    return render("anonymous.html", sections=sections, **given)


def _first_rows(given: Mapping[str, Any], seen: ReleaseTally) -> Part:
    """What the release is in one line, for somebody who reads nothing else, and the first rows of every table."""
    tables = []
    for part in given["files"]["described"].tables:
        if (table := seen.tables.get(part.name)) is None or not table.rows:
            continue
        names = list(table.first)[:SAMPLED]
        rows = zip(*(list(table.first[name][:FIRST]) for name in names), strict=True)
        cells = [["—" if value is None or value != value else shorten(str(value), 30) for value in row] for row in rows]
        tables.append((part.name, [shorten(name, 30) for name in names], cells, len(table.first)))
    return section("first", "The first synthetic rows", "first.html", tables=tables, **given)


def _limits(bands: Any, described: Description) -> Part | None:
    """What the schema made of the confidential table, as far as the measurements tell; nothing where that is nothing."""
    notes = [] if bands is None else bands.notes()
    relations = () if described.schema is None else described.schema.found
    if not notes and not relations:
        return None
    return section("limits", "What became coarser", "limits.html", notes=notes, relations=relations)


def accuracy(release: PrivateRelease) -> Part:
    """The certificate: the average total variation distance; in technical terms, by degree."""
    found, schema, by_group = release.certificate, release.described.schema, list[tuple[str, str]]()
    groups = schema and small_groups(Codec(schema).kinds, release.privacy.n, release.privacy.budget)
    if found is not None and found.persons:
        by_group = [(WORDS[kind], f"≤ {charts.up(bound, 2)}") for kind, bound in (release.own or found.bound).items()]
    given: dict[str, Any] = {"bound": release.accuracy or NO_CERTIFICATE, "by_group": by_group, "groups": groups}
    given["seeded"] = release.privacy.seeded
    given |= {"certificate": found, "misplaced": None if found is None else found.misplaced}
    given["whole"] = Distances({}) if release.own is None else release.own
    return section("accuracy", "How accurate it is", "accuracy.html", **given)


def guess(epsilon: float, delta: float) -> float:
    """The best chance of telling two equally likely neighbours apart: (e^ε + δ)/(e^ε + 1)."""
    other = exp(-epsilon)
    return min(1.0, (1 + delta * other) / (1 + other))


def _reuse(given: Mapping[str, Any]) -> Part:
    """How to check, read, ask and cite the bundle, to be copied."""
    last = given["files"]["described"].tables[-1]
    question = _example_question(last.written, f"{last.name}." if given["files"]["several"] else "")
    return section("reuse", "Cite and reuse", "reuse.html", question=question, **given)


def _example_question(schema: Schema, of: str) -> str:
    """A question that this very table can be asked; `of` stands before columns' names."""
    plain = [own for own in schema.encoded if own.name.isidentifier()]  # no name that would need quoting
    for own in plain:
        label = own.flags[1] if own.type == "boolean" else own.enum[0] if own.type == "string" and own.enum else ""
        if own.type == "boolean" or label.isidentifier():
            return f"share {of}{own.name}={label}"
    return f"mean {of}{next((own.name for own in plain if own.type in ('integer', 'number')), 'COLUMN')}"


# What the certificate says.


def headline(release: PrivateRelease) -> list[tuple[str, str]]:
    """The certificate in one number."""
    found, whole = release.certificate, release.own
    if found is not None and found.persons:
        most = max((whole or found.bound).values())
        return [("of the persons would have to move in an average table", f"≤ {of_hundred(most)}%")]
    if found is None or found.misplaced is None:
        return []
    most = found.misplaced.bound if whole is None or whole.misplaced is None else whole.misplaced
    return [("of the rows would have to move in an average two-column table", f"≤ {of_hundred(most)}%")]


def rows_bounds(release: PrivateRelease, seen: ReleaseTally) -> Bounds:
    """What the certificate says of these very rows, where they came in one part."""
    if release.described.schema is None:
        return release.certified(seen.first)
    return _table_bounds(release, seen.only.fine(seen.only.first))


def _table_bounds(release: PrivateRelease, codes: Integers) -> Distances:
    """Bounds for these very rows, if all are here, for as many degrees as their distance to the centres is cheap to find."""
    certificate, cloud, numbers = release.certificate, release.row_law.cloud, release.numbers
    if certificate is None or len(codes) < release.parts.m:
        return Distances({})
    work = len(codes) * len(cloud) * codes.shape[1]
    degrees = [d for d in DEGREES if d in certificate.bound and work * d <= DISTANCE_WORK]
    with blas_threads(1):
        if numbers is not None:
            misplaced = misplaced_rows(codes, numbers.domain, cloud)
            distance = category_distances(codes, numbers.domain.sizes, cloud, degrees) if degrees else {}
        else:
            bits = codes.astype(np.uint8)
            misplaced = misplaced_bits(moments(bits), cloud)
            distance = bit_distances(bits, cloud, degrees) if degrees else {}
    return certificate.for_table(Distances({d: distance[d] for d in degrees if d in distance}, misplaced))


# Two releases side by side.

Shares = dict[str, tuple[Column, Floats]]  # of the columns of a table, by name


def two_releases(names: Sequence[str], releases: Sequence[AnyRelease]) -> Html:
    """A page about two releases of a table, in this order; `names` are those of their folders."""
    tallies = [ReleaseTally.of(release, growing=False) for release in releases]
    given = {"both": list(zip(releases, tallies, strict=True)), "names": names}
    sections = [section("promise", "What each promises", "beside.html", no_certificate=NO_CERTIFICATE, **given)]
    if any(isinstance(release, PrivateRelease) for release in releases):
        sections.append(section("budget", "How the budget was spent", "beside_budget.html", **given))
    several = any(release.described.schema is None for release in releases)
    ones, twos = (_tables(tally, several) for tally in tallies)
    drawn = [part for of in ones if of in twos and (part := _columns(of, ones[of], twos[of])) is not None]
    if not drawn:
        raise ParameterError("these two bundles have no column in common. Choose two releases of the same table.")
    return render("two_releases.html", sections=sections + drawn, names=names)


def _tables(tally: ReleaseTally, several: bool) -> dict[str, Shares]:
    """The columns of every table and their shares; the one table of a bundle has no name of its own."""
    found = {}
    for name, table in tally.tables.items():
        both = zip(table.columns, table.counts, strict=True)
        found[name if several else ""] = {column.name: (column, column.shares_of(counts)) for column, counts in both}
    return found


def _columns(of: str, one: Shares, two: Shares) -> Part | None:
    """Columns that both have, the most different first; those with other labels or limits are named."""
    cards, differing = list[Any](), list[tuple[str, str, str]]()
    for name, (column, shares) in ((name, own) for name, own in one.items() if name in two):
        other, both = two[name][0], (shares, two[name][1])
        if column.labels == other.labels:
            cards.append(beside(column, np.stack(both), KINDS, float(np.abs(both[0] - both[1]).sum() / 2)))
        else:
            differing.append((name, column.domain, other.domain))
    if not cards and not differing:
        return None
    cards.sort(key=lambda card: -card[1])
    only = [[name for name in own if name not in other] for own, other in ((one, two), (two, one))]
    given = {"cards": cards[:CHARTS], "width": len(cards), "kinds": KINDS, "differing": differing, "only": only}
    title = f"What {of} look like" if of else "Column by column"
    return section(f"columns-{of}" if of else "columns", title, "beside_columns.html", **given)
