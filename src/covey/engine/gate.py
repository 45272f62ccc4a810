"""The gate: the one place where a number computed on true records gets its noise and becomes public.

What an engine computes on records is an `Exact` value: it can be transformed and nothing else. It has no arithmetic, no
comparison, no text, no copy on disk, so a choice that looks at it cannot be written by accident. A `Gate` opens it. It is made
from the budget of one fit and a plan of how to share it; each measurement names its charge and how far one replaced row can move
the statistic, and the gate computes the scale (in `Budget`, for every law), draws the noise, adds it, and writes down what it
did. Post-processing sees `Measured` values alone.

    rows.reduce(kernel) → Exact → gate.measure(purpose, exact, Sensitivity(…)) → Measured → everything else

What a release says it spent is what its gate wrote down, not what was planned: `Gate.spent`, `Gate.unused`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, log, sqrt

import numpy as np

from covey.engine.arrays import Array, Floats, Integers
from covey.engine.budget import Budget, Charge
from covey.engine.codes.learned import tail_quantile
from covey.engine.entropy import Streams
from covey.engine.exact import Exact as Exact
from covey.engine.noise.directions import private_directions
from covey.engine.noise.integers import (
    CoveyNoise,
    add_noise,
    cube_deviation,
    cube_noise,
    geometric,
    knorm_deviations,
    knorm_noise,
    largest_with_gumbel,
)
from covey.engine.noise.law import (
    BINGHAM,
    CHOICE,
    CUBE,
    GAUSSIAN,
    GUMBEL,
    KNORM,
    MATRIX,
    SIGNS,
    IndependentNoise,
    NoiseLaw,
    independent_noise,
)
from covey.engine.noise.matrix import MatrixNoise
from covey.engine.sensitivity import Sensitivity
from covey.errors import InternalError

MARGIN = 1e-9  # relative, for the floating point of the quantile


def selection_threshold(variance: Fraction, delta: Fraction, columns: int, rows_per_person: int = 1) -> int:
    """T = k + σ·Φ⁻¹(1 − δ/(2qk)), rounded up: labels whose noisy counts exceed it may be named.

    Labels that do not occur are never looked at, so a single record can make one appear: the threshold pays for it, out of δ.
    Under pure ε no mechanism can name a label that it was not told.

    A person with k rows brings at most k labels to each of q columns, each held by k rows at most, and takes away as many. The
    chance that any of those brought is named is at most δ/2 (docs/proofs/learned.md), for Gaussian noise on the integers, rounded
    or discrete: P(noise ≥ m) ≤ P(N(0, σ²) ≥ m − 1) for whole m > 0.
    """
    if not 0 < delta < 1 or variance <= 0 or columns < 1:
        raise InternalError("naming labels needs a part of δ, noise and columns.")
    chance = delta / (2 * columns * rows_per_person)
    z = tail_quantile(log(chance.numerator) - log(chance.denominator))
    sd = sqrt(float(variance))
    return rows_per_person + ceil(max(z, 0.0) * sd * (1 + MARGIN))


Shape = int | tuple[int, ...]
WHOLE = Fraction(1)  # share of a charge, or weight of a statistic, where nothing else is said


@dataclass(frozen=True)
class Measured:
    """A statistic with noise: public. `sd` is the standard deviation of the noise on an entry of `values`.

    Of K-norm noise it is that of every coordinate of the space of tables whose sum is fixed. Values and deviation are in ones,
    however finely the statistic was counted.
    """

    values: Array
    sd: float
    law: NoiseLaw
    charge: Charge


@dataclass(frozen=True)
class Spent:
    """One line of the gate's book: which charge paid, how much, under which law and scale. Its noise may be drawn now."""

    purpose: str
    amount: Fraction
    law: NoiseLaw
    scale: Fraction
    unit: str  # of the amount, ε or ρ
    delta: Fraction = Fraction(0)  # of δ, besides

    @property
    def charge(self) -> Charge:
        """What a measurement says that it cost."""
        return Charge(self.purpose, self.amount, self.unit)


class Gate:
    """Opens exact values of one fit, against a budget.

    Args:
        budget: the promise; charges are parts of its amount.
        shares: the planned parts by purpose; they sum to 1 at most.
        streams: where noise comes from.
        steps: what one whole record weighs in the sums over records, 1 unless rows are weighted: sums are then counted in
            steps of 1/steps, all bounds and scales are multiplied accordingly, and what is measured is divided again.
    """

    def __init__(self, budget: Budget, shares: Mapping[str, Fraction], streams: Streams, steps: int = 1) -> None:
        if any(share < 0 for share in shares.values()) or sum(shares.values(), Fraction(0)) > 1:
            raise InternalError("planned charges are not negative and sum to the budget at most.")
        self.budget = budget
        self.planned = {name: Charge(name, budget.amount * share, budget.unit) for name, share in shares.items()}
        self.book: list[Spent] = []
        # Sums of the book by purpose: wide tables have thousands of lines.
        self._paid = dict.fromkeys(shares, Fraction(0))
        self.steps = steps
        self._streams = streams
        self._generators: dict[str, np.random.Generator] = {}

    # What may be spent, and what was.

    def allowance(self, purpose: str, share: Fraction = WHOLE) -> Budget:
        """The budget cut to a planned charge, or a share of it: what public formulas for that step start from."""
        return self.budget.with_amount(self.planned[purpose].amount * share)

    @property
    def spent(self) -> tuple[Charge, ...]:
        """What was spent, by purpose, as written down."""
        totals: dict[str, tuple[Fraction, Fraction]] = {}
        for line in self.book:
            amount, delta = totals.get(line.purpose, (Fraction(0), Fraction(0)))
            totals[line.purpose] = amount + line.amount, delta + line.delta
        return tuple(Charge(purpose, amount, self.budget.unit, delta) for purpose, (amount, delta) in totals.items())

    @property
    def unused(self) -> tuple[Charge, ...]:
        """What was planned and not spent."""
        done = {charge.purpose: charge.amount for charge in self.spent}
        left = {purpose: charge.amount - done.get(purpose, Fraction(0)) for purpose, charge in self.planned.items()}
        return tuple(Charge(purpose, amount, self.budget.unit) for purpose, amount in left.items() if amount)

    def _pay(
        self,
        purpose: str,
        share: Fraction,
        law: NoiseLaw,
        sensitivity: Sensitivity,
        steps: int = 1,
        delta: Fraction = Fraction(0),
    ) -> Spent:
        """Write a measurement down before its noise is drawn. Spending more than planned is our mistake: nothing leaves."""
        if purpose not in self.planned:
            raise InternalError(f"a measurement names the charge {purpose!r}, which was not planned.")
        allowance = self.allowance(purpose, Fraction(share))
        after = self._paid[purpose] + allowance.amount
        if allowance.amount <= 0 or after > self.planned[purpose].amount:
            raise InternalError(f"the charge {purpose!r} is spent: nothing is released.")
        if delta and sum((line.delta for line in self.book), delta) > self.budget.selection:
            raise InternalError("the part of δ for naming labels is spent: nothing is released.")
        scale = law.scale(allowance, sensitivity, steps)
        self.book.append(Spent(purpose, allowance.amount, law, scale, self.budget.unit, delta))
        self._paid[purpose] = after
        return self.book[-1]

    # Measurements.

    def measure(
        self, purpose: str, exact: Exact[Integers], shape: Shape, sensitivity: Sensitivity, share: Fraction = WHOLE
    ) -> Measured:
        """One integer statistic with independent noise on its entries: Laplace under pure ε, Gaussian under (ε, δ).

        Its shape follows from public sizes. The purpose names the planned charge that pays, and the share which part of it.
        """
        return self.joint(purpose, sensitivity, share).add(exact, shape)

    def joint(self, purpose: str, sensitivity: Sensitivity, share: Fraction = WHOLE) -> Joint:
        """Several integer statistics that one replaced row moves by `sensitivity` together; add each of them once."""
        sensitivity = sensitivity.under(self.budget)
        steps = self.steps if sensitivity.summed else 1
        law = independent_noise(self.budget.pure)
        return Joint(self, self._pay(purpose, share, law, sensitivity, steps), steps, law)

    def select(self, purpose: str, sensitivity: Sensitivity, columns: int, share: Fraction = WHOLE) -> Selection:
        """Counts of labels, which are named where they stand out of Gaussian noise, in so many columns at most.

        Which labels occur is private. One that a single person holds is named with a chance that the budget's part of δ for
        selection pays for (docs/proofs/learned.md); it is spent here, whole. Statistics with fixed shapes may be added too:
        `sensitivity` is about all of them together. A person whose rows share one weight counts as so many rows of weight 1.
        """
        sensitivity = sensitivity.under(self.budget)
        delta, k = self.budget.selection, self.budget.rows_per_person * self.steps
        payment = self._pay(purpose, share, GAUSSIAN, sensitivity, self.steps, delta)
        threshold = selection_threshold(payment.scale, delta, columns, k)
        return Selection(self, payment, self.steps, GAUSSIAN, threshold, columns)

    def cube(self, purpose: str, exact: Exact[Integers], sensitivity: Sensitivity, dimension: int) -> Measured:
        """A vector of which one replaced row moves each entry by at most `linf`: the ℓ∞ mechanism, pure ε.

        The counts are scaled to a grid on which its sampler accepts, and divided again.
        """
        sensitivity = sensitivity.under(self.budget)
        steps = self.steps if sensitivity.summed else 1
        payment = self._pay(purpose, WHOLE, CUBE, sensitivity, steps)
        scale = payment.scale
        fine = Fraction(max(1, -(-2 * dimension // scale)))
        noise = cube_noise(fine * scale, dimension, self._generator(purpose))
        noisy = self._release(exact.map(np.multiply, int(fine)), noise, payment, 1 / fine)
        sd = cube_deviation(dimension) * float(scale)
        return Measured(noisy / float(fine * steps), sd / steps, CUBE, payment.charge)

    def knorm(
        self,
        purpose: str,
        tables: Sequence[Exact[Integers]],
        sizes: Sequence[int],
        sensitivity: Sensitivity,
        share: Fraction = WHOLE,
    ) -> list[Measured]:
        """Several tables of which one replaced row moves each by `table` at most: one draw for all of them, pure ε.

        Each has a sum that all tables of records share (docs/proofs/knorm.md); the grid is refined as for `cube`. Where the
        number of records is secret, the noise on that sum is the same in all of them.
        """
        sensitivity, loose = sensitivity.under(self.budget), self.budget.size_is_secret
        steps, dimension = self.steps if sensitivity.summed else 1, sum(c - 1 for c in sizes)
        payment = self._pay(purpose, share, KNORM, sensitivity, steps)
        scale = payment.scale
        fine = Fraction(max(1, -(-2 * (dimension + 1) // scale)))
        drawn = knorm_noise(tuple(sizes), fine * scale, self._generator(purpose), loose)
        found = []
        for exact, noise, sd in zip(tables, drawn, knorm_deviations(sizes, loose), strict=True):
            noisy = self._release(exact.map(np.multiply, int(fine)), noise, payment, 1 / fine)
            found.append(Measured(noisy / float(fine * steps), sd * float(scale) / steps, KNORM, payment.charge))
        return found

    def matrix(
        self,
        purpose: str,
        sensitivity: Sensitivity,
        weights: Sequence[Fraction],
        share: Fraction = WHOLE,
        signs: bool = False,
    ) -> MatrixJoint:
        """Pieces of one symmetric integer matrix: matrix Laplace noise, pure ε (docs/proofs/cone.md).

        The matrix is Σhhᵀ over the records, h integer vectors; the coordinates h_i/w_i are those in which its nuclear norm moves
        by `trace` at most, so the noise on entry (i, j) is w_i·w_j times that of the law.

        With `signs` all coordinates but the last lie in [−1, 1]: less noise (cone.md, "Signs"). What stands on the diagonal is
        then the same for all tables (n, for signs), or not asked for; `trace` is 2(p + a²), where a bounds the last coordinate.
        """
        law = SIGNS if signs else MATRIX
        payment = self._pay(purpose, share, law, sensitivity.under(self.budget), self.steps)
        noise = MatrixNoise(payment.scale, weights, self._generator(purpose), signs=signs)
        return MatrixJoint(self, payment, noise)

    def choose(
        self, purpose: str, exact: Exact[Integers], candidates: int, rounds: int, sensitivity: Sensitivity
    ) -> tuple[int, ...]:
        """The candidates with the largest integer scores, one a round, each score with fresh geometric noise; no score leaves.

        A round is ε-DP for noise of scale 2·score/ε, and spends ε, or ⅘·ε² of ρ (docs/proofs/choice.md).
        """
        chosen, sensitivity = list[int](), sensitivity.under(self.budget)
        for _ in range(min(rounds, candidates)):
            payment = self._pay(purpose, Fraction(1, rounds), CHOICE, sensitivity, self.steps)
            noise = geometric(payment.scale, candidates, self._generator(purpose))
            chosen.append(self._choose(exact, noise, payment, tuple(chosen)))
        return tuple(chosen)

    def pick(
        self, purpose: str, exact: Exact[Integers], open_: Array, sensitivity: Sensitivity, share: Fraction = WHOLE
    ) -> int:
        """One of the open candidates, with probability ∝ exp(score/scale), by Gumbel noise on integer scores; no score leaves.

        The scale is 2·score/ε: a choice whose range is ε spends ε, or ⅕·ε² of ρ (docs/proofs/relations.md).
        """
        payment = self._pay(purpose, share, GUMBEL, sensitivity.under(self.budget), self.steps)
        return self._pick(exact, payment, open_)

    def directions(self, purpose: str, exact: Exact[Floats], sensitivity: Sensitivity, t: int) -> Measured:
        """PROJ, Algorithm 3, on c·Σxxᵀ for rows in the unit ball: t orthonormal directions, pure ε."""
        payment = self._pay(purpose, WHOLE, BINGHAM, sensitivity.under(self.budget))
        drawn = self._direct(exact, payment, t)
        return Measured(drawn, float("nan"), BINGHAM, payment.charge)

    # Where exact values are opened: nowhere else.

    def _release(
        self,
        exact: Exact[Integers],
        noise: Integers,
        payment: Spent,
        weight: Fraction,
        block: tuple[slice, slice] | None = None,
    ) -> Integers:
        """Statistic plus noise. Replaying audits override this: all that a release rests on passes here or by `_direct`.

        They need to know which payment, its weight there, and which block of a matrix it is.
        """
        del payment, weight, block
        return add_noise(_shaped(exact, noise.shape), noise)

    def _name(self, exact: Exact[Mapping[str, int]], payment: Spent, threshold: int) -> dict[str, int]:
        """The labels whose noisy counts exceed the threshold, and these. Sorted: the order in which they occur is private."""
        labels = sorted(exact._sealed)
        counts = np.array([exact._sealed[label] for label in labels], dtype=np.int64)
        noise = self._noise(payment.purpose).gaussian(payment.scale, len(labels))
        noisy = add_noise(counts, noise)
        return {label: count for label, count in zip(labels, noisy.tolist(), strict=True) if count > threshold}

    def _choose(self, exact: Exact[Integers], noise: Integers, payment: Spent, taken: tuple[int, ...]) -> int:
        """Which candidate has the largest noisy score among those not taken; of equal ones the first."""
        del payment
        noisy = add_noise(_shaped(exact, noise.shape), noise)
        noisy[list(taken)] = np.iinfo(np.int64).min
        return int(np.argmax(noisy))

    def _pick(self, exact: Exact[Integers], payment: Spent, open_: Array) -> int:
        """Which of the open candidates is drawn."""
        scores, places = _shaped(exact, open_.shape), np.flatnonzero(open_)
        generator = self._generator(f"{payment.purpose}, choices")
        return int(places[largest_with_gumbel(scores[places], payment.scale, generator)])

    def _direct(self, exact: Exact[Floats], payment: Spent, t: int) -> Floats:
        """Directions drawn for c·Σxxᵀ, c the inverse of the scale."""
        return private_directions(exact._sealed * float(1 / payment.scale), t, self._generator(payment.purpose))

    def _noise(self, purpose: str) -> CoveyNoise:
        """Who draws integer noise for a purpose; each purpose has a stream of its own."""
        return CoveyNoise(self._generator(purpose))

    def _generator(self, purpose: str) -> np.random.Generator:
        if purpose not in self._generators:
            self._generators[purpose] = self._streams.noise(purpose)
        return self._generators[purpose]


@dataclass(frozen=True)
class Joint:
    """Independent noise of one law on several integer statistics, for one charge; they count in steps of 1/steps."""

    gate: Gate
    payment: Spent
    steps: int
    law: IndependentNoise

    def add(self, exact: Exact[Integers], shape: Shape, weight: Fraction | int = 1) -> Measured:
        """One of the statistics, with noise; a weight w (√w in its ℓ2 sensitivity) divides the variance, or the Laplace scale."""
        scale = self.payment.scale / weight
        noise = self.law.draw(self.gate._noise(self.payment.purpose), scale, shape)
        values = self.gate._release(exact, noise, self.payment, Fraction(weight))
        sd = self.law.deviation(scale)
        return Measured(_in_ones(values, self.steps), sd / self.steps, self.law, self.payment.charge)


@dataclass(frozen=True)
class Selection(Joint):
    """Counts of labels under one charge and one threshold. Each column is asked for once."""

    threshold: int
    columns: int
    asked: list[str] = field(default_factory=list)

    def name(self, column: str, exact: Exact[Mapping[str, int]]) -> dict[str, float]:
        """The labels of a column that stand out of the noise, sorted, with their noisy counts, in ones."""
        if column in self.asked or len(self.asked) >= self.columns:
            raise InternalError(f"the labels of {column!r} were not paid for: nothing is released.")
        self.asked.append(column)
        named = self.gate._name(exact, self.payment, self.threshold)
        return {label: count / self.steps for label, count in named.items()}


@dataclass(frozen=True)
class MatrixJoint:
    """Matrix Laplace noise on the integers, drawn exactly, for blocks of one matrix."""

    gate: Gate
    payment: Spent
    noise: MatrixNoise

    def add(self, exact: Exact[Integers], rows: slice, columns: slice) -> Measured:
        """A block of the matrix with noise; `sd` is for coordinates of weight 1."""
        values = self.gate._release(exact, self.noise.block(rows, columns), self.payment, WHOLE, (rows, columns))
        steps = self.gate.steps
        sd = self.noise.deviation(rows, columns) / steps
        return Measured(_in_ones(values, steps), sd, self.payment.law, self.payment.charge)


def _shaped(exact: Exact[Integers], shape: tuple[int, ...]) -> Integers:
    """Open a statistic that has the shape that was declared."""
    if exact._sealed.shape != shape:
        raise InternalError("a statistic has another shape than was declared: shapes must follow from public sizes.")
    return exact._sealed


def _in_ones(values: Integers, steps: int) -> Array:
    """Noisy sums of steps as numbers of records; sums of whole records stay integers."""
    return values if steps == 1 else np.asarray(values / steps)
