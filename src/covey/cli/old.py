"""The command line: from a table to a release that cannot leak by accident.

Exit codes: 0 done; 2 a public parameter is wrong, no data was opened, nothing was charged; 3 the table cannot be read as the
schema says, nothing was charged; 4 the ledger refuses; 5 a release failed after its charge, which stays. Heavy imports
happen inside commands, so that `covey --help` is quick.
"""

from __future__ import annotations

import io
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from fractions import Fraction
from pathlib import Path
from typing import Any

try:
    import click
except ImportError:  # pragma: no cover - exercised by hand: the environment of the tests has it
    sys.exit("covey's command line needs click: pip install 'covey[cli]'.")

from covey.errors import CoveyError, CoveyWarning, MissingExtraError, ParameterError


class Family(click.Group):
    """Commands whose covey errors become one line on standard error and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a CoveyError is an answer, not a crash."""
        try:
            return super().invoke(ctx)
        except CoveyError as error:
            click.echo(f"covey: {_redacted(str(error))}", err=True)
            ctx.exit(error.exit_code)
        except click.UsageError as error:
            raise click.UsageError(_redacted(error.format_message()), error.ctx) from None
        except OSError as error:  # a full disk, say; nothing partial is left behind
            place = f"{error.filename}: " if error.filename else ""
            click.echo(f"covey: {_redacted(f'{place}{error.strerror or error}')}", err=True)
            ctx.exit(1)


def _version(ctx: click.Context, _: Any, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"covey {version('covey')}")
        ctx.exit()


@click.group(cls=Family, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version.")
def main() -> None:
    """Turn a sensitive table into a synthetic one that you can share.

    A first release: covey init TABLE -o schema.json; look at it, then covey confirm schema.json --all; covey ledger open NAME
    --budget 3; covey release TABLE --schema schema.json --epsilon 1 --dataset NAME --out release/
    """


def _redacted(message: str) -> str:
    """A message without the password of a URL, wherever that was given by mistake."""
    from covey.table.databases import redacted

    return redacted(message)


def _example(*lines: str) -> str:
    return "\b\nExample:\n" + "\n".join("  " + line for line in lines)


def _say(as_json: bool, facts: dict[str, Any], words: str) -> None:
    click.echo(json.dumps(facts, ensure_ascii=False) if as_json else words)


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _number(name: str) -> Callable[[Any, Any, str | None], Fraction | None]:
    def read(_: Any, __: Any, value: str | None) -> Fraction | None:
        if value is None:
            return None
        from covey.privacy.budget import exact

        try:
            return exact(float(value), name)
        except ValueError:
            point = value.replace(",", ".")
            advice = f" Write {point}." if re.fullmatch(r"[+-]?\d+,\d+", value) else ""
            raise ParameterError(f"{name} must be a number, got {value!r}.{advice}") from None

    return read


json_option = click.option("--json", "as_json", is_flag=True, help="Answer as one JSON object.")
schema_option = click.option(
    "--schema", "schema_path", type=Path, required=True, help="The public schema (JSON or YAML)."
)
log_option = click.option(
    "--log", "log_path", type=Path, help="Write what was missing, unknown, clipped or ragged to this private file."
)
encoding_option = click.option("--encoding", default="utf-8", show_default=True, help="Encoding of a CSV table.")
table_option = click.option("--table", "relation", metavar="NAME", help="The table of a database: NAME or SCHEMA.NAME.")
query_option = click.option(
    "--query",
    "sql",
    metavar="SQL",
    help="One SELECT on a database; each of its rows counts as one record of one person.",
)
ledger_option = click.option(
    "--ledger", "ledger_path", type=Path, help="The ledger file (default: yours, or COVEY_LEDGER)."
)
out_option = click.option("--out", "out", type=Path, required=True, help="Folder to write the bundle to.")
force_option = click.option("--force", is_flag=True, help="Replace an existing bundle.")
epsilon_option = click.option("--epsilon", callback=_number("epsilon"), help="Privacy budget ε.")
delta_option = click.option(
    "--delta", callback=_number("delta"), default="0", show_default=True, help="δ; 0 is pure ε-DP."
)


def _source(table: str, relation: str | None, sql: str | None) -> Any:
    """The file or database that was named. A URL is no path: its slashes count."""
    from covey.table.databases import Database, is_database

    if is_database(table):
        return Database(table, table=relation, query=sql)
    if relation is not None or sql is not None:
        raise ParameterError("--table and --query are for databases, postgresql://… or SQLite files (.db, .sqlite).")
    return Path(table)


@contextmanager
def _advice() -> Iterator[None]:
    """Show covey's warnings, which follow from public numbers, as plain lines."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CoveyWarning)
        yield
    for warning in caught:
        click.echo(f"warning: {warning.message}", err=True)


def _ledger(path: Path | None) -> Any:
    from covey.privacy.ledger import Ledger, default_ledger_path

    return Ledger(path or default_ledger_path())


@main.command(epilog=_example("covey init patients.csv -o schema.json"))
@click.argument("table")
@click.option("-o", "--out", "out", type=Path, required=True, help="Where to write the draft.")
@click.option(
    "--import", "metadata", type=Path, help="Start from SmartNoise YAML or SDV JSON metadata instead of the data."
)
@table_option
@query_option
@encoding_option
@force_option
@json_option
def init(
    table: str,
    out: Path,
    metadata: Path | None,
    relation: str | None,
    sql: str | None,
    encoding: str,
    force: bool,
    as_json: bool,
) -> None:
    """Draft a schema from TABLE. The draft describes private data: check it, then confirm it."""
    from covey.table.hints import hints
    from covey.table.metadata import draft, from_sdv_json, from_smartnoise_yaml
    from covey.table.sources import read_table
    from covey.workflow import check_output, refuse_same

    source = _source(table, relation, sql)
    check_output(out)
    refuse_same(source, out)
    if out.exists() and not force:
        raise ParameterError(f"{out} exists. Choose another name, or say --force.")
    if metadata is not None:
        schema, doubts = from_sdv_json(metadata) if metadata.suffix == ".json" else from_smartnoise_yaml(metadata), {}
    else:
        records = read_table(source, encoding=encoding)
        schema = draft(records)
        doubts = hints(records, schema)
    schema.save(out)
    names = [field.name for field in schema.fields]
    if not as_json:
        for name, words in doubts.items():
            click.echo(f"look at {name!r}: {words}", err=True)
    _say(
        as_json,
        {
            "schema": str(out),
            "fields": names,
            "draft": True,
            "hints": [{"field": name, "hint": words} for name, words in doubts.items()],
        },
        f"draft with {len(names)} fields → {out}\nIt describes private data. Make each field's values public knowledge "
        f"(ranges, categories), then: covey confirm {out} FIELD … or --all",
    )


@main.command(epilog=_example("covey confirm schema.json age sex", "covey confirm schema.json --all"))
@click.argument("schema_path", metavar="SCHEMA", type=Path)
@click.argument("fields", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Confirm every field.")
@json_option
def confirm(schema_path: Path, fields: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Say that what SCHEMA tells about these fields is public knowledge."""
    from covey.table.schema import Schema

    if everything == bool(fields):
        raise ParameterError("name the fields to confirm, or say --all.")
    before = Schema.load(schema_path)
    schema = before.confirm([field.name for field in before.fields] if everything else list(fields))
    schema.save(schema_path)
    left = [field.name for field in schema.fields if not field.confirmed]
    now = [field for field in schema.fields if field.confirmed and not before[field.name].confirmed]
    labels = {field.name: len(field.enum or ()) for field in now if field.type == "string"}
    told = [f"{f.name} ({_counted(labels[f.name], 'label')})" if f.name in labels else f.name for f in now]
    words = [f"now public: {', '.join(told)}"] if told else []
    words += ["every field is confirmed" if not left else f"still to confirm: {', '.join(left)}"]
    _say(
        as_json,
        {
            "schema": str(schema_path),
            "confirmed": [field.name for field in now],
            "public_labels": labels,
            "unconfirmed": left,
        },
        "\n".join(words),
    )


@main.command(epilog=_example("covey check patients.csv --schema schema.json"))
@click.argument("table")
@schema_option
@table_option
@query_option
@encoding_option
@json_option
def check(table: str, schema_path: Path, relation: str | None, sql: str | None, encoding: str, as_json: bool) -> None:
    """Read TABLE as the schema says and count the cells that do not fit. Confidential, and nothing is charged."""
    from dataclasses import asdict

    from covey.release.evaluation import WATERMARK
    from covey.synthesizers import AnonymousSynthesizer
    from covey.table.schema import Schema
    from covey.table.sources import check_encoding

    check_encoding(encoding)
    schema = Schema.load(schema_path)
    # Grouping is not asked for: this synthesizer reads as every other one does, and takes drafts as well.
    prepared = AnonymousSynthesizer(2, schema=schema).prepare(_source(table, relation, sql), encoding)
    n, log = prepared.n, prepared.log
    kinds = {field.name: field.type for field in schema.fields}
    words = [WATERMARK, f"{_counted(n, 'row')}, {_counted(len(log.columns), 'column')}"]
    for name, seen in log.columns.items():
        found = [
            (seen.unparseable, f"no {kinds[name]} and taken as missing, or as the default"),
            (seen.unknown, "in no category of the schema"),
            (seen.clipped, "outside the bounds and moved to them"),
            (seen.missing if seen.missing == n else 0, "missing"),
        ]
        words += [f"{name}: {count:,} of {n:,} cells are {what}" for count, what in found if count]
    if len(words) == 2:
        words.append("every cell fits the schema or is missing")
    _say(as_json, {"confidential": WATERMARK, "rows": n, **asdict(log)}, "\n".join(words))


@main.command(
    epilog=_example(
        "covey plan schema.json --rows 20000 --epsilon 1", "covey plan schema.json --rows 20000 --target-error 0.01"
    )
)
@click.argument("schema_path", metavar="SCHEMA", type=Path)
@click.option("--rows", "n", type=int, required=True, help="Rows of the confidential table (public).")
@epsilon_option
@delta_option
@click.option(
    "--target-error", callback=_number("target-error"), help="Find the ε that is predicted to reach this error."
)
@json_option
def plan(
    schema_path: Path, n: int, epsilon: Fraction | None, delta: Fraction, target_error: Fraction | None, as_json: bool
) -> None:
    """Predict accuracy, time and memory from public sizes alone. Opens no data."""
    from covey.methods.plan import predict
    from covey.table.codec import Codec
    from covey.table.schema import Schema

    if (epsilon is None) == (target_error is None):
        raise ParameterError("give --epsilon, or --target-error to find it.")
    codec = Codec(Schema.load(schema_path))
    prediction = predict(codec.domain_sizes, n, epsilon, delta, target_error)
    words = [
        f"n = {n}, {len(codec.domain_sizes)} attributes, {sum(codec.domain_sizes)} categories",
        f"ε = {prediction.epsilon:g}, δ = {float(delta):g}",
        f"predicted error of a 2-way share: about {prediction.error:.2g}",
        f"time about {prediction.seconds:.0f} s, memory about {prediction.memory_gib:.2g} GiB",
        *(f"warning: {warning}" for warning in prediction.warnings),
    ]
    _say(as_json, prediction.as_dict(), "\n".join(words))


@main.command(
    epilog=_example(
        "covey release patients.csv --schema schema.json --epsilon 1 --dataset patients --out release/",
        "covey release postgresql://localhost/clinic --table patients --schema schema.json …",
    )
)
@click.argument("table")
@schema_option
@epsilon_option
@delta_option
@click.option("--rows", "m", type=int, help="Synthetic rows (default: as many as the table has).")
@click.option("--dataset", help="Name of the dataset in the ledger.")
@click.option("--rows-per-person", type=int, default=1, show_default=True)
@click.option("--parquet", is_flag=True, help="Write synthetic.parquet instead of synthetic.csv.")
@click.option("--confirm-large-epsilon", is_flag=True, help="Allow ε above 10.")
@click.option("--seed", type=int, help="For tests only: not private, not charged, and marked so.")
@log_option
@table_option
@query_option
@encoding_option
@ledger_option
@out_option
@force_option
@json_option
def release(
    table: str,
    schema_path: Path,
    epsilon: Fraction | None,
    delta: Fraction,
    m: int | None,
    dataset: str | None,
    rows_per_person: int,
    parquet: bool,
    confirm_large_epsilon: bool,
    seed: int | None,
    log_path: Path | None,
    relation: str | None,
    sql: str | None,
    encoding: str,
    ledger_path: Path | None,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Make a differentially private bundle from TABLE, and charge the ledger for it."""
    from covey.workflow import PrivateOrder, release_private

    order = PrivateOrder(
        table=_source(table, relation, sql),
        schema=schema_path,
        out=out,
        epsilon=epsilon,
        delta=delta,
        dataset=dataset,
        rows=m,
        rows_per_person=rows_per_person,
        parquet=parquet,
        confirm_large_epsilon=confirm_large_epsilon,
        seed=seed,
        log=log_path,
        encoding=encoding,
        ledger=ledger_path,
        force=force,
    )
    with _advice():
        done = release_private(order)
    facts = {
        "bundle": str(done.bundle),
        "rows": done.rows,
        "certificate": done.certificate,
        "privacy": done.privacy,
    }
    _say(as_json, facts, f"bundle → {done.bundle}\n{done.privacy}\n{done.certificate or ''}".rstrip())


@main.command(epilog=_example("covey anonymize patients.csv --schema schema.json --group-size 20 --out anonymous/"))
@click.argument("table")
@schema_option
@click.option("--group-size", type=int, required=True, help="Least number of rows behind every centre.")
@click.option(
    "--method",
    type=click.Choice(["tree", "paper", "mdav", "best"]),
    default="tree",
    show_default=True,
    help="Grouping.",
)
@click.option(
    "--sensitive", multiple=True, metavar="FIELD", help="Tell (you alone) how many groups agree on this field."
)
@click.option("--rows", "m", type=int, help="Synthetic rows (default: as many as the table has).")
@click.option("--parquet", is_flag=True, help="Write synthetic.parquet instead of synthetic.csv.")
@click.option("--seed", type=int, help="Make the sampling reproducible; marked on the bundle.")
@log_option
@table_option
@query_option
@encoding_option
@out_option
@force_option
@json_option
def anonymize(
    table: str,
    schema_path: Path,
    group_size: int,
    method: Any,
    sensitive: tuple[str, ...],
    m: int | None,
    parquet: bool,
    seed: int | None,
    log_path: Path | None,
    relation: str | None,
    sql: str | None,
    encoding: str,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Make an anonymous bundle from TABLE by microaggregation. It is NOT differentially private."""
    from covey.workflow import AnonymousOrder, release_anonymous

    order = AnonymousOrder(
        table=_source(table, relation, sql),
        schema=schema_path,
        out=out,
        group_size=group_size,
        method=method,
        sensitive=sensitive,
        rows=m,
        parquet=parquet,
        seed=seed,
        log=log_path,
        encoding=encoding,
        force=force,
    )
    done = release_anonymous(order)
    for name, agreeing in done.agreeing:  # to the steward's eyes alone: standard error, never the bundle
        click.echo(
            f"confidential: {agreeing} of {done.groups} groups agree on {name!r} and disclose it",
            err=True,
        )
    facts = {"bundle": str(done.bundle), "groups": done.groups, "group_size": group_size, "private": False}
    _say(as_json, facts, f"bundle → {done.bundle}\n{done.privacy}")


@main.command(epilog=_example("covey verify release/"))
@click.argument("folder", type=Path)
@json_option
def verify(folder: Path, as_json: bool) -> None:
    """Check a bundle: checksums, validity of every row, arithmetic of the budget. Needs no true data."""
    from covey.release.bundle import verify_bundle

    found = verify_bundle(folder)
    note = found.facts.get("note")
    words = f"{folder}: whole and consistent, {found.rows} rows; {found.facts['guarantee']}" + (
        f"; {note}" if note else ""
    )
    _say(as_json, {"bundle": str(folder), "rows": found.rows, "privacy": dict(found.facts)}, words)


@main.command(
    epilog=_example(
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
def evaluate(
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
    from covey.release.confidential import evaluation_html, refuse_in_bundle, write_confidential
    from covey.release.evaluation import check_targets, compare
    from covey.release.evaluation import evaluate as measure
    from covey.table.codec import Codec
    from covey.table.schema import Schema
    from covey.workflow import check_output, refuse_same

    source = _source(table, relation, sql)
    if out is not None and report is not None and out.resolve() == report.resolve():
        raise ParameterError(f"--out and --report both name {out}. Give each its own file.")
    for path in (out, report):
        if path is not None:
            check_output(path)
            refuse_in_bundle(path)
            refuse_same(source, path)
            if path.exists() and not force:
                raise ParameterError(f"{path} exists. Choose another name, or say --force.")
    if targets:
        check_targets(Codec(Schema.load(folder / "schema.json")), targets)
    rows = compare(source, folder, encoding)
    facts = measure(rows, targets)
    if out is not None:
        write_confidential(out, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
    if report is not None:
        write_confidential(report, evaluation_html(rows, facts))
    words = ["CONFIDENTIAL: computed on true data"]
    words += [f"mean total variation of {d}-way tables: {v:.4f}" for d, v in facts["total_variation"].items()]
    if facts["worst_pairs"]:
        words += [f"worst pairs: {', '.join(f'{a} × {b} ({v:.3f})' for a, b, v in facts['worst_pairs'][:5])}"]
    for entry in facts["prediction"] or []:
        true, synthetic = (entry[f"trained_on_{kind}"]["auc"] for kind in ("true", "synthetic"))
        words += [f"AUC for {entry['target']}: {synthetic:.3f} trained on synthetic, {true:.3f} trained on true rows"]
    if facts["prediction"] is None:
        words += ["predictions left out: pip install 'covey[evaluate]'"]
    words += [f"report → {report}"] if report is not None else []
    _say(as_json, facts, "\n".join(words))


@main.group()
def ledger() -> None:
    """Keep count of what each dataset has spent."""


@ledger.command("open", epilog=_example("covey ledger open patients --budget 3"))
@click.argument("name")
@click.option("--budget", callback=_number("budget"), required=True, help="Cap on the sum of ε.")
@click.option(
    "--delta-budget", callback=_number("delta-budget"), default="1e-6", show_default=True, help="Cap on the sum of δ."
)
@ledger_option
@json_option
def ledger_open(name: str, budget: Fraction, delta_budget: Fraction, ledger_path: Path | None, as_json: bool) -> None:
    """Open a dataset with a budget. The cap is final."""
    book = _ledger(ledger_path)
    book.open_dataset(name, budget, delta_budget)
    _say(as_json, {"dataset": name, "budget": float(budget)}, f"{name}: budget ε = {float(budget):g}")


@ledger.command("show", epilog=_example("covey ledger show"))
@ledger_option
@json_option
def ledger_show(ledger_path: Path | None, as_json: bool) -> None:
    """Show every dataset with what is spent and left."""
    found = _ledger(ledger_path).datasets()
    facts = [
        {
            "dataset": d.name,
            "budget": float(d.budget.epsilon),
            "spent": float(d.spent.epsilon),
            "left": float(d.remaining.epsilon),
        }
        for d in found
    ]
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False))
        return
    if not facts:
        click.echo("no dataset was opened yet: covey ledger open NAME --budget B")
        return
    from rich.console import Console
    from rich.table import Table

    grid = Table("dataset", "budget ε", "spent", "left")
    for fact in facts:
        grid.add_row(str(fact["dataset"]), *(f"{fact[key]:g}" for key in ("budget", "spent", "left")))
    Console().print(grid)


@ledger.command("history", epilog=_example("covey ledger history patients"))
@click.argument("name")
@ledger_option
@json_option
def ledger_history(name: str, ledger_path: Path | None, as_json: bool) -> None:
    """List every charge of a dataset."""
    events = _ledger(ledger_path).history(name)
    facts = [
        {
            "time": event.time,
            "kind": event.kind,
            "epsilon": float(event.amount.epsilon),
            "delta": float(event.amount.delta),
            "purpose": event.purpose or "",
        }
        for event in events
    ]
    words = "\n".join(f"{e['time']}  {e['kind']:9} ε {e['epsilon']:g}  δ {e['delta']:g}  {e['purpose']}" for e in facts)
    _say(as_json, {"dataset": name, "events": facts}, words or "no charges yet")


@main.command(epilog=_example("covey serve", "covey serve --port 8765 --out releases/ --no-browser"))
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on this machine (default: a free one).")
@click.option(
    "--out", "out", type=Path, default=Path("covey-releases"), show_default=True, help="Folder that bundles go to."
)
@click.option(
    "--upload-limit", type=click.IntRange(1), default=1024, show_default=True, help="Largest table, in megabytes."
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@ledger_option
@json_option
def serve(port: int, out: Path, upload_limit: int, no_browser: bool, ledger_path: Path | None, as_json: bool) -> None:
    """Open the local app in a browser: the same work without a command line. Only this machine can reach it."""
    try:
        from covey.web.serve import serve as run
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"the app needs {error.name}: pip install 'covey[web]'") from None

    def say(words: str) -> None:
        _say(as_json, {"address": words.split()[3]}, words)

    run(port, ledger_path, out, upload_limit * 2**20, not no_browser, say)


@main.command(epilog=_example("covey demo --out demo/", "covey demo --table visits.csv"))
@click.option("--out", "out", type=Path, default=Path("covey-demo"), show_default=True)
@click.option("--rows", type=int, default=20_000, show_default=True)
@click.option("--table", type=Path, help="Only write an example table with names, numbers, dates and holes.")
@force_option
@json_option
def demo(out: Path, rows: int, table: Path | None, force: bool, as_json: bool) -> None:
    """Make an example table, synthesize it, and show how good the result is."""
    from covey.demo import main as run

    said = io.StringIO()
    with redirect_stdout(said if as_json else sys.stdout):
        run(
            [
                "--out",
                str(out),
                "--rows",
                str(rows),
                *(["--table", str(table)] if table else []),
                *(["--force"] if force else []),
            ]
        )
    if as_json:
        click.echo(json.dumps({"out": str(out), "words": said.getvalue()}, ensure_ascii=False))


if __name__ == "__main__":
    main()
