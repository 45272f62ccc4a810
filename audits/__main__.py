"""Run the audits: `python -m audits` for everything, with a record in docs/benchmarks/audit.md; `--fast` for a look.

`--clean N` runs the quick part on sound code alone, N times with different seeds: no run may raise an alarm. With `--checks` it
leaves out the cases that draw samples, which are most of its time.
"""

from __future__ import annotations

import argparse
import datetime
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

from audits import mechanisms
from audits.suite import alarm, all_checks, all_faults, cases, long_checks, measured, planted
from covey.version import __version__

RECORD = Path(__file__).parents[1] / "docs" / "benchmarks" / "audit.md"
CLEAN_RUNS = 20


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m audits", description=__doc__.splitlines()[0])
    parser.add_argument("--fast", action="store_true", help="few samples, one clean run, no record")
    parser.add_argument("--seed", type=int, default=1, help="of the first run; clean runs take the following ones")
    parser.add_argument("--clean", type=int, metavar="N", help="only so many clean runs, no record")
    parser.add_argument(
        "--checks", action="store_true", help="clean runs without what needs samples: the odometer and the like"
    )
    options = parser.parse_args(arguments)
    wrong = []
    begin = time.perf_counter()
    # A spawned worker starts without what the others have patched.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        if options.clean:
            run_clean(pool, options, wrong)
            return closing(wrong, begin)
        bounds = measure_cases(pool, options, wrong)
        kept = look(pool, options, wrong)
        caught = plant_faults(pool, options.seed, wrong)
        highest, seeds = run_clean(pool, options, wrong)
    if not options.fast:
        RECORD.write_text(record(bounds, kept, caught, highest, seeds, wrong), encoding="utf-8")
        print(f"record → {RECORD}")
    return closing(wrong, begin)


def looked_at(options):
    """The checks without statistics: whole bundles of every ride too, unless this is to be fast."""
    return all_checks() if options.fast else all_checks() | long_checks()


def closing(wrong, begin):
    """The last words, and what the command returns."""
    print(f"{time.perf_counter() - begin:.0f} s")
    for line in wrong:
        print("ALARM", line)
    return 1 if wrong else 0


def measure_cases(pool, options, wrong):
    """Lower bounds by case."""
    found, samples = {}, {}
    for case in cases().values():
        if many := case.fast if options.fast else case.full:
            samples[case.name] = many
    for name, bound in zip(samples, pool.map(measured, samples.items(), repeat(options.seed)), strict=True):
        case, found[name] = cases()[name], bound
        print(f"{name:30} {case.pair:36} ε ≥ {bound:.3f} of {case.claim:g}", flush=True)
        if bound > case.claim:
            wrong.append(f"{name}: ε is at least {bound:.3f}, {case.claim:g} was claimed")
        if not options.fast and bound < case.floor * case.claim:
            wrong.append(f"{name}: the audit shows only {bound / case.claim:.2f} of the claim, {case.floor:g} is asked")
    return found


def look(pool, options, wrong):
    """What each check without statistics complains about, by name."""
    found = dict(zip(looked_at(options), pool.map(alarm, looked_at(options), repeat(options.seed)), strict=True))
    print(f"{len(found)} checks, {sum(map(bool, found.values()))} alarms", flush=True)
    wrong += [f"{name}: {words}" for name, words in found.items() if words]
    return found


def plant_faults(pool, seed, wrong):
    """Alarms by fault."""
    found = {}
    for name, words in zip(all_faults(), pool.map(planted, all_faults(), repeat(seed)), strict=True):
        found[name] = words
        print(f"planted: {name:40} {words[:80] or 'NOT CAUGHT'}", flush=True)
        if not words:
            wrong.append(f"{name} was planted and not caught by {all_faults()[name].caught_by}")
    return found


def run_clean(pool, options, wrong):
    """Sound code under other seeds: the highest share of a claim that any run showed, by case; and the seeds."""
    runs = options.clean or (1 if options.fast else CLEAN_RUNS)
    highest, seeds = {}, range(options.seed + 1, options.seed + 1 + runs)
    small = [] if options.checks else [(case.name, case.fast) for case in cases().values() if case.fast]
    bounds = [pool.map(measured, small, repeat(seed)) for seed in seeds]
    heard = [pool.map(alarm, all_checks(), repeat(seed)) for seed in seeds]
    for seed, found, complaints in zip(seeds, bounds, heard, strict=True):
        for (name, _), bound in zip(small, found, strict=True):
            share = bound / cases()[name].claim
            highest[name] = max(highest.get(name, 0.0), share)
            if share > 1:
                wrong.append(f"clean run {seed}: {name} shows {share:.3f} of its claim")
        spoken = zip(all_checks(), complaints, strict=True)
        wrong += [f"clean run {seed}: {name}: {words}" for name, words in spoken if words]
        print(f"clean run, seed {seed}: {len(wrong)} alarms so far", flush=True)
    return highest, seeds


def record(bounds, kept, caught, highest, seeds, wrong):
    """docs/benchmarks/audit.md."""
    single = {case.name for case in mechanisms.cases()}
    lines = [
        "# What the audits found",
        "",
        f"Written by `make audit`, covey {__version__}, version {commit()}, on {datetime.date.today()}. Each row is a",
        "mechanism of the shipped code on two tables that differ in one record, chosen to be told apart as well as possible.",
        "*Shown* is a lower bound on ε with 99.9% confidence",
        "(Clopper-Pearson; the event is chosen on one half of the samples and judged on the other): above the claim it would",
        "refute it. With δ > 0 the claim is ε at this δ.",
        "",
        f"**{len(wrong)} alarms.** {len(caught)} planted faults, {sum(map(bool, caught.values()))} caught. "
        f"{len(seeds)} clean runs with other seeds: {sum(line.startswith('clean run') for line in wrong)} alarms.",
        "",
        "## Single mechanisms",
        "",
        "The floor is the share of the claim that the audit must reach, to show that it has power. Where it is below 0.95 the",
        "law attains its claim only in the limit of outcomes that never happen (PVEC, matrix noise), or the case sees a part of",
        "what was paid for (cell noise before centring, the centre without its radius).",
        "",
        *table(bounds, [name for name in bounds if name in single], floors=True),
        "",
        "## From end to end",
        "",
        "Centres, their number, weights, directions and certificate. Fits are slow, so samples are few.",
        "",
        *table(bounds, [name for name in bounds if name not in single], floors=False),
        "",
        "## Checks without statistics",
        "",
        "| check | promise | found |",
        "|---|---|---|",
        *checked(kept),
        "",
        "## Planted faults",
        "",
        "| fault | caught by | alarm |",
        "|---|---|---|",
        *(
            f"| {fault.name} | {fault.caught_by} | {caught[fault.name].split(';')[0] or 'NOT CAUGHT'} |"
            for fault in all_faults().values()
        ),
        "",
        "## Clean runs",
        "",
        f"All checks but those of files, and the cases above with fewer samples, with seeds {seeds[0]} to {seeds[-1]}.",
        "The highest share of its claim that each case showed:",
        "",
        ", ".join(f"{name} {share:.2f}" for name, share in highest.items()) + ".",
    ]
    return "\n".join(lines) + "\n"


def commit():
    """The version of the code, as git tells it."""
    return subprocess.run(["git", "describe", "--always"], check=True, capture_output=True, text=True).stdout.strip()


def checked(kept):
    """Rows of checks. The rides of the odometer that found nothing wrong share one, and so do those that compare files."""
    promises, rows = all_checks() | long_checks(), {}
    for name, words in kept.items():
        kind, _, ride = name.partition(": ")
        many = not words and ride and kind in ("odometer", "files", "drawn synthesizer", "drawn order")
        rows.setdefault((kind if many else name, promises[name].promise, words or "kept"), []).append(name)
    return [
        f"| {title}{f': {len(names)} rides' if len(names) > 1 else ''} | {promise} | {found} |"
        for (title, promise, found), names in rows.items()
    ]


def table(bounds, names, floors):
    rows = ["| case | neighbours | claim | δ | shown | share |" + (" floor |" if floors else "") + " samples |"]
    rows.append("|---|---|---|---|---|---|---|" + ("---|" if floors else ""))
    for name in names:
        case = cases()[name]
        floor = f" {case.floor:g} |" if floors else ""
        rows.append(
            f"| {name} | {case.pair} | {case.claim:g} | {case.delta:.3g} | {bounds[name]:.3f} | "
            f"{bounds[name] / case.claim:.2f} |{floor} 2 × {case.full:,} |"
        )
    return rows


if __name__ == "__main__":
    sys.exit(main())
