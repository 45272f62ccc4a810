"""What needs no statistics: a check returns what it found wrong, and nothing on sound code."""

from __future__ import annotations

import contextlib
import os
import shlex
import tempfile
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

import numpy as np

import covey.engine.fit.spectrum
import covey.engine.fit.targets
import covey.engine.models.bits
import covey.engine.models.tables.discretize
import covey.engine.models.tables.method
from audits.filters import filter_kept
from audits.gates import fit_bits, fit_categories, paper_gate
from audits.instruments import spy_on_noise
from covey.engine.bodies import Ball, Cube
from covey.engine.budget import make_budget
from covey.engine.codes.domain import Domain
from covey.engine.entropy import Streams
from covey.engine.units.local import ArrayRows
from covey.errors import InternalError
from covey.paper.covering import LatticeCovering
from covey.paper.private import paper_parameters, private_centres
from covey.paper.records import boolean_records, real_records
from covey.synthesizers import PrivateSynthesizer
from covey.tables.codec import Codec
from covey.tables.schema import Field, Schema


@dataclass(frozen=True)
class Check:
    """A promise that is kept or broken, without chance. `run(seed)` tells what is broken."""

    name: str
    promise: str
    run: Callable[[int], Iterable[str]]


# Runs of every measurement, each on two neighbouring tables with the same randomness.


def neighbours(n, p, seed):
    """Random bits, and the same with the last record turned over."""
    X = np.random.default_rng(seed).integers(0, 2, (n, p), dtype=np.uint8)
    Y = X.copy()
    Y[-1] = 1 - Y[-1]
    return X, Y


def measured_runs(seed):
    """(name, one, other, run, how many measurements do not depend on earlier ones)."""

    def paper(body, make, **options):
        def run(X, streams):
            par = paper_parameters(len(X), body, Fraction(2), **options)
            return private_centres(make(X), body, par, paper_gate(par, streams))

        return run

    def bits(epsilon, delta):
        return lambda X, s: fit_bits(ArrayRows(X), make_budget(epsilon, delta), s)

    def categories(sizes, delta):
        domain = Domain(sizes, (False,) * len(sizes))
        budget = make_budget(1000, delta)  # with less, tables of three rows would have no pairs
        return lambda X, s: fit_categories(ArrayRows(X), domain, budget, s)

    ball = Ball(2)
    on_ball = np.array([[1.0, 0.0], [0.3, 0.3]]), np.array([[1.0, 0.0], [0.0, -1.0]])
    codes = np.array([[0, 0], [1, 1], [1, 2]]), np.array([[0, 0], [1, 1], [2, 3]])
    two = np.array([[0, 0], [1, 1]]), np.array([[0, 0], [1, 0]])
    real, boolean = (lambda X: real_records(X, ball)), boolean_records
    yield "paper, ball", *on_ball, paper(ball, real, t=2, alpha=0.9, b=1.0, shares=(0, 0.5, 0.5)), 2
    yield "paper, bits", *neighbours(9, 4, seed), paper(Cube(4), boolean, t=0), 2
    yield "regain, means", *neighbours(3, 5, seed), bits(1, 0), 2
    yield "regain, matrix", *neighbours(200, 2, seed), bits(1, 0), 2
    yield "regain, parities", *neighbours(20, 4, seed), bits(1, 0.04), 4
    yield "regain, ball", *neighbours(60, 21, seed), bits(1, 0.01), 1
    yield "regain, categories", *codes, categories((3, 4), 0), 2
    yield "regain, two by two", *two, categories((2, 2), 0), 2
    yield "regain, categories (ε, δ)", *codes, categories((3, 4), 0.05), 2


def support(seed):
    """Noise is an integer, and so is what it meets; both have one shape, and the noise is the same for neighbours."""
    found = []
    for name, one, other, run, free in measured_runs(seed):
        seen = []
        for X in (one, other):
            with spy_on_noise() as met, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run(X, Streams.from_seed(seed))
            seen.append(met)
            for k, (statistic, noise, released) in enumerate(met):
                kinds = {array.dtype.kind for array in (statistic, noise, released)}
                if kinds != {"i"}:
                    found.append(f"{name}: measurement {k} is not made of integers")
        for k, ((_, a, _), (_, b, _)) in enumerate(zip(*(met[:free] for met in seen), strict=True)):
            if a.shape != b.shape or not np.array_equal(a, b):
                found.append(f"{name}: the noise of measurement {k} depends on the records")
    return found


# Randomness.


def fresh(seed):
    """Nothing repeats from run to run unless a seed was declared, and protection comes from the cryptographic generator."""
    found = []
    keys = {Streams.from_system().key for _ in range(8)}
    if len(keys) < 8 or len({len(key) for key in keys} | {32}) > 1:
        found.append("two runs have one key")
    if len({key_of_a_child() for _ in range(2)}) < 2:
        found.append("two processes that were forked from one have one key")
    X = neighbours(5, 64, seed)[0]  # noisy means are clipped to 0 or 1: a few columns could agree by chance
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for options in ({}, {"delta": 0.05}, {"method": "paper"}):
            synth = PrivateSynthesizer(1.0, **options)
            with spy_on_noise() as met:
                points = [synth.fit(X).centres.points.copy() for _ in range(2)]
            if np.array_equal(*points):
                found.append(f"{options}: two fits of one table agree to the last bit")
            drawn = [noise.tobytes() for _, noise, _ in met if noise.size >= 8]
            if len(set(drawn)) < len(drawn):
                found.append(f"{options}: noise was used twice")
            # The paper's single centre of noise is a corner of the cube: all of its samples are alike.
            if "method" not in options and np.array_equal(synth.sample(40), synth.sample(40)):
                found.append(f"{options}: two samples agree")
    if type(Streams.from_system().noise("x").bit_generator).__name__ != "ChaCha":
        found.append("noise does not come from ChaCha20")
    return found


def key_of_a_child():
    """The first key of a process that is forked from this one, as servers and pools of workers fork them."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # of threads that a fork leaves behind: the child needs none
        child = os.fork()
    if not child:
        os.write(writing, Streams.from_system().key)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read()


POSTPROCESSING = (
    (covey.engine.models.bits, ("denoise", "fit_factors", "shrunken_means", "score_plan")),
    (covey.engine.fit.targets, ("fit_centres",)),
    (covey.engine.models.tables.discretize, ("denoise_histogram", "category_bins")),
    (covey.engine.models.tables.method, ("fit_category_centres", "unmerge")),
    (covey.engine.fit.spectrum.Denoisers, ("combined",)),
)


def streams_apart(seed):
    """Post-processing draws from streams of its own: none repeats a noise stream, and no noise stream moves meanwhile."""
    found, noisy, public = [], [], []
    make_noise, make_public = Streams.noise, Streams.postprocessing

    def recording(make, made):
        def method(self, purpose):
            generator = make(self, purpose)
            made.append(generator)
            return generator

        return method

    def positions():
        return [repr(generator.bit_generator.state) for generator in noisy]

    def watched(name, function):
        def call(*arguments, **options):
            before = positions()
            result = function(*arguments, **options)
            if positions()[: len(before)] != before:
                found.append(f"{name} draws from a noise stream")
            return result

        return call

    runs = [run for run in measured_runs(seed) if run[0] in ("regain, parities", "regain, categories (ε, δ)")]
    with contextlib.ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stack.enter_context(patch.object(Streams, "noise", recording(make_noise, noisy)))
        stack.enter_context(patch.object(Streams, "postprocessing", recording(make_public, public)))
        for module, names in POSTPROCESSING:
            for name in names:
                stack.enter_context(patch.object(module, name, watched(name, getattr(module, name))))
        for name, one, _, run, _ in runs:
            noisy.clear(), public.clear()
            run(one, Streams.from_seed(seed))
            purposes = ("moments", "matrix", "certificate", "projection", "weights", "points")
            secret = {_start(make_noise(Streams.from_seed(seed), purpose)) for purpose in purposes}
            if secret & {
                _start(make_public(Streams.from_seed(seed), purpose)) for purpose in ("fit", "rows", "bootstrap")
            }:
                found.append(f"{name}: a post-processing stream repeats a noise stream")
            if any(type(generator.bit_generator).__name__ == "ChaCha" for generator in public):
                found.append(f"{name}: post-processing was given a noise stream")
        for delta in (0.0, 0.04):
            synth = PrivateSynthesizer(1.0, delta, seed=seed, composition="gaussian").fit(neighbours(20, 4, seed)[0])
            noisy.clear()
            synth.sample(30)
            if noisy:
                found.append(f"δ = {delta}: rows are drawn from a noise stream")
    return found


def _start(generator):
    return tuple(generator.integers(0, 1 << 62, 4).tolist())


# The ledger.

TABLE = "age,ward\n" + "\n".join(f"{20 + 3 * i},{'AB'[i % 2]}" for i in range(20)) + "\n"
SCHEMA = Schema(
    (
        Field("age", "integer", minimum=0, maximum=99, bins=4),
        Field("ward", "string", enum=("A", "B"), other="other"),
        Field("dose", "number", minimum=0.0, maximum=10.0, bins=5),
        Field("seen", "date", minimum="2020-01-01", maximum="2021-12-31", bins=4),
        Field("flag", "boolean"),
    )
)


def charge_first(seed):
    """When the first noise is drawn, and when anything is written, the charge is on the disk."""
    from click.testing import CliRunner

    from covey.desk.cli import main
    from covey.ledger import Ledger
    from covey.release import bundle

    found, spent = [], []
    make_noise, write = Streams.noise, bundle._fill
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger.sqlite"

        def look(then):
            def call(*arguments, **options):
                spent.append(Ledger(ledger).datasets()[0].spent.epsilon)
                return then(*arguments, **options)

            return call

        try:
            os.chdir(folder)
            Path("table.csv").write_text(TABLE)
            Schema(SCHEMA.fields[:2]).save(Path("schema.json"))
            invoke = CliRunner().invoke
            invoke(main, ["ledger", "open", "people", "--budget", "2", "--ledger", str(ledger)], catch_exceptions=False)
            line = shlex.split("release table.csv --schema schema.json --epsilon 1 --dataset people --out out")
            with patch.object(Streams, "noise", look(make_noise)), patch.object(bundle, "_fill", look(write)):
                result = invoke(main, [*line, "--ledger", str(ledger)])
            if result.exit_code:
                found.append(f"the release failed: {result.output}")
        finally:
            os.chdir(before)
    if not spent or any(amount != 1 for amount in spent):
        found.append("noise was drawn, or a bundle written, before the ledger was charged")
    return found


# Record by record.

PLAIN = {
    "age": ["30", "71", "55", "99"],
    "ward": ["A", "B", "A", "B"],
    "dose": ["0.5", "2.5", "7.5", "9"],
    "seen": ["2020-05-01", "2021-05-01", "2020-02-29", "2021-12-31"],
    "flag": ["true", "false", "yes", "0"],
}
ODD = {
    "missing": ["NaN", "", "", "", ""],
    "out of range": ["1e9", "A", "-1e300", "1066-10-14", "1"],
    "below": ["-5", "B", "0", "2019-12-31", "false"],
    "unknown": ["thirty", "Z", "1,5", "yesterday", "maybe"],
    "infinite": ["inf", "A", "-inf", "2020-01-01", "true"],
}


def odd_tables():
    """The plain table, and its neighbours with a strange last record."""
    for name, cells in ODD.items():
        yield name, {column: [*values[:-1], cell] for (column, values), cell in zip(PLAIN.items(), cells, strict=True)}


def encoded_alone(seed):
    """A strange record changes its own codes alone: no other record's, nor the number of records."""
    codec = Codec(SCHEMA)

    def encode(table):
        return codec.encode(table)[0]

    plain = encode(PLAIN)
    found = []
    for name, table in odd_tables():
        codes = encode(table)
        if codes.shape != plain.shape:
            found.append(f"{name}: the number of records changed")
        elif not np.array_equal(codes[:-1], plain[:-1]):
            found.append(f"{name}: a record changed the codes of another")
    return found


def cells_alone(seed):
    """The cell of a record depends on the record alone: ties, other records and the shape of the batch change nothing."""
    body, found = Ball(2), []
    generator = np.random.default_rng(seed)
    X = np.vstack([generator.uniform(-0.7, 0.7, (20, 2)), [[0.25, 0.0], [0.25, 0.25], [-0.25, 0.25], [0.0, 0.0]]])
    par = paper_parameters(len(X), body, Fraction(2), t=2, alpha=np.sqrt(0.5), b=1.0, shares=(0, 0.5, 0.5))
    assert LatticeCovering(par.t, par.alpha).step == 0.5  # so that quarters are ties
    assign = LatticeCovering.assign

    def cells(X, entries=1 << 23):
        seen = []

        def watching(self, x):
            labels = assign(self, x)
            seen.append(labels)
            return labels

        with (
            patch.object(LatticeCovering, "assign", watching),
            patch.multiple("covey.engine.units.local", BATCH_ENTRIES=entries, LEAST_BATCH_ROWS=1),
        ):
            private_centres(real_records(X, body), body, par, paper_gate(par, Streams.from_seed(seed)))
        return np.concatenate(seen)

    plain = cells(X)
    for entries in (2, 14):
        if not np.array_equal(cells(X, entries), plain):
            found.append("the shape of the batch moves a record")
    for corner in ([0.9, 0.1], [0.5, 0.5], [-0.5, 0.0]):
        Y = X.copy()
        Y[-1] = corner
        if not np.array_equal(cells(Y)[:-1], plain[:-1]):
            found.append("a record moves another to a different cell")
    return found


def public_face(seed):
    """Number of records, of released rows, charges, words and columns are the same for neighbours, however strange."""
    faces = {}
    for name, table in [("plain", PLAIN), *odd_tables()]:
        for delta in (0.0, 0.1):
            synth = PrivateSynthesizer(1.0, delta, schema=SCHEMA, seed=seed, composition="gaussian")
            with warnings.catch_warnings(record=True) as advice:
                warnings.simplefilter("always")
                synth.fit(synth.prepare(table))
                release = synth.release(synth.n)
            rows = [{column: len(values) for column, values in part.items()} for part in release.parts]
            degrees = sorted(synth.certificate.bound)
            words = sorted({str(w.message) for w in advice})
            face = repr((synth.n, rows, release.privacy, degrees, synth.centres.points.shape[1], words))
            faces.setdefault(delta, {}).setdefault(face, []).append(name)
    return [
        f"δ = {delta}: what is public differs for {list(seen.values())[1:]}"
        for delta, seen in faces.items()
        if len(seen) > 1
    ]


def kernels(seed):
    """Fits of every kind pass the look at the code of their kernels and of what is mapped."""
    found = []
    for name, one, _, run, _ in measured_runs(seed):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run(one, Streams.from_seed(seed))
        except InternalError as error:
            found.append(f"{name}: {error}")
    return found


def checks():
    """All checks."""
    return [
        Check("support", "integers meet integers, on one support for neighbours", support),
        Check("fresh", "no two runs share randomness", fresh),
        Check("streams", "post-processing never touches a noise stream", streams_apart),
        Check("charge first", "the ledger is charged before noise is drawn", charge_first),
        Check("filter", "no adaptive choice of charges passes the ledger's cap", filter_kept),
        Check("encoded alone", "a record is encoded by itself", encoded_alone),
        Check("cells alone", "a record finds its cell by itself", cells_alone),
        Check("public face", "what is public is the same for neighbours", public_face),
        Check("kernels", "what is done to exact values can keep and tell nothing", kernels),
    ]
