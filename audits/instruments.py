"""What audits measure with: rows without an engine's overhead, noise drawn in bulk, and a spy where noise meets data."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np

import covey.engine.gate
import covey.engine.noise.integers
from covey.engine.gate import Exact
from covey.engine.noise.matrix import simulated_matrix

POOL = 1 << 16


class StillRows:
    """A small table in memory, reduced in one step: the contract of `covey.engine.units.rows` and nothing else."""

    steps = 1

    def __init__(self, records, dtype=np.uint8):
        self.X = np.array(records, dtype=dtype)
        self.n, self.p = self.X.shape

    def reduce(self, kernel):
        return Exact(kernel(self.X))

    whole = reduce


class Pool:
    """Draws of one law, taken in bulk from the shipped sampler and handed out a few at a time."""

    def __init__(self, draw):
        self.draw, self.stock, self.at = draw, np.empty(0, dtype=np.int64), 0

    def take(self, count):
        if self.at + count > len(self.stock):
            self.stock, self.at = self.draw(max(POOL, count)), 0
        self.at += count
        return self.stock[self.at - count : self.at]


class Recorder:
    """A source of noise that writes down what is asked of it and answers with given integers, one after the other."""

    def __init__(self, answers=None):
        self.asked, self.answers = [], answers

    def _answer(self, law, parameter, size):
        total, start = int(np.prod(size)), sum(total for _, _, total in self.asked)
        self.asked.append((law, parameter, total))
        if self.answers is None:
            return np.zeros(size, dtype=np.int64)
        return self.answers[start : start + total].reshape(size)

    def laplace(self, scale, size):
        return self._answer("laplace", scale, size)

    def gaussian(self, variance, size):
        return self._answer("gaussian", variance, size)


@dataclass(frozen=True)
class Affine:
    """A measurement as a function of its noise: base + noise·slopes, with the noise that the code asked for."""

    base: np.ndarray
    sds: np.ndarray
    slopes: np.ndarray
    asked: tuple

    @classmethod
    def of(cls, measure, rows):
        """Run shipped code without noise, once with a 1 in each place of the noise, and once more to see that sums agree."""
        silent = Recorder()
        base, sds = cls._flat(measure(rows, silent))
        units = np.eye(sum(total for _, _, total in silent.asked), dtype=np.int64)
        slopes = np.array([cls._flat(measure(rows, Recorder(unit)))[0] - base for unit in units])
        answers = np.arange(len(units)) % 7 - 3
        np.testing.assert_allclose(cls._flat(measure(rows, Recorder(answers)))[0], base + answers @ slopes, atol=1e-9)
        return cls(base, sds, slopes, tuple(silent.asked))

    @staticmethod
    def _flat(parts):
        return (
            np.concatenate([np.ravel(y) for y, _ in parts]),
            np.concatenate([np.full(np.size(y), sd) for y, sd in parts]),
        )

    def sample(self, source, count):
        """Many runs at once, with noise from the shipped samplers."""
        y, start = np.tile(self.base, (count, 1)), 0
        for law, parameter, total in self.asked:
            slopes = self.slopes[start : start + total]
            if slopes.any():  # noise that leaves no trace in what is looked at need not be drawn
                y += getattr(source, law)(parameter, (count, total)) @ slopes
            start += total
        return y


@contextmanager
def pooled_geometrics():
    """The geometric variables inside `cube_noise` and `knorm_noise`, drawn in bulk by the shipped sampler."""
    draw, pools = covey.engine.noise.integers.geometric, {}

    def pooled(scale, size, generator):
        return pools.setdefault(scale, Pool(lambda count: draw(scale, count, generator))).take(size)

    with patch.object(covey.engine.noise.integers, "geometric", pooled):
        yield


class QuickMatrix:
    """Matrix noise in floating point, rounded: far quicker, of the shipped law (tests/engine/noise: test_matrix, test_signs)."""

    def __init__(self, scale, weights, generator, signs):
        w = np.array([float(weight) for weight in weights])
        drawn = simulated_matrix(float(scale), len(w), generator, signs) * (w[:, None] * w)
        self._drawn = np.rint(drawn).astype(np.int64)

    def deviation(self, rows, columns):
        return float("nan")  # nobody asks here

    def block(self, rows, columns):
        return self._drawn[rows, columns]


@contextmanager
def quick_matrix_noise():
    """A context in which gates draw matrix noise in floating point."""
    with patch.object(covey.engine.gate, "MatrixNoise", QuickMatrix):
        yield


@contextmanager
def spy_on_noise():
    """A list of (statistic, noise, released) for each time noise meets data inside this context."""
    seen = []

    def watching(real):
        def add_noise(statistic, noise):
            released = real(statistic, noise)
            seen.append((np.array(statistic), np.array(noise), np.array(released)))
            return released

        return add_noise

    with patch.object(covey.engine.gate, "add_noise", watching(covey.engine.gate.add_noise)):
        yield seen
