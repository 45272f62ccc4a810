"""A realistic example table, made by covey's own code, and a demonstration of what becomes of it."""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from covey.core.arrays import Array, Bits
from covey.core.tables.marginals import marginal_error
from covey.errors import ArgumentError
from covey.synthesizers import AnonymousSynthesizer, PrivateSynthesizer

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


TABLE_NAMES = ("patients", "private", "private-delta", "anonymous")
GROUP_SIZE = 20  # of the anonymous table


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
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "ward", "insurance", "cost", "emergency", "readmitted", "admitted"])
        for i in range(n):
            emergency = generator.random() < 0.25 + 0.3 * frail[i]
            readmitted = generator.random() < 0.06 + 0.12 * emergency
            row = [age[i], ward[i], insurance[i], cost[i], str(emergency).lower(), str(readmitted).lower(), day[i]]
            # Holes, as in any real table.
            writer.writerow(["" if generator.random() < 0.02 else value for value in row])


def write_csv(path: Path, names: list[str], rows: Array) -> None:
    """Write a table of 0 and 1."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows.tolist())


def write_example(table: Path, force: bool, tell: Callable[[str], object] = print) -> None:
    """Only write the table with names, numbers, dates and holes."""
    _refuse_existing([table], force)
    example_visits(table)
    tell(f"example table of 5000 fictitious visits → {table}")


def demonstrate(out: Path, rows: int, force: bool, tell: Callable[[str], object] = print) -> None:
    """Make the example table, synthesize it, and tell where the results are and how good they are."""
    if rows < GROUP_SIZE:
        wrong = f" must be a whole number, {GROUP_SIZE} or more, got {rows}. The demo makes groups of {GROUP_SIZE}."
        raise ArgumentError("", "rows", wrong)
    _refuse_existing([out / f"{name}.csv" for name in TABLE_NAMES], force)
    names, X = example_patients(rows)
    n = len(X)
    write_csv(out / "patients.csv", names, X)
    tell(f"example table: {n} fictitious patients × {len(names)} flags → {out / 'patients.csv'}\n")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a warning would say is in the table below, measured
        pure = PrivateSynthesizer(epsilon=1.0).fit(X)
        approximate = PrivateSynthesizer(epsilon=1.0, delta=1e-9).fit(X)
        paper = PrivateSynthesizer(epsilon=1.0, method="paper").fit(X)
    anonymous = AnonymousSynthesizer(group_size=GROUP_SIZE).fit(X)
    tables = {
        "private": ("private, ε = 1", pure.sample(n)),
        "private-delta": ("private, ε = 1, δ = 1e-9", approximate.sample(n)),
        "anonymous": (f"anonymous, groups of {GROUP_SIZE}", anonymous.sample(n)),
    }
    independent = (np.random.default_rng(0).random(X.shape) < X.mean(axis=0)).astype(np.uint8)

    tell("typical error of a share (root mean square over subsets of columns):")
    tell(f"{'':38}{'1 column':>10}{'2 columns':>11}{'3 columns':>11}")
    yardsticks = [
        ("the paper's own constants, ε = 1", paper.sample(n)),
        ("yardstick: independent columns", independent),
        ("yardstick: the true rows, resampled", X[np.random.default_rng(1).integers(0, n, n)]),
    ]
    for label, Z in [*tables.values(), *yardsticks]:
        errors = [marginal_error(X, Z, degree) for degree in (1, 2, 3)]
        tell(f"{label:38}" + "".join(f"{e:>{w}.4f}" for e, w in zip(errors, (10, 11, 11), strict=True)))
    tell("")
    for name, (label, Z) in tables.items():
        write_csv(out / f"{name}.csv", names, Z)
        tell(f"{label:26} → {out / f'{name}.csv'}")
    tell(f"\nThe private table's own certificate, part of its ε: {pure.certificate}")
    tell(f"It carries {pure.privacy}.")
    tell("The anonymous table is not differentially private: a group that agrees on a flag discloses it.")


def _refuse_existing(paths: list[Path], force: bool) -> None:
    for path in paths:
        if path.exists() and not force:
            raise ArgumentError(f"{path} exists. Choose another place, or say ", "force", ".")


def main(arguments: list[str] | None = None) -> int:
    """`make demo`: the demonstration for whoever has installed nothing but the library."""
    parser = argparse.ArgumentParser(prog="python -m covey.demo", description=demonstrate.__doc__)
    parser.add_argument("--out", type=Path, default=Path("covey-demo"), help="folder for the tables")
    parser.add_argument("--rows", type=int, default=20_000, help="patients in the example table")
    parser.add_argument("--table", type=Path, help="only write a table with names, numbers, dates and holes, here")
    parser.add_argument("--force", action="store_true", help="replace tables of the same names")
    options = parser.parse_args(arguments)
    if options.table is not None:
        write_example(options.table, options.force)
    else:
        demonstrate(options.out, options.rows, options.force)
    return 0


if __name__ == "__main__":
    sys.exit(main())
