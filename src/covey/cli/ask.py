"""What an analyst asks of a bundle: answers with intervals, and the noisy tables themselves."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from covey.cli.group import example, main, say
from covey.cli.options import json_option, number


@main.command(
    epilog=example(
        'covey ask release/ "share ward=surgery age>=60"',
        'covey ask release/ "average cost of women"',
        'covey ask release/ "top 5 ward"',
        'covey ask release/ "regress cost ~ age + ward" --json',
        'covey ask release/ "mean cost by ward per person"',
    )
)
@click.argument("folder", type=Path)
@click.argument("question", nargs=-1, required=True)
@click.option(
    "--confidence",
    callback=number("confidence"),
    default="0.95",
    show_default=True,
    help="Confidence of the intervals.",
)
@click.option(
    "--about",
    type=click.Choice(["population", "table"]),
    default="population",
    show_default=True,
    help="What the answer is about: the population that the real table is a sample of, or that table itself.",
)
@click.option(
    "--replicates",
    type=int,
    help="Regressions only: run the mechanism again so many times (such as 8) for shorter, approximate intervals.",
)
@json_option
def ask(  # click passes each option by its name
    folder: Path, question: tuple[str, ...], confidence: Fraction, about: str, replicates: int | None, as_json: bool
) -> None:
    """Ask a private bundle a QUESTION: a proportion, count, mean, percentile, difference, correlation or regression.

    The answer comes with an interval that includes the noise. It costs no privacy and needs no real data. If no interval would
    be honest, covey says why and shows the nearest question that works.
    """
    from covey.answers.asking import ask as answer
    from covey.answers.load import load
    from covey.errors import ParameterError

    release, words = load(folder), " ".join(question)
    if replicates is not None:
        if words.split()[:1] not in (["regress"], ["logistic"]):
            raise ParameterError("--replicates is for regressions only. Leave it out.")
        answer(release, words)  # what cannot be answered is refused before it takes minutes
        release = release.sharpened(replicates)
    found = answer(release, words, confidence=float(confidence), about=about)
    say(as_json, found.as_dict(), repr(found))


@main.command(epilog=example("covey tables release/ -o tables/"))
@click.argument("folder", type=Path)
@click.option("-o", "--out", "out", type=Path, required=True, help="Folder to write the tables to.")
@json_option
def tables(folder: Path, out: Path, as_json: bool) -> None:
    """Write the noisy counts of a private bundle, of columns, pairs and chosen triples, with their noise's deviation, as CSV."""
    from covey.answers.load import load
    from covey.answers.tables import write_tables
    from covey.errors import ParameterError
    from covey.release.places import is_bundle

    if is_bundle(out.parent):
        raise ParameterError(f"{out} is inside a bundle and would change it. Choose another place.")
    written = write_tables(load(folder), out)
    say(as_json, {"files": [str(path) for path in written]}, "\n".join(f"→ {path}" for path in written))
