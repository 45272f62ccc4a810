"""How time and memory grow with columns and with rows, for covey and its peers, on made-up flags.

    python -m benchmarks.peers.growth [--seconds 100] [--out docs/benchmarks]

p = 16 … 1,024 columns at n = 10,000 rows, and n = 10³ … 10⁶ rows at p = 64 columns; as many synthetic rows as true
ones, ε = 1, δ = 1e-9 where a method takes one, one core. A method that runs out of time or memory is not tried at
larger sizes. Results are kept in build/peers/growth. Writes growth.csv, growth.md, growth-columns.svg, growth-rows.svg.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
from datetime import date
from pathlib import Path

from benchmarks.peers import tables
from benchmarks.peers.launch import ENVIRONMENTS, METHODS, Method, launch

RESULTS = ENVIRONMENTS / "growth"
COMPARED = [method.name for method in METHODS if method.environment != "yardsticks"]
COLUMNS = [(10_000, p) for p in (16, 64, 128, 256, 512, 1024)]
ROWS = [(n, 64) for n in (1_000, 10_000, 100_000, 1_000_000)]
FIELDS = ["method", "guarantee", "n", "p", "status", "processor_seconds", "wall_seconds", "peak_mib", "limit", "date"]
HEAD = """# Growth

`make bench-peers`, {date}: one run for each point, on one core, on made-up flags with eight common causes; as many synthetic
rows as true ones; ε = 1. At most {limit} seconds of processor time and 8 GiB for a run, imports included; a method that
runs out of either is not tried at larger sizes. Seconds are processor seconds of fitting and sampling. Empty: not tried.
"Unfinished" says that the machine, which was shared, gave the run too little time to decide. "Failed" has its reason in
growth.csv; what we know about the peers' failures is on [the page beside this one](peers.md).

Versions: {versions}.

![columns](growth-columns.svg)

![rows](growth-rows.svg)
"""


def result_of(method: Method, n: int, p: int, options: argparse.Namespace) -> dict:
    """From an earlier run, or from a new one."""
    folder = RESULTS / f"{''.join(c for c in method.name if c.isalnum())}-{n}-{p}"
    kept = folder / "measured.json"
    if kept.exists():
        found = json.loads(kept.read_text())
        if not found["status"].startswith("unfinished"):
            return found
    tables.save(*tables.made_up(n, p), folder)
    result = {"method": method.name, "guarantee": method.guarantee, "n": n, "p": p, "limit": options.seconds}
    result |= {"date": date.today().isoformat()} | launch(method, folder, n, 1.0, options.seconds, options.patience)
    shutil.rmtree(folder)
    if result["status"] != "not installed":
        folder.mkdir()
        kept.write_text(json.dumps(result, ensure_ascii=False))
    return result


def write(out: Path) -> None:
    """The CSV, the page and both plots."""
    rows = [json.loads(path.read_text()) for path in RESULTS.glob("*/measured.json")]
    rows.sort(key=lambda row: (COMPARED.index(row["method"]), row["p"], row["n"]))
    with (out / "growth.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    limits = " or ".join(map(str, sorted({row["limit"] for row in rows})))
    versions = ", ".join(dict.fromkeys(method.version for method in METHODS if not method.absent))
    text = [HEAD.format(date=max(row["date"] for row in rows), limit=limits, versions=versions)]
    for title, sizes, label in (("Columns, at 10,000 rows", COLUMNS, 1), ("Rows, at 64 columns", ROWS, 0)):
        text += [f"\n## {title}\n", "| method | guarantee | " + " | ".join(f"{s[label]:,}" for s in sizes) + " |"]
        text.append("|---|---|" + "---|" * len(sizes))
        for name in dict.fromkeys(row["method"] for row in rows):
            own = {(row["n"], row["p"]): row for row in rows if row["method"] == name}
            guarantee = next(iter(own.values()))["guarantee"]
            text.append(f"| {name} | {guarantee} | " + " | ".join(cell(own.get(size)) for size in sizes) + " |")
    (out / "growth.md").write_text("\n".join(text) + "\n")
    plot(rows, COLUMNS, "p", "columns, at 10,000 rows", out / "growth-columns.svg")
    plot(rows, ROWS, "n", "rows, at 64 columns", out / "growth-rows.svg")


def cell(row: dict | None) -> str:
    """Seconds and memory, or what happened."""
    if row is None:
        return ""
    if row["status"] != "ok":
        return "failed" if row["status"].startswith("failed") else row["status"]  # the CSV says how
    return f"{row['processor_seconds']:.1f} s, {row['peak_mib']:.0f} MiB"


def plot(rows: list[dict], sizes: list[tuple[int, int]], key: str, label: str, path: Path) -> None:
    """Time on the left, memory on the right, a line for each method; a line ends where the method was stopped."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "covey"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(13, 4), layout="constrained")
    for name in dict.fromkeys(row["method"] for row in rows):
        own = [r for r in rows if r["method"] == name and (r["n"], r["p"]) in sizes and r["status"] == "ok"]
        style = {"marker": "o", "linestyle": "-" if "covey" in name else "--"}
        for axis, value in zip(axes, ("processor_seconds", "peak_mib"), strict=True):
            if own:
                legend = f"{name}: {own[0]['guarantee']}"
                axis.plot([r[key] for r in own], [r[value] for r in own], label=legend, **style)
    for axis, title in zip(axes, ("processor seconds", "peak MiB"), strict=True):
        axis.set(xscale="log", yscale="log", xlabel=label, title=title)
        axis.grid(alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=100, help="of processor time for one run")
    parser.add_argument("--patience", type=int, default=5, help="seconds of wall clock for each of them")
    parser.add_argument("--methods", nargs="+", default=COMPARED)
    parser.add_argument("--most-columns", type=int, default=1024)
    parser.add_argument("--most-rows", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for method in METHODS:
        for sizes in (COLUMNS, ROWS):
            for n, p in sizes:
                if method.name not in options.methods or n > options.most_rows or p > options.most_columns:
                    continue
                found = result_of(method, n, p, options)
                print(method.name, n, p, found["status"], found.get("processor_seconds"), flush=True)
                if found["status"] != "ok":
                    break
    write(options.out)


if __name__ == "__main__":
    main()
