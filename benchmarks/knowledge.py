"""What public knowledge and a few triples give: an exclusive or, a column to be predicted, last year's release.

python -m benchmarks.knowledge [--parts xor,none,target,…,onehot] [--seeds 2] [--out docs/benchmarks/knowledge.md]

Reads adult.csv and national2019.csv from the folder in COVEY_DATA. Rules are judged by NIST's own program (`benchmarks.nist`).
Figures of true rows are computed without noise and are no part of any release.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
import polars

import covey
from benchmarks.nist import survey
from benchmarks.numeric.compare import codes_of, frame_of, schema_of
from benchmarks.numeric.measures import judge
from benchmarks.numeric.tables import DATA, TABLES, Column, Table
from covey.engine.budget import make_budget
from covey.engine.models.predict import expected_focus
from covey.release.bundle import write_bundle
from covey.tables.codec import Codec
from covey.tables.models import table_model

DELTA = 1e-9
ORDERED = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")  # of adult


def variation(X, Y, columns, size):
    """Total variation of the joint table of some columns."""
    code = size ** np.arange(len(columns))
    tables = [np.bincount(np.asarray(Z)[:, columns].astype(int) @ code, minlength=size ** len(columns)) for Z in (X, Y)]
    return float(np.abs(tables[0] / len(X) - tables[1] / len(Y)).sum() / 2)


def synthetic(X, size, delta, triples, seed):
    """As many synthetic rows, and the seconds that they took."""
    begin = time.perf_counter()
    synth = covey.PrivateSynthesizer(1.0, delta, domain=[size] * X.shape[1], triples=triples, seed=seed).fit(X)
    return synth.sample(len(X)), time.perf_counter() - begin


def exclusive(n, size, seed):
    """Twenty independent columns, but for one that is the sum of two others."""
    X = np.random.default_rng(seed).integers(0, size, (n, 20))
    X[:, 7] = (X[:, 2] + X[:, 13]) % size
    return X


def tied(n, size, seed):
    """Twenty columns, ten of which follow the other ten half of the time: pairs say everything."""
    g = np.random.default_rng(seed)
    X = g.integers(0, size, (n, 20))
    X[:, 10:] = np.where(g.random((n, 10)) < 0.5, X[:, :10], X[:, 10:])
    return X


def xor(seeds) -> Iterator[str]:
    """A relation of three columns that no pair shows."""
    yield "| rows | categories | guarantee | triples | total variation of the three columns | seconds |"
    yield "|---|---|---|---|---|---|"
    for n, size, delta in ((20_000, 2, DELTA), (20_000, 3, DELTA), (20_000, 2, 0.0), (5000, 2, DELTA)):
        for triples in (0, 3):
            found = []
            for seed in range(seeds):
                X = exclusive(n, size, seed)
                Y, seconds = synthetic(X, size, delta, triples, seed)
                found.append((variation(X, Y, [2, 7, 13], size), seconds))
            error, seconds = np.mean(found, axis=0)
            yield f"| {n:,} | {size} | {word(delta)} | {triples or 'none'} | {error:.3f} | {seconds:.0f} |"


def none(seeds) -> Iterator[str]:
    """What looking for triples costs where there are none."""
    yield "| triples | mean total variation of pairs | of triples (200 of them) |"
    yield "|---|---|---|"
    pairs = list(combinations(range(20), 2))
    some = [list(t) for t in np.random.default_rng(0).permutation(list(combinations(range(20), 3)))[:200]]
    for triples in (0, 3):
        found = []
        for seed in range(seeds):
            X = tied(20_000, 3, seed)
            Y, _ = synthetic(X, 3, DELTA, triples, seed)
            found.append([np.mean([variation(X, Y, list(t), 3) for t in group]) for group in (pairs, some)])
        two, three = np.mean(found, axis=0)
        yield f"| {triples or 'none'} | {two:.4f} | {three:.4f} |"


def adult() -> Table:
    """The census table in codes."""
    sizes = json.loads((DATA / "adult-domain.json").read_text())
    with (DATA / "adult.csv").open() as file:
        names, *rows = csv.reader(file)
    return Table("adult", tuple(Column(n, sizes[n], n in ORDERED) for n in names), np.array(rows, dtype=np.int64))


def aucs(train, test, table: Table, target, yes):
    """Areas under the curve of two models, trained on some rows and judged on true ones: boosted trees, and logistic."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder

    other = [j for j in range(len(table.columns)) if j != target]
    kinds = [table.columns[j] for j in other]
    plain = [i for i, c in enumerate(kinds) if not (c.number or c.ordered) and c.size <= 255]
    wide = [i for i, c in enumerate(kinds) if c.number or c.size > 60]
    few = [i for i in range(len(other)) if i not in wide]
    coded = make_column_transformer(
        (KBinsDiscretizer(12, encode="onehot", strategy="quantile", subsample=None), wide),
        (OneHotEncoder(handle_unknown="ignore"), few),
    )
    trees = HistGradientBoostingClassifier(max_iter=80, categorical_features=plain, random_state=0)
    found = []
    for model in (trees, make_pipeline(coded, LogisticRegression(max_iter=300))):
        model.fit(train[:, other], train[:, target] == yes)
        found.append(roc_auc_score(test[:, target] == yes, model.predict_proba(test[:, other])[:, 1]))
    return np.array(found)


def target(seeds) -> Iterator[str]:
    """Models trained on synthetic rows, judged on a fifth of the true ones that no release saw."""
    yield "| table | column | trained on | boosted trees | logistic regression |"
    yield "|---|---|---|---|---|"
    for table, name, yes in ((adult(), "income>50K", 1), (TABLES["national2019"](), "OWN_RENT", 1)):
        place = [c.name for c in table.columns].index(name)
        order = np.random.default_rng(0).permutation(len(table.codes))
        test, train = table.codes[order[: len(order) // 5]], replace(table, codes=table.codes[order[len(order) // 5 :]])
        true = aucs(train.codes, test, table, place, yes)
        yield f"| {table.name} | {name} | true rows | {true[0]:.4f} | {true[1]:.4f} |"
        frame, schema = frame_of(train), schema_of(train)
        for way, own in (("(1, 1e-9)", schema), ("(1, 1e-9), target", schema.focus(target=name))):
            found = []
            for seed in range(seeds):
                rows = covey.PrivateSynthesizer(1.0, DELTA, schema=own, seed=seed).fit(frame).sample(len(frame))
                found.append(aucs(codes_of(train, rows), test, table, place, yes))
            mean = np.mean(found, axis=0)
            yield f"| {table.name} | {name} | {way} | {mean[0]:.4f} | {mean[1]:.4f} |"


def important(seeds) -> Iterator[str]:
    """Errors of shares of pairs that are said to matter, and of the others, with that and without; and what a plan promises."""
    heads = (
        "table",
        "guarantee",
        "pairs that matter",
        "error without",
        "with",
        "promised",
        "others without",
        "with",
        "promised",
    )
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    named = {
        "adult": [("education-num", "income>50K"), ("occupation", "sex")],
        "national2019": [("PUMA", "RAC1P"), ("EDU", "OWN_RENT")],
    }
    for table in (adult(), TABLES["national2019"]()):
        names = [c.name for c in table.columns]
        chosen = [tuple(sorted(map(names.index, pair))) for pair in named[table.name]]
        plain = [j for j, c in enumerate(table.columns) if not c.number and c.size <= 40]
        others = [pair for pair in combinations(plain, 2) if pair not in chosen]
        for delta in (DELTA, 0.0):
            found, schemas = [], (schema_of(table), schema_of(table).focus(*named[table.name]))
            for seed in range(seeds):
                synths = [
                    covey.PrivateSynthesizer(1.0, delta, schema=s, seed=seed).fit(frame_of(table)) for s in schemas
                ]
                rows = [codes_of(table, synth.sample(len(table.codes))) for synth in synths]
                found.append([[error_of(table, Y, pairs) for Y in rows] for pairs in (chosen, others)])
            (before, after), (rest, lost) = np.mean(found, axis=0)
            plan = table_model(Codec(schemas[1]), Fraction(0), not delta).plan
            said = expected_focus(plan, len(table.codes), make_budget(1.0, delta))
            pairs = ", ".join(" by ".join(pair) for pair in named[table.name])
            own = f"{before:.1e} | {after:.1e} ({after / before:.2f}×) | {said['important'] / said['without']:.2f}×"
            rest_of = f"{rest:.1e} | {lost:.1e} ({lost / rest:.2f}×) | {said['others'] / said['without']:.2f}×"
            yield f"| {table.name} | {word(delta)} | {pairs} | {own} | {rest_of} |"


def error_of(table, Y, pairs):
    """The root mean square error of a 2-way share, averaged over pairs of columns."""
    found = []
    for a, b in pairs:
        size = int(max(table.codes[:, b].max(), Y[:, b].max())) + 1
        cells = [np.asarray(Z[:, a] * size + Z[:, b], dtype=np.int64) for Z in (table.codes, Y)]
        most = max(int(c.max()) for c in cells) + 1
        one, two = (np.bincount(c, minlength=most) / len(c) for c in cells)
        found.append(np.sqrt(np.mean((one - two)[(one > 0) | (two > 0)] ** 2)))
    return float(np.mean(found))


def prior(seeds) -> Iterator[str]:
    """Two halves of a survey as two years, and last year's columns shuffled among the rows as a prior that is wrong."""
    yield "| guarantee | prior | 2-way total variation | rank correlations (RMS error) |"
    yield "|---|---|---|---|"
    table, g = TABLES["national2019"](), np.random.default_rng(0)
    order = g.permutation(len(table.codes))
    last, now = (replace(table, codes=table.codes[half]) for half in np.array_split(order, 2))
    loose = replace(last, codes=np.column_stack([g.permutation(column) for column in last.codes.T]))
    schema = schema_of(table)
    with tempfile.TemporaryDirectory() as folder:
        for name, year in (("last", last), ("loose", loose)):
            made = covey.PrivateSynthesizer(1.0, DELTA, schema=schema, seed=99).fit(frame_of(year))
            write_bundle(made.release(len(year.codes)), Path(folder) / name)
        for delta in (DELTA, 0.0):
            for way, name in (("none", None), ("last year's", "last"), ("columns shuffled", "loose")):
                found = []
                for seed in range(seeds):
                    known = None if name is None else Path(folder) / name
                    synth = covey.PrivateSynthesizer(1.0, delta, schema=schema, seed=seed, prior=known)
                    errors = judge(now, codes_of(now, synth.fit(frame_of(now)).sample(len(now.codes))))[0]
                    found.append((errors["2-way TV"], errors["Spearman RMS"]))
                two, ranks = np.mean(found, axis=0)
                yield f"| {word(delta)} | {way} | {two:.4f} | {ranks:.4f} |"


def rules(seeds) -> Iterator[str]:
    """Processor time of a release of the survey with its code book's rules and without, in turn."""
    yield "| columns | rules | seconds without | with | ratio |"
    yield "|---|---|---|---|---|"
    table = survey.rows(DATA)
    for name in ("demographic", "all"):
        features, spent = survey.FEATURES[name], {False: 0.0, True: 0.0}
        frame = polars.DataFrame({column: list(cells) for column, cells in table.items() if column in features})
        schemas = {ruled: survey.survey_schema(DATA, features, ruled) for ruled in spent}
        for seed in range(seeds):
            for ruled, schema in schemas.items():
                begin = time.process_time()
                covey.PrivateSynthesizer(1.0, DELTA, schema=schema, seed=seed).fit(frame).sample(len(frame))
                spent[ruled] += (time.process_time() - begin) / seeds
        ratio = spent[True] / spent[False]
        yield f"| {name} | {len(schemas[True].rules)} | {spent[False]:.1f} | {spent[True]:.1f} | {ratio:.2f} |"


def onehot(seeds) -> Iterator[str]:
    """Categories as yes/no columns, with and without saying that these exclude each other."""
    yield "| rows | guarantee | one_of | RMSE of pairs | total variation of pairs | seconds |"
    yield "|---|---|---|---|---|---|"
    table = adult()
    kept = [j for j, c in enumerate(table.columns) if not c.ordered or c.name == "education-num"]
    sets = [[f"{table.columns[j].name}_{k}" for k in range(table.columns[j].size)] for j in kept]
    fields = tuple(covey.Field(name, "boolean", required=True, flags=("0", "1")) for own in sets for name in own)
    said = tuple(covey.AtMost.one_of(own) for own in sets)
    apart = np.repeat(np.arange(len(sets)), [len(own) for own in sets])
    for n, delta in product((5000, len(table.codes)), (0.0, DELTA)):
        found: dict[bool, list[tuple[float, ...]]] = {False: [], True: []}
        for seed, ruled in product(range(seeds), found):
            rows = table.codes[np.random.default_rng(seed).permutation(len(table.codes))[:n]][:, kept]
            X = np.hstack([rows[:, [i]] == np.arange(len(own)) for i, own in enumerate(sets)]).astype(np.uint8)
            frame = polars.DataFrame({field.name: column for field, column in zip(fields, X.T, strict=True)})
            schema, begin = covey.Schema(fields, rules=said if ruled else ()), time.process_time()
            Y = covey.PrivateSynthesizer(1.0, delta, schema=schema, seed=seed).fit(frame).sample(n).to_numpy()
            off = (X.T.astype(float) @ X - Y.T.astype(float) @ Y) / n
            pairs = np.zeros((len(sets), len(sets)))
            np.add.at(pairs, (apart[:, None], apart[None, :]), np.abs(off) / 2)
            rmse = float(np.sqrt((off[apart[:, None] != apart[None, :]] ** 2).mean()))
            tv = float(pairs[np.triu_indices(len(sets), 1)].mean())
            found[ruled].append((rmse, tv, time.process_time() - begin))
        for ruled, figures in found.items():
            rmse, tv, seconds = np.mean(figures, axis=0)
            yield f"| {n:,} | {word(delta)} | {'yes' if ruled else 'no'} | {rmse:.5f} | {tv:.4f} | {seconds:.0f} |"


def word(delta):
    return "(1, 1e-9)" if delta else "pure 1"


PARTS: dict[str, tuple[str, Callable[[int], Iterator[str]]]] = {
    "xor": ("An exclusive or of 3 of 20 columns", xor),
    "none": ("Where there are no triples: 20 columns of three categories, tied in pairs, (1, 1e-9)", none),
    "target": ("What predicts a column", target),
    "important": ("Pairs that matter", important),
    "prior": ("Last year's release", prior),
    "rules": ("What rules cost in time", rules),
    "onehot": ("One category in many columns", onehot),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, help="a page whose figures between marks are replaced; printed otherwise")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    text = given.out.read_text(encoding="utf-8") if given.out else ""
    for name in given.parts.split(","):
        title, part = PARTS[name]
        lines = [f"## {title}", ""]
        print(lines[0], flush=True)
        for line in part(given.seeds):
            print(line, flush=True)
            lines.append(line)
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        if begin in text:
            text = text[: text.index(begin) + len(begin)] + "\n".join(lines) + "\n" + text[text.index(end) :]
    if given.out:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
