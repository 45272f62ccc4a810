"""report.html: what a bundle holds, for a person who opens it. Made from the release alone, so all of it is public.

The pictures show the synthetic rows, the certificate, the budget and the noisy spectrum; no true row is within reach here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from covey.core.arrays import Array
from covey.entropy import SEEDED_MARK
from covey.html import Html, shorten, tag
from covey.privacy.certificate import TableBounds, of_hundred
from covey.release import charts
from covey.release.accuracy import NO_CERTIFICATE, accuracy, stated, table_bounds
from covey.release.agreement import risks, why
from covey.release.contents import NOT_PRIVATE, NOTHING_SAID, About, AnonymousRelease, Bands, PrivateRelease
from covey.release.cover import cover, example_question, foundations, public_columns
from covey.release.looks import LOOKS, PAIRS, distributions, pair_map
from covey.release.page import Part, attempted, facts, page, points, section
from covey.release.pictured import Pictured
from covey.release.sections import budget_bar, epsilon_words, guarantee, marks, spectrum
from covey.release.summary import describe, even_inside
from covey.table.codec import Codec
from covey.table.schema import ORDERED_TYPES, Schema

PAPER = (
    "M. Boedihardjo, T. Strohmer and R. Vershynin, “Covariance’s Loss is Privacy’s Gain: Computationally Efficient, "
    "Private and Accurate Synthetic Data”"
)
HIDDEN = "What limits and categories hide"


def report_html(
    release: PrivateRelease | AnonymousRelease,
    table: str,
    digest: str,
    pictured: Pictured | None = None,
    about: About = NOTHING_SAID,
    whole: TableBounds | None = None,
) -> str:
    """The page of a bundle whose rows are in the file `table` with this SHA-256 digest; `pictured` has counted these rows.

    `whole` has the bounds of these very rows, from `rows_bounds`, if they were computed before.
    """
    own = Pictured.of(release) if pictured is None else pictured
    files = Files(release.schema, release.parts.m, table, digest, release.version, about.dated())
    columns = describe(own.codec)
    if isinstance(release, PrivateRelease):
        bands = release.bands
        looks = attempted(LOOKS, lambda: distributions(columns, own.counts, True, bands, even_bars(release, own.codec)))
        looks += attempted(HIDDEN, changed, bands)
        looks += attempted(PAIRS, lambda: pair_map(columns, own.some, own.rows, bands, own.some_fine))
        return private_page(release, files, rows_bounds(release, own) if whole is None else whole, looks)
    looks = attempted(LOOKS, distributions, columns, own.counts, False)
    return anonymous_page(release, files, looks + attempted(PAIRS, pair_map, columns, own.some, own.rows))


def even_bars(release: PrivateRelease, codec: Codec) -> dict[int, Array]:
    """In which bars of its numbers values are spread evenly; nothing is said of numbers that are drawn as distances."""
    cells = {} if release.numbers is None else release.numbers.cells
    out = {}
    for j, (name, column) in enumerate(zip(codec.names, describe(codec), strict=True)):
        field = codec.schema[name]
        if field.type in ORDERED_TYPES and not (j in cells and name in codec.schema.links):
            out[j] = even_inside(column, field, cells[j].measure if j in cells else None)
    return out


def changed(bands: Bands | None) -> Part | None:
    """What the schema made of the confidential table, as far as the measurements tell; nothing where that is nothing."""
    found = [] if bands is None else bands.notes()
    if not found:
        return None
    words = (
        "Rows and answers are about the confidential table as the schema reads it, within its limits and categories:"
    )
    listed = tag("ul", [tag("li", f"{note}.") for note in found])
    return section("limits", HIDDEN, tag("p", words), listed)


def rows_bounds(release: PrivateRelease, own: Pictured) -> TableBounds:
    """What the certificate says of these very rows, where they came in one part."""
    return table_bounds(release, own.fine(own.first))


@dataclass(frozen=True)
class Files:
    """What both kinds of page say about the files of the bundle."""

    schema: Schema
    rows: int
    table: str
    digest: str
    version: str
    about: About

    @property
    def title(self) -> str:
        """The owner's title, or the schema's, if it has one."""
        return shorten(str(self.about.title or self.schema.notes.get("title") or "Synthetic data"), 120)

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.schema.fields)

    def released(self, n: str, method: str, words: str, *columns: Html) -> Part:
        """What was released: sizes, origin, fingerprint."""
        notes = self.schema.notes.get("description")
        fingerprint = [tag("code", self.digest), tag("span", f"SHA-256 of {self.table}", class_="note")]
        rows = [
            ("Rows", f"{self.rows:,}, in {self.table}"),
            ("Columns", f"{self.width:,}"),
            ("Made from", f"a confidential table of {n}"),
            ("Made by", f"covey {self.version}, {method}"),
            ("Date", self.about.made),
            ("Fingerprint", fingerprint),
        ]
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
        reader = "read_parquet" if self.table.endswith("parquet") else "read_csv"
        check = f"covey verify .\npython -c \"import pandas; print(pandas.{reader}('{self.table}'))\""
        cite = (
            f"{self.title}. Synthetic table of {self.rows:,} rows, {mark}. Made by covey {self.version} on {self.about.made}. "
            f"SHA-256 {self.digest[:16]}…"
        )
        return section(
            "reuse",
            "Cite and reuse",
            tag("p", "In the folder of this page, check that nothing was changed and read the rows:"),
            tag("pre", check),
            *more,
            tag("p", "Cite the table as (covey cite . says it as BibTeX too):"),
            tag("pre", cite),
            tag("p", f"Cite the method as: {PAPER}."),
            tag("ul", [tag("li", note) for note in notes]),
        )

    def recipes(self) -> list[Html]:
        """How to draw more rows and to compute an interval, to be copied."""
        ask, python = example_question(self.schema)
        lines = ("import covey", "", 'release = covey.load(".")', f"print({python})", "more = release.sample(100_000)")
        return [
            tag("p", "Compute an interval that knows of the noise; one from the rows alone would be too short:"),
            tag("pre", f'covey ask . "{ask}"'),
            tag("p", "The same in Python, and more rows, which cost no privacy (covey sample draws them too):"),
            tag("pre", "\n".join(lines)),
        ]

    def footer(self) -> Html:
        """The last line."""
        return tag(
            "p",
            f"Written by covey {self.version}. This page is one file without scripts; it loads nothing and sends nothing. "
            "README.md and privacy.json in the same folder say the same in words and in numbers.",
        )


def private_page(release: PrivateRelease, files: Files, whole: TableBounds, looks: Sequence[Part]) -> str:
    """The page of a differentially private bundle."""
    privacy, budget = release.privacy, release.privacy.budget
    mark, badges, banners = marks(privacy)
    bound = NO_CERTIFICATE if release.certificate is None else stated(release.certificate, whole)
    tiles = [
        ("rows", f"{files.rows:,}"),
        ("columns", f"{files.width:,}"),
        (epsilon_words(budget), f"{float(budget.epsilon):g}"),
    ]
    if release.certificate is not None:
        own = release.certificate.misplaced
        if own is not None:
            most = own.bound if whole.misplaced is None else whole.misplaced
            tiles.append(("of 100 rows, out of place in a typical table", f"≤ {of_hundred(most)}"))
    notes = [
        "Use it as you would use the original table: for exploring, teaching, testing code, planning a study. Whatever "
        "you compute from it costs no further privacy.",
        "Shares and associations of few columns are what it keeps best. Single rows mean nothing, and rare combinations "
        "may be off by more than the bound above, which is about the typical one.",
        "centres.npz holds the weighted centres that the rows were drawn from: more rows can be drawn at no cost.",
    ]
    # The pyramid of NIST SP 800-226, from its top: what is promised to whom; how, and how well; what it stands on.
    sections = [
        cover(privacy, files.about, bound, public_columns(files.schema)),
        guarantee(privacy),
        *attempted("How the budget was spent", budget_bar, privacy),
        *attempted("How accurate it is", accuracy, release, whole),
        *looks,
        *([] if release.spectrum is None else attempted("What stood out of the noise", spectrum, release.spectrum)),
        files.released(
            f"{privacy.n:,} {budget.counted}",
            f"mechanism: {privacy.mechanism}",
            "The rows were drawn at random from a private model. The schema, the number of "
            f"{budget.counted} and the method are public.",
        ),
        foundations(privacy),
        *attempted("Cite and reuse", lambda: files.reuse(mark, notes, files.recipes())),
    ]
    lead = f"A table that stands in for a confidential one of {privacy.n:,} {budget.counted}. No row of it belongs to a person."
    return page(files.title, "Release report", lead, badges, banners, tiles, sections, files.footer())


def anonymous_page(release: AnonymousRelease, files: Files, looks: Sequence[Part]) -> str:
    """The page of an anonymous bundle: it says first what it is not, and carries no budget."""
    r = release.group_size
    badges = [("synthetic", ""), (f"{r}-anonymous", "warn"), ("not for publication", "alarm")]
    caution = (
        f": every row comes from the average of at least {r} records, and a group whose members agree on a column "
        "discloses it."
    )
    banners = [tag("p", tag("strong", NOT_PRIVATE), caution, class_="banner alarm")]
    if release.seeded:
        badges.append((SEEDED_MARK, "alarm"))
        words = f"{SEEDED_MARK} (sampling): the drawing of these rows can be repeated."
        banners.append(tag("p", words, class_="banner warn"))
    tiles = [
        ("rows", f"{files.rows:,}"),
        ("columns", f"{files.width:,}"),
        ("groups", f"{release.groups:,}"),
        ("records, at least, in every group", f"{r:,}"),
    ]
    notes = [
        "Keep this notice with the table wherever it goes.",
        "Associations of few columns are what it keeps best; drawing rows at random puts back the spread inside groups.",
    ]
    sections = [
        files.released(
            f"{release.n:,} rows",
            f"method {release.method}",
            "The rows were drawn at random from averages over groups.",
            public_columns(files.schema),
        ),
        anonymity(r),
        averaging(release),
        *looks,
        files.reuse(f"{r}-anonymous, not for publication", notes),
    ]
    lead = f"A table that stands in for a confidential one of {release.n:,} records, made by averaging groups of them."
    return page(files.title, "Release report", lead, badges, banners, tiles, sections, files.footer())


def anonymity(r: int) -> Part:
    """What averaging protects, and what it does not."""
    does = [
        f"Records that resemble each other were put into groups of at least {r:,}, and each group was replaced by its average.",
        "Rows are drawn from these averages, column by column, and not from records.",
    ]
    does_not = [
        "A group whose members agree on a column discloses that column for all of them.",
        "Whoever knows most members of a group can learn about the others.",
        "Several anonymous tables about the same people can be combined; nothing limits what they tell together.",
        "A group counts rows. Where a person has several rows, a group may hold fewer persons.",
    ]
    shown = [(words, [chance]) for words, chance in risks(r)]
    drawn = charts.bars(shown, "Chance that a group agrees")
    picture = charts.figure(f"How often a group of {r:,} agrees, and discloses", drawn, None, why(r))
    advice = f"Hand it only to people who may see {r}-anonymous data. For data that can be published use "
    return section(
        "protects",
        "What it protects, and what it does not",
        tag("div", points("It does", does), points("It does not", does_not), class_="two"),
        picture,
        tag("p", advice, tag("code", "covey release"), "."),
    )


def averaging(release: AnonymousRelease) -> Part:
    """What the averages no longer have."""
    loss = [charts.number(release.covariance_loss), tag("span", "computed on true data", class_="note")]
    rows = [
        ("Covariance loss", loss),
        ("Records", f"{release.n:,}"),
        ("Groups", f"{release.groups:,}, each of at least {release.group_size:,} records"),
        ("Grouping", release.method),
    ]
    words = (
        "The covariance loss is how much of the spread of columns and of their associations the averages no longer have: the "
        "Frobenius norm of the difference of the two covariance matrices. 0 means that nothing was lost."
    )
    return section("accuracy", "What averaging lost", tag("p", words), facts(rows, "What averaging lost"))
