"""Two releases side by side: what each promises and certifies, how its budget was spent, and what its columns look like.

Made from two bundles alone, so all of it is public, and no real row is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from covey.core.arrays import Floats
from covey.errors import ParameterError, counted
from covey.html import Html
from covey.release.contents import NOT_PRIVATE, AnyRelease, PrivateRelease
from covey.release.page import Part, attempted, render, section
from covey.release.pictures import beside
from covey.release.report import NO_CERTIFICATE, stated
from covey.release.summary import Column, ReleaseTally

KINDS = ("first", "second")
CHARTS = 48  # columns that are drawn, the most different ones: a page that still opens at once

Shares = dict[str, tuple[Column, Floats]]  # of the columns of a table, by name


def two_releases(names: Sequence[str], releases: Sequence[AnyRelease]) -> Html:
    """A page about two releases of a table, in this order; `names` are those of their folders."""
    tallies = [ReleaseTally.of(release, growing=False) for release in releases]
    sections = [
        section("promise", "What each promises", "beside.html", rows=list(_facts(releases, tallies)), names=names)
    ]
    if any(isinstance(release, PrivateRelease) for release in releases):
        sections += attempted("How the budget was spent", _spending, releases)
    several = any(release.described.schema is None for release in releases)
    ones, twos = (_tables(tally, several) for tally in tallies)
    drawn = [_columns(of, ones[of], twos[of]) for of in ones if of in twos]
    if not any(drawn):
        raise ParameterError("these two bundles have no column in common. Choose two releases of the same table.")
    return render("two_releases.html", sections=sections + [part for part in drawn if part], names=names)


def _facts(releases: Sequence[AnyRelease], tallies: Sequence[ReleaseTally]) -> Iterator[tuple[str, str, str]]:
    """Promise, size and certificate, one line each."""
    told: list[dict[str, str]] = []
    for release, tally in zip(releases, tallies, strict=True):
        several = len(tally.rows) > 1
        made = " and ".join(f"{count:,} {name if several else 'rows'}" for name, count in tally.rows.items())
        if isinstance(release, PrivateRelease):
            privacy, budget = release.privacy, release.privacy.budget
            own = {"Privacy budget": budget.parameters, "Protects": budget.protects}
            own |= {"Method": privacy.mechanism, "Replaces": f"{privacy.n:,} real {budget.counted}"}
            own["Certificate"] = stated(release.certificate, release.own) or NO_CERTIFICATE
        else:
            own = {
                "Privacy budget": NOT_PRIVATE,
                "Protects": f"groups of at least {release.group_size} rows",
            }
        told.append(
            own
            | {
                "Made-up": made,
                "Columns": counted(len(release.described.fields), "column"),
                "Made by": f"covey {release.version}",
            }
        )
    for name in dict.fromkeys([*told[0], *told[1]]):
        yield name, told[0].get(name, "–"), told[1].get(name, "–")


def _spending(releases: Sequence[AnyRelease]) -> Part:
    """The part of the budget that each purpose got."""
    parts: list[dict[str, float]] = []
    for release in releases:
        given = release.privacy if isinstance(release, PrivateRelease) else None
        parts.append({c.purpose: float(c.amount / given.budget.amount) for c in given.charges} if given else {})
    purposes = [(name, parts[0].get(name), parts[1].get(name)) for name in dict.fromkeys([*parts[0], *parts[1]])]
    return section("budget", "How the budget was spent", "beside_budget.html", purposes=purposes)


def _tables(tally: ReleaseTally, several: bool) -> dict[str, Shares]:
    """The columns of every table and their shares; the one table of a bundle has no name of its own."""
    return {
        name if several else "": {
            column.name: (column, column.shares_of(counts))
            for column, counts in zip(table.columns, table.counts, strict=True)
        }
        for name, table in tally.tables.items()
        if table.rows
    }


def _columns(of: str, one: Shares, two: Shares) -> Part | None:
    """Columns that both have, the most different first; those with other labels or limits are named."""
    cards: list[Any] = []
    differing = [
        (name, one[name][0].domain, two[name][0].domain)
        for name in one
        if name in two and not _alike(one[name][0], two[name][0])
    ]
    for name, (column, shares) in one.items():
        if name in two and _alike(column, two[name][0]):
            both = np.stack([shares, two[name][1]])
            cards.append(beside(column, both, KINDS, float(np.abs(both[0] - both[1]).sum() / 2)))
    if not cards and not differing:
        return None
    cards.sort(key=lambda card: -card[1])
    only = [[name for name in own if name not in other] for own, other in ((one, two), (two, one))]
    title = f"What {of} look like" if of else "Column by column"
    given = {"cards": cards[:CHARTS], "width": len(cards), "kinds": KINDS, "differing": differing, "only": only}
    return section(f"columns-{of}" if of else "columns", title, "beside_columns.html", **given)


def _alike(one: Column, two: Column) -> bool:
    return one.labels == two.labels
