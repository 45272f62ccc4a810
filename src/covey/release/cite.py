"""How to cite a bundle: what it is, what it promises, and the fingerprint by which anyone can tell it from another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from covey.privacy.budget import parameters
from covey.release.verify import bundle_digest, verify_bundle

PAPER = (
    "M. Boedihardjo, T. Strohmer, R. Vershynin: Covariance's Loss is Privacy's Gain: Computationally Efficient, Private and "
    "Accurate Synthetic Data. Foundations of Computational Mathematics (2022)."
)


@dataclass(frozen=True)
class Citation:
    """A bundle in words, and as BibTeX."""

    sentence: str
    bibtex: str
    digest: str


def cite(folder: Path) -> Citation:
    """The citation of a bundle that is whole and consistent."""
    checked, digest = verify_bundle(folder), bundle_digest(folder)
    made, promise, n = checked.facts["about"]["made"], _promise(checked.facts), checked.facts["n"]
    if checked.counted == "persons":
        title, source = "Synthetic tables of {} persons with their events", f"confidential tables of {n:,} persons"
    else:
        title, source = "Synthetic table of {} rows", f"a confidential table of {n:,} rows"
    sentence = (
        f"{title.format(f'{checked.rows:,}')}, made on {made} with covey {checked.facts['covey']} from {source}; {promise}. "
        f"SHA-256 of its list of checksums: {digest}. Method: {PAPER}"
    )
    bibtex = "\n".join(
        [
            f"@misc{{covey-{digest[:12]},",
            f"  title = {{{title.format(checked.rows)} made with covey}},",
            f"  year = {{{made[:4]}}},",
            f"  note = {{{promise}; SHA-256 {digest}}}",
            "}",
        ]
    )
    return Citation(sentence, bibtex, digest)


def _promise(facts: Mapping[str, Any]) -> str:
    if "epsilon" not in facts:
        return str(facts["guarantee"])
    promise = parameters(Fraction(facts["epsilon"]), Fraction(facts["delta"]))
    return f"{facts['guarantee']}, {promise}, for {facts['unit']}"
