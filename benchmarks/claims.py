"""docs/benchmarks/claims.md: what README claims, and for each claim the strongest counter-example that was measured.

python -m benchmarks.claims writes the page from the CSV files beside it. Counter-examples are not chosen by hand: each is the
worst cell of its file, so that a new measurement that is worse takes its place. tests/test_figures.py compares.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.numeric.compare import TARGETS, room
from benchmarks.panels import kept
from benchmarks.peers.mixed import EPSILONS, KNOWING, PEERS, PRIVATE, averages, letters
from benchmarks.quotes import FIGURES, rows

PAGE = FIGURES / "claims.md"
AT, HERE = "(1, 1e-09)", "(ε, δ) = (1, 1e-9)"
Row = dict[str, str]
HEAD = """# What README claims, and the strongest counter-examples

What we say about covey, what was measured, and the worst result we have against it. Nobody chooses the counter-examples:
`python -m benchmarks.claims` takes the worst cell of the CSV files beside this page. ε = 1 and δ = 1e-9 unless the line says
otherwise. Names such as nltcs, adult or plants are public datasets; the linked pages describe them.

| claim | measured | strongest counter-example |
|---|---|---|
"""
TAIL = """
Four more results that are worse than we would like, without a CSV file:

- **Linked tables, pure ε.** A person's own attributes are about twice as far off as in two releases that share the budget
  ([persons.md](persons.md)).
- **Linked tables, events.** Tables of one event are 1.4 to 1.8 times as far off as in a release of the events alone with the
  whole budget, and twice as far off at 100,000 persons ([persons.md](persons.md)).
- **Speed.** A release of 20,000,000 rows takes 3.7 times as long as reading its file twice. The goal was 2.5
  ([scale.md](../scale.md)).
- **Models.** Boosted trees trained on synthetic rows of adult have an AUC 2 points below those trained on real rows
  ([knowledge.md](knowledge.md)).
"""


def worst(found: list[Row], value: Callable[[Row], float]) -> Row:
    """The row with the largest value."""
    return max(found, key=value)


def pairs() -> str:
    """Shares of two flags."""
    own = [row for row in rows("regain.csv") if row["setting"] == AT]
    wide = [row for row in own if row["p"] == "100"]
    said = ", ".join(f"{row['table']} {100 * float(row['delta2']):.2f}" for row in wide)
    bad = worst(own, lambda row: float(row["delta2"]))
    words = f"{bad['table']}, {int(bad['n']):,} × {int(bad['p']):,}: {100 * float(bad['delta2']):.1f} points"
    claim = "proportions of two yes/no columns, in tables of 20,000 × 100, are off by half a percentage point"
    return f"| {claim} | {said} ([regain.md](regain.md)) | {words} |"


def unseen() -> str:
    """Tables that nothing was tuned on."""
    own = [row for row in rows("unseen.csv") if row["setting"] == AT and row["run"] != "before"]
    bad = worst(own, lambda row: float(row["delta2"]))
    kept = sorted(float(row["delta2"]) for row in own)
    said = f"median {kept[len(kept) // 2]:.1f} times the error of a fresh sample of real rows ([unseen.md](unseen.md))"
    return (
        f"| the same on tables that nothing was tuned on | {said} | {bad['table']}: {float(bad['delta2']):.1f} times |"
    )


def peers() -> list[str]:
    """The best peer of every table, measured here or by hand, for pairs and for single columns."""
    out = []
    done = [
        row for row in rows("peers.csv") if row["guarantee"] == HERE and row["status"] == "ok" and not row["explained"]
    ]
    for table in dict.fromkeys(row["table"] for row in done):
        own = next((row for row in done if row["table"] == table and row["method"].startswith("covey")), None)
        others = [row for row in [*done, *rows("strongest.csv")] if row["table"] == table]
        others = [row for row in others if not row["method"].startswith("covey")]
        if own is None or not others:
            continue
        own = own | averaged(table)
        kind, what = "delta", "root mean square error of proportions"
        if table == "adult":
            kind, what = "tv", "average total variation distance"
        words: dict[bool, list[str]] = {True: [], False: []}  # where covey is closer, and where it is not
        for name, column in (("pairs", f"{kind}2"), ("single columns", f"{kind}1")):
            best = min((row for row in others if row[column]), key=lambda row, column=column: float(row[column]))
            closer = float(own[column]) < float(best[column])
            words[closer].append(f"{name}: {best['method']} {float(best[column]):.4f}, covey {float(own[column]):.4f}")
        won, lost = ("; ".join(words[closer]) or "none" for closer in (True, False))
        out.append(f"| closer than its peers, {table} ({what}) | {won} ([peers.md](peers.md)) | {lost} |")
    return out


def averaged(table: str) -> Row:
    """covey's errors over many releases, where that was measured: of few rows one says little."""
    many = [row for row in rows("peers-few.csv") if row["table"] == table]
    errors = ("delta1", "delta2")
    return {name: str(sum(float(row[name]) for row in many) / len(many)) for name in errors} if many else {}


def exclusive() -> str:
    """Labels that no pair explains."""
    own = [row for row in rows("peers.csv") if row["explained"] and row["method"] == "covey (ε, δ)"]
    if not own:
        return ""
    good = [f"{row['table']} {float(row['explained']):.2f}" for row in own if float(row["explained"]) > 0.8]
    bad = [f"{row['table']} {float(row['explained']):.2f}" for row in own if float(row["explained"]) <= 0.8]
    lost = {row["table"] for row in own if float(row["explained"]) <= 0.8}
    others = [row for row in rows("peers.csv") if row["explained"] and row["table"] in lost]
    best = worst(others, lambda row: float(row["explained"]))
    bad.append(f"and {best['method']} {float(best['explained']):.2f} on {best['table']}")
    said = f"{', '.join(good)} of the labels right, {0.95} in the real rows ([peers.md](peers.md))"
    return f"| relations of three columns are found | {said} | {', '.join(bad)} |"


def numbers() -> str:
    """Numbers in their own units."""
    own = [row for row in rows("numbers.csv") if row["setting"] == AT and row["way"] == "numbers"]
    first = next(row for row in own if row["table"] == "national2019")
    missed = [(float(row[key]) / goal / room(row), row, key) for row in own for key, goal in TARGETS.items()]
    times, bad, key = max(missed, key=lambda found: found[0])
    words = f"{bad['table']}, {key}: {float(bad[key]):.3f}, {times:.1f} times its target"
    said = f"{float(first['KS']):.3f} on national2019 ([numbers.md](numbers.md))"
    return f"| distribution functions of numbers are off by 0.01 on average | {said} | {words} |"


def intervals() -> list[str]:
    """How often 95% intervals hold, and how often none is given."""
    own = [row for row in rows("intervals.csv") if row["population"]]
    most = [float(row["population"]) for row in own]
    about, bad = min(
        ((a, row) for row in own for a in ("population", "table")), key=lambda found: float(found[1][found[0]])
    )
    said = f"mean coverage {sum(most) / len(most):.3f} ([intervals.md](intervals.md))"
    low = f"{bad['setting']}, {bad['statistic']}: {bad[about]} about the {about}"
    wide = worst([row for row in own if row["width"]], lambda row: float(row["width"]))
    none = worst(rows("intervals.csv"), lambda row: float(row["refused"]))
    apart = f"{none['setting']}, {none['statistic']}: {100 * float(none['refused']):.0f}% refused"
    return [
        f"| 95% intervals account for the noise | {said} | {low} |",
        "| questions are answered with intervals | nothing refused in "
        f"{sum(float(r['refused']) == 0 for r in rows('intervals.csv'))} of "
        f"{len(rows('intervals.csv'))} kinds | {apart}; {wide['setting']}, {wide['statistic']}: {wide['width']} times as wide |",
    ]


def nist() -> str:
    """NIST's benchmark."""
    own = [row for row in rows("nist.csv") if row["rules"] == "with rules"]
    good = [float(r["k_marginal"]) for r in own if r["features"] == "demographic" and r["setting"] == "(1, 1e-9)"]
    bad = worst([row for row in own if row["worst_area"]], lambda row: -float(row["worst_area"]))
    said = f"{sum(good) / len(good):.0f} of 1000 on the demographic columns, no impossible row ([nist.md](nist.md))"
    words = f"{bad['features']}, {bad['setting']}: worst area {float(bad['worst_area']):.0f}"
    return f"| NIST's own program judges the result | {said} | {words} |"


def linked() -> str:
    """Persons with events: how much of the order of events, and of correlations across the tables, is kept."""
    found = rows("panels.csv")
    parts = {name: kept(found, name, "linked") for name in dict.fromkeys(row["panel"] for row in found)}
    best, bad = (choose(parts, key=lambda name: parts[name][0]) for choose in (max, min))
    said, lost = (f"{name}: {parts[name][0]:.2f} of steps, {parts[name][1]:.2f} across" for name in (best, bad))
    return f"| linked tables keep what follows what | {said} ([persons.md](persons.md)) | {lost} |"


def mixed() -> str:
    """Real tables of numbers and categories: pairs beside the best peer's, and what a private learner learns more."""
    found, won, gaps = rows("mixed.csv"), [], {}
    for table in dict.fromkeys(row["table"] for row in found):
        ours = averages(found, table, "covey")
        others = {way: own["TV2"] for way in PEERS if (own := averages(found, table, way))}
        best = min(others, key=lambda way: others[way])
        won.append(f"{table}: {best} {others[best]:.3f}, covey {ours['TV2']:.3f}")
        for epsilon in EPSILONS:
            own = averages(found, table, "covey, target", epsilon).get("trees", 0.0)
            labels = {way: averages(found, table, way, epsilon).get("trees", 0.0) for way in PRIVATE if way != KNOWING}
            way = max(labels, key=lambda way: labels[way])
            words = f"{way} learns the label to an AUC of {labels[way]:.3f}, covey's rows with `target` {own:.3f}"
            gaps[labels[way] - own] = f"{table}, ε = {epsilon:g}: {words}"
    ours, theirs = (letters()[way, 1.0]["accuracy"] for way in ("covey, target", "Tab-PE"))
    lost = f"{gaps[max(gaps)]}; Artificial Characters: accuracy {ours:.2f}, Tab-PE {theirs:.2f}"
    claim = "closer than its peers in pairs of numbers and categories (average total variation distance)"
    return f"| {claim} | {'; '.join(won)} ([mixed.md](mixed.md)) | {lost} |"


def page() -> str:
    """All of it."""
    lines = [pairs(), unseen(), *peers(), mixed(), numbers(), exclusive(), *intervals(), nist(), linked()]
    return HEAD + "\n".join(line for line in lines if line) + "\n" + TAIL


def main() -> None:
    """Write the page."""
    Path(PAGE).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
