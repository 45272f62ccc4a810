"""Means of numbers within groups, by the size of the group: how far synthetic rows are off, beside the noise of a measurement.

python -m benchmarks.group_means [--tables bank,telco] [--settings "1:1e-9,1:0"] [--seeds 1,2]

Reads tables from the folder in COVEY_DATA and writes docs/benchmarks/group-means.md, which says what the figures are. Groups are
the categories of each column of words, with at least 200 rows. Where the release itself refuses to answer, nothing is compared.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

import covey
from benchmarks.binary import DATA
from covey.errors import CannotAnswerError
from covey.release.bundle import write_bundle

SIZES = (200, 500, 1000, 3000, 10**9)
FAR = 0.3  # standard deviations from the overall mean: groups that a reader would name


def table(name):
    """Rows of a real table, without names and keys."""
    rows = pl.read_csv(DATA / f"{name}.csv", separator=";" if name == "cardio" else ",", infer_schema_length=None)
    drop = [c for c in rows.columns if rows[c].dtype == pl.String and rows[c].n_unique() > 40]
    return rows.drop([*drop, *(c for c in rows.columns if c == "id")])


def errors(rows, setting, seed, neighbours):
    """For each group and number: its size, errors of rows and measurement, the stated one, and how far the group is off."""
    epsilon, delta = map(float, setting.split(":"))
    schema = covey.Schema.draft(rows)
    schema = schema.confirm(schema.names)  # these tables are public, so their limits are
    synth = covey.PrivateSynthesizer(epsilon, delta, schema=schema, neighbours=neighbours, seed=seed).fit(rows)
    drawn = synth.sample(rows.height)
    with tempfile.TemporaryDirectory() as folder:
        release = covey.load(write_bundle(synth.release(1000), Path(folder) / "bundle"))
    numbers = [c for c in rows.columns if rows[c].dtype.is_numeric() and rows[c].n_unique() > 12]
    for column in (c for c in rows.columns if rows[c].dtype == pl.String):
        for group, own in rows.group_by(column):
            if own.height < SIZES[0]:
                continue
            for number in numbers:
                sd, every = rows[number].std(), rows[number].mean()
                found = drawn.filter(pl.col(column) == group[0])[number].mean()
                try:
                    said = release.mean(number, where={column: group[0]})
                except CannotAnswerError:
                    continue
                true = own[number].mean()
                off = [(every if found is None else found) - true, said.value - true, said.se, true - every]
                yield own.height, *(abs(x) / sd for x in off)


def main():
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default="bank,telco")
    parser.add_argument("--settings", default="1:1e-9,1:0")
    parser.add_argument("--seeds", default="1,2")
    said = parser.parse_args()
    warnings.simplefilter("ignore")
    page = [
        "# Means within groups",
        "",
        "`benchmarks/group_means.py`: means of numbers within the categories of other columns, in standard deviations of the "
        f"number, root mean square over groups, numbers and seeds {said.seeds}. *Measured* is what the release's own noisy "
        "tables answer, *stated* the standard error of that answer. *Ratio* is the mean error of synthetic rows over that of "
        f"such noise, and *far* the same for groups whose mean lies more than {FAR} standard deviations from that of all rows: "
        "these are pulled towards it by denoising. The aim is at most 1.5. Groups for which no interval is given are left out.",
        "",
        "| table | promise | ε, δ | rows of a group | rows | measured | stated | ratio | far |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in said.tables.split(","):
        rows = table(name)
        for setting in said.settings.split(","):
            for neighbours in ("replace-one", "add-or-remove-one"):
                seeds = map(int, said.seeds.split(","))
                all_of = np.array([e for seed in seeds for e in errors(rows, setting, seed, neighbours)])
                for low, high in pairwise(SIZES):
                    own = all_of[(all_of[:, 0] >= low) & (all_of[:, 0] < high)]
                    if not len(own):
                        continue
                    rms = np.sqrt(np.mean(own[:, 1:4] ** 2, axis=0))
                    far = own[own[:, 4] > FAR]
                    usual = np.sqrt(2 / np.pi)  # mean of |x| over the deviation, for normal noise
                    ratios = [e[:, 1].mean() / (usual * e[:, 3].mean()) if len(e) else np.nan for e in (own, far)]
                    size = f"{low:,} to {high:,}" if high < SIZES[-1] else f"{low:,} and more"
                    figures = " | ".join(f"{x:.3f}" for x in rms)
                    shown = f"{ratios[0]:.2f} | {ratios[1]:.2f}"
                    page.append(
                        f"| {name} | {neighbours} | {setting.replace(':', ', ')} | {size} | {figures} | {shown} |"
                    )
                    print(page[-1], flush=True)
    Path("docs/benchmarks/group-means.md").write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
