"""Two releases side by side: what each promises and certifies, how its budget was spent, and what its columns look like.

Made from two bundles alone, so all of it is public, and no real row is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from covey._core.arrays import Floats
from covey._html import Html
from covey.errors import ParameterError
from covey.release.contents import AnyRelease, PrivateRelease
from covey.release.page import Part, render, section
from covey.release.pictures import beside
from covey.release.report import NO_CERTIFICATE
from covey.release.summary import Column, ReleaseTally

KINDS = ("first", "second")
CHARTS = 48  # columns that are drawn, the most different ones: a page that still opens at once

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
