"""What a bundle says of itself: privacy.json, certificate.json and README.md, from public things alone."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import exp
from pathlib import Path
from typing import Any

from covey.entropy import SEEDED_MARK
from covey.privacy.budget import Budget, Charge, PrivacyStatement, shown
from covey.privacy.certificate import WORDS, Certificate
from covey.privacy.gaussian import epsilon_above
from covey.release.contents import LARGE_EPSILON, NOT_PRIVATE, AnonymousRelease, PrivateRelease
from covey.release.reading import read_json
from covey.table.description import Description

PRIOR = (
    "rows of an earlier bundle (named by the SHA-256 of its SHA256SUMS) were used as public information; its own guarantee paid "
    "for them, and both count if they are about the same persons"
)
WEAK = f"ε is larger than {LARGE_EPSILON}: the guarantee is weak"


def guarantee_words(budget: Budget) -> str:
    """The kind of guarantee, and where δ > 0 through which notion it was accounted."""
    if budget.pure:
        return "pure ε-differential privacy"
    if budget.accounting == "zcdp":
        through = "ρ-zCDP"
    elif budget.mu is None:
        through = "Gaussian differential privacy"
    else:
        through = f"Gaussian differential privacy, μ = {budget.mu}"
    labels = f", and δ = {shown(budget.selection)} of it for the names of learned labels" if budget.selection else ""
    return f"(ε, δ)-differential privacy, through {through}{labels}"


def private_facts(privacy: PrivacyStatement, version: str, mended: int | None = None) -> dict[str, Any]:
    """privacy.json of a private bundle; fractions are written exactly. With rules, how many rows were altered to keep them."""
    budget = privacy.budget
    guarantee = guarantee_words(budget)
    return {
        "guarantee": SEEDED_MARK if privacy.seeded else guarantee,
        "epsilon": str(budget.epsilon),
        "delta": str(budget.delta),
        "neighbours": budget.neighbours,
        "compared": budget.compared(),
        "under_the_other_promise": other_promise(budget),
        "unit": budget.protects,
        "rows_per_person": budget.rows_covered,
        "n": privacy.n,
        "n_counts": budget.counted,
        "mechanism": privacy.mechanism,
        "noise": list(privacy.noise),
        "spent_in": budget.unit,
        "accounting": budget.accounting,
        "mu": None if budget.mu is None else str(budget.mu),
        "amount": str(budget.amount),
        "amount_per_row": str(budget.per_row),
        "charges": [_charge_facts(charge) for charge in privacy.charges],
        "unused": [{"purpose": c.purpose, "amount": str(c.amount)} for c in privacy.unused],
        **_learned_facts(privacy),
        **({} if privacy.prior is None else {"prior": {"bundle": privacy.prior, "note": PRIOR}}),
        **({} if mended is None else {"rows_altered_by_rules": mended}),
        "private": not privacy.seeded,
        "seeded": privacy.seeded,
        "nist_sp_800_226": evaluation_facts(privacy),
        "note": SEEDED_MARK if privacy.seeded else "",
        "covey": version,
    }


def other_promise(budget: Budget) -> str:
    """What a release promises under the other notion of neighbours, where that can be said (docs/proofs/neighbours.md)."""
    if not budget.size_is_secret:
        return (
            f"add-or-remove-one: nothing, since the number of {budget.counted} is published; with that number public, tables of "
            "the same size are all there is to compare"
        )
    if budget.pure:
        return f"replace-one: ε = {shown(2 * budget.epsilon)}, since a replacement is one removal and one addition"
    if budget.gaussian_rho is not None:
        epsilon = epsilon_above(4 * budget.gaussian_rho, budget.delta)
        return f"replace-one: ε = {shown(epsilon)} at the same δ, since a replacement is a removal and an addition (μ doubles)"
    delta = (1 + Fraction(exp(float(budget.epsilon)))) * budget.delta
    return f"replace-one: ε = {shown(2 * budget.epsilon)}, δ = {shown(delta)}, since a replacement is a removal and an addition"


def evaluation_facts(privacy: PrivacyStatement) -> dict[str, str]:
    """What NIST SP 800-226 tells an evaluator to ask of a claim, from the top of its pyramid down, with the answers."""
    budget = privacy.budget
    return {
        "privacy parameters": f"{budget.parameters}; above {LARGE_EPSILON} a bundle says that ε is weak",
        "variant": guarantee_words(budget),
        "unit of privacy": f"{budget.protects}; {budget.rows_covered} rows of a person are covered",
        "neighbouring datasets": ("unbounded" if budget.size_is_secret else "bounded")
        + f" ({budget.neighbours}): {budget.compared()}",
        "composition": "all charges of this release together are within ε and δ; other releases about the same people add up, "
        "and the data owner's ledger keeps count",
        "mechanism": f"{privacy.mechanism}: noise on exact integer counts and moments ({privacy.noise_words}), synthetic rows by "
        "post-processing",
        "correctness": (
            "every sensitivity is proved in covey's documentation; audits replay the code, and must catch bugs that are "
            "inserted on purpose"
        ),
        "randomness": "a declared seed: NOT private"
        if privacy.seeded
        else "the operating system's cryptographic generator",
        "floating point": "noise is drawn exactly on integers; no guarantee rests on floating-point numbers"
        if "regain" in privacy.mechanism
        else "see the method's note on PVEC",
        "utility": "certificate.json has a private bound on the error; measurements.json the size of every noise",
        "bias": "the noise is the same for all groups, so small groups have larger relative errors; biases of the data are kept",
        "trust model": "central: the data owner's machine holds the confidential table; nothing but this bundle leaves it",
        "side channels": "not covered: whoever shares the data owner's machine can see running time and memory",
        "security and access control": "the data owner's responsibility; this bundle needs none",
        "data collection exposure": "the data owner's responsibility; the confidential table exists in the clear",
    }


def _charge_facts(charge: Charge) -> dict[str, str]:
    """One step of what was spent."""
    besides = {"delta": str(charge.delta)} if charge.delta else {}
    return {"purpose": charge.purpose, "amount": str(charge.amount), **besides}


def _learned_facts(privacy: PrivacyStatement) -> dict[str, Any]:
    """Which fields got their limits or categories with noise, and in which nothing stood out of it."""
    if not privacy.learned and not privacy.left_out:
        return {}
    return {
        "learned": list(privacy.learned),
        "left_out": list(privacy.left_out),
        **({"guessed": True} if privacy.guessed else {}),
        **({"assumed": list(privacy.assumed)} if privacy.assumed else {}),
        "delta_for_labels": str(privacy.budget.selection),
    }


def anonymous_facts(release: AnonymousRelease) -> dict[str, Any]:
    """privacy.json of an anonymous bundle."""
    return {
        "guarantee": f"{release.group_size}-anonymous microaggregation; NOT differential privacy",
        "private": False,
        "group_size": release.group_size,
        "n": release.n,
        "groups": release.groups,
        "covariance_loss": release.covariance_loss,
        "covariance_loss_note": "computed on real data",
        "method": release.method,
        "seeded": release.seeded,
        "note": SEEDED_MARK if release.seeded else "",
        "covey": release.version,
    }


def certificate_facts(certificate: Certificate) -> dict[str, Any]:
    """certificate.json."""
    if certificate.persons:
        return _persons_facts(certificate)
    own = certificate.misplaced
    yardstick: dict[str, Any] = {}
    if own is not None:
        of = "two columns" if own.columns == 2 else "one column"
        yardstick["average_total_variation"] = {
            "measure": f"average total variation distance of tables of {of}: the proportion of rows that would have to move",
            "columns": own.columns,
            "bound": own.bound,
            "estimate": own.estimate,
        }
        if own.numbers:
            yardstick["distribution_functions"] = {
                "measure": "Kolmogorov distance: the largest error of the proportion of rows below any value of a number",
                "bound": own.bound,
            }
    return {
        "sentence": certificate.sentence,
        "confidence": certificate.confidence,
        **yardstick,
        "technical": certificate.technical,
        "joint": True,
        "measure": "L2 distance of d-way tables"
        if certificate.categorical
        else "RMSE_d: root mean square error of d-way proportions",
        "bound": {str(d): b for d, b in certificate.bound.items()},
        "estimate": {str(d): b for d, b in certificate.estimate.items()},
        "about": "the model; rows drawn from it add their own distance, which is computed exactly: see this_table",
        "cost": {"amount": str(certificate.charge.amount), "unit": certificate.charge.unit},
    }


def _persons_facts(found: Certificate) -> dict[str, Any]:
    return {
        "sentence": found.sentence,
        "confidence": found.confidence,
        "joint": True,
        "measure": "average total variation distance of the tables of a group, numbers in bins of about equal mass; "
        "for numbers the largest distance of a distribution function, averaged by person",
        "bound": {WORDS[kind]: bound for kind, bound in found.bound.items()},
        "estimate": max(found.estimate.values()),
        "about": f"a draw of {found.persons} persons from the model",
        "persons": found.persons,
        "cost": {"amount": str(found.charge.amount), "unit": found.charge.unit},
    }


def unfinished_words(folder: Path) -> str:
    """README.md of a bundle whose data are written and whose words are not yet made."""
    guarantee = read_json(folder / "privacy.json")["guarantee"]
    lines = [
        f"Synthetic data: {guarantee}.",
        "",
        "The data of this folder are complete, and `covey verify` checks them. The report is still missing. If nobody is making "
        "it,",
        "this makes it from the data alone:",
        "",
        "    covey resume FOLDER",
    ]
    return "\n".join(lines) + "\n"


def private_words(release: PrivateRelease, tables: Sequence[str], mended: int | None, accuracy: str | None) -> str:
    """README.md of a private bundle with these files of rows; `accuracy` is what its certificate says of them."""
    privacy, budget, several = release.privacy, release.privacy.budget, release.described.schema is None
    unit = budget.protects.removeprefix("one ")
    these, made, source = "This table is", "It was made", "a confidential table"
    if several:
        these, made, source = "These tables are", "They were made", "confidential tables"
    lines = [
        "# Synthetic data",
        "",
        *(
            [f"**{SEEDED_MARK}.** This bundle was made with a declared seed, for testing.", ""]
            if privacy.seeded
            else []
        ),
        f"{these} synthetic: no row belongs to a person. {made} by covey {release.version} from",
        f"{source} of {privacy.n} {budget.counted}, and the folder {promised(privacy)}.",
        "",
        *([f"{WEAK}.", ""] if budget.epsilon > LARGE_EPSILON else []),
        "## What it protects",
        "",
        f"Whoever sees this folder learns almost nothing about any one {unit}: had it been",
        f"another, this release would have been almost as likely. The number of {budget.counted}, the schema and the method are",
        "public.",
        *(_tables_words(release.described) if several else _persons_words(budget)),
        "",
        *_learned_words(privacy),
        *_relation_words(release.described),
        *([] if privacy.prior is None else [f"As public information, {PRIOR}. Bundle: `{privacy.prior}`.", ""]),
        *unprotected(accuracy),
        *([] if mended is None else [_rules_words(mended, several), ""]),
        "## Files",
        "",
        *(f"- `{name}`: rows" for name in tables),
        "- `datapackage.json`: what the columns mean, and how the tables are linked"
        if several
        else "- `schema.json`: what the columns mean",
        "- `privacy.json`: the guarantee, and how the budget was spent",
        "- `certificate.json`: the accuracy bound",
        "- `model.npz`: the model that rows are drawn from",
        "- `measurements.npz`, `measurements.json`: the noisy numbers that were measured, and the size of their noise;",
        "  `covey ask` and `covey.load` answer questions from them with error bars, `covey tables` writes them as CSV",
        "- `report.html`: this, and pictures of the data, in a browser",
        "- `croissant.json`, `dcat.json`, `deployment.yaml`: metadata for machine learning, for data catalogues and for the",
        "  registry of deployments of differential privacy",
        "- `SHA256SUMS`, `SHA256SUMS.report`: checksums of the data and of the rest; `covey verify` checks them",
    ]
    return "\n".join(lines) + "\n"


def promised(privacy: PrivacyStatement) -> str:
    """What a folder carries."""
    budget = privacy.budget
    carries = "would carry, without the seed," if privacy.seeded else "carries"
    return f"{carries} {'pure ' if budget.pure else ''}differential privacy with {budget.parameters}"


def unprotected(accuracy: str | None) -> list[str]:
    """What README.md says of limits: of the guarantee, and of accuracy, in the words of a certificate."""
    return [
        "## What it does not protect",
        "",
        "Facts about the population are the purpose of the data and are not hidden. Several releases about the same people",
        "add up; the data owner's ledger keeps count.",
        "",
        "## How accurate it is",
        "",
        accuracy or "No part of the budget was set aside for a certificate.",
        "",
    ]


def _tables_words(described: Description) -> list[str]:
    """How tables are linked, and what of that is not public."""
    said = [""]
    for part in described.tables[1:]:
        own = part.parent
        assert own is not None  # nosec B101 # for the type checker; every table but the first has one
        said += [
            f"How many rows `{part.name}` has in truth is not public. `{part.name}.{own.column}` refers to `{own.table}`:",
            f"its numbers have no meaning. A person has at most {own.at_most} events.",
        ]
    return said


def _rules_words(mended: int, several: bool) -> str:
    """How many rows were altered after drawing, for the rules' sake."""
    if several:
        return f"Rules across the tables hold: {mended:,} events were drawn anew for them."
    if not mended:
        return "Every row keeps the rules of `schema.json`. None had to be altered after drawing."
    return f"Every row keeps the rules of `schema.json`: {mended:,} were altered after drawing, because they broke one."


def _relation_words(described: Description) -> list[str]:
    """What README.md says of relations that were found with noise."""
    found = () if described.schema is None else described.schema.found
    listed = [f"- {relation}" for relation in found]
    return (
        ["These relations between columns were found with noise, and synthetic rows keep them:", "", *listed, ""]
        if found
        else []
    )


def _learned_words(privacy: PrivacyStatement) -> list[str]:
    """What README.md says where domains were learned."""
    if not privacy.learned and not privacy.left_out:
        return []
    names = ", ".join(f"`{name}`" for name in privacy.learned) or "none"
    lines = [f"Limits and categories of these columns were learned with noise, as part of the same guarantee: {names}."]
    lines.append("The names and types of all columns are public. Rare categories are counted as other.")
    if privacy.left_out:
        lines.append(
            f"These columns were left out, because noise hides their values: {', '.join(f'`{n}`' for n in privacy.left_out)}."
        )
    if privacy.guessed:
        lines.append("Noise hides the values of all of them: their limits are a guess, and texts are one category.")
    if privacy.assumed:
        lines += [
            "",
            "The guarantee takes these facts as public. They were read without noise:",
            "",
            *(f"- {line}" for line in privacy.assumed),
        ]
    return [*lines, ""]


def _persons_words(budget: Budget) -> list[str]:
    """What it means that rows were counted by persons, or that persons may have several."""
    if budget.persons:
        return [
            "",
            "A person may have several rows: they share one weight, so every person counts once. The synthetic rows are like",
            "a random row of a random person. How many rows the confidential table has is not public.",
        ]
    if budget.rows_per_person > 1:
        return ["", "The guarantee compares persons with equally many rows, so the number of rows is public."]
    return []


def anonymous_words(release: AnonymousRelease) -> str:
    """README.md of an anonymous bundle: its first sentence says what it is not."""
    lines = [
        f"{NOT_PRIVATE}: every row comes from the average of at least {release.group_size} records, and a group",
        "whose members agree on a column discloses it.",
        "",
        "# Anonymous synthetic data",
        "",
    ]
    if release.seeded:
        lines += [f"**{SEEDED_MARK}** (sampling).", ""]
    lines += [
        f"Made by covey {release.version} from a confidential table of {release.n} rows in {release.groups} groups",
        f"(method: {release.method}). The covariance lost by averaging is {release.covariance_loss:.4g}, computed on real data.",
        "Numbers and dates are averages, so they vary less than those of single records.",
        "",
        f"Hand it only to people who may see {release.group_size}-anonymous data. For data that can be published use",
        "`covey release`.",
    ]
    return "\n".join(lines) + "\n"
