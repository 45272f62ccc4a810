"""Run the audits: `python -m audits` for everything, with a record in docs/benchmarks/audit.md; `--fast` for a look.

`--clean N` runs the quick part on sound code alone, N times with different seeds: no run may raise an alarm. With `--checks` it
leaves out the cases that draw samples, which are most of its time.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from audits import mechanisms
from audits.suite import alarm, all_checks, all_faults, cases, long_checks, planted
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
    if options.clean:
        run_clean(options, wrong)
        return closing(wrong, begin)
    bounds = measure_cases(options, wrong)
    kept = {name: alarm(name, options.seed) for name in looked_at(options)}
    wrong += [f"{name}: {words}" for name, words in kept.items() if words]
    caught = plant_faults(options.seed, wrong)
    highest, seeds = run_clean(options, wrong)
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


def measure_cases(options, wrong):
    """Lower bounds by case."""
    found = {}
    for case in cases().values():
        samples = case.fast if options.fast else case.full
        if not samples:
            continue
        start = time.perf_counter()
        found[case.name] = bound = case.measure(samples, options.seed)
        seconds = time.perf_counter() - start
        print(f"{case.name:30} {case.pair:36} ε ≥ {bound:.3f} of {case.claim:g}, {seconds:.0f} s", flush=True)
        if bound > case.claim:
            wrong.append(f"{case.name}: ε is at least {bound:.3f}, {case.claim:g} was claimed")
        if not options.fast and bound < case.floor * case.claim:
            wrong.append(
                f"{case.name}: the audit shows only {bound / case.claim:.2f} of the claim, {case.floor:g} is asked"
            )
    return found


def plant_faults(seed, wrong):
    """Alarms by fault."""
    found = {}
    for fault in all_faults().values():
        found[fault.name] = words = planted(fault, seed)
        print(f"planted: {fault.name:40} {words[:80] or 'NOT CAUGHT'}", flush=True)
        if not words:
            wrong.append(f"{fault.name} was planted and not caught by {fault.caught_by}")
    return found


def run_clean(options, wrong):
    """Sound code under other seeds: the highest share of a claim that any run showed, by case; and the seeds."""
    runs = options.clean or (1 if options.fast else CLEAN_RUNS)
    highest, seeds = {}, range(options.seed + 1, options.seed + 1 + runs)
    for seed in seeds:
        for case in cases().values():
            if case.fast and not options.checks:
                share = case.measure(case.fast, seed) / case.claim
                highest[case.name] = max(highest.get(case.name, 0.0), share)
                if share > 1:
                    wrong.append(f"clean run {seed}: {case.name} shows {share:.3f} of its claim")
        for name in all_checks():
            if words := alarm(name, seed):
                wrong.append(f"clean run {seed}: {name}: {words}")
        print(f"clean run, seed {seed}: {len(wrong)} alarms so far", flush=True)
    return highest, seeds


def record(bounds, kept, caught, highest, seeds, wrong):
    """docs/benchmarks/audit.md."""
    single = {case.name for case in mechanisms.cases()}
    lines = [
        "# What the audits found",
        "",
        f"Written by `make audit`, covey {__version__}. Each row is a mechanism of the shipped code on two tables that differ in",
        "one record, chosen to be told apart as well as possible. *Shown* is a lower bound on ε with 99.9% confidence",
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


def checked(kept):
    """Rows of checks. The rides of the odometer that found nothing wrong share one, and so do those that compare files."""
    promises, rows = all_checks() | long_checks(), {}
    for name, words in kept.items():
        kind, _, ride = name.partition(": ")
        many = not words and ride and kind in ("odometer", "files")
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
