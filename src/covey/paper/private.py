"""The paper's two algorithms, side by side: anonymous (Algorithm 1) and private (Algorithm 4) centres.

Both end in a cloud of weighted centres; bootstrapping and randomized rounding of the cloud give rows.
Letters are the paper's. Records are rows of integers with ‖x‖ ≤ `radius` (see `methods.records`), which stands for
the paper's "redefine x_i = x_i/√p".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, reduce
from math import ceil, isqrt, log, sqrt
from operator import add, attrgetter
from typing import Any, Literal

import numpy as np

from covey.engine.arrays import Array, Floats, Integers, require_memory
from covey.engine.bodies import Body, Box, l1_radius
from covey.engine.budget import Charge, split
from covey.engine.codes.counts import Counts, integer_scores, integer_squares, joined, moments
from covey.engine.fractions import exact
from covey.engine.gate import Exact, Gate
from covey.engine.noise.directions import DIRECTION_BITS, principal_directions, quantise_directions, slack
from covey.engine.points import WeightedPoints
from covey.engine.sensitivity import Sensitivity
from covey.errors import ParameterError, whole_number
from covey.paper import blocks
from covey.paper.blocks import BlockSums
from covey.paper.covering import LatticeCovering, equipartition
from covey.paper.records import Records, require_extended

STEPS = ("projection", "weights", "points")
THIRDS = (Fraction(1, 3),) * 3  # the shares of the steps in Theorem 5.12
POSITIVE = "the share of {} must be positive: that step reads the data."


@dataclass(frozen=True)
class AnonymousCentres:
    """Output of Algorithm 1 before bootstrapping. `groups` is private and never leaves."""

    cloud: WeightedPoints
    groups: Integers
    covariance_loss: float
    t: int = 0
    alpha: float = 0.0

    @classmethod
    def of(cls, X: Array, groups: Integers, unit: float, weights: Floats | None = None) -> AnonymousCentres:
        """The means of groups of rows in steps of a unit; these may have weights that sum to 1."""
        y, loss = blocks.group_means(X, groups, weights), blocks.covariance_loss(X, groups, weights)
        return cls(WeightedPoints(y.weights, y.points * unit), groups, loss * unit**2)


def anonymous_centres(records: Records, group_size: int) -> AnonymousCentres:
    """Algorithm 1: microaggregation over an equipartition of lattice cells (Theorem 4.4)."""
    rows = records.rows
    k = rows.n // group_size
    t, alpha = anonymous_parameters(isqrt(k), rows.p)
    S = reduce(add, map(moments, rows.batches())).second / (rows.n * records.radius**2)
    P = quantise_directions(principal_directions(S, t))
    covering = LatticeCovering(t, alpha)
    F = np.concatenate([covering.assign(scores(batch, P, records.radius)) for batch in rows.batches()])
    return replace(AnonymousCentres.of(rows.records(), equipartition(F, k), records.unit), t=t, alpha=alpha)


def anonymous_parameters(k: int, p: int, t: int | None = None, alpha: float | None = None) -> tuple[int, float]:
    """(3.4): t and α for at most k cells, where none is given; one cell where the formulas give no dimension."""
    if alpha is None:
        alpha = (log(log(k)) / log(k)) ** 0.25 if k >= 3 else 1.0
    if not alpha > 0:
        raise ParameterError(f"alpha must be positive, got {alpha}.")
    if t is None:
        t = int(log(k) / log(7 / alpha)) if k >= 3 and alpha < 7 else 0
    return min(whole_number(t, "t", 0), p), float(alpha)


def private_centres(records: Records, body: Body, par: PaperParameters, gate: Gate) -> tuple[WeightedPoints, Floats]:
    """Algorithm 4 before bootstrapping: damped noisy microaggregation (Theorems 5.12 and 5.13); and its directions."""
    rows, n = records.rows, records.rows.n
    covering = LatticeCovering(par.t, par.alpha)
    P = quantise_directions(private_subspace(records, par, gate))
    F = rows.reduce(partial(cell_sums, P=P, radius=records.radius, covering=covering))
    w = noisy_sizes(F, covering.size, gate) / n
    y = noisy_damped_means(F, covering.size, par, records.radius, gate)
    cloud = WeightedPoints(blocks.project_weights(w), body.project(y * body.radius))
    return cloud, np.ldexp(P, -DIRECTION_BITS)


def private_subspace(records: Records, par: PaperParameters, gate: Gate) -> Floats:
    """PROJ on A = c·Σxxᵀ; with t = 0 there is nothing to choose, with t = p every choice is the whole space."""
    t, p = par.t, par.p
    if t in (0, p):
        return np.eye(p)[:, :t]
    A = records.rows.reduce(integer_squares).map(_scaled, records.radius)
    return gate.directions("projection", A, Sensitivity(directions=par.projection_cost), t).values


def scores(batch: Array, P: Floats, radius: float) -> Floats:
    """Px in the coordinates of the quantised directions, for rows scaled into the unit ball."""
    return np.asarray(integer_scores(batch, P) / (radius * 2.0**DIRECTION_BITS))


def cell_sums(batch: Array, P: Floats, radius: float, covering: LatticeCovering) -> BlockSums:
    """Sizes and sums of the cells of a covering."""
    return blocks.block_sums(batch, covering.assign(scores(batch, P, radius)), covering.size)


def _scaled(squares: Counts, radius: float) -> Floats:
    return np.asarray(joined(squares) / radius**2)


def _on_grid(sums: BlockSums, b: float, step: float) -> Integers:
    return np.rint(blocks.damped_means(sums, b) / step).astype(np.int64)


def noisy_sizes(F: Exact[BlockSums], s: int, gate: Gate) -> Integers:
    """|F_j| + noise on all s cells. One replaced row moves the sizes by 2 in ℓ1."""
    return gate.measure("weights", F.map(attrgetter("sizes")), s, Sensitivity(l1=2)).values


def noisy_damped_means(F: Exact[BlockSums], s: int, par: PaperParameters, radius: float, gate: Gate) -> Floats:
    """ỹ_j + r_j on all s cells, for rows in the unit ball, on a grid that is fine against the noise.

    One replaced row moves the damped means by par.means_sensitivity in ℓ1, on at most 2p entries. Rounding to
    the grid, done before the noise is added, can widen each of these moves by one grid step.
    """
    p = par.p
    epsilon = gate.allowance("points").per_row
    fineness = 1 << max(0, min(16, (Fraction(2**55) * epsilon / (2 * p)).__floor__().bit_length() - 1))
    step = par.means_sensitivity / (2 * p * fineness)
    # A quotient is at most 1/step steps and right to a few units in 2^-52 of that.
    rounding = 1 + Fraction(1, 1024) + 8 * Fraction(1 / step) / 2**52
    l1 = 2 * p * fineness + 2 * p * rounding
    on_grid = F.map(_on_grid, par.b, radius * step)
    return np.asarray(gate.measure("points", on_grid, (s, p), Sensitivity(l1=l1)).values * step)


@dataclass(frozen=True)
class PaperParameters:
    """Algorithm 4's public parameters, resolved; none of them looks at the data."""

    n: int
    p: int
    epsilon: Fraction
    t: int
    alpha: float
    b: float
    kappa: float
    constants: Literal["paper", "improved"]
    charges: tuple[Charge, ...]
    means_sensitivity: float

    def charge(self, purpose: str) -> Charge:
        """The charge with this purpose."""
        return next(charge for charge in self.charges if charge.purpose == purpose)

    @property
    def projection_cost(self) -> int:
        """What PROJ on c·Σxxᵀ costs, in units of c. The paper's nε/(6t)·S is ε_P/(2t)·Σxxᵀ; one replaced row costs 2tc.

        The improved cost t + 1 is a theorem of ours: docs/proofs/projection.md.
        """
        return self.t + 1 if self.constants == "improved" else max(2 * self.t, 1)

    @property
    def shares(self) -> dict[str, Fraction]:
        """The planned part of ε for each step; without a private projection its part stays unspent."""
        return {charge.purpose: charge.amount / self.epsilon for charge in self.charges}

    @property
    def mechanism(self) -> str:
        """What a statement calls the method. PVEC alone is drawn in floating point: how far that may be from its law is said."""
        words = f"Algorithm 4 with {self.constants} constants"
        if self.t in (0, self.p):
            return words
        epsilon, delta = slack(self.p, self.n, float(self.charge("projection").amount), self.t)
        return f"{words}; directions in floating point, which may add {epsilon:.1g} to ε and {delta:.1g} to δ"

    @property
    def means_noise(self) -> float:
        """Scale of the Laplace noise on each coordinate of a damped mean, for rows in the unit ball."""
        return self.means_sensitivity / float(self.charge("points").amount)


def paper_parameters(  # the symbols of Theorems 5.12 and 5.13
    n: int,
    body: Body,
    epsilon: Fraction,
    *,
    kappa: float = 1 / 3,
    t: int | None = None,
    alpha: float | None = None,
    b: float | None = None,
    shares: tuple[Any, Any, Any] | None = None,
    constants: Literal["paper", "improved"] = "paper",
) -> PaperParameters:
    """Theorem 5.13's choices, with any of them replaced by a public value (Theorem 5.12 allows that)."""
    given = {"kappa": kappa, "t": t, "alpha": alpha, "b": b, "shares": shares, "constants": constants}
    check_options(body, given)
    p = body.dimension
    if alpha is None:
        alpha = log(n) ** -0.25 if n > 2 else 1.0  # n ≤ 2 makes the formula exceed 1
    if t is None:
        t = int(kappa * log(n) / log(7 / alpha)) if alpha < 7 else 0
    t = min(t, p)
    if b is None:
        b = sqrt(p * n ** (1 - kappa) / float(epsilon))
    charges = split(epsilon, dict(zip(STEPS, shares or THIRDS, strict=True)))
    if t in (0, p):  # no private projection is needed, so its share is not spent
        charges["projection"] = Charge("projection", Fraction(0))
    elif charges["projection"].amount == 0:
        raise ParameterError(POSITIVE.format("projection"))
    # Lemma 5.10: each of two blocks moves by 2‖x‖₁/b, at most 2√p/b for rows in the unit ball and less in many bodies. In a box
    # K with one sign per coordinate no difference is longer than K is wide, which halves it: docs/proofs/damping.md.
    halved = constants == "improved" and isinstance(body, Box) and bool((body.lower >= 0).all())
    parameters = PaperParameters(
        n=n,
        p=p,
        epsilon=epsilon,
        t=t,
        alpha=float(alpha),
        b=float(b),
        kappa=float(kappa),
        constants=constants,
        charges=tuple(charges.values()),
        means_sensitivity=(2 if halved else 4) * l1_radius(body) / body.radius / b,
    )
    require_covering(parameters.t, parameters.alpha, p)
    return parameters


def check_options(body: Body | None, options: Mapping[str, Any]) -> None:
    """Refuse what is wrong for a table of any size; options as for `paper_parameters`, body None for bits of any number."""
    given: dict[str, Any] = {"kappa": 1 / 3, "constants": "paper"} | dict(options)
    kappa, constants, shares = given["kappa"], given["constants"], given.get("shares")
    t, alpha, b = (given.get(name) for name in ("t", "alpha", "b"))
    if body is not None:
        require_extended(body)
    if not 0 < exact(kappa, "kappa") < 1:
        raise ParameterError(f"kappa must lie strictly between 0 and 1, got {kappa}.")
    if constants not in ("paper", "improved"):
        raise ParameterError(f"constants must be 'paper' or 'improved', got {constants!r}.")
    if alpha is not None and not exact(alpha, "alpha") > 0:
        raise ParameterError(f"alpha must be positive, got {alpha}. The paper's choice is (log n)^(-1/4).")
    if b is not None and not exact(b, "b") > 0:
        raise ParameterError(f"b must be positive, got {b}. The paper's choice is sqrt(p n^(1-kappa)/epsilon).")
    if t is not None:
        t = whole_number(t, "t", 0)
    if shares is not None:
        if not isinstance(shares, tuple | list) or len(shares) != 3:
            raise ParameterError(f"split must give three shares, for {', '.join(STEPS)}; got {shares!r}.")
        for name, charge in split(Fraction(1), dict(zip(STEPS, shares, strict=True))).items():
            if charge.amount == 0 and name != "projection":
                raise ParameterError(POSITIVE.format(name))
    if t is not None and alpha is not None:
        p = t if body is None else body.dimension
        require_covering(min(t, p), float(alpha), max(p, 1))


def require_covering(t: int, alpha: float, p: int) -> None:
    """Refuse a covering whose noise would not fit the memory."""
    s = LatticeCovering(t, alpha).size
    require_memory(ceil(40 * s * p), f"noise on {s} cells of {p} columns", "Choose a smaller t or a larger alpha.")
