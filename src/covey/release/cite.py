"""How to cite a bundle: what it is, what it promises, and the fingerprint by which anyone can tell it from another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from covey.privacy.budget import parameters
from covey.release.linkedverify import refuse_linked
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
    refuse_linked(folder, "a citation")
    checked, digest = verify_bundle(folder), bundle_digest(folder)
    made = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))["datePublished"]
    promise = _promise(checked.facts)
    sentence = (
        f"Synthetic table of {checked.rows:,} rows, made on {made} with covey {checked.facts['covey']} from a confidential table "
        f"of {checked.facts['n']:,} rows; {promise}. SHA-256 of its list of checksums: {digest}. Method: {PAPER}"
    )
    bibtex = "\n".join(
        [
            f"@misc{{covey-{digest[:12]},",
            f"  title = {{Synthetic table of {checked.rows} rows made with covey}},",
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
