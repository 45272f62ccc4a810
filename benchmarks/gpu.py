"""Post-processing of a wide table on the processor and on a graphics card, side by side: a Markdown table for docs/scale.md.

    python benchmarks/gpu.py [--device cuda] [--columns 2000 5000 10000]

No table of records is involved: a device only ever sees noisy moments, so noisy moments of a known population are made up
here. Needs numpy, scipy and torch alone: `covey` may lie beside this file without being installed, and where
array-api-compat is missing, the copy inside scipy serves. A whole release needs randomgen and threadpoolctl as well.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import platform
import sys
import time
from pathlib import Path

import numpy as np
from scipy.special import expit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from covey.engine.arrays import hollow
from covey.engine.codes.counts import Coding
from covey.engine.fit.devices import PROCESSOR, find_device
from covey.engine.fit.factors import denoise
from covey.engine.fit.targets import NoisyMoments, fit_centres
from covey.engine.fit.wide import BASIS, SWEEPS, LowRankPairs, leading_eigenvectors

CENTRES, FACTORS, STEPS = 200, 12, 150


def borrow_array_api_compat():
    """Use scipy's own copy of array-api-compat where the package is not installed."""
    if importlib.util.find_spec("array_api_compat") is not None:
        return
    for place in ("scipy._lib.array_api_compat", "scipy._external.array_api_compat"):
        try:
            sys.modules["array_api_compat"] = importlib.import_module(place)
            sys.modules["array_api_compat.torch"] = importlib.import_module(place + ".torch")
        except ImportError:
            continue
        print("array-api-compat is not installed: using the copy inside scipy", file=sys.stderr)
        return


def population(p, sd, seed=0):
    """Noisy moments of a logistic factor population, and its exact pairs."""
    g = np.random.default_rng(seed)
    y = expit(g.normal(-1.5, 1, p) + g.standard_normal((1000, 5)) @ g.normal(0, 1, (5, p))).astype(np.float32)
    u = y - np.float32(0.5)
    exact = u.T @ u / len(u)
    noise = g.standard_normal((p, p), dtype=np.float32) * np.float32(sd)
    noise = np.triu(noise, 1)
    noise += noise.T.copy()
    pair = exact + noise
    np.fill_diagonal(pair, 0)
    mean = u.mean(axis=0, dtype=np.float64)
    mean_sd = sd / np.sqrt(0.22 * p / 4)
    return NoisyMoments(Coding.half(p), mean + g.normal(0, mean_sd, p), mean_sd, pair, sd), exact


def run(device, noisy, exact):
    """Seconds of the eigenvectors, the denoising and the centres; and the error of the centres' pairs."""
    p = len(noisy.mean)
    public = np.random.default_rng(1)
    start = public.standard_normal((p, BASIS))
    begin = time.perf_counter()
    values, _ = leading_eigenvectors(
        device.xp, device.put(noisy.pair), device.put(noisy.mean**2), device.put(start), SWEEPS
    )
    device.get(values)
    eigen = time.perf_counter()
    fit = denoise(LowRankPairs.of(noisy, device, public), CENTRES, FACTORS, lambda t: None)
    denoised = time.perf_counter()
    y = fit_centres(device, [fit.fine], fit.factors.logits, STEPS)
    done = time.perf_counter()
    u = (y - 0.5).astype(np.float32)
    gap = hollow(u.T @ u / len(u) - exact)
    return eigen - begin, denoised - eigen, done - denoised, float(np.sqrt((gap**2).mean()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--columns", type=int, nargs="+", default=[2000, 5000, 10_000])
    parser.add_argument("--noise", type=float, default=0.02)
    given = parser.parse_args()
    if importlib.util.find_spec("randomgen") is None:
        print("randomgen is not installed: a release would not run here; post-processing does", file=sys.stderr)
    borrow_array_api_compat()
    card = find_device(given.device)
    name = given.device
    if importlib.util.find_spec("torch") is not None:
        torch = importlib.import_module("torch")
        if torch.cuda.is_available() and "cuda" in given.device:
            name = f"{torch.cuda.get_device_name(0)} (torch {torch.__version__})"
    run(card, *population(1200, given.noise))  # the first products on a card load its libraries
    print(
        f"processor: {platform.processor() or platform.machine()}; device: {name}; {CENTRES} centres, {STEPS} steps\n"
    )
    print("| columns | step | processor, s | device, s | ratio |")
    print("|---|---|---|---|---|")
    for p in given.columns:
        noisy, exact = population(p, given.noise)
        here, there = run(PROCESSOR, noisy, exact), run(card, noisy, exact)
        for label, a, b in zip(("eigenvectors", "denoising", "centres"), here, there, strict=False):
            print(f"| {p:,} | {label} | {a:.2f} | {b:.2f} | {a / b:.1f} |")
        a, b = sum(here[1:3]), sum(there[1:3])
        print(f"| {p:,} | **whole fit** | {a:.2f} | {b:.2f} | {a / b:.1f} |")
        print(f"| {p:,} | error of a pair | {here[3]:.5f} | {there[3]:.5f} | {here[3] / there[3]:.3f} |", flush=True)


if __name__ == "__main__":
    main()
