"""A model asks, is sent what was measured, and returns a law: what models and their driver say to each other.

A model is a generator. It yields lists of `Ask`: statistics that are described and not computed, the charge that pays, how far
one replaced unit moves them, the kind of noise. The driver (`covey.engine.driver`) computes them on the units, sealed, passes
them through the gate and sends `Measurement`s back. So what a model does next may depend on what was measured and on nothing
else: it never holds a record, an exact value or the gate. How many units there are, the driver says (`Setting`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np

from covey.engine.arrays import Array, Floats
from covey.engine.budget import Budget
from covey.engine.certificate import Certificate
from covey.engine.entropy import Streams
from covey.engine.fit.spectrum import Spectrum
from covey.engine.gate import WHOLE
from covey.engine.measurement import Measurement, Measurements
from covey.engine.noise.law import NoiseLaw
from covey.engine.query import Query
from covey.engine.sensitivity import Sensitivity
from covey.engine.statistic import Statistic

T = TypeVar("T")
Public = Callable[[str], np.random.Generator]  # makes streams for post-processing, one per purpose
CERTIFICATE_SHARE = Fraction(5, 100)  # buys a bound that is three times the noise of a single share at most


# What a model says.


@dataclass(frozen=True, eq=False)
class Component:
    """One statistic of a mechanism.

    Attributes:
        query: what it is.
        statistic: how it is computed: whole numbers.
        shape: of the values, which follows from public sizes; of matrix noise the rows and columns of a block.
        weight: w in `Sensitivity` (√w in ℓ2), which divides the variance, or the Laplace scale.
        divisor: of the values; where it is 1 they are counts, and the measurement is per unit.
        dtype: of the values.
    """

    query: Query
    statistic: Statistic
    shape: Any
    weight: Fraction | int = 1
    divisor: float = 1
    dtype: type[np.floating[Any]] = np.float64


@dataclass(frozen=True, eq=False)
class Ask:
    """A mechanism: statistics that one charge pays for together, and how far one replaced unit moves them.

    Where no law is named, noise is independent on every entry, Laplace under pure ε and Gaussian under (ε, δ). Under pure ε also
    CUBE, the ℓ∞ mechanism on a vector; KNORM, one draw for several one-way tables whose sums are public; MATRIX, matrix Laplace
    noise; SIGNS, the same for rows of signs. CHOICE lets the largest of several scores be named, and no score leaves: the values
    are the places of the chosen ones.

    Attributes:
        purpose: the charge that pays.
        components: what is asked.
        sensitivity: how far one replaced unit moves all of them: proved in docs/proofs.
        share: of the charge.
        noise: its law; None for independent noise.
        weights: of the coordinates of a matrix.
        rounds: how often a choice is made.
    """

    purpose: str
    components: Sequence[Component]
    sensitivity: Sensitivity
    share: Fraction = WHOLE
    noise: NoiseLaw | None = None
    weights: Sequence[Fraction] = ()
    rounds: int = 0


Asking = Generator[list[Ask], list[Measurement], T]  # of a part of a model that comes to a T


# What a model is given.


@dataclass(frozen=True)
class SizeEstimate:
    """A noisy number of units, and the standard deviation of its noise."""

    n: float
    sd: float


@dataclass(frozen=True)
class Setting:
    """What a model knows before anything is measured: public.

    Attributes:
        n: the number of units, or a noisy one where it is secret.
        p: the number of columns.
        steps: what one of the units weighs in sums.
        budget: the promise.
        amounts: what each purpose may spend.
        public: makes streams for post-processing, one per purpose.
        tick: hears how far the fit has come, from 0 to 1.
        size_sd: the standard deviation of the noise on n; 0 where it is public.
    """

    n: int
    p: int
    steps: int
    budget: Budget
    amounts: Mapping[str, Fraction]
    public: Public
    tick: Callable[[float], None] = lambda _: None
    size_sd: float = 0.0

    @property
    def pure(self) -> bool:
        """Whether the promise is pure ε."""
        return self.budget.pure

    @property
    def size_is_secret(self) -> bool:
        """Whether n is a noisy number, since units are added or removed."""
        return self.budget.size_is_secret

    @property
    def total(self) -> int:
        """What all units weigh in sums."""
        return self.n * self.steps

    def has(self, purpose: str) -> bool:
        """Whether the plan gives anything to this purpose."""
        return self.amounts.get(purpose, 0) > 0

    def allowance(self, purpose: str) -> Budget:
        """The budget cut to a planned charge: what public formulas for that step start from."""
        return self.budget.with_amount(self.amounts[purpose])

    def sized(self, size: SizeEstimate) -> Setting:
        """The same with another noisy n: at least one."""
        return replace(self, n=max(1, round(size.n)), size_sd=size.sd)

    def refined(self, estimates: Sequence[SizeEstimate]) -> Setting:
        """The same with a better noisy n: averaged with further estimates of it, by the variances of their noise."""
        if not self.size_is_secret:
            return self
        sds = np.array([self.size_sd, *(estimate.sd for estimate in estimates)])
        sizes = np.array([self.n, *(estimate.n for estimate in estimates)])
        weights = 1 / sds**2
        n = float(weights @ sizes / weights.sum())
        return self.sized(SizeEstimate(n, float(weights.sum() ** -0.5)))


@dataclass(frozen=True)
class DividedCharge:
    """A planned charge that pays for several purposes, in parts that are decided after it was planned.

    The gate is given all charges before anything is measured. Where a measurement decides how a charge is used, the plan has one
    charge, and the steps that spend it go on asking under their own purposes.

    Attributes:
        name: of the charge.
        parts: of it, by purpose; they sum to 1.
    """

    name: str
    parts: Mapping[str, Fraction]

    def divide(self, setting: Setting) -> Setting:
        """A setting in which each purpose may spend its part."""
        divided = {purpose: part * setting.amounts[self.name] for purpose, part in self.parts.items()}
        return replace(setting, amounts={**setting.amounts, **divided})

    def pay(self, asking: Asking[T]) -> Asking[T]:
        """The same part of a model, with what it asks for these purposes paid by the charge."""
        measurements: list[Measurement] | None = None
        with closing(asking):
            while True:
                try:
                    asks = next(asking) if measurements is None else asking.send(measurements)
                except StopIteration as done:
                    return done.value  # type: ignore[no-any-return]
                measurements = yield [self._billed(ask) for ask in asks]

    def _billed(self, ask: Ask) -> Ask:
        if ask.purpose not in self.parts:
            return ask
        return replace(ask, purpose=self.name, share=ask.share * self.parts[ask.purpose])


# What a model comes to.


@dataclass(frozen=True)
class Comparison:
    """How far units are from a law: numbers that one replaced unit moves by 1/n at most.

    Attributes:
        degrees: of the tables that `largest_distance` is over; of persons, groups.
        largest_distance: the paper's measure.
        mean_variation: the share of units out of place, if there is such a thing.
        columns: of a typical table, for it.
        numbers: whether it covers distribution functions.
        categorical: whether tables have all their cells, and not those of flags or products alone.
        products: whether they are means of products of real numbers.
        persons: of the draw that persons with events are compared with.
    """

    degrees: Sequence[int | str]
    largest_distance: Statistic
    mean_variation: Statistic | None = None
    columns: int = 2
    numbers: bool = False
    categorical: bool = True
    products: bool = False
    persons: int = 0


class Law(Protocol):
    """A law of units: it answers the queries that units are asked, and draws units."""

    def table(self, query: Query) -> Floats:
        """Shares of units, laid out like the values of a measurement."""

    def draw(self, units: int, streams: Streams) -> Any:
        """So many units, as codes."""

    def comparison(self, setting: Setting) -> Comparison:
        """What a certificate compares units with."""


@dataclass(frozen=True)
class Fitted:
    """Everything that leaves a fit. All of it is private.

    Attributes:
        law: of the units.
        measurements: those that are kept.
        spectrum: of the noisy covariances.
        certificate: how far the units are from the law.
        size: a better noisy n, where the model found one.
    """

    law: Law
    measurements: Measurements | None = None
    spectrum: Spectrum | None = None
    certificate: Certificate | None = None
    size: SizeEstimate | None = None


class Model(Protocol):
    """A way from measurements to a law."""

    @property
    def certificate(self) -> Fraction:
        """The share of the budget that buys the certificate."""

    @property
    def first_pass(self) -> Sequence[Callable[[Array], Any]]:
        """Kernels that are asked for whatever the data is: an engine adds them up while it reads the table first."""
        return ()

    def shares(self, n: int, p: int, budget: Budget) -> Mapping[str, Fraction]:
        """The planned share of the budget for each purpose, from public numbers."""

    def ask(self, setting: Setting) -> Asking[Fitted]:
        """Ask, and fit."""


def with_certificate(shares: Mapping[str, Fraction], certificate: Fraction) -> dict[str, Fraction]:
    """A plan's shares of what the certificate leaves, and the certificate's own."""
    return {name: share * (1 - certificate) for name, share in shares.items()} | {"certificate": certificate}
