"""What is done with a bundle: checked, held against the true table, drawn from, cited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from covey.cli.group import counted, example, main, say
from covey.cli.options import force_option, json_option, person_option, table_options
from covey.errors import ParameterError


@main.command(epilog=example("covey verify release/"))
@click.argument("folder", type=Path)
@json_option
def verify(folder: Path, as_json: bool) -> None:
    """Check a bundle: checksums, validity of every row, arithmetic of the budget. Needs no true data."""
    from covey.release.verify import verify_bundle

    found = verify_bundle(folder)
    note = found.facts.get("note")
    words = f"{folder}: complete and unmodified, {found.words}; {found.facts['guarantee']}" + (
        f"; {note}" if note else ""
    )
    words += "" if found.finished else f"\nIts report is missing. This makes it from the data: covey resume {folder}"
    several = {"persons": found.rows, "rows": dict(found.tables)}
    facts = {"bundle": str(folder), **({"rows": found.rows} if len(found.tables) == 1 else several)}
    facts |= {"finished": found.finished}
    say(as_json, {**facts, "privacy": dict(found.facts)}, words)


@main.command(epilog=example("covey resume release/"))
@click.argument("folder", type=Path)
@json_option
def resume(folder: Path, as_json: bool) -> None:
    """Finish a bundle whose report is missing, from the bundle alone. Needs no true data, and costs no privacy."""
    from covey.workflow import resume as finish

    done = finish(folder)
    say(as_json, {"bundle": str(done.bundle), "rows": done.rows}, f"bundle → {done.bundle}\n{done.privacy}")


@main.command(
    epilog=example(
        "covey evaluate patients.csv release/",
        "covey evaluate patients.csv release/ --report evaluation.html --target readmitted",
    )
)
@table_options
@click.argument("folder", type=Path)
@click.option("-o", "--out", "out", type=Path, help="Write the confidential figures to this file, as JSON.")
@click.option("--report", type=Path, help="Write a confidential page, real beside synthetic, to this file.")
@click.option("--target", "targets", multiple=True, metavar="FIELD", help="Predict this field (default: the last few).")
@person_option
@force_option
@json_option
def evaluate(  # click passes each option by its name
    source: Any,
    folder: Path,
    out: Path | None,
    report: Path | None,
    targets: tuple[str, ...],
    person: str | None,
    dialect: Any,
    force: bool,
    as_json: bool,
) -> None:
    """Compare a bundle with the true TABLE. The answer is confidential: computed on true data, without noise."""
    from covey.release.confidential import write_confidential
    from covey.release.places import check_new_file, refuse_in_bundle
    from covey.workflow import evaluate as compare

    if out is not None and report is not None and out.resolve() == report.resolve():
        raise ParameterError(f"--out and --report name the same file, {out}. Give each its own.")
    for path in (out, report):
        if path is not None:
            refuse_in_bundle(path)
            check_new_file(path, source, force)
    found = compare(source, folder, targets, dialect, person)
    page = None if report is None else found.page()
    if out is not None:
        write_confidential(out, json.dumps(found.figures, indent=2, ensure_ascii=False) + "\n")
    if report is not None and page is not None:
        write_confidential(report, page)
    told = [f"report → {report}"] if report is not None else []
    say(as_json, found.figures, "\n".join([*found.words, *told]))


@main.command(
    epilog=example(
        "covey sample release/ --rows 100000 -o more.csv",
        "covey sample release/ --rows 500 --where ward=surgery --where 'age>=65' -o s.csv",
    )
)
@click.argument("folder", type=Path)
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
@force_option
@json_option
def sample(  # click passes each option by its name
    folder: Path, m: int, conditions: tuple[str, ...], out: Path, seed: int | None, force: bool, as_json: bool
) -> None:
    """Draw more rows from a private bundle, or those that meet conditions. Costs no privacy and needs no true data."""
    from covey.answers.asking import conditions as read
    from covey.answers.columns import Columns
    from covey.answers.load import load
    from covey.errors import whole_number
    from covey.release.places import SUMS, check_new_file, is_bundle
    from covey.release.verify import described_by
    from covey.table.sources import write_csv, write_parquet

    m = whole_number(m, "--rows", 1, "It counts the synthetic rows, or persons.")
    seed = None if seed is None else whole_number(seed, "--seed", 0)
    several = described_by(folder).schema is None
    if several == bool(out.suffix) or out.suffix not in ("", ".csv", ".parquet"):
        name = (
            "holds two tables: name a folder for them" if several else "holds one table: name a .csv or .parquet file"
        )
        raise ParameterError(f"{folder} {name}, not {out.name}.")
    if is_bundle(out) or is_bundle(out.parent):
        raise ParameterError(f"{out} is inside a bundle and would change it. Choose another place.")
    release, parts = load(folder), {}
    wanted = read(Columns(release.codecs, tables=release.columns.tables), list(conditions)) if conditions else {}
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
            (write_parquet if place.suffix == ".parquet" else write_csv)(rows, unfinished)
            unfinished.replace(place)
        finally:
            unfinished.unlink(missing_ok=True)
    given = f" with {', '.join(conditions)}" if conditions else ""
    drawn = counted(m, "person" if several else "row")
    facts = {"out": [str(place) for place in parts], "persons": m} if several else {"out": str(out), "rows": m}
    say(as_json, {**facts, "where": list(conditions)}, f"{drawn}{given} → {', '.join(map(str, parts))}")


@main.command(epilog=example("covey cite release/"))
@click.argument("folder", type=Path)
@json_option
def cite(folder: Path, as_json: bool) -> None:
    """Say how to cite a bundle, in words and as BibTeX."""
    from covey.release.cite import cite as citation

    found = citation(folder)
    facts = {"sentence": found.sentence, "bibtex": found.bibtex, "sha256": found.digest}
    say(as_json, facts, f"{found.sentence}\n\n{found.bibtex}")
