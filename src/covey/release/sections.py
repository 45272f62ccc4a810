"""The parts of a report: guarantee, budget, spectrum. Each is made from public values alone; `looks` has the rest."""

from __future__ import annotations

from covey.core.fit.spectrum import Spectrum
from covey.entropy import SEEDED_MARK
from covey.html import Html, tag
from covey.privacy.budget import Budget, PrivacyStatement, shown
from covey.release import charts
from covey.release.charts import number, percent
from covey.release.contents import LARGE_EPSILON
from covey.release.cover import odds
from covey.release.page import Part, facts, points, section
from covey.release.statements import guarantee_words

PURPOSES = {
    "domains": "limits and categories that were not declared",
    "relations": "which columns follow from others, and how many rows break that",
    "means": "how often each yes/no column is yes",
    "moments": "how often yes/no columns are yes, alone and in pairs",
    "row sums": "how many yes/no columns of a row are yes",
    "scores": "the shape of the strongest directions",
    "coding": "a centre and a radius that keep the noise small",
    "histograms": "each column alone: one-way tables, and the shapes of numbers",
    "look": "how far pairs of columns are from independent, which decides whether pairs are measured",
    "columns and pairs": "one-way tables, and two-way tables where the look found them worth it",
    "pairs": "two-way tables, each pair of columns",
    "important": "pairs of columns that matter most, a second time",
    "choosing triples": "which three columns go together most",
    "triples": "three-way tables of the chosen columns",
    "events": "how many events a person has",
    "tables": "tables of two attributes of persons and events",
    "ranks": "how numbers vary together",
    "certificate": "the accuracy certificate",
}


def epsilon_words(budget: Budget) -> str:
    """What the number ε is called."""
    return "privacy budget ε" if budget.pure else f"privacy budget ε, with δ = {shown(budget.delta)}"


def marks(privacy: PrivacyStatement) -> tuple[str, list[tuple[str, str]], list[Html]]:
    """What a release is marked as, in words; the badges of its page; and banners where something is to be said first."""
    budget, promise = privacy.budget, privacy.budget.parameters
    mark, banners = f"differentially private with {promise}", []
    badges = [("synthetic", ""), ("differentially private", "good"), (promise, "good")]
    if privacy.seeded:
        mark, badges = SEEDED_MARK, [("synthetic", ""), (SEEDED_MARK, "alarm")]
        words = ". This bundle was made with a declared seed, for testing. Whoever knows the seed can undo the noise."
        banners.append(tag("p", tag("strong", SEEDED_MARK), words, class_="banner alarm"))
    if budget.epsilon > LARGE_EPSILON:
        badges.append(("weak guarantee", "warn"))
        banners.append(
            tag("p", f"ε = {shown(budget.epsilon)} is larger than 10: the guarantee is weak.", class_="banner warn")
        )
    return mark, badges, banners


def guarantee(privacy: PrivacyStatement) -> Part:
    """What the release protects, in plain words and then in technical ones."""
    budget = privacy.budget
    unit = budget.protects
    promise = (
        f"What anyone can learn from this release {'would be' if privacy.seeded else 'is'} almost the same as if {unit} of the "
        "confidential table had been different."
    )
    covered = [
        "Every attack, whatever the attacker knows or will know.",
        "Everything in this folder together, including this page and the accuracy certificate.",
        "Everything that is ever computed from it.",
    ]
    not_covered = [
        "Facts about the population. To learn that smoking goes with lung disease is the purpose of such data, not a leak.",
        "Other releases about the same people. Budgets add up, and the data owner’s ledger keeps count.",
        "The schema, which is public."
        if budget.size_is_secret
        else f"The schema and the number of {budget.counted}, which are public.",
    ]
    rows = [
        ("Guarantee", guarantee_words(budget)),
        ("ε", shown(budget.epsilon)),
        ("δ", shown(budget.delta)),
        ("Protects", unit),
        ("Neighbours", f"{budget.compared()} ({budget.neighbours})"),
        ("Mechanism", f"{privacy.mechanism}; noise: {privacy.noise_words}"),
    ]
    if privacy.seeded:
        rows.insert(0, ("Holds", f"no: {SEEDED_MARK}"))
    return section(
        "protects",
        "What it protects",
        tag("p", promise),
        tag("p", odds(privacy), class_="statement"),
        tag("div", points("Covered", covered), points("Not covered", not_covered), class_="two"),
        tag("details", tag("summary", "In technical terms"), facts(rows, "The guarantee")),
    )


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
    unit = f"ε\u00a0=\u00a0{float(whole):g} was spent in these parts{per}."
    if not budget.pure:
        promise = f"ε = {shown(budget.epsilon)} with δ = {shown(budget.delta)}"
        kind = "zero-concentrated privacy" if budget.mu is None else f"Gaussian privacy (μ = {budget.mu}, ρ = μ²/2)"
        unit = f"{promise} equals ρ = {float(whole):.4g} of {kind}{per}. It was spent in these parts."
    if privacy.unused:
        names = ", ".join(charge.purpose for charge in privacy.unused)
        unit += f" A part planned for {names} was not needed and was not spent."
    return section(
        "budget",
        "How the budget was spent",
        tag(
            "p",
            "Every measurement of the real table costs a part of the budget. The larger the part, the smaller the noise. ",
            unit,
        ),
        charts.stacked(shares),
        charts.table(("measurement", "what was measured", "amount", "share"), rows, "Charges by purpose", "charges"),
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
        "The covariance of the real table was measured with noise, for privacy. Its eigenvalues show in how many directions the "
        f"rows differ by more than the noise. {count} above the edge, the largest value that noise alone would have."
    )
    return section(
        "noise",
        "What is stronger than the noise",
        tag("p", words),
        charts.figure(
            "Spectrum of the noisy covariance",
            charts.spectrum_chart(seen.values, seen.edge),
            charts.table(("direction", "eigenvalue", "where"), rows, "Leading eigenvalues"),
            f"The {len(seen.values)} largest of {seen.dimension:,}, of the noisy measurement. The edge comes from simulated "
            "noise.",
        ),
    )
