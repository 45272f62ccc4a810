"""How often 95% intervals hold, and how wide they are: covey's answers beside NAPSU-MQ's (twinify), on three flags of nltcs.

    python -m benchmarks.peers.coverage [--releases 20] [--seconds 300] [--minutes 30] [--out docs/benchmarks]

nltcs is the population. Each round resamples as many rows from it, and both programs release them at (1, 1e-9) for a row that is
replaced: covey answers with intervals; of NAPSU-MQ's 100 synthetic tables the estimates and their variances are combined by its
own Rubin's rules (rubins_rules.py of PEERS/twinify). Asked are all shares and pair shares, and a least squares and a logistic
regression of the first flag on the others. Rounds are kept in build/peers/coverage.jsonl, so that a run that was stopped goes
on. Writes peers-intervals.csv; peers.md shows it.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import time
from importlib.util import module_from_spec, spec_from_file_location
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

import covey
from benchmarks.peers import tables
from benchmarks.peers.launch import APPROXIMATE, ENVIRONMENTS, METHODS, PEERS, Method, launch
from benchmarks.peers.run_twinify import TABLES
from benchmarks.questions import bits

COLUMNS = 3  # with five its compiler alone takes minutes for each release
EPSILON, DELTA, LEVEL, NORMAL = 1.0, 1e-9, 0.95, 1.96
KINDS = ("share", "pair share", "linear regression", "logistic regression")
PEER = Method("NAPSU-MQ", "twinify", "mcmc", APPROXIMATE, DELTA, "twinify")
OWN = next(method for method in METHODS if method.name == "covey (ε, δ)")
ROUNDS = ENVIRONMENTS / "coverage.jsonl"
FIELDS = ["method", "statistic", "releases", "coverage", "coverage se", "width", "processor_seconds", "version"]
CELLS = np.array(list(np.ndindex(*(2,) * COLUMNS)))
Estimates = dict[str, np.ndarray]  # of each kind: estimates, and their standard errors below


def counts(X: np.ndarray) -> np.ndarray:
    """How many rows have each combination of the flags."""
    return np.bincount(X @ (1 << np.arange(COLUMNS)[::-1]), minlength=len(CELLS)).astype(float)


def estimates(weights: np.ndarray) -> Estimates:
    """What a textbook finds in a table that has so many rows of each combination."""
    n = weights.sum()
    chosen = [(i,) for i in range(COLUMNS)], list(combinations(range(COLUMNS), 2))
    out = {}
    for kind, subsets in zip(KINDS, chosen, strict=False):
        p = np.array([weights[CELLS[:, s].all(axis=1)].sum() / n for s in subsets])
        out[kind] = np.array([p, np.sqrt(p * (1 - p) / n)])
    A, y = np.column_stack([np.ones(len(CELLS)), CELLS[:, 1:]]), CELLS[:, 0]
    inverse = np.linalg.pinv(A.T @ (A * weights[:, None]))
    beta = inverse @ A.T @ (weights * y)
    out[KINDS[2]] = np.array([beta, np.sqrt(np.diag(inverse) * (weights @ (y - A @ beta) ** 2) / n)])[:, 1:]
    beta = np.zeros(A.shape[1])
    for _ in range(40):
        q = 1 / (1 + np.exp(-np.clip(A @ beta, -30, 30)))
        inverse = np.linalg.pinv(A.T @ (A * (weights * q * (1 - q))[:, None]))
        beta = beta + inverse @ A.T @ (weights * (y - q))
    out[KINDS[3]] = np.array([beta, np.sqrt(np.diag(inverse))])[:, 1:]
    return out


def ours(table: pd.DataFrame, schema: covey.Schema) -> dict[str, list[tuple[float, float]]]:
    """covey's intervals about the population."""
    synth = covey.PrivateSynthesizer(EPSILON, DELTA, schema=schema).fit({n: table[n].to_numpy() for n in table})
    release = synth.release(len(table))
    names, out = list(table), {}
    for kind, size in (("share", 1), ("pair share", 2)):
        found = [release.share(dict.fromkeys(s, True), about="population") for s in combinations(names, size)]
        out[kind] = [(a.low, a.high) for a in found]
    formula = f"{names[0]} ~ {' + '.join(names[1:])}"
    for kind in KINDS[2:]:
        found = list(release.regress(formula, kind.split()[0], about="population"))[1:]
        out[kind] = [(a.low, a.high) for a in found]
    return out


def theirs(synthetic: np.ndarray, n: int) -> dict[str, list[tuple[float, float]]]:
    """Rubin's rules on the estimates from the synthetic tables, which stand below each other."""
    spec = spec_from_file_location("rubins_rules", PEERS / "twinify/twinify/napsu_mq/rubins_rules.py")
    rules = module_from_spec(spec)
    spec.loader.exec_module(rules)
    single = [estimates(counts(part)) for part in synthetic.reshape(TABLES, n, COLUMNS)]
    out = {}
    for kind in KINDS:
        values, errors = np.stack([found[kind] for found in single], axis=1)
        pairs = zip(values.T, errors.T**2, strict=True)
        out[kind] = [tuple(map(float, rules.non_negative_conf_int(q, u, LEVEL, n, n))) for q, u in pairs]
    return out


def one_round(k: int, options: argparse.Namespace) -> dict:
    """Hits and widths of both, of one resampled table, and the processor seconds of each."""
    population = bits("nltcs", COLUMNS)
    table = pd.DataFrame(population.resample(np.random.default_rng([0, k])))
    folder = ENVIRONMENTS / "runs/coverage"
    tables.save(table, dict.fromkeys(table, 2), folder)
    told = launch(PEER, folder, len(table), EPSILON, options.seconds, patience=5)
    found = {PEER.name: told}
    if told["status"] == "ok":
        intervals = theirs(pd.read_csv(folder / "synthetic.csv").to_numpy(), len(table))
        found[PEER.name] = told | judged(intervals, population.columns, table)
    shutil.rmtree(folder)
    begin = time.process_time()
    intervals = ours(table, population.schema)
    spent = {"status": "ok", "processor_seconds": time.process_time() - begin}
    return found | {OWN.name: spent | judged(intervals, population.columns, table)}


def judged(intervals: dict, population: dict, table: pd.DataFrame) -> dict:
    """Which intervals hold the population's value, and their widths against those that the confidential rows give."""
    truth = estimates(counts(np.column_stack(list(population.values()))))
    own = estimates(counts(table.to_numpy()))
    out = {}
    for kind in KINDS:
        low, high = np.array(intervals[kind]).T
        hits = (low <= truth[kind][0]) & (truth[kind][0] <= high)
        out[kind] = {"hits": hits.tolist(), "widths": ((high - low) / 2 / (NORMAL * own[kind][1])).tolist()}
    return out


def lines(rounds: list[dict]) -> list[dict]:
    """A line for each program and kind of statistic; standard errors are over releases, which share their noise."""
    out = []
    for method in (PEER.name, OWN.name):
        done = [found[method] for found in rounds if found[method]["status"] == "ok"]
        for kind in KINDS if done else ():
            each = np.array([np.mean(found[kind]["hits"]) for found in done])
            widths = [width for found in done for width in found[kind]["widths"]]
            line = {"method": method, "statistic": kind, "releases": len(done), "coverage": f"{each.mean():.3f}"}
            line |= {"coverage se": f"{each.std() / np.sqrt(len(each)):.3f}", "width": f"{np.median(widths):.2f}"}
            line["processor_seconds"] = f"{np.median([found['processor_seconds'] for found in done]):.1f}"
            line["version"] = PEER.version if method == PEER.name else OWN.version
            out.append(line)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=300, help="of processor time for a release")
    parser.add_argument("--minutes", type=float, default=30, help="of wall clock, after which no release is begun")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    options = parser.parse_args()
    if PEER.absent:
        print(f"{PEER.name}: {PEER.absent}. Nothing was measured.")
        return
    rounds = [json.loads(line) for line in ROUNDS.read_text().splitlines()] if ROUNDS.exists() else []
    begin = time.monotonic()
    while len(rounds) < options.releases and time.monotonic() - begin < 60 * options.minutes:
        rounds.append(one_round(len(rounds), options))
        with ROUNDS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(rounds[-1]) + "\n")
        print(len(rounds), {name: told["status"] for name, told in rounds[-1].items()}, flush=True)
    with (options.out / "peers-intervals.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines(rounds))


if __name__ == "__main__":
    main()
