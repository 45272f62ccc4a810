"""Arrays in Python, without a schema: bits, codes and points of a body, either method.

What was accepted by `prepare`, or for the paper's method by the constructor, is fitted, and what is drawn keeps its domain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import covey
from covey.errors import CoveyError
from fuzz.cases import Chance

ARRAYS = ("bits", "codes", "body", "paper", "at_most", "anonymous")


def fit_arrays(seed: int) -> set[str]:
    """Fit the array of a seed; what it exercised, empty where it was refused. An AssertionError tells what is wrong."""
    chance = Chance(seed)
    generator = np.random.default_rng(seed)
    n, p = chance.choice([1, 2, 20, 60, 150]), chance.randint(1, 6)
    what = chance.choice(["bits", "codes", "body", "paper", "anonymous"])
    epsilon, delta = chance.choice([0.01, 1.0, 20.0]), chance.choice([0.0, 1e-6])
    options: dict[str, Any] = {}
    named = {f"array {what}"}
    if what == "codes":
        options["domain"] = sizes = [chance.choice([1, 2, 3, 9]) for _ in range(p)]
        options["ordinal"] = chance.some(range(p), 0)
        options |= {"triples": 2} if chance.once_in(3) else {}
        table = np.stack([generator.integers(0, size, n) for size in sizes], axis=1)
    elif what == "body" or (what == "paper" and chance.once_in(2)):
        options["body"], table = _body(chance, generator, n, p)
    else:
        table = (generator.random((n, p)) < chance.choice([0, 0.1, 0.5, 1])).astype(np.uint8)
        if what == "bits" and chance.once_in(3):
            options["at_most"] = [(list(range(p)), chance.randint(0, p))]
            named.add("array at_most")
    if what == "paper":
        options |= {"method": "paper"}
        delta = 0.0
    options["seed"] = seed
    try:
        if what == "anonymous":
            method = chance.choice(["tree", "paper", "mdav", "best"])
            synth: Any = covey.AnonymousSynthesizer(chance.choice([1, 3, 10]), method=method, seed=seed)
        else:
            synth = covey.PrivateSynthesizer(epsilon, delta, **options)
        synth.fit(table)
    except CoveyError:
        return set()
    drawn = np.asarray(synth.sample(chance.choice([1, 7, 90])))
    assert drawn.shape[1] == p, drawn.shape
    assert np.isfinite(drawn).all()
    _check(drawn, options)
    _ = repr(synth)
    return named


def _body(chance: Chance, generator: np.random.Generator, n: int, p: int) -> tuple[Any, Any]:
    bodies = covey.bodies
    kind = chance.choice(["box", "simplex", "ball", "cube"])
    points = generator.random((n, p)) * chance.choice([0.2, 1, 50])
    if kind == "box":
        low = generator.normal(size=p)
        return bodies.Box(low, low + chance.choice([0.0, 1e-3, 1.0, 1e6])), points
    if kind == "simplex":
        return bodies.Simplex(p), points / points.sum(axis=1, keepdims=True)
    return (bodies.Ball(p) if kind == "ball" else bodies.Cube(p)), points


def _check(drawn: Any, options: dict[str, Any]) -> None:
    """What is drawn keeps its domain."""
    if "domain" in options:
        assert (drawn >= 0).all()
        assert (drawn < np.array(options["domain"])).all()
    elif "body" in options:
        moved = np.abs(options["body"].project(drawn.astype(float)) - drawn).max()
        assert moved <= 1e-6 * (1 + np.abs(drawn).max()), f"{moved} outside of the body"
    else:
        assert set(np.unique(drawn)) <= {0, 1}
    for columns, most in options.get("at_most", ()):
        assert drawn[:, columns].sum(axis=1).max() <= most
