"""What is done with a bundle: checked, held against the true table, drawn from, asked, cited."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from covey.desk.cli.group import command, file_options, number, options, say, source_of
from covey.errors import ParameterError, counted


@command("covey verify release/")
@options("folder", "json")
def verify(folder: Path, as_json: bool) -> None:
    """Check a bundle: checksums, every row, the budget. Needs no real data."""
    from covey.release.verify import verify_bundle

    found = verify_bundle(folder)
    told = f"{folder}: complete and unmodified, {found.words}", found.facts["guarantee"], found.facts.get("note")
    words = "; ".join(dict.fromkeys(filter(None, told)))
    words += "" if found.finished else f"\nIts report is missing. This makes it from the data: covey resume {folder}"
    several = {"persons": found.rows, "rows": dict(found.tables)}
    facts = {"bundle": str(folder), **({"rows": found.rows} if len(found.tables) == 1 else several)}
    facts |= {"finished": found.finished}
    say(as_json, {**facts, "privacy": dict(found.facts)}, words)


@command("covey resume release/")
@options("folder", "json")
def resume(folder: Path, as_json: bool) -> None:
    """Write the missing report of a bundle. Needs no real data and costs no privacy."""
    from covey.workflow import resume as finish

    done = finish(folder)
    say(as_json, {"bundle": str(done.bundle), "rows": done.rows}, f"bundle → {done.bundle}\n{done.privacy}")


@command(
    "covey evaluate patients.csv release/",
    "covey evaluate patients.csv release/ --report evaluation.html --target readmitted",
)
@click.argument("table")
@file_options
@click.argument("folder")
@click.option("-o", "--out", "out", type=Path, help="Write the confidential figures to this file, as JSON.")
@click.option("--report", type=Path, help="Write a confidential page, real beside synthetic, to this file.")
@click.option("--schema", type=Path, help="The schema of TABLE: how it is written, as its release read it.")
@click.option("--target", "targets", multiple=True, metavar="FIELD", help="Predict this field (default: the last few).")
@options("person", "force", "json")
def evaluate(  # click passes each option by its name
    table: str,
    folder: str,
    relation: str | None,
    sql: str | None,
    out: Path | None,
    report: Path | None,
    force: bool,
    as_json: bool,
    **said: Any,
) -> None:
    """Compare a bundle with the real TABLE. The answer is confidential: computed on real data, without noise.

    TABLE is read as its release read it, unless options say how it is written. It may stand behind the bundle, too.
    """
    from covey.evaluation.comparison import write_confidential
    from covey.release.places import check_new_file, refuse_in_bundle
    from covey.workflow import evaluate as compare
    from covey.workflow.evaluating import in_order

    named, bundle = in_order(table, folder)
    source = source_of(named, relation, sql)
    if out is not None and report is not None and out.resolve() == report.resolve():
        raise ParameterError(f"--out and --report name the same file, {out}. Give each its own.")
    for path in (out, report):
        if path is not None:
            refuse_in_bundle(path)
            check_new_file(path, source, force)
    found = compare(source, Path(bundle), **said)
    words = list(found.words)
    if report is not None:
        write_confidential(report, found.page())
        words.append(f"Next: read {report}. It is confidential, too.")
    if out is not None:
        write_confidential(out, json.dumps(found.figures, indent=2, ensure_ascii=False) + "\n")
    say(as_json, found.figures, "\n".join(words))


@command(
    "covey sample release/ --rows 100000 -o more.csv",
    "covey sample release/ --rows 500 --where ward=surgery --where 'age>=65' -o s.csv",
)
@options("folder")
@click.option("--rows", "m", type=int, required=True, help="Synthetic rows to draw.")
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Draw only rows with ward=surgery, ward=surgery,medicine, 'age>=65' or age=missing. Repeatable.",
)
@click.option("-o", "--out", "out", type=Path, required=True, help="File to write: .csv or .parquet.")
@click.option("--seed", type=int, help="A number that makes the draw repeatable.")
@options("force", "json")
def sample(  # click passes each option by its name
    folder: Path, m: int, conditions: tuple[str, ...], out: Path, seed: int | None, force: bool, as_json: bool
) -> None:
    """Draw more rows from a private bundle. They may be made to meet conditions. Costs no privacy and needs no real data."""
    from covey.paths import local_output
    from covey.release.answers.asking import conditions as read
    from covey.release.answers.columns import Columns
    from covey.release.answers.load import load
    from covey.release.places import SUMS, check_new_file, is_bundle
    from covey.release.verify import described_by
    from covey.tables.sources import write_rows

    local_output(out)
    several = described_by(folder).schema is None
    if several == bool(out.suffix) or out.suffix not in ("", ".csv", ".parquet"):
        held = "two tables: name a folder for them" if several else "one table: name a .csv or .parquet file"
        raise ParameterError(f"{folder} holds {held}, not {out.name}.")
    if is_bundle(out) or is_bundle(out.parent):
        raise ParameterError(f"{out} is inside a bundle and would change it. Choose another place.")
    release, parts = load(folder), {}
    wanted = read(Columns(release.described), list(conditions))
    if several:
        for name, frame in release.sample(m, wanted, seed=seed).items():
            parts[out / f"{name}.csv"] = [{column: frame[column] for column in frame.columns}]
        out.mkdir(exist_ok=True)
    else:
        parts[out] = release.draw(m, wanted, seed)
    for place in parts:
        check_new_file(place, folder / SUMS, force)
    for place, rows in parts.items():
        unfinished = place.with_name(f".{place.name}.part")
        try:  # there is never a file with a part of the rows
            write_rows(rows, unfinished, place.suffix == ".parquet")
            unfinished.replace(place)
        finally:
            unfinished.unlink(missing_ok=True)
    given = f" with {', '.join(conditions)}" if conditions else ""
    drawn = counted(m, "person" if several else "row")
    facts = {"out": [str(place) for place in parts], "persons": m} if several else {"out": str(out), "rows": m}
    facts |= {"where": list(conditions), "seeded": release.privacy.seeded}
    say(as_json, facts, f"{drawn}{given} → {', '.join(map(str, parts))}{_mark(release)}")


@command("covey cite release/")
@options("folder", "json")
def cite(folder: Path, as_json: bool) -> None:
    """Say how to cite a bundle, in words and as BibTeX."""
    from covey.release.verify import cite as citation

    found = citation(folder)
    say(as_json, found, f"{found['sentence']}\n\n{found['bibtex']}")


@command(
    'covey ask release/ "share ward=surgery age>=60"',
    'covey ask release/ "average cost of women"',
    'covey ask release/ "top 5 ward"',
    'covey ask release/ "regress cost ~ age + ward" --json',
    'covey ask release/ "mean cost by ward per person"',
)
@options("folder")
@click.argument("question", nargs=-1, required=True)
@click.option("--confidence", callback=number, default="0.95", show_default=True, help="Confidence of the intervals.")
@click.option(
    "--about",
    type=click.Choice(["population", "table"]),
    default="population",
    show_default=True,
    help="What the answer is about: the population that the real table is a sample of, or that table itself.",
)
@options("json")
def ask(  # click passes each option by its name
    folder: Path, question: tuple[str, ...], confidence: Fraction, about: str, as_json: bool
) -> None:
    """Answer a QUESTION from a private bundle.

    It asks for a proportion, count, mean, percentile, difference, correlation, regression, or relations. The answer comes with an
    interval that includes the noise. It costs no privacy and needs no real data. If no interval would
    be honest, covey says why and shows the nearest question that works.
    """
    from covey.release.answers.asking import ask as answer
    from covey.release.answers.load import load

    release, words = load(folder), " ".join(question)
    found = answer(release, words, confidence=float(confidence), about=about)
    say(as_json, found.as_dict(), repr(found))


@command("covey tables release/ -o tables/")
@options("folder")
@click.option("-o", "--out", "out", type=Path, required=True, help="Folder to write the tables to.")
@options("json")
def tables(folder: Path, out: Path, as_json: bool) -> None:
    """Write the noisy counts of a private bundle as CSV. Columns, pairs and chosen triples have their standard deviations."""
    from covey.release.answers.load import load
    from covey.release.answers.tables import write_tables
    from covey.release.places import is_bundle

    if is_bundle(out.parent):
        raise ParameterError(f"{out} is inside a bundle and would change it. Choose another place.")
    release = load(folder)
    written = write_tables(release, out)
    facts = {"files": [str(path) for path in written], "seeded": release.privacy.seeded}
    say(as_json, facts, "\n".join(f"→ {path}" for path in written) + _mark(release))


def _mark(release: Any) -> str:
    """A line that says of a seeded bundle that it is not private."""
    from covey.engine.entropy import SEEDED_MARK

    return f"\n{SEEDED_MARK}" if release.privacy.seeded else ""
