"""A realistic example table, made by covey's own code, and a demonstration of what becomes of it."""

from __future__ import annotations

import csv
import shutil
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from covey.engine.arrays import Bits
from covey.errors import ArgumentError, whole_number
from covey.paths import local_output

FEWEST = 100  # patients: with fewer nothing could be seen
DELTA = Fraction(1, 10**9)  # far below one in as many patients as a demonstration has

# Flag: (share in the population, loading on age, on metabolic disease, on smoking, on frailty).
PATIENT_FLAGS: dict[str, tuple[float, float, float, float, float]] = {
    "female": (0.53, 0.1, 0.0, -0.3, 0.1),
    "over_65": (0.31, 1.8, 0.0, 0.0, 0.4),
    "smoker": (0.22, -0.4, 0.1, 1.8, 0.0),
    "obesity": (0.27, 0.0, 1.4, 0.0, 0.0),
    "hypertension": (0.34, 1.1, 1.0, 0.1, 0.0),
    "diabetes": (0.12, 0.6, 1.5, 0.0, 0.1),
    "dyslipidaemia": (0.25, 0.6, 1.2, 0.1, 0.0),
    "coronary_disease": (0.08, 1.2, 0.8, 0.8, 0.2),
    "heart_failure": (0.04, 1.5, 0.5, 0.2, 0.9),
    "stroke": (0.03, 1.2, 0.4, 0.3, 0.6),
    "copd": (0.07, 0.8, 0.0, 1.7, 0.3),
    "asthma": (0.09, -0.3, 0.3, 0.1, 0.0),
    "kidney_disease": (0.06, 1.2, 0.9, 0.0, 0.5),
    "cancer": (0.05, 0.9, 0.0, 0.5, 0.3),
    "depression": (0.14, -0.1, 0.2, 0.4, 0.6),
    "dementia": (0.03, 1.9, 0.0, 0.0, 1.3),
    "falls": (0.06, 1.1, 0.0, 0.0, 1.5),
    "lives_alone": (0.29, 0.7, 0.0, 0.2, 0.7),
    "home_care": (0.07, 1.2, 0.1, 0.0, 1.7),
    "emergency_visit": (0.18, 0.2, 0.2, 0.3, 0.8),
    "admitted": (0.13, 0.6, 0.3, 0.3, 1.0),
    "five_or_more_drugs": (0.19, 1.3, 0.9, 0.2, 0.8),
    "vaccinated": (0.48, 0.8, 0.0, -0.2, 0.1),
    "screening_attended": (0.41, 0.3, 0.0, -0.5, -0.2),
}


def example_patients(n: int, seed: int = 7) -> tuple[list[str], Bits]:
    """A fictitious table of n patients and their flags, driven by age, metabolism, smoking and frailty."""
    generator = np.random.default_rng(seed)
    names = list(PATIENT_FLAGS)
    shares, loadings = np.split(np.array(list(PATIENT_FLAGS.values())), [1], axis=1)
    latent = generator.standard_normal((n, loadings.shape[1]))
    score = latent @ loadings.T + generator.logistic(size=(n, len(names)))
    cut = np.array([np.quantile(column, 1 - share) for column, share in zip(score.T, shares[:, 0], strict=True)])
    return names, (score > cut).astype(np.uint8)


def example_visits(path: Path, n: int = 5000, seed: int = 11) -> None:
    """Write a fictitious table as stewards have them: names, categories, numbers, dates, flags and holes."""
    generator = np.random.default_rng(seed)
    age = np.clip(generator.normal(52, 19, n), 0, 104).astype(int)
    frail = generator.random(n) < 1 / (1 + np.exp(-(age - 78) / 9))
    ward = np.where(
        frail,
        generator.choice(["geriatrics", "medicine"], n),
        generator.choice(["medicine", "surgery", "maternity"], n),
    )
    insurance = generator.choice(["public", "private", "none"], n, p=[0.72, 0.21, 0.07])
    cost = np.round(np.exp(generator.normal(7 + 0.6 * frail, 0.7, n)), 2)
    day = np.datetime64("2024-01-01") + generator.integers(0, 366, n)
    rows: list[list[Any]] = [["age", "ward", "insurance", "cost", "emergency", "readmitted", "admitted"]]
    for i in range(n):
        emergency = generator.random() < 0.25 + 0.3 * frail[i]
        readmitted = generator.random() < 0.06 + 0.12 * emergency
        row = [age[i], ward[i], insurance[i], cost[i], str(emergency).lower(), str(readmitted).lower(), day[i]]
        # Holes, as in any real table.
        rows.append(["" if generator.random() < 0.02 else value for value in row])
    _write(path, rows)


NAMES = (  # of nobody: first names, last names
    "Ada Amir Bela Chen Dina Emeka Greta Hana Ivo Kaya Lena Mateo Nora Omar Zoe",
    "Abara Brandt Costa Dupont Eriksen Fischer Garcia Haddad Ivanov Kowalski Moreau Weber",
)
# What anyone could know about the columns of the demonstration, whatever the table holds.
PUBLIC_LIMITS: dict[str, tuple[Any, Any]] = {
    "born": (date(1900, 1, 1), date(2024, 12, 31)),
    "admitted": (date(2024, 1, 1), date(2024, 12, 31)),
    "weight": (0.0, 250.0),
    "cost": (0.0, 50_000.0),
}


def example_hospital(path: Path, n: int, seed: int = 19) -> None:
    """Write a fictitious table of patients: names, numbers that identify them, dates, measurements, flags and holes."""
    g = np.random.default_rng(seed)
    age = np.clip(g.normal(55, 20, n), 0, 103)
    sex = g.choice(["female", "male"], n, p=[0.53, 0.47])
    frail = g.random(n) < 1 / (1 + np.exp(-(age - 80) / 8))
    ward = np.where(frail, g.choice(["geriatrics", "medicine"], n), g.choice(["medicine", "surgery", "maternity"], n))
    ward = np.where((ward == "maternity") & ((sex == "male") | (age > 50) | (age < 16)), "surgery", ward)
    diabetes = g.random(n) < 0.03 + 0.0025 * age
    weight = np.clip(g.normal(np.where(sex == "male", 82, 68) + 7 * diabetes, 13, n), 3, 210).round(1)
    cost = np.exp(g.normal(7.2 + 0.5 * frail + 0.3 * diabetes, 0.6, n)).round(2)
    admitted = np.datetime64("2024-01-01") + g.integers(0, 366, n)
    born = admitted - (age * 365.25).astype("timedelta64[D]")
    names = [f"{a} {b}" for a, b in zip(*(g.choice(some.split(), n) for some in NAMES), strict=True)]
    record = [f"MRN-{j:07}" for j in g.choice(10**7, n, replace=False)]
    columns = {"record": record, "name": names, "sex": sex, "born": born, "admitted": admitted, "ward": ward}
    columns |= {"weight": weight, "diabetes": np.where(diabetes, "yes", "no"), "cost": cost}
    for name, share in {"weight": 0.08, "diabetes": 0.03}.items():
        columns[name] = np.where(g.random(n) < share, "", columns[name])
    _write(path, [list(columns), *zip(*columns.values(), strict=True)])


def _write(path: Path, rows: Iterable[Iterable[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # a new file: what an old link leads to is left alone
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def write_example(table: Path, rows: int, force: bool, tell: Callable[[str], object] = print) -> None:
    """Only write the table with names, numbers, dates and missing values."""
    whole_number(rows, "rows", 1)
    _refuse_existing([table], force)
    example_visits(table, rows)
    tell(f"example table of {rows:,} fictitious visits → {table}")


def public_schema(drafted: Any) -> Any:
    """A draft of the example, with limits that anyone could know in place of those that were read off the table; confirmed."""
    fields = [
        replace(f, minimum=PUBLIC_LIMITS[f.name][0], maximum=PUBLIC_LIMITS[f.name][1], bins=None, warning=None)
        if f.name in PUBLIC_LIMITS
        else f
        for f in drafted.fields
    ]
    public = replace(drafted, fields=tuple(fields)).confirm()  # all that carry no warning, as --all does
    public.require_confirmed()
    return public


def demonstrate(out: Path, rows: int, force: bool, tell: Callable[[str], object] = print) -> None:
    """The whole way of a table, from a file with names in it to a report that can be shown: draft, release, verify, evaluate."""
    from covey.engine.budget import parameters
    from covey.evaluation.comparison import write_confidential
    from covey.ledger import Ledger
    from covey.release.contents import About
    from covey.release.verify import verify_bundle
    from covey.workflow import PrivateOrder, draft, evaluate, release

    said = About("Patients of a year", "a hospital that does not exist", "showing what a release looks like")

    if rows < FEWEST:
        raise ArgumentError(
            "", "rows", f" must be a whole number, {FEWEST} or more, got {rows}: with fewer the result is mostly noise."
        )
    table, schema, bundle, mirror = (out / n for n in ("patients.csv", "schema.json", "release", "evaluation.html"))
    if local_output(out).exists() and not out.is_dir():
        raise ArgumentError(f"{out} is a file. Name a folder with ", "out", ".")
    _refuse_existing([table, schema, bundle, mirror], force)
    shutil.rmtree(bundle, ignore_errors=True)
    example_hospital(table, rows)
    tell(f"1  wrote a table of {rows:,} fictitious patients → {table}")

    drafted = draft(table)
    first = drafted.description.unit.schema
    left = [note for note in drafted.notes if note.field is not None and note.field not in first.names]
    tell(f"2  drafted {len(first.fields)} columns; left out because they identify persons:")
    for note in left:
        tell(f"      {note.field}: {note.reason}")
    public = public_schema(first)
    public.save(schema)
    tell(f"   replaced limits from the data by limits that anyone could know: {', '.join(PUBLIC_LIMITS)} → {schema}")

    with TemporaryDirectory() as folder:  # a steward has one ledger for good: `covey ledger open`
        books = Path(folder) / "ledger.sqlite"
        Ledger(books).open_dataset("patients", Fraction(3), Fraction(1, 10**6))
        order = PrivateOrder(table, schema, bundle, 1, DELTA, "patients", ledger=books, about=said)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a warning would say is in the report
            done = release(order)
    tell(f"3  released with {parameters(1, DELTA)}, charged before any noise was drawn → {bundle}")
    tell(f"      {done.certificate}")
    tell(f"4  verified: {verify_bundle(bundle).rows:,} rows follow the schema; checksums and budget are correct")
    found = evaluate(table, bundle)
    write_confidential(mirror, found.page())
    off, free = (found.figures[n]["2"] for n in ("total_variation", "total_variation_of_resampled_true_rows"))
    tell(
        f"5  compared with the real table: in an average two-column table {100 * off:.1f}% of the rows would have to move"
    )
    tell(f"      (a fresh sample of real rows: {100 * free:.1f}%); confidential, for its owner alone → {mirror}")
    tell(f"\nOpen this report: {bundle / 'report.html'}")


def _refuse_existing(paths: list[Path], force: bool) -> None:
    for path in paths:
        local_output(path)
        if path.exists() and not force:
            raise ArgumentError(f"{path} exists. Choose another place, or give ", "force", ".")
