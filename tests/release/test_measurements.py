"""Measurements beside a release: what the gate gave back, written and read again, and nothing else."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest

import covey
from audits.gates import asked
from covey.engine.codes.counts import moments
from covey.engine.entropy import Streams
from covey.engine.gate import Exact, Gate
from covey.engine.measurement import Measurements
from covey.engine.models.bits import measure_matrix, measure_parities
from covey.engine.models.tables.measure_tables import measure_one_way
from covey.engine.models.tables.table_counts import TableCounts
from covey.engine.units.local import ArrayRows
from covey.errors import InputError
from covey.release import bundle as module
from covey.release.model import read_arrays, read_measurements, write_measurements
from covey.release.verify import verify_bundle
from covey.tables.schema import Field, Schema

pytestmark = [pytest.mark.usefixtures("few_steps"), pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")]


def bits(n=3000, p=6, density=0.3, seed=0):
    generator = np.random.default_rng(seed)
    return (generator.random((n, p)) < density * (0.5 + generator.random((n, 1)))).astype(np.uint8)


def fitted(X, *budget, **options):
    return covey.PrivateSynthesizer(*budget, seed=3, **options).fit(X).measurements


NUMBERS = Schema((Field("x", "integer", 0, 10**6), Field("y", "string", enum=("a", "b")), Field("z", "number", 0, 9)))

GROUPED = Field("z", "string", enum=("a1", "a2", "b1"), other="b2", levels=1)
TWICE = Schema((NUMBERS["x"], NUMBERS["y"], GROUPED), important=(("x", "y"),))


def numbers(n=2000):
    generator = np.random.default_rng(0)
    x = np.where(generator.random(n) < 0.3, 0, generator.integers(0, 5000, n))
    return {"x": x, "y": ["a", "b"] * (n // 2), "z": np.round(x / 1000, 1)}


PLANS = {
    "means": lambda: fitted(bits(12, 5), 0.2),
    "matrix": lambda: fitted(bits(), 1.0),
    "parities": lambda: fitted(bits(), 1.0, 1e-6),
    "ball": lambda: fitted(bits(3000, 24, 0.5), 1.0, 1e-6),
    "cut": lambda: fitted(bits(3000, 24, 0.05), 1.0, 1e-6),
    "limits": lambda: fitted(bits(3000, 24, 0.2), 1.0, 1e-6, at_most=[(list(range(20)), 3)]),
    "categories": lambda: fitted(codes(), 1.0, domain=(3, 7, 2), ordinal=(1,)),
    "categories, delta": lambda: fitted(codes(), 1.0, 1e-6, domain=(3, 7, 2), ordinal=(1,)),
    "numbers": lambda: fitted(numbers(), 1.0, schema=NUMBERS),
    "twice": lambda: fitted(numbers(), 1.0, 1e-6, schema=TWICE),
    "numbers, delta": lambda: fitted(numbers(), 1.0, 1e-6, schema=NUMBERS),
}


def codes(n=3000, seed=1):
    generator = np.random.default_rng(seed)
    return np.stack([generator.integers(0, c, n) for c in (3, 7, 2)], axis=1)


@pytest.mark.parametrize("plan", PLANS)
def test_what_was_measured_is_written_and_read_again(plan, tmp_path):
    kept = PLANS[plan]()
    ones = [m.query for m in kept.found if m.query.degree == 1 and m.query.of == "row"]
    alone = {a: f for query in ones for a, f in query.factors.items()}
    sizes = [int(alone[a].edges[-1]) for a in range(len(alone))]
    write_measurements(kept, [f"c{j}" for j in range(len(sizes))], tmp_path)
    again = read_measurements(tmp_path, sizes)
    assert again.n == kept.n
    for one, other in zip(kept.found, again.found, strict=True):
        assert list(one.query.sets) == list(other.query.sets)
        for name in ("view", "of", "cut", "total"):
            assert getattr(one.query, name) == getattr(other.query, name)
        assert (one.law, one.per, one.purpose) == (other.law, other.per, other.purpose)
        upper = [np.triu(m.values) if m.values.ndim == 2 else m.values for m in (one, other)]
        assert np.array_equal(*upper)
        assert np.array_equal(one.sd, other.sd)
        for a, factor in one.query.factors.items():
            for name in ("edges", "bins", "law"):
                assert np.array_equal(getattr(factor, name), getattr(other.query.factors[a], name))
    assert any(m.query.cut for m in kept.found) == (plan == "cut")
    with pytest.raises(InputError, match=r"measurements\.(npz|json)"):
        read_measurements(tmp_path, [sizes[0] + 1, *sizes[1:]])
    with pytest.raises(InputError, match="another number of columns"):
        read_measurements(tmp_path, [*sizes, *sizes])


def test_the_noise_is_as_large_as_it_says():
    """Means and pairs of a hundred releases against the truth; a sd that is off by a fifth is found out."""
    X = bits(2000, 5)
    pairs = X.T @ X.astype(float) / len(X)
    i, j = np.triu_indices(5, 1)
    for delta in (0.0, 1e-6):
        off = []
        for seed in range(100):
            kept = covey.PrivateSynthesizer(1.0, delta, seed=seed, certificate_share=0)
            rows, method = ArrayRows(X), kept._regain(5)
            gate = Gate(kept._budget, method.shares(2000, 5, kept._budget), Streams.from_seed(seed))
            m = asked(measure_parities if delta else measure_matrix, rows, gate).dense
            c = m.coding.middle
            signs = (pairs - np.outer(c, X.mean(0)) - np.outer(X.mean(0), c) + np.outer(c, c))[i, j]
            off.append(np.concatenate([(m.mean + c - X.mean(0)) / m.mean_sd, (m.pair[i, j] - signs) / m.pair_sd]))
        found = float(np.mean(np.square(off)))
        assert 0.85 < found < 1.15
        assert not 0.85 < found * 1.2**2 < 1.15


def test_only_what_a_gate_gave_back_can_be_kept(tmp_path):
    X = bits()
    for private in (moments(X), Exact(X), X, {"means": X.mean(0)}, Measurements(len(X), (X,))):
        with pytest.raises(TypeError, match="gate gave back"):
            write_measurements(private, ["a"], tmp_path)


def test_a_bundle_whose_measurements_are_not_its_own_is_refused(folder):
    said = json.loads((folder / "measurements.json").read_text())
    for changes, words in (
        ({"n": 499}, "of 499 units, and the bundle of 1500"),
        ({"format": 3}, "update covey"),
        ({"measurements": [one | {"sd": float("nan")} for one in said["measurements"]]}, "has no size"),
    ):
        (folder / "measurements.json").write_text(json.dumps(said | changes))
        module._write_sums(folder)
        with pytest.raises(InputError, match=words):
            verify_bundle(folder)


@pytest.mark.parametrize(
    ("facts", "arrays"),
    [
        ({"sets": {"every": [10**9, 3]}}, {}),
        ({"sets": {"every": [3]}}, {}),
        ({"sets": [[0, 9]]}, {}),
        ({"sets": 3}, {}),
        ({"per": 0}, {}),
        ({"per": "many"}, {}),
        ({"sd": -1.0}, {}),
        ({"factors": 7}, {}),
        ({}, {"0 bins": -1}),
        ({}, {"0 bins": 0.5}),
        ({}, {"0 edges": 0}),
        ({}, {"0 values": np.zeros(5)}),
        ({}, {"0 cells": np.zeros(3, dtype=int)}),
    ],
)
def test_files_that_no_covey_wrote_are_refused_in_words(facts, arrays, tmp_path):
    kept = fitted(codes(), 1.0, domain=(3, 7, 2), ordinal=(1,))
    write_measurements(kept, ["a", "b", "c"], tmp_path)
    said = json.loads((tmp_path / "measurements.json").read_text())
    said["measurements"][0] |= facts
    (tmp_path / "measurements.json").write_text(json.dumps(said))
    with np.load(tmp_path / "measurements.npz") as file:
        held = dict(file)
    changed = {k: v if isinstance(v, np.ndarray) else np.full(len(held[k]), v) for k, v in arrays.items()}
    np.savez(tmp_path / "measurements.npz", **held | changed)
    with pytest.raises(InputError, match="do not fit together"):
        read_measurements(tmp_path, [3, 7, 2])
    for text in ("[]", "{}", "3", "null"):
        (tmp_path / "measurements.json").write_text(text)
        with pytest.raises(InputError, match="update covey"):
            read_measurements(tmp_path, [3, 7, 2])


def test_the_histograms_kept_are_those_that_were_measured():
    """The counts of a fit are the gate's, number for number."""
    synth = covey.PrivateSynthesizer(1.0, domain=(3, 7, 2), ordinal=(1,), seed=3)
    rows, method = ArrayRows(codes()), synth._regain()
    gate = Gate(synth._budget, method.shares(rows.n, rows.p, synth._budget), Streams.from_seed(3).child("call 1"))

    def measured(setting):
        counts = TableCounts(setting, synth.domain).one_way_counts
        return measure_one_way(counts, method.plan, setting)

    found = asked(measured, rows, gate).histograms
    kept = fitted(codes(), 1.0, domain=(3, 7, 2), ordinal=(1,)).found[0]
    assert all(np.array_equal(m.values, kept.counts((a,))) for a, m in enumerate(found))


def test_ranges_of_a_number_are_as_far_from_the_truth_as_they_say():
    """Counts of the ranges that trees end with, against the records; a sd that is off by a fifth is found out."""
    table, off = numbers(), []
    for seed in range(15):
        synth = covey.PrivateSynthesizer(1.0, 1e-6, schema=NUMBERS, seed=seed, certificate_share=0)
        kept = synth.fit(table).measurements
        own, edges = kept.found[0], kept.found[0].query.factors[0].edges
        assert edges[0] == 0
        true = np.histogram(table["x"] + 1, edges)[0]
        off.append((own.table((0,)) - true / kept.n) / own.sds((0,)))
    found = float(np.mean(np.square(np.concatenate(off))))
    assert 0.85 < found < 1.15
    assert not 0.85 < found * 1.2**2 < 1.15


def test_arrays_that_unfold_or_are_none_are_refused(tmp_path):
    plain = {"points": np.array([0.5]), "weights": np.array([1])}
    odd = {"bomb": np.zeros(60_000_000), "nan": np.array([0.5, np.nan]), "objects": np.array([print], dtype=object)}
    for name, points in odd.items():
        np.savez_compressed(tmp_path / f"{name}.npz", points=points)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(tmp_path / "header.npz", "w") as packed:
        packed.writestr("points.npy", header.getvalue())
    (tmp_path / "pickle.npz").write_bytes(pickle.dumps([1]))
    (tmp_path / "empty.npz").write_bytes(b"")
    assert (tmp_path / "bomb.npz").stat().st_size < 10**6
    said = dict.fromkeys(("objects", "header", "pickle", "empty"), "no plain arrays")
    said |= {"bomb": "unfolds to 480000", "nan": "not finite"}
    for name, words in said.items():
        with pytest.raises(InputError, match=words):
            read_arrays(tmp_path / f"{name}.npz")
    np.savez_compressed(tmp_path / "whole.npz", **plain)
    assert set(read_arrays(tmp_path / "whole.npz")) == set(plain)
