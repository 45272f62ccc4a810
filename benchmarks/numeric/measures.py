"""What a reader of a synthetic table notices, in the column's own units; computed on true rows, so never part of a release."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.stats import rankdata

from benchmarks.numeric.tables import Table

COMMON = 10
QUANTILES = 20
SMALLEST_GROUP = 0.01


def kolmogorov(x, z):
    """Sup distance of two samples' distribution functions."""
    grid = np.unique(np.concatenate([x, z]))
    x, z = np.sort(x), np.sort(z)
    there = [np.searchsorted(v, grid, side="right") / len(v) for v in (x, z)]
    return float(np.abs(there[0] - there[1]).max())


def column_errors(x, z):
    """Errors of one number: Kolmogorov; mean, median and 90% quantile in deviations; the ten commonest values' shares."""
    values, counts = np.unique(x[~np.isnan(x)], return_counts=True)
    common = values[np.argsort(-counts, kind="stable")[:COMMON]]
    top = sum(abs(np.mean(x == v) - np.mean(z == v)) for v in common)
    missing = abs(np.isnan(x).mean() - np.isnan(z).mean())
    x, z = x[~np.isnan(x)], z[~np.isnan(z)]
    if not len(z):
        return {"KS": 1.0, "mean": 9.9, "median": 9.9, "q90": 9.9, "top10": top, "missing": missing}
    sd = x.std() or 1.0
    return {
        "KS": kolmogorov(x, z),
        "mean": abs(x.mean() - z.mean()) / sd,
        "median": abs(np.median(x) - np.median(z)) / sd,
        "q90": abs(np.quantile(x, 0.9) - np.quantile(z, 0.9)) / sd,
        "top10": top,
        "missing": missing,
    }


def spearman(x, z):
    """Rank correlation of the rows that have both."""
    both = ~(np.isnan(x) | np.isnan(z))
    if both.sum() < 3:
        return 0.0
    a, b = rankdata(x[both]), rankdata(z[both])
    return 0.0 if a.std() == 0 or b.std() == 0 else float(np.corrcoef(a, b)[0, 1])


def group_errors(table: Table, codes, true, made):
    """Differences of a number's mean within each category of at least one per cent of the rows, in deviations."""
    found = []
    for j, column in enumerate(table.columns):
        if column.number:
            continue
        for v in range(column.size):
            own, there = table.codes[:, j] == v, codes[:, j] == v
            if own.mean() < SMALLEST_GROUP:
                continue
            for k, x in true.items():
                a, b = x[own], made[k][there]
                a, b = a[~np.isnan(a)], b[~np.isnan(b)]
                if len(a) < 30:
                    continue
                found.append(abs(a.mean() - (b.mean() if len(b) else np.nanmean(x))) / np.nanstd(x))
    return np.array(found or [0.0])


def coarse_codes(table: Table, codes, true, made, parts=QUANTILES):
    """Numbers by the true table's quantiles, missing ones apart; categories as they are."""
    out, sizes = np.empty_like(codes), []
    for j, column in enumerate(table.columns):
        if not column.number:
            out[:, j] = codes[:, j]
            sizes.append(column.size)
            continue
        s = int(column.missing)
        plain = true[j][table.codes[:, j] >= s]
        edges = np.unique(np.quantile(plain, np.arange(1, parts) / parts)) if len(plain) else np.zeros(0)
        out[:, j] = np.where(codes[:, j] < s, codes[:, j], s + np.searchsorted(edges, made[j], side="right"))
        sizes.append(s + len(edges) + 1)
    return out, sizes


def pair_variation(X, Z, sizes):
    """Mean total variation over all pairs of columns."""
    found = []
    for a, b in combinations(range(len(sizes)), 2):
        tables = [np.bincount(T[:, a] * sizes[b] + T[:, b], minlength=sizes[a] * sizes[b]) / len(T) for T in (X, Z)]
        found.append(np.abs(tables[0] - tables[1]).sum() / 2)
    return float(np.mean(found))


def judge(table: Table, codes):
    """All measures of a synthetic table: means over numbers (worst for Spearman), and the names of the worst."""
    true, made = table.values(), table.values(codes)
    each = {table.columns[j].name: column_errors(true[j], made[j]) for j in true}
    out = {key: float(np.mean([e[key] for e in each.values()])) for key in ("KS", "mean", "median", "q90", "top10")}
    ranks = {(i, j): spearman(made[i], made[j]) - spearman(true[i], true[j]) for i, j in combinations(true, 2)}
    worst = max(ranks, key=lambda pair: abs(ranks[pair]))
    out["Spearman max"] = abs(ranks[worst])
    out["Spearman RMS"] = float(np.sqrt(np.mean(np.square(list(ranks.values())))))
    groups = group_errors(table, codes, true, made)
    out["groups"] = float(np.sqrt(np.mean(groups**2)))
    out["groups max"] = float(groups.max())
    X, sizes = coarse_codes(table, table.codes, true, true)
    Z, _ = coarse_codes(table, codes, true, made)
    out["2-way TV"] = pair_variation(X, Z, sizes)
    names = tuple(table.columns[j].name for j in worst)
    order = [(made[j][~np.isnan(made[j])], c.after) for j, c in enumerate(table.columns) if c.after is not None]
    if order:
        out["disorder"] = float(
            np.mean([np.mean(made[j] < made[c.after]) for j, c in enumerate(table.columns) if c.after is not None])
        )
    return out, each, names
