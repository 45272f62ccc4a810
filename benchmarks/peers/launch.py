"""Runs `one_run.py` under limits: one core, one thread, so many seconds of processor time, so much memory."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENTS = Path("build/peers")
MEMORY = 8 << 30
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "NUMBA", "RAYON", "POLARS_MAX")


@dataclass(frozen=True)
class Method:
    """A way to make a synthetic table: a runner module, the name it knows the method by, and what it guarantees."""

    name: str
    environment: str
    option: str
    guarantee: str
    delta: float = 0.0

    @property
    def runner(self) -> str:
        """The module with the few lines that call the package."""
        return f"run_{self.environment}"

    @property
    def python(self) -> Path:
        """The interpreter: covey's own, or that of the peer's environment."""
        return Path(sys.executable) if self.environment == "covey" else ENVIRONMENTS / self.environment / "bin/python"


PURE, APPROXIMATE, GROUPS = "pure ε = 1", "(ε, δ) = (1, 1e-9)", "none (groups of 20)"
METHODS = [
    Method("covey", "covey", "private", PURE),
    Method("covey (ε, δ)", "covey", "private", APPROXIMATE, 1e-9),
    Method("smartnoise MST", "smartnoise", "mst", APPROXIMATE, 1e-9),
    Method("smartnoise AIM", "smartnoise", "aim", APPROXIMATE, 1e-9),
    Method("smartnoise MWEM", "smartnoise", "mwem", PURE),
    Method("DataSynthesizer", "datasynthesizer", "correlated", PURE),
    Method("dpmm PrivBayes", "dpmm", "priv-bayes", APPROXIMATE, 1e-9),
    Method("dpmm MST", "dpmm", "mst", APPROXIMATE, 1e-9),
    Method("dpmm AIM", "dpmm", "aim", APPROXIMATE, 1e-9),
    Method("covey anonymous", "covey", "anonymous", GROUPS),
    Method("anonypyx MDAV", "anonypyx", "mdav", GROUPS),
]


def launch(method: Method, folder: Path, rows: int, epsilon: float, seconds: int, patience: int) -> dict:
    """The child's result, or why there is none, under the key "status".

    `patience` bounds the wall clock, in multiples of the processor time: the machine may be shared.
    """
    if not method.python.exists():
        return {"status": "not installed"}
    for name in ("result.json", "synthetic.csv"):
        (folder / name).unlink(missing_ok=True)
    command = [method.python, HERE / "one_run.py", method.runner, method.option, folder, rows, epsilon, method.delta]
    one = dict.fromkeys((f"{name}_NUM_THREADS" for name in THREADS), "1")
    before = children_seconds()
    try:
        done = subprocess.run(
            [str(word) for word in command],
            env=os.environ | one | {"POLARS_MAX_THREADS": "1", "PYTHONWARNINGS": "ignore", "MPLBACKEND": "agg"},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience * seconds,
            preexec_fn=lambda: limit(seconds),
        )
    except subprocess.TimeoutExpired:
        used = children_seconds() - before
        return {
            "status": f"unfinished: {used:.0f} s in {patience * seconds} s of wall clock",
            "processor_seconds": used,
        }
    if (folder / "result.json").exists():
        return {"status": "ok", **json.loads((folder / "result.json").read_text())}
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"status": f"over {seconds} s"}
    last = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
    if "MemoryError" in done.stderr or "Unable to allocate" in done.stderr or "bad_alloc" in done.stderr:
        return {"status": f"out of memory ({MEMORY >> 30} GiB)"}
    return {"status": f"failed: {last[:160]}"}


def children_seconds() -> float:
    """Processor time of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def limit(seconds: int) -> None:
    """Before the child starts: one core, so many seconds, so much memory."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
