"""Planted faults: each breaks the shipped code in one way, and names the case or check that must raise the alarm."""

from __future__ import annotations

import secrets
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from itertools import count

import numpy as np

import audits.gates
import audits.mechanisms
import covey.engine.gate
import covey.engine.models.bits
import covey.engine.models.laws
import covey.engine.models.tables.method
import covey.engine.noise.directions
import covey.engine.noise.integers
import covey.engine.noise.sensitivity
import covey.paper.private
import covey.synthesizers.private
from audits import neighbours
from audits.filters import filter_faults
from audits.leaks import leaks
from audits.planting import Fault, replaced, told
from audits.trees import tree_faults
from covey.engine.entropy import Streams
from covey.engine.noise.matrix import MatrixNoise
from covey.engine.points import WeightedPoints
from covey.ledger import Ledger
from covey.paper.covering import LatticeCovering
from covey.paper.private import PaperParameters
from covey.synthesizers import PrivateSynthesizer
from covey.tables.codec import Codec, Grid


def noise_halved():
    def half(real):
        return lambda scale, size, generator: real(Fraction(scale) / 2, size, generator)

    return replaced((covey.engine.noise.integers, "discrete_laplace", half))


def norm_taken_for_its_double():
    """K-norm noise for a row that moves a table by ½: its ℓ1 norm taken for the norm."""
    return replaced(
        (
            covey.engine.gate,
            "knorm_noise",
            lambda real: lambda sizes, s, g, loose: real(sizes, Fraction(s) / 2, g, loose),
        )
    )


def variance_halved():
    return replaced(
        (
            covey.engine.noise.integers,
            "rounded_gaussian",
            lambda real: lambda v, size, g: real(Fraction(v) / 2, size, g),
        )
    )


def projection_doubled():
    return replaced(
        (PaperParameters, "projection_cost", lambda real: property(lambda self: Fraction(real.fget(self), 2)))
    )


def fixed_seed():
    return replaced((Streams, "from_system", lambda real: classmethod(lambda cls: cls(bytes(32), seeded=False))))


def key_once_per_process():
    """The operating system is asked once, and further keys follow from that: those of forked processes agree."""
    once, turn = secrets.token_bytes(32), count()

    def derived(cls):
        return cls(sha256(once + next(turn).to_bytes(8, "big")).digest(), seeded=False)

    return replaced((Streams, "from_system", lambda real: classmethod(derived)))


def begun_again(purpose):
    """Every round of a purpose begins its stream of noise anew."""

    def anew(real):
        return lambda self, name: self._streams.noise(name) if name == purpose else real(self, name)

    return replaced((covey.engine.gate.Gate, "_generator", anew))


def begun_for_each_measurement():
    """Every measurement begins the stream of its purpose anew."""
    return replaced(
        (
            covey.engine.gate.Gate,
            "_noise",
            lambda real: lambda self, purpose: covey.engine.noise.integers.CoveyNoise(self._streams.noise(purpose)),
        )
    )


def empty_cells_skipped():
    def skipping(real):
        return lambda F, s, gate: np.where(F._sealed.sizes > 0, real(F, s, gate), 0)

    return replaced((covey.paper.private, "noisy_sizes", skipping))


def envelope_inverted():
    def upside_down(real):
        def log_acceptance(self, y):
            q, b = len(self.gaps), self.b
            u = (y * y) @ self.gaps
            return -u - q / 2 * np.log1p(2 * u / b)

        return log_acceptance

    return replaced((covey.engine.noise.directions.Envelope, "log_acceptance", upside_down))


def size_leaked():
    """The release has as many rows as the table has complete records."""
    seen = {}

    def complete(real):
        def encode_part(self, table, coding="bins"):
            codes, log = real(self, table, coding)
            last = np.array(self.domain_sizes) - 1
            seen["complete"] = int((codes < last).all(axis=1).sum()) or 1
            return codes, log

        return encode_part

    return replaced(
        (Codec, "encode_part", complete),
        (PrivateSynthesizer, "n", lambda real: property(lambda self: seen["complete"])),
    )


def noise_by_count():
    """Cells get noise in proportion to their true count, "since large cells can bear it"."""

    def relative(real):
        def noisy_sizes(F, s, gate):
            sizes = F._sealed.sizes
            noise = real(F, s, gate) - sizes
            return covey.engine.gate.add_noise(sizes, noise * (1 + sizes))

        return noisy_sizes

    return replaced((covey.paper.private, "noisy_sizes", relative))


def tie_by_data():
    """Records half-way between two cells go to the side where most records of the batch are."""

    def leaning(real):
        def assign(self, x):
            side = 1e-12 * np.sign(x.sum(axis=0))
            return real(self, x + side)

        return assign

    return replaced((LatticeCovering, "assign", leaning))


def rows_dropped():
    def dropping(real):
        def encode_part(self, table, coding="bins"):
            codes, log = real(self, table, coding)
            last = np.array(self.domain_sizes) - 1
            return codes[(codes < last).any(axis=1)], log

        return encode_part

    return replaced((Codec, "encode_part", dropping))


def bounds_from_data():
    def stretched(real):
        def read(self, series, log):
            cells = real(self, series, log)
            there = cells > -(2**40)
            low, high = cells[there].min(initial=0), cells[there].max(initial=1)
            width = max(1, self.axis.high - self.axis.low)
            cells[there] = self.axis.low + (cells[there] - low) * width // max(1, high - low)
            return np.minimum(cells, self.axis.high)

        return read

    return replaced((Grid, "read", stretched))


def rank_from_data():
    """As many centres as the table has rank."""

    def by_rank(real):
        def fit(model, rows, *rest):
            found = real(model, rows, *rest)
            k, cloud = max(1, int(np.linalg.matrix_rank(rows.records()))), found.law.cloud
            cloud = WeightedPoints(np.tile(cloud.weights / k, k), np.tile(cloud.points, (k, 1)))
            return replace(found, law=replace(found.law, cloud=cloud))

        return fit

    return replaced((audits.gates, "fit", by_rank))


def noise_not_rounded():
    def plain(real):
        return lambda self, rows, columns: real(self, rows, columns) + 0.25

    return replaced((MatrixNoise, "block", plain))


def one_degree_too_few():
    class OneFewer:
        """χ with one degree of freedom where two are asked for: the absolute value of a normal number."""

        def __init__(self, degrees, generator):
            self.value = np.abs(generator.standard_normal(len(degrees)))

    return replaced((audits.mechanisms, "Chi", lambda real: OneFewer))


def noise_simulated_from_its_own_stream():
    return replaced((Streams, "postprocessing", lambda real: lambda self, purpose: self.noise("moments")))


def charged_late():
    """The charge waits until the bundle is written."""
    waiting = {}

    def later(real):
        def charge(self, *arguments):
            waiting["call"] = lambda: real(self, *arguments)

        return charge

    def then(real):
        return lambda self, receipt, digest: real(self, waiting["call"](), digest)

    return replaced((Ledger, "charge", later), (Ledger, "mark_released", then))


def halved(sensitivity):
    """Half of how far a row moves the sizes of cells."""
    return replace(sensitivity, l1=Fraction(sensitivity.l1) / 2)


def certificate_bare():
    def bare(real):
        def release(self, exact, noise, payment, weight, block=None):
            if payment.purpose == "certificate":
                return exact._sealed
            return real(self, exact, noise, payment, weight, block)

        return release

    return replaced((covey.engine.gate.Gate, "_release", bare))


def kept_by_a_kernel():
    """A function that is mapped over an exact value keeps it, "to look at it later"."""
    seen = []

    def keeping(real):
        return lambda counts: seen.append(counts) or real(counts)

    return replaced((covey.engine.models.bits, "part", keeping))


def told_by_a_kernel():
    """A kernel says how many records it has seen."""

    def telling(real):
        return lambda batch: print(len(batch)) or real(batch)

    return replaced((covey.engine.models.laws, "moments", telling))


def ball_halved():
    return replaced((covey.engine.noise.sensitivity, "ball_sensitivity", lambda real: lambda R2, w: real(R2, w) / 4))


def faults():
    """All planted faults."""
    return [
        Fault("noise halved", "Laplace noise", noise_halved()),
        Fault("K-norm noise halved", "one-way tables, K-norm noise", norm_taken_for_its_double()),
        Fault("Gaussian variance halved", "Gaussian noise", variance_halved()),
        Fault("scale of PROJ doubled", "PVEC", projection_doubled()),
        Fault("Bingham envelope inverted", "PVEC, small ε", envelope_inverted()),
        Fault("one Wishart degree of freedom too few", "matrix noise, 1 × 1", one_degree_too_few()),
        Fault("empty cells skipped", "cell sizes", empty_cells_skipped()),
        Fault("noise scaled by the true count", "support", noise_by_count()),
        Fault("noise not rounded", "support", noise_not_rounded()),
        Fault("ball's sensitivity halved", "ball, Gaussian", ball_halved()),
        Fault("certificate without noise", "certificate", certificate_bare()),
        Fault("rank chosen on the data", "regain, means", rank_from_data()),
        Fault("tie broken by the data", "cells alone", tie_by_data()),
        Fault("NaN rows dropped", "encoded alone", rows_dropped()),
        Fault("bounds from the data", "encoded alone", bounds_from_data()),
        Fault("n leaked through m", "public face", size_leaked()),
        Fault("fixed seed", "fresh", fixed_seed()),
        Fault("one key for forked processes", "fresh", key_once_per_process()),
        Fault("Gumbel noise of every choice the same", "odometer: relations", begun_again("relations, choices")),
        Fault("noise of every choice the same", "odometer: numbers, triples", begun_again("choosing triples")),
        Fault("noise of every measurement the same", "odometer: numbers", begun_for_each_measurement()),
        Fault("cells of the paper with half their noise", "cell sizes", told("weights", halved)),
        Fault(
            "cells of the paper with half their noise, odometer", "odometer: paper, one-hot", told("weights", halved)
        ),
        Fault("simulated noise from the noise stream", "streams", noise_simulated_from_its_own_stream()),
        Fault("an exact value kept by what is mapped", "kernels", kept_by_a_kernel()),
        Fault("a kernel that tells", "kernels", told_by_a_kernel()),
        Fault("budget charged after release", "charge first", charged_late()),
        *filter_faults(),
        *leaks(),
        *tree_faults(),
        *neighbours.faults(),
    ]
