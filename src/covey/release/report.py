"""report.html: what a bundle holds, for a person who opens it. Made from the release alone, so all of it is public.

The pictures show the synthetic rows, the certificate, the budget and the noisy spectrum; no true row is within reach here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from covey.core.arrays import Array, Integers
from covey.core.numbers.cells import Cells
from covey.entropy import SEEDED_MARK
from covey.html import Html, shorten, tag
from covey.release import charts
from covey.release.accuracy import NO_CERTIFICATE, accuracy, headline, stated, table_bounds
from covey.release.agreement import risks, why
from covey.release.contents import (
    NOT_PRIVATE,
    NOTHING_SAID,
    About,
    AnonymousRelease,
    AnyRelease,
    Bands,
    Bounds,
    PrivateRelease,
)
from covey.release.cover import cover, example_question, foundations, public_columns
from covey.release.looks import LOOKS, PAIRS, distributions, pair_map
from covey.release.page import Part, attempted, facts, page, points, section
from covey.release.pictured import Seen
from covey.release.sections import budget_bar, epsilon_words, guarantee, marks, spectrum
from covey.release.summary import describe, even_inside
from covey.release.verify import PACKAGE
from covey.table.codec import Codec
from covey.table.description import Description
from covey.table.schema import ORDERED_TYPES

PAPER = (
    "M. Boedihardjo, T. Strohmer and R. Vershynin, “Covariance’s Loss is Privacy’s Gain: Computationally Efficient, "
    "Private and Accurate Synthetic Data”"
)
HIDDEN = "What became coarser"
SAMPLE = "The first synthetic rows"
FIRST = 5  # rows that a report opens with: enough to see what the table is
SAMPLED = 12  # columns of these rows: more do not fit on a screen


def report_html(
    release: AnyRelease,
    digests: Mapping[str, str],
    seen: Seen | None = None,
    about: About = NOTHING_SAID,
    whole: Bounds = None,
) -> str:
    """The page of a bundle whose rows are in files with these SHA-256 digests; `seen` has counted these rows.

    `whole` has the bounds of these very rows, from `rows_bounds`, if they were computed before.
    """
    own = Seen.of(release) if seen is None else seen
    files = Files(release.described, own.rows, digests, release.version, about.dated())
    private, several = not isinstance(release, AnonymousRelease), files.several
    looks, first = list[Part](), 0
    for part in release.described.tables:
        place, first = first, first + len(part.measured.encoded)
        if (table := own.tables.get(part.name)) is None or not table.rows:
            continue
        name = part.name
        columns, of = describe(table.codec), name if several else ""
        even = even_bars(release.cells, table.codec, place) if isinstance(release, PrivateRelease) else {}
        # Of events, persons count equally in what was measured, and events in these pictures: no band would fit.
        bands = release.bands if isinstance(release, PrivateRelease) and part.parent is None else None
        title = f"What {of} look like" if of else LOOKS
        looks += attempted(title, distributions, columns, table.counts, private, bands, even, of)
        looks += attempted(HIDDEN, changed, bands, release.described)
        paired = None if several else bands
        fine = table.some_fine if paired is not None else None
        looks += attempted(PAIRS, pair_map, columns, table.some, table.rows, paired, fine, of)
    if isinstance(release, AnonymousRelease):
        return anonymous_page(release, files, looks)
    looks = [*([_events(files, own.events)] if several else []), *looks]
    whole = rows_bounds(release, own) if whole is None else whole
    opening = attempted(SAMPLE, first_rows, files, own, in_one_line(release, files, whole))
    return private_page(release, files, whole, opening, looks)


def first_rows(files: Files, seen: Seen, line: str) -> Part:
    """What the release is in one line, and the first rows of every table."""
    shown: list[Html] = [tag("p", line, class_="statement")]
    for part in files.described.tables:
        if (table := seen.tables.get(part.name)) is None or not table.rows:
            continue
        names = list(table.first)[:SAMPLED]
        rows = zip(*(list(table.first[name][:FIRST]) for name in names), strict=True)
        cells = [["—" if value is None or value != value else shorten(str(value), 30) for value in row] for row in rows]
        shown.append(
            charts.table([shorten(name, 30) for name in names], cells, f"{SAMPLE}{files.several * f' of {part.name}'}")
        )
        if len(table.first) > len(names):
            shown.append(tag("p", f"The first {len(names)} of {len(table.first):,} columns.", class_="note"))
    return section("first", SAMPLE, *shown)


def in_one_line(release: PrivateRelease, files: Files, whole: Bounds) -> str:
    """What somebody can repeat who has read nothing else."""
    budget = release.privacy.budget
    error = [f"At most {value.removeprefix('≤ ')} {words}." for words, value in headline(release, whole)]
    protects = (
        f"{'would protect' if release.privacy.seeded else 'protects'} every {budget.protects.removeprefix('one ')}"
    )
    counted = "persons" if files.several else "rows"
    return " ".join(
        [
            f"{files.units:,} made-up {counted} replace {release.privacy.n:,} real {budget.counted}.",
            *error,
            f"Differential privacy with {budget.parameters} {protects}.",
        ]
    )


def _events(files: Files, counts: Integers) -> Part:
    """How many events synthetic persons have."""
    share = counts / max(1, counts.sum())
    rows = [(str(k), f"{100 * float(value):.1f}%") for k, value in enumerate(share)]
    return section(
        "events",
        f"How many {files.described.events.name} a synthetic person has",
        tag(
            "details",
            tag("summary", "Proportions of persons"),
            facts(rows, "Number of events and proportion of persons"),
        ),
    )


def even_bars(all_cells: Mapping[int, Cells], codec: Codec, place: int) -> dict[int, Array]:
    """In which bars of numbers values are spread evenly; nothing is said of numbers that are drawn as distances.

    `place` is that of the table's first column among all.
    """
    cells = {j - place: own for j, own in all_cells.items()}
    out = {}
    for j, (name, column) in enumerate(zip(codec.names, describe(codec), strict=True)):
        field = codec.schema[name]
        if field.type in ORDERED_TYPES and not (j in cells and name in codec.schema.links):
            out[j] = even_inside(column, field, cells[j].measure if j in cells else None)
    return out


def changed(bands: Bands | None, described: Description) -> Part | None:
    """What the schema made of the confidential table, as far as the measurements tell; nothing where that is nothing."""
    found = [] if bands is None else bands.notes()
    related = () if described.schema is None else described.schema.found
    if not found and not related:
        return None
    words = "Rows and answers describe the confidential table as the schema reads it. These values became coarser:"
    listed = [tag("p", words), tag("ul", [tag("li", f"{note}.") for note in found])] if found else []
    if related:
        told = "Relations between columns were found with noise, and synthetic rows keep them, with about as many exceptions:"
        listed += [tag("p", told), tag("ul", [tag("li", f"{relation}.") for relation in related])]
    return section("limits", HIDDEN, *listed)


def rows_bounds(release: PrivateRelease, seen: Seen) -> Bounds:
    """What the certificate says of these very rows, where they came in one part."""
    if release.described.schema is None:
        return release.certified(seen.first)
    return table_bounds(release, seen.only.fine(seen.only.first))


@dataclass(frozen=True)
class Files:
    """What both kinds of page say about the files of the bundle: tables, how many rows each has, and digests of their files."""

    described: Description
    rows: Mapping[str, int]
    digests: Mapping[str, str]
    version: str
    about: About

    @property
    def several(self) -> bool:
        """Whether there are several tables."""
        return self.described.schema is None

    @property
    def units(self) -> int:
        """How many rows, or persons, there are."""
        return next(iter(self.rows.values()))

    @property
    def notes(self) -> Mapping[str, Any]:
        """What else the schema, or the package, says."""
        return self.described.notes if self.described.schema is None else self.described.schema.notes

    @property
    def title(self) -> str:
        """The owner's title, or the schema's, if it has one."""
        return shorten(str(self.about.title or self.notes.get("title") or "Synthetic data"), 120)

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.described.fields)

    @property
    def columns(self) -> list[Html]:
        """What is public of the columns."""
        if self.described.schema is not None:
            return [public_columns(self.described.schema)]
        return [public_columns(part.schema, part.name, PACKAGE) for part in self.described.tables if not part.bare]

    def released(self, n: str, method: str, words: str, *columns: Html) -> Part:
        """What was released: sizes, origin, fingerprints."""
        notes = self.notes.get("description")
        tables = list(zip(self.described.tables, self.rows.values(), self.digests.items(), strict=True))
        rows: list[tuple[str, Any]] = [
            (f"Rows of {part.name}" if self.several else "Rows", f"{count:,}, in {file}")
            for part, count, (file, _) in tables
        ]
        for part in self.described.tables:
            if part.parent is not None:
                own = part.parent
                rows.append(("Link", f"{part.name}.{own.column} refers to {own.table}; its numbers have no meaning"))
                rows.append((f"{part.name} of a person", f"{own.at_most} at most"))
        rows += [
            ("Columns", f"{self.width:,}"),
            ("Made from", f"{'confidential tables' if self.several else 'a confidential table'} of {n}"),
            ("Made by", f"covey {self.version}, {method}"),
            ("Date", self.about.made),
        ]
        for file, digest in self.digests.items():
            rows.append(("Fingerprint", [tag("code", digest), tag("span", f"SHA-256 of {file}", class_="note")]))
        return section(
            "released",
            "What was released",
            tag("p", shorten(str(notes), 2000)) if notes else None,
            tag("p", words),
            facts(rows, "About this release"),
            *columns,
        )

    def reuse(self, mark: str, notes: Sequence[str], more: Sequence[Html] = ()) -> Part:
        """How to check, read and cite the bundle."""
        table, digest = next(iter(self.digests.items()))
        reader = "read_parquet" if table.endswith("parquet") else "read_csv"
        check = f"covey verify .\npython -c \"import pandas; print(pandas.{reader}('{table}'))\""
        what = (
            f"tables of {self.units:,} persons with their events" if self.several else f"table of {self.units:,} rows"
        )
        cite = (
            f"{self.title}. Synthetic {what}, {mark}. Made by covey {self.version} on {self.about.made}. "
            f"SHA-256 {digest[:16]}…"
        )
        return section(
            "reuse",
            "Cite and reuse",
            tag("p", "To check that nothing was changed and to read the rows, run in the folder of this page:"),
            tag("pre", check),
            *more,
            tag("p", "Cite the table as (covey cite . prints BibTeX too):"),
            tag("pre", cite),
            tag("p", f"Cite the method as: {PAPER}."),
            tag("ul", [tag("li", note) for note in notes]),
        )

    def recipes(self) -> list[Html]:
        """How to draw more rows and to compute an interval, to be copied."""
        last = self.described.tables[-1]
        ask, python = example_question(last.written, f"{last.name}." if self.several else "")
        lines = ("import covey", "", 'release = covey.load(".")', f"print({python})", "more = release.sample(100_000)")
        return [
            tag(
                "p",
                "Ask for an interval that includes the noise. An interval computed from the rows alone would be too short:",
            ),
            tag("pre", f'covey ask . "{ask}"'),
            tag("p", "The same in Python, and more rows at no cost of privacy (covey sample draws them too):"),
            tag("pre", "\n".join(lines)),
        ]

    def footer(self) -> Html:
        """The last line."""
        return tag(
            "p",
            f"Written by covey {self.version}. This page is one file without scripts. It loads nothing and sends nothing. "
            "README.md and privacy.json in the same folder say the same in words and in numbers.",
        )


def private_page(
    release: PrivateRelease, files: Files, whole: Bounds, opening: Sequence[Part], looks: Sequence[Part]
) -> str:
    """The page of a differentially private bundle."""
    privacy, budget = release.privacy, release.privacy.budget
    mark, badges, banners = marks(privacy)
    bound = stated(release.certificate, whole) or NO_CERTIFICATE
    tiles = [
        ("persons" if files.several else "rows", f"{files.units:,}"),
        ("columns", f"{files.width:,}"),
        (epsilon_words(budget), f"{float(budget.epsilon):g}"),
        *headline(release, whole),
    ]
    notes = [
        "Use it like the original table: to explore, teach, test code or plan a study. Nothing that you compute from it costs "
        "further privacy.",
        "It keeps proportions and associations of few columns best. Single rows mean nothing. Rare combinations may be off by "
        "more than the bound above, which is an average.",
        "model.npz holds the model that the rows were drawn from. More rows can be drawn from it at no cost.",
    ]
    spectral = release.fitted.spectrum
    drawn = "Persons and their events" if files.several else "The rows"
    # The pyramid of NIST SP 800-226, from its top: what is promised to whom; how, and how well; what it stands on.
    sections = [
        *opening,
        cover(privacy, files.about, bound, *files.columns),
        guarantee(privacy),
        *attempted("How the budget was spent", budget_bar, privacy),
        *attempted("How accurate it is", accuracy, release, whole),
        *looks,
        *([] if spectral is None else attempted("What is stronger than the noise", spectrum, spectral)),
        files.released(
            f"{privacy.n:,} {budget.counted}{' and their events' if files.several else ''}",
            f"mechanism: {privacy.mechanism}",
            f"{drawn} were drawn at random from a private model. The {'package' if files.several else 'schema'}, the number of "
            f"{budget.counted} and the method are public{'; the real number of events is not' if files.several else ''}.",
        ),
        foundations(privacy),
        *attempted("Cite and reuse", lambda: files.reuse(mark, notes, files.recipes())),
    ]
    stands = (
        "Two linked tables that replace confidential ones"
        if files.several
        else "A table that replaces a confidential one"
    )
    lead = f"{stands} of {privacy.n:,} {budget.counted}. No row {'of them ' if files.several else 'of it '}belongs to a person."
    return page(files.title, "Release report", lead, badges, banners, tiles, sections, files.footer())


def anonymous_page(release: AnonymousRelease, files: Files, looks: Sequence[Part]) -> str:
    """The page of an anonymous bundle: it says first what it is not, and carries no budget."""
    r = release.group_size
    badges = [("synthetic", ""), (f"{r}-anonymous", "warn"), ("not for publication", "alarm")]
    caution = f". Every row comes from the average of at least {r} records. A group whose members agree on a column discloses it."
    banners = [tag("p", tag("strong", NOT_PRIVATE), caution, class_="banner alarm")]
    if release.seeded:
        badges.append((SEEDED_MARK, "alarm"))
        words = f"{SEEDED_MARK} (sampling): the drawing of these rows can be repeated."
        banners.append(tag("p", words, class_="banner warn"))
    tiles = [
        ("rows", f"{files.units:,}"),
        ("columns", f"{files.width:,}"),
        ("groups", f"{release.groups:,}"),
        ("records, at least, in every group", f"{r:,}"),
    ]
    notes = [
        "Keep this notice together with the table.",
        "It keeps associations of few columns best. Drawing rows at random restores the spread inside groups.",
    ]
    sections = [
        files.released(
            f"{release.n:,} rows",
            f"method {release.method}",
            "The rows were drawn at random from averages over groups.",
            *files.columns,
        ),
        anonymity(r),
        averaging(release),
        *looks,
        files.reuse(f"{r}-anonymous, not for publication", notes),
    ]
    lead = (
        f"A table that replaces a confidential one of {release.n:,} records. It was made by averaging groups of them."
    )
    return page(files.title, "Release report", lead, badges, banners, tiles, sections, files.footer())


def anonymity(r: int) -> Part:
    """What averaging protects, and what it does not."""
    does = [
        f"Similar records were put into groups of at least {r:,}, and each group was replaced by its average.",
        "Rows are drawn from these averages, column by column, not from records.",
    ]
    does_not = [
        "A group whose members agree on a column discloses that column for all of them.",
        "Whoever knows most members of a group can learn about the others.",
        "Several anonymous tables about the same people can be combined. Nothing limits what they disclose together.",
        "A group counts rows. Where a person has several rows, a group may hold fewer persons.",
    ]
    shown = [(words, [chance]) for words, chance in risks(r)]
    drawn = charts.bars(shown, "Chance that a group agrees")
    picture = charts.figure(f"How often a group of {r:,} agrees, and discloses", drawn, None, why(r))
    advice = f"Give it only to people who may see {r}-anonymous data. For data that can be published use "
    return section(
        "protects",
        "What it protects, and what it does not",
        tag("div", points("It does", does), points("It does not", does_not), class_="two"),
        picture,
        tag("p", advice, tag("code", "covey release"), "."),
    )


def averaging(release: AnonymousRelease) -> Part:
    """What the averages no longer have."""
    loss = [charts.number(release.covariance_loss), tag("span", "computed on real data", class_="note")]
    rows = [
        ("Covariance loss", loss),
        ("Records", f"{release.n:,}"),
        ("Groups", f"{release.groups:,}, each of at least {release.group_size:,} records"),
        ("Grouping", release.method),
    ]
    words = (
        "The covariance loss says how much of the spread and of the associations was lost by averaging. It is the Frobenius "
        "norm of the difference of the two covariance matrices; 0 means that nothing was lost."
    )
    return section("accuracy", "What averaging lost", tag("p", words), facts(rows, "What averaging lost"))
