"""What is done with a bundle: checked, held against the true table, drawn from, cited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from covey.cli.group import counted, example, main, say
from covey.cli.options import (
    dialect_options,
    force_option,
    json_option,
    person_option,
    query_option,
    source_of,
    table_option,
)
from covey.errors import ParameterError


@main.command(epilog=example("covey verify release/"))
@click.argument("folder", type=Path)
@json_option
def verify(folder: Path, as_json: bool) -> None:
    """Check a bundle: checksums, validity of every row, arithmetic of the budget. Needs no true data."""
    from covey.release.verify import verify_bundle

    found = verify_bundle(folder)
    note = found.facts.get("note")
    words = f"{folder}: whole and consistent, {found.words}; {found.facts['guarantee']}" + (f"; {note}" if note else "")
    words += "" if found.finished else f"\nIts report is missing. To make it from the data: covey resume {folder}"
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
@click.argument("table")
@click.argument("folder", type=Path)
@click.option("-o", "--out", "out", type=Path, help="Write the confidential figures to this file, as JSON.")
@click.option("--report", type=Path, help="Write a confidential page, true beside synthetic, to this file.")
@click.option("--target", "targets", multiple=True, metavar="FIELD", help="Predict this field (default: the last few).")
@person_option
@table_option
@query_option
@dialect_options
@force_option
@json_option
def evaluate(  # click passes each option by its name
    table: str,
    folder: Path,
    out: Path | None,
    report: Path | None,
    targets: tuple[str, ...],
    person: str | None,
    relation: str | None,
    sql: str | None,
    dialect: Any,
    force: bool,
    as_json: bool,
) -> None:
    """Compare a bundle with the true TABLE. The answer is confidential: computed on true data, without noise."""
    from covey.release.confidential import write_confidential
    from covey.release.places import check_new_file, refuse_in_bundle
    from covey.workflow import evaluate as compare

    source = source_of(table, relation, sql)
    if out is not None and report is not None and out.resolve() == report.resolve():
        raise ParameterError(f"--out and --report both name {out}. Give each its own file.")
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
    help="Only such rows: ward=surgery, ward=surgery,medicine, 'age>=65', age=missing; may be given several times.",
)
@click.option("-o", "--out", "out", type=Path, required=True, help="File to write: .csv or .parquet.")
@click.option("--seed", type=int, help="Draw the same rows again.")
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
    from covey.release.places import check_new_file, is_bundle
    from covey.release.verify import described_by
    from covey.table.sources import write_csv, write_parquet

    m = whole_number(m, "--rows", 1, "It counts the synthetic rows.")
    if described_by(folder).schema is None:
        _sample_linked(folder, m, conditions, (out, seed, force), as_json)
        return
    if out.suffix not in (".csv", ".parquet"):
        raise ParameterError(f"{out} must end in .csv or .parquet.")
    check_new_file(out, folder / "schema.json", force)
    if is_bundle(out.parent):
        raise ParameterError(f"{out} lies inside a bundle, which would no longer be whole. Choose another place.")
    release = load(folder)
    wanted = read(Columns(release.codec), list(conditions))
    seed = None if seed is None else whole_number(seed, "--seed", 0)
    parts, draft = release.draw(m, wanted, seed), out.with_name(f".{out.name}.part")
    try:  # there is never a file with a part of the rows
        (write_parquet if out.suffix == ".parquet" else write_csv)(parts, draft)
        draft.replace(out)
    finally:
        draft.unlink(missing_ok=True)
    given = f" with {', '.join(conditions)}" if conditions else ""
    say(as_json, {"out": str(out), "rows": m, "where": list(conditions)}, f"{counted(m, 'row')}{given} → {out}")


def _sample_linked(
    folder: Path, m: int, conditions: tuple[str, ...], where: tuple[Path, int | None, bool], as_json: bool
) -> None:
    """Draw m persons with their events into a folder of two files."""
    from covey.answers.load import load
    from covey.release.places import check_new_file, is_bundle
    from covey.table.sources import write_csv

    out, seed, force = where
    if conditions:
        raise ParameterError("persons with events are drawn without conditions: leave out --where.")
    if out.suffix:
        raise ParameterError(f"{folder} holds two tables: name a folder for them, not {out.name}.")
    if is_bundle(out) or is_bundle(out.parent):
        raise ParameterError(f"{out} lies inside a bundle, which would no longer be whole. Choose another place.")
    tables = load(folder).sample(m, seed=seed)
    out.mkdir(exist_ok=True)
    for name in tables:
        check_new_file(out / f"{name}.csv", folder / "datapackage.json", force)
    places = []
    for name, frame in tables.items():
        places.append(out / f"{name}.csv")
        draft = out / f".{name}.csv.part"
        write_csv([{column: frame[column] for column in frame.columns}], draft)
        draft.replace(places[-1])
    words = "\n".join(
        f"{counted(len(frame), 'row')} → {place}" for frame, place in zip(tables.values(), places, strict=True)
    )
    say(as_json, {"out": [str(place) for place in places], "persons": m}, words)


@main.command(epilog=example("covey cite release/"))
@click.argument("folder", type=Path)
@json_option
def cite(folder: Path, as_json: bool) -> None:
    """Say how to cite a bundle, in words and as BibTeX."""
    from covey.release.cite import cite as citation

    found = citation(folder)
    facts = {"sentence": found.sentence, "bibtex": found.bibtex, "sha256": found.digest}
    say(as_json, facts, f"{found.sentence}\n\n{found.bibtex}")
