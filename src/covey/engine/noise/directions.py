"""The subspace that the covering lives in: PVEC and PROJ (Algorithms 2 and 3), private, and exact principal directions.

PVEC draws a unit vector with density proportional to exp(xᵀAx), exactly. This is the Bingham law. Rejection from an angular
central Gaussian envelope (Kent, Ganeiber and Mardia) gives it without any Markov chain, which matters: a chain stopped early
is not ε-differentially private. Unlike all other noise it is computed in floating point; `slack` says how far that may be from
the ideal law.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.optimize import brentq

from covey.engine.arrays import Floats

# Directions are stored on the grid 2^-16: scores of integer rows are then exact integers, so the cell of a
# record depends on that record alone and not on the shape of the batch it came in.
DIRECTION_BITS = 16


def private_directions(A: Floats, t: int, generator: np.random.Generator) -> Floats:
    """PROJ(A, t), Algorithm 3: t orthonormal columns, each drawn by PVEC in the complement of those before.

    The deflated matrix is expressed in an orthonormal basis of the complement. Sampling in all of Rᵖ with
    (I−P)A(I−P) instead would give the removed directions the weight e⁰, which is a different law.
    """
    A = np.array(A, dtype=np.float64)
    directions = np.empty((len(A), t))
    basis = np.eye(len(A))
    for i in range(t):
        x = sample_bingham(A, generator, 1)[0]
        directions[:, i] = basis @ x
        # The reflection H exchanges x and ±e₁; its other columns are an orthonormal basis of x's complement.
        h = x.copy()
        h[0] += 1.0 if x[0] >= 0 else -1.0
        h /= np.linalg.norm(h)
        basis = (basis - 2 * np.outer(basis @ h, h))[:, 1:]
        A = _reflect(A, h)[1:, 1:]
    return directions


def _reflect(A: Floats, h: Floats) -> Floats:
    """H A H for the reflection H = I − 2hhᵀ, kept exactly symmetric."""
    g = A @ h
    B = A - 2 * np.outer(h, g) - 2 * np.outer(g, h) + 4 * (h @ g) * np.outer(h, h)
    return np.asarray((B + B.T) / 2)


def principal_directions(S: Floats, t: int) -> Floats:
    """The t leading eigenvectors of S as columns (exact PCA: not private), largest eigenvalue first."""
    p = len(S)
    if t == 0:
        return np.empty((p, 0))
    vectors = scipy.linalg.eigh(S, subset_by_index=(p - t, p - 1))[1]
    return np.asarray(vectors[:, ::-1])


def quantise_directions(directions: Floats) -> Floats:
    """Directions as integers, in units of 2^-16."""
    return np.rint(np.ldexp(directions, DIRECTION_BITS))


ROUNDING = 2.0**-53  # relative error of one operation in float64
# Backward errors of LAPACK's symmetric eigensolver and of reflections, in units of size·ROUNDING·‖A‖; a test finds less than 1.
BACKWARD = 10


def sample_bingham(A: Floats, generator: np.random.Generator, size: int) -> Floats:
    """Draw `size` unit vectors with density ∝ exp(xᵀAx); A is any symmetric matrix.

    Returns an array of shape (size, q).
    """
    eigenvalues, vectors = np.linalg.eigh(np.asarray(A, dtype=np.float64))
    return np.asarray(_draw(Envelope.of(eigenvalues), generator, size) @ vectors.T)


@dataclass(frozen=True)
class Envelope:
    """The angular central Gaussian envelope of a Bingham law, in the eigenbasis of A.

    With Λ = λ_max I − A and b the root of Σ 1/(b + 2Λ_i) = 1, propose y = g/‖g‖ with g ~ N(0, Ω⁻¹),
    Ω = I + 2Λ/b, and accept with log-probability −u + (q/2)·log(1 + 2u/b) minus its maximum, u = yᵀΛy.
    """

    gaps: Floats
    b: float

    @classmethod
    def of(cls, eigenvalues: Floats) -> Envelope:
        """The envelope with the highest acceptance rate for these eigenvalues."""
        gaps = eigenvalues.max() - eigenvalues
        q = len(gaps)
        # The sum is at least 1/b·(number of zero gaps) and at most q/b, so the root lies in (0, q].
        b = brentq(lambda b: float(np.sum(1 / (b + 2 * gaps))) - 1, 0.5, q + 0.5, xtol=1e-14)
        return cls(gaps, float(b))

    def propose(self, generator: np.random.Generator, count: int) -> Floats:
        """Unit vectors from the envelope."""
        g = generator.standard_normal((count, len(self.gaps))) / np.sqrt(1 + 2 * self.gaps / self.b)
        return np.asarray(g / np.linalg.norm(g, axis=1, keepdims=True))

    def log_acceptance(self, y: Floats) -> Floats:
        """Logarithm of the acceptance probability; at most 0, attained at u = (q − b)/2."""
        q, b = len(self.gaps), self.b
        u = (y * y) @ self.gaps
        highest = -(q - b) / 2 + q / 2 * np.log(q / b)
        return np.asarray(-u + q / 2 * np.log1p(2 * u / b) - highest)


def _draw(envelope: Envelope, generator: np.random.Generator, size: int) -> Floats:
    """`size` accepted vectors, in the eigenbasis."""
    q = len(envelope.gaps)
    accepted = np.empty((size, q))
    done = proposed = 0
    while done < size:
        # About as many as are missing: the batch bounds memory, not the number of tries.
        rate = max(done / proposed, 1e-3) if proposed else 0.5
        count = int(min(max((size - done) / rate * 1.1, 16), max(16, 4_000_000 // q)))
        y = envelope.propose(generator, count)
        y = y[np.log(generator.random(count)) < envelope.log_acceptance(y)][: size - done]
        accepted[done : done + len(y)] = y
        done, proposed = done + len(y), proposed + count
    return accepted


def slack(p: int, n: int, epsilon: float, t: int) -> tuple[float, float]:
    """What floating point may add to a promise: ε at every outcome, and a probability that the released grid point differs.

    The distance of PROJ(A, t) in float64 from its ideal law, ‖A‖ ≤ nε/(t + 1) or less: to first order, from public sizes.

    Eigenvectors and deflations are exact for a matrix within E = 2·BACKWARD·p·2^-53·t·‖A‖ of A. exp(xᵀAx)/Z then moves by a
    factor of e^{2E} at most, in each of t directions and for each of two neighbouring tables. A coordinate of a direction is
    computed to BACKWARD·p·2^-53; it is rounded to multiples of 2^-16, and may fall on the other side of a border if it lies that
    close to one.
    """
    if t == 0:
        return 0.0, 0.0
    norm = n * epsilon / (t + 1)
    backward = 2 * BACKWARD * p * ROUNDING * t * norm
    return 4 * t * backward, 2 * t * p * BACKWARD * p * ROUNDING * 2.0**DIRECTION_BITS
