"""Seeded releases of a dozen configurations: what a change of structure must leave as it is.

`python -m tests.pins` prints an exact digest of each (the same on one machine for the same arithmetic);
`python -m tests.pins --write` renews pins.json, whose rounded numbers `test_pins` compares on any machine.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from pathlib import Path

import numpy as np

import covey
from covey.desk.demo import example_patients

PLACE = Path(__file__).with_suffix(".json")
DOMAIN = [3, 5, 12, 2, 40]


def _bits(n, p, seed=0):
    g = np.random.default_rng(seed)
    return ((g.random((n, 1)) + g.random((n, p))) > 1.2).astype(np.uint8)


def _codes(n, seed=0):
    g = np.random.default_rng(seed)
    u = g.random((n, 1))
    return np.minimum((u + 0.3 * g.random((n, len(DOMAIN)))) / 1.3 * DOMAIN, np.array(DOMAIN) - 1).astype(np.int64)


def _private(X, *arguments, **options):
    synth = covey.PrivateSynthesizer(*arguments, seed=7, **options).fit(X)
    return synth, synth.sample(200), synth.certificate


def _anonymous(X, **options):
    synth = covey.AnonymousSynthesizer(10, seed=7, **options).fit(X)
    return synth, synth.sample(200), None


def _table(delta, bins=True):
    from covey.tables.schema import Field, Schema

    schema = Schema(
        fields=(
            Field(name="age", type="integer", minimum=0, maximum=99, bins=10 if bins else None),
            Field(name="ward", type="string", enum=("A", "B", "C"), other="other"),
            Field(name="cost", type="number", minimum=0, maximum=1000, bins=20 if bins else None),
        )
    )
    g = np.random.default_rng(3)
    age = g.integers(0, 99, 1500)
    frame = {
        "age": [str(a) for a in age],
        "ward": ["ABCZ"[w] for w in g.integers(0, 4, 1500)],
        "cost": [f"{10 * a + 5:.1f}" for a in age],
    }
    synth = covey.PrivateSynthesizer(1.0, delta, schema=schema, composition="gaussian", seed=7).fit(frame)
    rows = synth.sample(200)
    return synth, np.array([[hash_word(v) for v in column] for column in rows.iter_columns()]), synth.certificate


def hash_word(word):
    """A cell as a number."""
    return int.from_bytes(hashlib.sha256(str(word).encode()).digest()[:6], "big")


CONFIGURATIONS = {
    "means": lambda: _private(_bits(50, 8), 0.1),
    "matrix, few": lambda: _private(_bits(3000, 10), 1.0),
    "matrix, scores": lambda: _private(_bits(4000, 24), 2.0),
    "parities": lambda: _private(_bits(3000, 8), 1.0, 1e-6, composition="gaussian"),
    "ball": lambda: _private(_bits(3000, 30), 1.0, 1e-6),
    "ball, persons": lambda: _private(_bits(3000, 30), 3.0, 1e-6, rows_per_person=3),
    "declared": lambda: _private(example_patients(3000)[1], 1.0, 1e-6, at_most=[(list(range(8)), 2)]),
    "categories": lambda: _private(_codes(3000), 1.0, domain=DOMAIN, ordinal=[2, 4]),
    "categories, (ε, δ)": lambda: _private(_codes(3000), 1.0, 1e-6, domain=DOMAIN, ordinal=[2, 4]),
    "schema": lambda: _table(0),
    "schema, (ε, δ)": lambda: _table(1e-6),
    "numbers": lambda: _table(0, bins=False),
    "numbers, (ε, δ)": lambda: _table(1e-6, bins=False),
    "paper": lambda: _private(_bits(3000, 5), 5.0, method="paper", t=1, alpha=0.5),
    "tree": lambda: _anonymous(_bits(1000, 12)),
    "groups of the paper": lambda: _anonymous(_bits(1000, 12), method="paper"),
    "groups, categories": lambda: _anonymous(_codes(1000), domain=DOMAIN),
}


def release(name):
    """Numbers that describe one seeded release, and the digest of all of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        synth, rows, certificate = CONFIGURATIONS[name]()
    digest = hashlib.sha256()
    digest.update(np.ascontiguousarray(synth.centres.points).tobytes())
    digest.update(np.ascontiguousarray(synth.centres.weights).tobytes())
    digest.update(np.ascontiguousarray(rows).tobytes())
    digest.update(repr(certificate).encode())
    mean = synth.centres.weights @ synth.centres.points
    return {
        "centres": len(synth.centres),
        "means": [round(float(m), 6) for m in mean[:8]],
        "certificate": None if certificate is None else round(certificate.bound[1], 6),
        "out of place": None if certificate is None else round(certificate.misplaced.bound, 6),
    }, digest.hexdigest()[:16]


def main():
    """Print digests, or renew the file."""
    found = {name: release(name) for name in CONFIGURATIONS}
    if "--write" in sys.argv:
        PLACE.write_text(
            json.dumps({name: numbers for name, (numbers, _) in found.items()}, indent=1, ensure_ascii=False)
        )
    for name, (_, digest) in found.items():
        print(digest, name)


if __name__ == "__main__":
    main()
