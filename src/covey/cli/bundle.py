"""What is done with a bundle: checked, and held against the true table."""

from __future__ import annotations

import json
from pathlib import Path

import click

from covey.cli.family import example, main, say
from covey.cli.options import (
    encoding_option,
    force_option,
    json_option,
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
    words = f"{folder}: whole and consistent, {found.rows} rows; {found.facts['guarantee']}" + (
        f"; {note}" if note else ""
    )
    say(as_json, {"bundle": str(folder), "rows": found.rows, "privacy": dict(found.facts)}, words)


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
@table_option
@query_option
@encoding_option
@force_option
@json_option
def evaluate(  # click passes each option by its name
    table: str,
    folder: Path,
    out: Path | None,
    report: Path | None,
    targets: tuple[str, ...],
    relation: str | None,
    sql: str | None,
    encoding: str,
    force: bool,
    as_json: bool,
) -> None:
    """Compare a bundle with the true TABLE. The answer is confidential: computed on true data, without noise."""
    from covey.release.confidential import write_confidential
    from covey.release.evaluation import share_compared
    from covey.release.places import check_new_file, refuse_in_bundle
    from covey.workflow import evaluate as compare

    source = source_of(table, relation, sql)
    if out is not None and report is not None and out.resolve() == report.resolve():
        raise ParameterError(f"--out and --report both name {out}. Give each its own file.")
    for path in (out, report):
        if path is not None:
            refuse_in_bundle(path)
            check_new_file(path, source, force)
    found = compare(source, folder, targets, encoding)
    facts = found.figures
    if out is not None:
        write_confidential(out, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
    if report is not None:
        write_confidential(report, found.page())
    words = ["CONFIDENTIAL: computed on true data"]
    for d, value in facts["total_variation"].items():
        done, there = facts["tables_compared"][d]
        over = "" if done == there else f" ({share_compared(facts, d)})"
        words += [f"mean total variation of {d}-way tables: {value:.4f}{over}"]
    if facts["worst_pairs"]:
        words += [f"worst pairs: {', '.join(f'{a} × {b} ({v:.3f})' for a, b, v in facts['worst_pairs'][:5])}"]
    for entry in facts["prediction"] or []:
        true, synthetic = (entry[f"trained_on_{kind}"]["auc"] for kind in ("true", "synthetic"))
        words += [f"AUC for {entry['target']}: {synthetic:.3f} trained on synthetic, {true:.3f} trained on true rows"]
    if facts["prediction"] is None:
        words += ["predictions left out: pip install 'covey[evaluate]'"]
    words += [f"report → {report}"] if report is not None else []
    say(as_json, facts, "\n".join(words))
