"""What a bundle says of itself, from public things alone: privacy.json, certificate.json, README.md, and entries for others.

Those are MLCommons Croissant, DCAT for catalogues, and the registry of deployments. What only the steward knows (who publishes,
on what legal basis, for which region) is left for the steward to fill in: docs/guides/catalogues.md says where.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import exp
from pathlib import Path
from typing import Any

from covey.engine.budget import Budget, PrivacyStatement, shown
from covey.engine.certificate import WORDS, Certificate
from covey.engine.entropy import SEEDED_MARK
from covey.engine.gaussian import epsilon_above
from covey.errors import counted
from covey.release.contents import LARGE_EPSILON, AnonymousRelease, AnyRelease, PrivateRelease
from covey.release.model import read_json
from covey.release.page import render

PRIOR = (
    "rows of an earlier bundle (named by the SHA-256 of its SHA256SUMS) were used as public information; its own guarantee paid "
    "for them, and both count if they are about the same persons"
)
WEAK = f"ε is larger than {LARGE_EPSILON}: the guarantee is weak"
GROUPED = ("group_size", "n", "groups", "covariance_loss", "method", "seeded")  # of an anonymous release
STEWARD = "to be filled in by the data owner"
METHOD = "https://arxiv.org/abs/2107.05824"  # the paper that covey implements
_TYPES = {
    "boolean": "sc:Boolean",
    "integer": "sc:Integer",
    "number": "sc:Float",
    "date": "sc:Date",
    "datetime": "sc:DateTime",
    "time": "sc:Time",
    "string": "sc:Text",
}


def guarantee_words(budget: Budget) -> str:
    """The kind of guarantee, and where δ > 0 through which notion it was accounted."""
    if budget.pure:
        return "pure ε-differential privacy"
    through = "Gaussian differential privacy"
    if budget.mu is not None:
        through += f", μ = {budget.mu}"
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
        "n_is": "noisy: the real number is secret" if budget.size_is_secret else "public",
        "rows_of_a_person": budget.persons_covered,
        "mechanism": privacy.mechanism,
        "noise": [law.name for law in privacy.noise],
        "spent_in": budget.unit,
        "mu": None if budget.mu is None else str(budget.mu),
        "amount": str(budget.amount),
        "amount_per_row": str(budget.per_row),
        "charges": [
            {"purpose": c.purpose, "amount": str(c.amount), **({"delta": str(c.delta)} if c.delta else {})}
            for c in privacy.charges
        ],
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
        "variant": f"{SEEDED_MARK}; without the seed {guarantee_words(budget)}"
        if privacy.seeded
        else guarantee_words(budget),
        "unit of privacy": f"{budget.protects}: {budget.persons_covered}",
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
        **{name: getattr(release, name) for name in GROUPED},
        "covariance_loss_note": "computed on real data",
        "note": SEEDED_MARK if release.seeded else "",
        "covey": release.version,
    }


def certificate_facts(certificate: Certificate) -> dict[str, Any]:
    """certificate.json."""
    said: dict[str, Any] = {
        "sentence": certificate.sentence,
        "confidence": certificate.confidence,
        "joint": True,
        "cost": {"amount": str(certificate.charge.amount), "unit": certificate.charge.unit},
    }
    if certificate.persons:
        return said | {
            "measure": "average total variation distance of the tables of a group, numbers in bins of about equal mass; "
            "for numbers the largest distance of a distribution function, averaged by person",
            "bound": {WORDS[kind]: bound for kind, bound in certificate.bound.items()},
            "estimate": max(certificate.estimate.values()),
            "about": f"a draw of {certificate.persons} persons from the model",
            "persons": certificate.persons,
        }
    own = certificate.misplaced
    if own is not None:
        of = "two columns" if own.columns == 2 else "one column"
        said["average_total_variation"] = {
            "measure": f"average total variation distance of tables of {of}: the proportion of rows that would have to move",
            "columns": own.columns,
            "bound": own.bound,
            "estimate": own.estimate,
        }
        if own.numbers:
            said["distribution_functions"] = {
                "measure": "Kolmogorov distance: the largest error of the proportion of rows below any value of a number",
                "bound": own.bound,
            }
    distance = "L2 distance of d-way tables"
    return said | {
        "technical": certificate.technical,
        "measure": distance if certificate.categorical else "RMSE_d: root mean square error of d-way proportions",
        "bound": {str(d): b for d, b in certificate.bound.items()},
        "estimate": {str(d): b for d, b in certificate.estimate.items()},
        "about": "the model; rows drawn from it add their own distance, which is computed exactly: see this_table",
    }


# In words.


def unfinished_words(folder: Path) -> str:
    """README.md of a bundle whose data are written and whose words are not yet made: no template stands before the data."""
    return (
        f"Synthetic data: {read_json(folder / 'privacy.json')['guarantee']}.\n\n"
        "The data of this folder are complete, and `covey verify` checks them. The report is still missing. If nobody is making "
        "it,\nthis makes it from the data alone:\n\n    covey resume FOLDER\n"
    )


def private_words(release: PrivateRelease, tables: Sequence[str], mended: int | None) -> str:
    """README.md of a private bundle with these files of rows."""
    schema = release.described.schema
    given = {"release": release, "privacy": release.privacy, "budget": release.privacy.budget}
    given |= {"several": schema is None, "relations": () if schema is None else schema.found}
    return render(
        "private.md", tables=tables, mended=mended, accuracy=release.accuracy, WEAK=WEAK, PRIOR=PRIOR, **given
    )


# In the words of others.


def croissant(release: AnyRelease, files: Mapping[str, str], made: str) -> Any:
    """Croissant metadata of the synthetic tables, in files with these SHA-256 digests."""
    parts = release.described.plain().tables
    names = [part.name if len(parts) > 1 else "rows" for part in parts]
    tables = list(zip(parts, names, files, strict=True))
    return _document("croissant.json", release, made, files=files, tables=tables, types=_TYPES, media_type=_media_type)


def dcat(release: AnyRelease, files: Mapping[str, str], made: str) -> Any:
    """An entry for a data catalogue."""
    return _document("dcat.json", release, made, files=files, media_type=_media_type)


def deployment(release: PrivateRelease, made: str) -> str:
    """An entry for the registry of deployments, of a release that is private, as YAML.

    Readers of YAML 1.1 take 1e-06 for a text, and 1.0e-06 for a number.
    """
    found = _document(
        "deployment.json", release, made, STEWARD=STEWARD, guarantee=guarantee_words(release.privacy.budget)
    )
    return re.sub(r'": (-?\d+)e', r'": \1.0e', json.dumps(found, indent=2, ensure_ascii=False)) + "\n"


def _document(template: str, release: AnyRelease, made: str, **given: Any) -> Any:
    several = release.described.schema is None
    title = "Synthetic tables of persons with their events" if several else "Synthetic table"
    if isinstance(release, AnonymousRelease):
        size = counted(release.n, "row")
        promise = f"{release.group_size}-anonymous microaggregation, NOT differential privacy"
    else:
        budget = release.privacy.budget
        size = release.privacy.size
        promise = f"{guarantee_words(budget)}, {budget.parameters}, for {budget.protects}"
        if release.privacy.seeded:
            promise = "a trial with a declared seed, NOT private"
    given |= {"release": release, "made": made, "several": several, "title": title, "METHOD": METHOD}
    given |= {"private": isinstance(release, PrivateRelease), "counted": size, "promise": promise}
    return json.loads(render(template, **given))


def _media_type(table: str) -> str:
    return "application/vnd.apache.parquet" if table.endswith("parquet") else "text/csv"


# What groups give away by agreeing: the risk of anonymous releases, which follows from the size of groups alone.


def risks(r: int) -> list[tuple[str, float]]:
    """For things that few and many people have: how often all of r people drawn at random have it, or none."""
    return [(f"{100 * p:g} of 100 people have it", p**r + (1 - p) ** r) for p in (0.01, 0.05, 0.1, 0.25, 0.5)]


def why(r: int) -> str:
    """What the figures mean."""
    return (
        f"If all {r:,} members of a group have the same value, their average is that value. Whoever knows that a person is in "
        "the group then knows it too. These are the probabilities for groups formed at random. Real groups hold similar people, "
        "so they agree more often."
    )
