"""How accurate a release is, for its report: the yardstick in words and as a picture, the paper's measure in a fold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from covey.core.arrays import Integers, blas_threads
from covey.core.tables.distance import DEGREES, bit_distances, category_distances
from covey.core.tables.misplaced import misplaced_bits, misplaced_rows
from covey.core.tables.moments import moments
from covey.html import Html, tag
from covey.methods.persons.certify import WORDS, PersonsCertificate
from covey.methods.regain.groups import small_groups
from covey.privacy.certificate import Certificate, Distances, OutOfPlace, TableBounds, of_hundred
from covey.release import charts
from covey.release.charts import number
from covey.release.contents import Bounds, PrivateRelease
from covey.release.page import Part, facts, section
from covey.table.codec import Codec

DISTANCE_WORK = 2_000_000_000  # steps that finding the distance of rows and centres may take
NO_CERTIFICATE = "No certificate was bought for this release, so it carries no bound on its error."
HUNDRED = 100  # rows in the picture
ACROSS = 25  # of them in a line


def accuracy(release: PrivateRelease, whole: Bounds) -> Part:
    """The certificate: of 100 rows, how many are out of place; in technical terms, by degree."""
    title, certificate, privacy = "How accurate it is", release.certificate, release.privacy
    schema = release.described.schema
    kinds = None if schema is None else Codec(schema).kinds
    groups = None if kinds is None else small_groups(kinds, privacy.n, privacy.budget)
    small = [] if groups is None else [tag("p", groups.sentence)]
    if certificate is None:
        return section("accuracy", title, tag("p", NO_CERTIFICATE), *small)
    if isinstance(certificate, PersonsCertificate):
        return _of_persons(whole if isinstance(whole, PersonsCertificate) else certificate, title)
    whole = whole if isinstance(whole, TableBounds) else TableBounds({})
    paid = "The bound was measured on the true data, with noise, and paid for from the same budget: it is private too."
    parts = [tag("p", stated(certificate, whole), class_="statement")]
    if certificate.misplaced is not None:
        parts += yardstick(certificate.misplaced, whole.misplaced)
    return section("accuracy", title, *parts, *small, tag("p", paid), technical(certificate, whole))


def _of_persons(found: PersonsCertificate, title: str) -> Part:
    """The certificate of persons with events, by group of tables."""
    rows = [(WORDS[kind], f"≤ {charts.up(bound, 2)}") for kind, bound in found.bound.items()]
    words = (
        "Total variation is the largest error of the share of any set of cells of a table, from 0 to 1. The bound is about the "
        "mean over the tables of each group, was measured on the true data with noise, and is private too. It does not speak of "
        "single rare cells."
    )
    shown = facts(rows, "Bounds by group of tables")
    return section("accuracy", title, tag("p", found.sentence, class_="statement"), tag("p", words), shown)


def headline(release: PrivateRelease, whole: Bounds) -> list[tuple[str, str]]:
    """The certificate in one number."""
    if isinstance(release.certificate, PersonsCertificate):
        found = whole if isinstance(whole, PersonsCertificate) else release.certificate
        bound = charts.up(max(found.bound.values()), 2)
        return [("certified mean error of a table, in total variation", f"≤ {bound}")]
    own = release.certificate.misplaced if isinstance(release.certificate, Certificate) else None
    if own is None:
        return []
    most = own.bound if not isinstance(whole, TableBounds) or whole.misplaced is None else whole.misplaced
    return [("of 100 rows, out of place in a typical table", f"≤ {of_hundred(most)}")]


def stated(certificate: Certificate | PersonsCertificate | None, whole: Bounds) -> str | None:
    """The bound in words: for these very rows where it was computed, otherwise for the model that they were drawn from."""
    if certificate is None or isinstance(certificate, PersonsCertificate):
        return None if certificate is None else (whole or certificate).sentence  # type: ignore[union-attr]
    own = certificate.misplaced
    if own is None or not isinstance(whole, TableBounds) or whole.misplaced is None:
        return certificate.sentence
    return replace(own, bound=whole.misplaced, numbers=False).sentence


def yardstick(own: OutOfPlace, whole: float | None) -> list[Html]:
    """What a row out of place is, and a hundred rows of which so many are."""
    table = "a table of two columns, say age by ward," if own.columns == 2 else "the table of one column"
    meaning = (
        f"Think of {table} once from the true rows and once from the synthetic ones. The rows that would have to change "
        "their cell for the two to agree are out of place. The typical table is the mean over all pairs of columns; numbers "
        "are looked at in about twenty ranges. A single table can be better or worse."
    )
    rows = [
        ("noisy estimate", f"{of_hundred(own.estimate)}"),
        ("95% bound for the model", f"≤ {of_hundred(own.bound)}"),
        *([] if whole is None else [("95% bound for these very rows", f"≤ {of_hundred(whole)}")]),
    ]
    title = "Rows out of place, of 100"
    listed = charts.table(("", "rows of 100"), rows, title)
    return [tag("p", meaning), charts.figure(title, hundred(own.bound if whole is None else whole), listed)]


def hundred(share: float) -> Html:
    """A hundred rows as dots, those that may be out of place in another colour; the last of them in part."""
    step, drawn = 17, []
    out = min(1.0, max(0.0, share)) * HUNDRED
    for i in range(HUNDRED):
        x, y = (i % ACROSS) * step + 1, (i // ACROSS) * step + 1
        drawn.append(tag("rect", x=x, y=y, width=13, height=13, rx=3, class_="bar below"))
        part = min(1.0, max(0.0, out - i))
        if part > 0:
            drawn.append(tag("rect", x=x, y=y, width=f"{13 * part:.2f}", height=13, rx=3, class_="bar b1"))
    said = f"At most {of_hundred(share)} of 100 rows are out of place"
    return charts.svg(ACROSS * step, HUNDRED // ACROSS * step, "A hundred rows", said, drawn)


def technical(certificate: Certificate, whole: TableBounds) -> Html:
    """The paper's measure, degree by degree, folded away."""
    meaning = (
        "The measure δ is the distance between a true and a synthetic table of d columns in the typical case, from 0 (the same) "
        "to 1: the root of half the sum of squared differences of its cells."
        if certificate.categorical
        else "The measure δ is the error of the share of rows in which d given flags are all set, in the typical case: the root "
        "mean square over all choices of d columns. An error of 0.01 is one percentage point."
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
    legend = [("", "certified for the centres, with 95% confidence"), ("round", "noisy estimate")]
    if whole:
        legend.insert(1, ("b1", "added by drawing these rows, exactly"))
    key = [tag("li", tag("i", class_=f"swatch {c}", aria_hidden="true"), words) for c, words in legend]
    picture = charts.certificate_chart(
        dict(certificate.bound), dict(certificate.estimate), dict(whole), certificate.categorical
    )
    head = ("degree", "noisy estimate", "95% bound, centres", "95% bound, this table")
    return tag(
        "details",
        tag("summary", "In technical terms"),
        tag("p", f"For the model that the rows were drawn from: {certificate.sentence} {certificate.technical}"),
        tag("p", meaning),
        charts.figure(
            "The accuracy certificate",
            tag("div", picture, tag("ul", key, class_="legend")),
            charts.table(head, rows, "Certificate by degree"),
            "One noisy number, the largest error of all degrees, bounds every one of them; 95% is their joint confidence. Rows "
            "out of place, the mean total variation of two-way tables, are a second number of the same charge.",
        ),
    )


def table_bounds(release: PrivateRelease, codes: Integers) -> TableBounds:
    """Bounds for these very rows, if all are here, for as many degrees as their distance to the centres is cheap to find."""
    certificate = release.certificate
    if not isinstance(certificate, Certificate) or len(codes) < release.parts.m:
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
