r"""A peer that finds its bins privately: google/dpsynth, in an environment of its own under build/peers.

python3.12 -m venv build/peers/dpsynth
build/peers/dpsynth/bin/python -m pip install 'jax[cpu]==0.10.2' mbi==2.0.0 dp-accounting==0.6.0 'etils[epath]' pandas attrs \
    absl-py pydantic pyyaml more-itertools networkx scipy tqdm
git clone https://github.com/google/dpsynth build/peers/dpsynth-source

Its privacy unit is adding or removing a row, which is the weaker promise: ours is replacing one.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import polars as pl

from covey.engine.budget import make_budget

PLACE = Path("build/peers")
PYTHON, SOURCE = PLACE / "dpsynth/bin/python", PLACE / "dpsynth-source"
SECONDS = 3600  # of wall clock, on a machine that may have other work to do


def installed():
    """Whether the peer is here."""
    return PYTHON.exists() and (SOURCE / "dpsynth").is_dir()


def peer_rows(columns, frame, promise, seed):
    """A synthetic frame of dpsynth's, and the seconds it took; why not, in words, where there is none."""
    if not installed():
        return "not installed", 0.0
    epsilon, delta = promise
    if not delta:
        return "has no pure guarantee", 0.0
    facts = {
        c.name: {
            "number": c.number,
            "size": c.size,
            "low": c.low,
            "high": c.low + c.step * (c.size - 1 - c.missing),
            "missing": c.missing,
        }
        for c in columns
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frame.write_csv(folder / "table.csv")
        rho = float(make_budget(epsilon, delta, n=len(frame)).amount)
        told = {"columns": facts, "rho": rho, "seed": seed}
        (folder / "facts.json").write_text(json.dumps(told))
        command = [str(PYTHON.absolute()), str(Path(__file__).with_name("run_dpsynth.py")), str(folder)]
        begin = time.perf_counter()
        try:
            environment = {**os.environ, "PYTHONPATH": str(SOURCE.absolute()), "JAX_PLATFORMS": "cpu"}
            subprocess.run(command, check=True, capture_output=True, timeout=SECONDS, env=environment)
        except subprocess.TimeoutExpired:
            return f"not done in {SECONDS} s", 0.0
        except subprocess.CalledProcessError as error:
            return (error.stderr.decode().strip().splitlines() or ["failed"])[-1], 0.0
        seconds = time.perf_counter() - begin
        return pl.read_csv(folder / "synthetic.csv", infer_schema_length=None), seconds
