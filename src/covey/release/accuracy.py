"""How accurate a release is, for its report: the yardstick in words and as a picture, the paper's measure in a fold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from covey.core.arrays import Integers, blas_threads
from covey.core.tables.counts import moments
from covey.core.tables.distance import DEGREES, bit_distances, category_distances, misplaced_bits, misplaced_rows
from covey.html import Html, tag
from covey.methods.regain.predict import small_groups
from covey.privacy.certificate import WORDS, Certificate, Distances, OutOfPlace, TableBounds, of_hundred
from covey.release import charts
from covey.release.charts import number
from covey.release.contents import Bounds, PrivateRelease
from covey.release.page import Part, facts, section
from covey.table.codec import Codec

DISTANCE_WORK = 2_000_000_000  # steps that finding the distance of rows and centres may take
NO_CERTIFICATE = "No part of the budget was set aside for a certificate, so this release has no bound on its error."
HUNDRED = 100  # rows in the picture
ACROSS = 25  # of them in a line


def accuracy(release: PrivateRelease, whole: Bounds) -> Part:
    """The certificate: the average total variation distance; in technical terms, by degree."""
    title, certificate, privacy = "How accurate it is", release.certificate, release.privacy
    schema = release.described.schema
    kinds = None if schema is None else Codec(schema).kinds
    groups = None if kinds is None else small_groups(kinds, privacy.n, privacy.budget)
    small = [] if groups is None else [tag("p", groups.sentence)]
    if certificate is None:
        return section("accuracy", title, tag("p", NO_CERTIFICATE), *small)
    if certificate.persons:
        return _of_persons(replace(certificate, bound=whole or certificate.bound), title)
    whole = TableBounds({}) if whole is None else whole
    paid = "The bound was measured on the real data with noise and paid for from the same budget. It is private too."
    parts = [tag("p", stated(certificate, whole), class_="statement")]
    if certificate.misplaced is not None:
        parts += yardstick(certificate.misplaced, whole.misplaced)
    return section("accuracy", title, *parts, *small, tag("p", paid), technical(certificate, whole))


def _of_persons(found: Certificate, title: str) -> Part:
    """The certificate of persons with events, by group of tables."""
    rows = [(WORDS[kind], f"≤ {charts.up(bound, 2)}") for kind, bound in found.bound.items()]
    words = (
        "The total variation distance is the proportion of persons that would have to move to make two tables equal. The bound "
        "is about the average over the tables of each group. It was measured on the real data with noise, so it is private too. "
        "It says nothing about a single rare cell."
    )
    shown = facts(rows, "Bounds by group of tables")
    return section("accuracy", title, tag("p", found.sentence, class_="statement"), tag("p", words), shown)


def headline(release: PrivateRelease, whole: Bounds) -> list[tuple[str, str]]:
    """The certificate in one number."""
    found = release.certificate
    if found is not None and found.persons:
        most = max((whole or found.bound).values())
        return [("of the persons would have to move in an average table", f"≤ {of_hundred(most)}%")]
    if found is None or found.misplaced is None:
        return []
    most = found.misplaced.bound if whole is None or whole.misplaced is None else whole.misplaced
    return [("of the rows would have to move in an average two-column table", f"≤ {of_hundred(most)}%")]


def stated(certificate: Certificate | None, whole: Bounds) -> str | None:
    """The bound in words: for these very rows where it was computed, otherwise for the model that they were drawn from."""
    if certificate is None:
        return None
    if certificate.persons:
        return replace(certificate, bound=whole or certificate.bound).sentence
    own = certificate.misplaced
    if own is None or whole is None or whole.misplaced is None:
        return certificate.sentence
    return replace(own, bound=whole.misplaced, numbers=False).sentence


def yardstick(own: OutOfPlace, whole: float | None) -> list[Html]:
    """What the average total variation distance means, and a hundred rows of which so many would have to move."""
    table = "a table of two columns, such as age by ward" if own.columns == 2 else "the table of one column"
    over = "pairs of columns" if own.columns == 2 else "columns"
    meaning = (
        f"Count {table}, once in the real rows and once in the synthetic ones. The total variation distance is the proportion of "
        f"rows that would have to change their cell to make the two tables equal. The figure is the average over all {over}, "
        "with numbers in about twenty ranges. A single table can be better or worse."
    )
    rows = [
        ("noisy estimate", f"{of_hundred(own.estimate)}%"),
        ("95% bound for the model", f"≤ {of_hundred(own.bound)}%"),
        *([] if whole is None else [("95% bound for these rows", f"≤ {of_hundred(whole)}%")]),
    ]
    title = "Average total variation distance"
    listed = charts.table(("", "rows that would have to move"), rows, title)
    return [tag("p", meaning), charts.figure(title, hundred(own.bound if whole is None else whole), listed)]


def hundred(share: float) -> Html:
    """A hundred rows as dots, those that would have to move in another colour; the last of them in part."""
    step, drawn = 17, []
    out = min(1.0, max(0.0, share)) * HUNDRED
    for i in range(HUNDRED):
        x, y = (i % ACROSS) * step + 1, (i // ACROSS) * step + 1
        drawn.append(tag("rect", x=x, y=y, width=13, height=13, rx=3, class_="bar below"))
        part = min(1.0, max(0.0, out - i))
        if part > 0:
            drawn.append(tag("rect", x=x, y=y, width=f"{13 * part:.2f}", height=13, rx=3, class_="bar b1"))
    said = f"At most {of_hundred(share)}% of the rows would have to move"
    return charts.svg(ACROSS * step, HUNDRED // ACROSS * step, "A hundred rows", said, drawn)


def technical(certificate: Certificate, whole: TableBounds) -> Html:
    """The paper's measure, degree by degree, folded away."""
    meaning = (
        "RMSE with the index d is the root mean square distance between real and synthetic tables of d columns, from 0 (the "
        "same) to 1. The distance of two tables is the root of half the sum of squared differences of their cells."
        if certificate.categorical
        else "RMSE with the index d is the root mean square error of the proportion of rows in which d yes/no columns are all "
        "yes, over all choices of d columns. An error of 0.01 is one percentage point."
    )
    rows = [
        (
            f"{charts.SUBSCRIPTS[d]}, {charts.DEGREE_NAMES[d]}",
            number(certificate.estimate[d]),
            f"≤ {charts.up(certificate.bound[d])}",
            f"≤ {charts.up(whole[d])}" if d in whole else "not computed",
        )
        for d in sorted(certificate.bound)
    ]
    legend = [("", "certified for the model, with 95% confidence"), ("round", "noisy estimate")]
    if whole:
        legend.insert(1, ("b1", "added by drawing these rows (exact)"))
    key = [tag("li", tag("i", class_=f"swatch {c}", aria_hidden="true"), words) for c, words in legend]
    picture = charts.certificate_chart(
        dict(certificate.bound), dict(certificate.estimate), dict(whole), certificate.categorical
    )
    head = ("degree", "noisy estimate", "95% bound, model", "95% bound, this table")
    return tag(
        "details",
        tag("summary", "In technical terms"),
        tag("p", f"For the model that the rows were drawn from: {certificate.sentence} {certificate.technical}"),
        tag("p", meaning),
        charts.figure(
            "The accuracy certificate",
            tag("div", picture, tag("ul", key, class_="legend")),
            charts.table(head, rows, "Certificate by degree"),
            "One noisy number, the largest error of all degrees, bounds each of them. The bounds hold together with 95% "
            "confidence. The average total variation distance is a second number of the same charge.",
        ),
    )


def table_bounds(release: PrivateRelease, codes: Integers) -> TableBounds:
    """Bounds for these very rows, if all are here, for as many degrees as their distance to the centres is cheap to find."""
    certificate = release.certificate
    if certificate is None or len(codes) < release.parts.m:
        return TableBounds({})
    q, step = codes.shape[1], len(codes) * len(release.centres)
    degrees = [d for d in DEGREES if d in certificate.bound and step * q * d <= DISTANCE_WORK]
    with blas_threads(1):
        if release.numbers is not None:
            domain = release.numbers.domain
            misplaced = misplaced_rows(codes, domain, release.centres)
            distance = category_distances(codes, domain.sizes, release.centres, degrees) if degrees else {}
        else:
            bits = codes.astype(np.uint8)
            misplaced = misplaced_bits(moments(bits), release.centres)
            distance = bit_distances(bits, release.centres, degrees) if degrees else {}
    return certificate.for_table(Distances({d: distance[d] for d in degrees if d in distance}, misplaced))
