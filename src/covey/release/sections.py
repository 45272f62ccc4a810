"""The parts of a report: guarantee, accuracy, budget, spectrum. Each is made from public values alone; `looks` has the rest."""

from __future__ import annotations

from math import exp

import numpy as np

from covey.core.arrays import Integers
from covey.core.fit.spectrum import Spectrum
from covey.core.tables.distance import DEGREES, bit_distances, category_distances
from covey.core.threads import blas_threads
from covey.entropy import SEEDED_MARK
from covey.html import Html, tag
from covey.privacy.budget import Budget, PrivacyStatement
from covey.privacy.certificate import Certificate
from covey.release import charts
from covey.release.charts import number, percent
from covey.release.contents import PrivateRelease
from covey.release.page import Part, facts, points, section
from covey.release.statements import guarantee_words
from covey.table.codec import Codec

DISTANCE_WORK = 2_000_000_000  # steps that finding the distance of rows and centres may take

PURPOSES = {
    "domains": "limits and categories that nobody has declared",
    "means": "how often each flag is set",
    "moments": "how often flags are set, alone and in pairs",
    "row sums": "how many flags a row sets",
    "scores": "the shape of the strongest directions",
    "coding": "a centre and a radius that keep the noise small",
    "histograms": "each column alone: one-way tables, and the shapes of numbers",
    "pairs": "two-way tables, each pair of columns",
    "ranks": "how numbers rise and fall together",
    "certificate": "the accuracy certificate",
}


def epsilon_words(budget: Budget) -> str:
    """What the number ε is called."""
    return "privacy budget ε" if budget.pure else f"privacy budget ε, with δ = {float(budget.delta):g}"


def guess(epsilon: float, delta: float) -> float:
    """The best chance of telling two equally likely neighbours apart: (e^ε + δ)/(e^ε + 1)."""
    other = exp(-epsilon)
    return min(1.0, (1 + delta * other) / (1 + other))


def guarantee(privacy: PrivacyStatement) -> Part:
    """What the release protects, in plain words and then in technical ones."""
    budget = privacy.budget
    unit = budget.protects
    rest = "those of one person" if budget.persons or budget.rows_per_person > 1 else "one"
    chance = 100 * guess(float(budget.epsilon), float(budget.delta))
    said = f"{chance:.1f}%" if chance < 99.95 else f"{chance:.4g}%"
    promise = (
        f"What anyone can learn from this release {'would be' if privacy.seeded else 'is'} almost the same, whatever {unit} of "
        "the confidential table had been."
    )
    test = (
        f"Suppose somebody knows every row of the confidential table except {rest}, and must say which of two equally likely "
        "versions is the true one. Tossing a coin is right in 50% of cases. With this whole folder in hand they "
        f"{'would be' if privacy.seeded else 'are'} right in at most {said}."
    )
    covered = [
        "Every attack, whatever else is known or will be known: the promise does not rest on what an attacker lacks.",
        "Everything in this folder together, this page and the accuracy certificate included.",
        "Everything that is ever computed from it.",
    ]
    not_covered = [
        "Facts about the population. That smoking goes with lung disease is the purpose of such data, not a leak.",
        "Other releases about the same people. Budgets add up; the steward’s ledger keeps count.",
        f"The schema and the number of {budget.counted}, which are public.",
    ]
    rows = [
        ("Guarantee", guarantee_words(budget)),
        ("ε", f"{float(budget.epsilon):g}"),
        ("δ", f"{float(budget.delta):g}"),
        ("Protects", unit),
        ("Neighbours", f"{budget.neighbours()}, replaced"),
        ("Mechanism", privacy.mechanism),
    ]
    if privacy.seeded:
        rows.insert(0, ("Holds", f"no: {SEEDED_MARK}"))
    return section(
        "protects",
        "What it protects",
        tag("p", promise),
        tag("p", test, class_="statement"),
        tag("div", points("Covered", covered), points("Not covered", not_covered), class_="two"),
        tag("details", tag("summary", "In technical terms"), facts(rows, "The guarantee")),
    )


def accuracy(release: PrivateRelease, codes: Integers, codec: Codec) -> Part:
    """The certificate as a picture: bounds for the centres, and for these very rows."""
    title, certificate = "How accurate it is", release.certificate
    if certificate is None:
        words = "No certificate was bought for this release, so it carries no bound on its error."
        return section("accuracy", title, tag("p", words))
    whole = table_bounds(release, certificate, codes, codec)
    meaning = (
        "The measure δ is the distance between a true and a synthetic table of d columns in the typical case, from 0 (the same) "
        "to 1: the root of half the sum of squared differences of its cells."
        if certificate.categorical
        else "The measure δ is the error of the share of rows in which d given flags are all set, in the typical case: the root "
        "mean square over all choices of d columns. An error of 0.01 is one percentage point."
    )
    paid = "The bound was measured on the true data, with noise, and paid for from the same budget: it is private too. "
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
        dict(certificate.bound), dict(certificate.estimate), whole, certificate.categorical
    )
    head = ("degree", "noisy estimate", "95% bound, centres", "95% bound, this table")
    return section(
        "accuracy",
        title,
        tag("p", certificate.sentence, class_="statement"),
        tag("p", paid, meaning),
        charts.figure(
            "The accuracy certificate",
            tag("div", picture, tag("ul", key, class_="legend")),
            charts.table(head, rows, "Certificate by degree"),
            "One noisy number, the largest error of all degrees, bounds every one of them; 95% is the joint confidence.",
        ),
    )


def table_bounds(release: PrivateRelease, certificate: Certificate, codes: Integers, codec: Codec) -> dict[int, float]:
    """Bounds for these very rows, if all are here, for as many degrees as their distance to the centres is cheap to find."""
    if len(codes) < release.parts.m:
        return {}
    q, step = codes.shape[1], len(codes) * len(release.centres)
    degrees = [d for d in DEGREES if d in certificate.bound and step * q * d <= DISTANCE_WORK]
    if not degrees:
        return {}
    with blas_threads(1):
        if certificate.categorical:
            sizes = codec.domain_sizes if release.numbers is None else release.numbers.domain.sizes
            distance = category_distances(codes, sizes, release.centres, degrees)
        else:
            distance = bit_distances(codes.astype(np.uint8), release.centres, degrees)
    return certificate.for_table({d: distance[d] for d in degrees if d in distance})


def budget_bar(privacy: PrivacyStatement) -> Part:
    """The charges by purpose, as one bar and a table."""
    budget, whole = privacy.budget, privacy.budget.amount
    parts = [(charge.purpose, charge.amount) for charge in privacy.charges]
    if whole > privacy.spent:
        parts.append(("left unspent", whole - privacy.spent))
    shares = [(name, float(amount / whole)) for name, amount in parts]
    rows = [
        (
            Html(charts.swatch(i) + tag("span", name)),
            PURPOSES.get(name, "–"),
            f"{float(amount):.4g} {budget.unit}",
            percent(float(amount / whole)),
        )
        for i, (name, amount) in enumerate(parts)
    ]
    per = "" if budget.rows_per_person == 1 else f" for all of a person’s up to {budget.rows_per_person} rows"
    unit = f"ε\u00a0=\u00a0{float(whole):g} is spent in these parts{per}."
    if not budget.pure:
        promise = f"ε = {float(budget.epsilon):g} with δ = {float(budget.delta):g}"
        kind = "zero-concentrated privacy" if budget.mu is None else f"Gaussian privacy (μ = {budget.mu}, ρ = μ²/2)"
        unit = f"{promise} buys ρ = {float(whole):.4g} of {kind}{per}, spent in these parts."
    if privacy.unused:
        names = ", ".join(charge.purpose for charge in privacy.unused)
        unit += f" A part planned for {names} was not needed and was not spent."
    return section(
        "budget",
        "How the budget was spent",
        tag(
            "p",
            "Every look at the true table costs a part of the budget; the larger the part, the smaller the noise. ",
            unit,
        ),
        charts.stacked(shares),
        charts.table(("measurement", "what it asks", "amount", "share"), rows, "Charges by purpose"),
    )


def spectrum(seen: Spectrum) -> Part:
    """Eigenvalues of the noisy covariance against the edge of the noise."""
    above = seen.above
    count = {0: "No direction stands", 1: "One direction stands"}.get(above, f"{above} directions stand")
    if above == len(seen.values) < seen.dimension:
        count = f"{above} directions or more stand"
    rows = [
        (str(i + 1), number(value), "above the edge" if value > seen.edge else "within the noise")
        for i, value in enumerate(seen.values)
    ]
    words = (
        "The covariance of the true table was measured with noise, for privacy. Its eigenvalues say along how many directions "
        f"the rows differ in a way that the noise did not drown. {count} above the edge at which this noise alone would end."
    )
    return section(
        "noise",
        "What stood out of the noise",
        tag("p", words),
        charts.figure(
            "Spectrum of the noisy covariance",
            charts.spectrum_chart(seen.values, seen.edge),
            charts.table(("direction", "eigenvalue", "where"), rows, "Leading eigenvalues"),
            f"The {len(seen.values)} largest of {seen.dimension:,}, of a measurement that carries its noise already. The edge "
            "comes from simulated noise.",
        ),
    )
