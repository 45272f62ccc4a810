"""Runs `one_run.py` under limits: one core, one thread, so many seconds of processor time, so much memory."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
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
    source: str = ""  # a folder under PEERS, for what is on no package index

    @property
    def runner(self) -> str:
        """The module with the few lines that call the package."""
        return f"run_{self.environment}"

    @property
    def python(self) -> Path:
        """The interpreter: covey's own, or that of the peer's environment."""
        own = self.environment in ("covey", "yardsticks")
        return Path(sys.executable) if own else ENVIRONMENTS / self.environment / "bin/python"

    @property
    def absent(self) -> str:
        """What is missing, in words, or nothing."""
        if self.source and not (PEERS / self.source).is_dir():
            return f"absent: no folder {self.source} in PEERS"
        return "" if self.python.exists() else "not installed"

    @property
    def version(self) -> str:
        """What is measured: a package and its version, or a repository and its commit."""
        if self.source:
            asked = ["git", "-C", str(PEERS / self.source), "rev-parse", "--short=7", "HEAD"]
            return f"{self.source} at {subprocess.run(asked, capture_output=True, text=True).stdout.strip()}"
        if self.python == Path(sys.executable):
            return f"covey {version('covey')}"
        package = PACKAGES[self.environment]
        start = package.lower().replace("-", "_") + "-"
        for path in (ENVIRONMENTS / self.environment).glob("lib/python*/site-packages/*.dist-info"):
            if path.name.lower().startswith(start):
                return f"{package} {path.name.removesuffix('.dist-info').rsplit('-', 1)[1]}"
        return package


PACKAGES = {
    "smartnoise": "smartnoise-synth",
    "datasynthesizer": "DataSynthesizer",
    "opendp": "opendp",
    "dpmm": "dpmm",
    "anonypyx": "anonypyx",
}
PEERS = Path(os.environ.get("PEERS", ENVIRONMENTS / "sources")).absolute()
PURE, APPROXIMATE, GROUPS = "pure ε = 1", "(ε, δ) = (1, 1e-9)", "none (groups of 20)"
ROWS = "none (true rows)"
METHODS = [
    Method("covey", "covey", "private", PURE),
    Method("covey (ε, δ)", "covey", "private", APPROXIMATE, 1e-9),
    Method("dpsynth MST", "dpsynth", "mst", APPROXIMATE, 1e-9, "dpsynth"),
    Method("dpsynth SWIFT", "dpsynth", "swift", APPROXIMATE, 1e-9, "dpsynth"),
    Method("dpsynth AIM", "dpsynth", "aim", APPROXIMATE, 1e-9, "dpsynth"),
    Method("Private-GSD", "gsd", "gsd", APPROXIMATE, 1e-9, "private_gsd"),
    Method("private-pgm MST", "privatepgm", "mst", APPROXIMATE, 1e-9, "private-pgm"),
    Method("private-pgm AIM", "privatepgm", "aim", APPROXIMATE, 1e-9, "private-pgm"),
    Method("MargNet", "margnet", "gan", APPROXIMATE, 1e-9, "margnet"),
    Method("Tab-PE", "tabpe", "evolve", APPROXIMATE, 1e-9, "DPSDA"),
    Method("smartnoise MST", "smartnoise", "mst", APPROXIMATE, 1e-9),
    Method("smartnoise AIM", "smartnoise", "aim", APPROXIMATE, 1e-9),
    Method("smartnoise MWEM", "smartnoise", "mwem", PURE),
    Method("DataSynthesizer", "datasynthesizer", "correlated", PURE),
    Method("OpenDP MST", "opendp", "mst", APPROXIMATE, 1e-9),
    Method("OpenDP AIM", "opendp", "aim", APPROXIMATE, 1e-9),
    Method("dpmm PrivBayes", "dpmm", "priv-bayes", APPROXIMATE, 1e-9),
    Method("dpmm MST", "dpmm", "mst", APPROXIMATE, 1e-9),
    Method("dpmm AIM", "dpmm", "aim", APPROXIMATE, 1e-9),
    Method("covey anonymous", "covey", "anonymous", GROUPS),
    Method("anonypyx MDAV", "anonypyx", "mdav", GROUPS),
    Method("true rows drawn again", "yardsticks", "bootstrap", ROWS),
    Method("tree, exact statistics", "yardsticks", "tree", ROWS),
]


def launch(method: Method, folder: Path, rows: int, epsilon: float, seconds: int, patience: int) -> dict:
    """The child's result, or why there is none, under the key "status".

    `patience` bounds the wall clock, in multiples of the processor time: the machine may be shared.
    """
    if method.absent:
        return {"status": method.absent}
    for name in ("result.json", "synthetic.csv"):
        (folder / name).unlink(missing_ok=True)
    command = [method.python.absolute(), HERE / "one_run.py", method.runner, method.option, folder.absolute()]
    command += [rows, epsilon, method.delta]
    one = dict.fromkeys((f"{name}_NUM_THREADS" for name in THREADS), "1")
    quiet = {"POLARS_MAX_THREADS": "1", "PYTHONWARNINGS": "ignore", "MPLBACKEND": "agg", "PEERS": str(PEERS)}
    child = subprocess.Popen(
        [str(word) for word in command],
        env=os.environ | one | quiet,
        stdout=subprocess.DEVNULL,
        stderr=(folder / "errors.txt").open("w"),
        preexec_fn=limit,
        start_new_session=True,
    )
    begin, used = time.monotonic(), 0.0
    while child.poll() is None and used <= seconds and time.monotonic() - begin <= patience * seconds:
        time.sleep(1)  # looking at all processes takes time from a run that shares its core
        used = max(used, group_seconds(child.pid))
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)  # whatever it started ends with it
    child.wait()
    errors = (folder / "errors.txt").read_text(errors="replace")
    (folder / "errors.txt").unlink()
    if (folder / "result.json").exists():
        return {"status": "ok", **json.loads((folder / "result.json").read_text())}
    if used > seconds:
        return {"status": f"over {seconds} s"}
    if child.returncode == -signal.SIGKILL:
        status = f"unfinished: {used:.0f} s in {patience * seconds} s of wall clock"
        return {"status": status, "processor_seconds": used}
    if "MemoryError" in errors or "Unable to allocate" in errors or "bad_alloc" in errors:
        return {"status": f"out of memory ({MEMORY >> 30} GiB)"}
    last = next((line for line in reversed(errors.split("\n")) if len(line) > 5), f"exit {child.returncode}")
    return {"status": f"failed: {last.strip()[:160]}"}


def group_seconds(group: int) -> float:
    """Processor time of all processes of a group, and of those of their children that have ended."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            words = path.read_text().rpartition(")")[2].split()
            if int(words[2]) == group:
                ticks += sum(map(int, words[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def limit() -> None:
    """Before the child starts: one core, so much memory."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
