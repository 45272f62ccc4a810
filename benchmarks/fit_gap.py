"""Does the fit limit? Second-moment error of the centres against that of the denoised target they were fitted to.

python benchmarks/fit_gap.py
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

import covey
from covey.engine.codes.counts import moments
from covey.engine.fit.targets import DensePairs

DATA = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))


def main():
    captured = {}
    real = DensePairs.denoised

    def spy(pairs, centres):
        target, m = real(pairs, centres), centres.mean(axis=0)
        captured["pair"] = target.pair + (m[:, None] + m) / 2 - 0.25
        return target

    DensePairs.denoised = spy
    for name in ("nltcs", "msnbc", "kdd", "plants", "baudio", "bnetflix", "accidents"):
        if not (DATA / f"{name}.npz").exists():
            print(f"{name}.npz is not in {DATA}: skipped")
            continue
        X = np.load(DATA / f"{name}.npz")["x"].astype(np.uint8)
        above = np.triu_indices(X.shape[1], 1)
        true = moments(X).second_moment_matrix[above]
        for epsilon, delta in ((1.0, 0.0), (1.0, 1e-9), (10.0, 1e-9)):
            synth = covey.PrivateSynthesizer(epsilon, delta, seed=0, certificate_share=0).fit(X)
            y = synth.centres.points
            own = np.sqrt(np.mean(((y.T @ y / len(y))[above] - true) ** 2))
            target = np.sqrt(np.mean((captured["pair"][above] - true) ** 2))
            kind = f"({epsilon:g}, {delta:g})" if delta else f"pure {epsilon:g}"
            print(f"{name:10} {kind:12} target {target:.5f}  centres {own:.5f}  {100 * (own / target - 1):+5.1f}%")


if __name__ == "__main__":
    main()
