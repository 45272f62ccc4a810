"""A model asks, is sent what was measured, and returns a law; the driver holds the units and the gate.

A model is a generator. It yields lists of `Ask`: statistics that are described and not computed, the charge that pays, how far
one replaced unit moves them, the kind of noise. `run` computes them on the units, sealed, passes them through the gate and sends
`Measurement`s back. So what a model does next may depend on what was measured and on nothing else: it
never holds a record, an exact value or the gate. How many units there are, the driver says (`Setting`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from covey._core.arrays import Array, Floats
from covey._core.fit.spectrum import Spectrum
from covey._core.tables.counts import part
from covey._core.tables.distance import largest
from covey._engines.rows import Counted, Rows, then
from covey._entropy import Streams
from covey._progress import Progress
from covey.measure.measurement import Measurement, Measurements
from covey.measure.query import Query, mean_variation
from covey.privacy.budget import Budget
from covey.privacy.certificate import Certificate, certify
from covey.privacy.gate import WHOLE, Exact, Gate, Measured, Moves

T = TypeVar("T")
Public = Callable[[str], np.random.Generator]  # makes streams for post-processing, one per purpose
CERTIFICATE_SHARE = Fraction(5, 100)  # buys a bound that is three times the noise of a single share at most
SIZE = "size"  # the charge of the number of units, where it is secret
SIZE_SHARE = Fraction(3, 100)  # of the budget: one-way tables, whose cells sum to n, refine it
OF_SIZE = Moves(l1=0, l2_squared=0, summed=False, added=Moves(l1=1, l2_squared=1, summed=False))
FURTHER = "further queries"  # the charge of queries that are measured besides what a model asks
FURTHER_SHARE = Fraction(1, 10)  # of the budget, for all of them


@dataclass(frozen=True, eq=False)
class Statistic:
    """What is to be computed on units, described and not computed: sums of kernels over batches, and pure functions of these."""

    function: Callable[..., Any]  # a kernel, or a function of other statistics
    of: tuple[Statistic, ...] = ()  # these; none for a kernel
    arguments: tuple[Any, ...] = ()  # what the function is given besides
    whole: bool = False  # whether a kernel wants all units at once, and not batch by batch
    kept: bool = False  # whether a kernel's sum is kept for later asks, so that units are passed through once

    def map(self, function: Callable[..., Any], *arguments: Any) -> Statistic:
        """A pure function of it."""
        return Statistic(function, (self,), arguments)

    @classmethod
    def sum(
        cls, kernel: Callable[[Any], Any], step: Callable[[Any], Any] | None = None, kept: bool = False
    ) -> Statistic:
        """A sum over units, after a step on each of them."""
        return cls(then(step, kernel), kept=kept)

    @classmethod
    def tables(cls, query: Query) -> Statistic:
        """The tables of a query, one after the other."""
        return cls.sum(query.kernel()).map(part)


def entries(matrix: Array, *places: Any) -> Array:
    """A part of a matrix."""
    return np.asarray(matrix[places])


def together(parts: Sequence[Statistic]) -> Statistic:
    """The largest of several distances."""
    return parts[0].map(largest) if len(parts) == 1 else Statistic(largest, tuple(parts))


@dataclass(frozen=True, eq=False)
class Part:
    """One statistic of a mechanism."""

    query: Query  # what it is
    statistic: Statistic  # how it is computed: whole numbers
    shape: Any  # which follows from public sizes; of matrix noise the rows and columns of a block
    weight: Fraction | int = 1  # w in `Moves` (√w in ℓ2), which divides the variance, or the Laplace scale
    unit: float = 1  # values are divided by it; where it is 1 they are counts, and the measurement is per unit
    type: type[np.floating[Any]] = np.float64  # of the values


@dataclass(frozen=True, eq=False)
class Ask:
    """Statistics that one charge pays for together, and how far one replaced unit moves them: proved in docs/proofs.

    Noise is "independent" on every entry, Laplace under pure ε and Gaussian under (ε, δ). Under pure ε also "cube", the ℓ∞
    mechanism on a vector; "knorm", one draw for several one-way tables whose sums are public; "matrix", matrix Laplace noise;
    "signs", the same for rows of signs. "choice" lets the largest of several scores be named, and no score leaves: the values
    are the places of the chosen ones.
    """

    purpose: str
    parts: Sequence[Part]
    moves: Moves
    share: Fraction = WHOLE
    noise: Literal["independent", "cube", "knorm", "matrix", "signs", "choice"] = "independent"
    weights: Sequence[Fraction] = ()  # of the coordinates of a matrix
    rounds: int = 0  # how often a choice is made


Asking = Generator[list[Ask], list[Measurement], T]  # of a part of a model that comes to a T


def paid_by(purpose: str, parts: Mapping[str, Fraction], asking: Asking[T]) -> Asking[T]:
    """The same, where one planned charge pays for several purposes, which get parts of it."""
    found: list[Measurement] | None = None
    with closing(asking):
        while True:
            try:
                asks = next(asking) if found is None else asking.send(found)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            found = yield [
                replace(ask, purpose=purpose, share=ask.share * parts[ask.purpose]) if ask.purpose in parts else ask
                for ask in asks
            ]


@dataclass(frozen=True)
class Setting:
    """All that a model is told before anything is measured: public."""

    n: int  # the number of units, or a noisy one where it is secret
    p: int  # of columns
    steps: int  # what one of the units weighs in sums
    budget: Budget  # the promise
    planned: Mapping[str, Fraction]  # what each purpose may spend
    public: Public  # streams for post-processing
    tick: Callable[[float], None] = lambda _: None  # hears how far the fit has come, from 0 to 1
    size_sd: float = 0.0  # the deviation of the noise on n

    @property
    def pure(self) -> bool:
        """Whether the promise is pure ε."""
        return self.budget.pure

    @property
    def secret(self) -> bool:
        """Whether n is a noisy number, since units are added or removed."""
        return self.budget.size_is_secret

    def refined(self, sizes: Sequence[float], sds: Sequence[float]) -> Setting:
        """The same with a better noisy n: averaged with further measurements of it, by the variances of their noise."""
        if not self.secret:
            return self
        weights = 1 / np.array([self.size_sd, *sds]) ** 2
        n = float(weights @ np.array([self.n, *sizes]) / weights.sum())
        return replace(self, n=max(1, round(n)), size_sd=float(weights.sum() ** -0.5))

    def allowance(self, purpose: str) -> Budget:
        """The budget cut to a planned charge: what public formulas for that step start from."""
        return self.budget.with_amount(self.planned[purpose])

    def has(self, purpose: str) -> bool:
        """Whether the plan gives anything to this purpose."""
        return self.planned.get(purpose, 0) > 0


@dataclass(frozen=True)
class Comparison:
    """How far units are from a law: numbers that one replaced unit moves by 1/n at most."""

    degrees: Sequence[int | str]  # of the tables that `farthest` is the largest distance of; of persons, groups
    farthest: Statistic  # the paper's measure
    misplaced: Statistic | None = None  # the share of units out of place, if there is such a thing
    columns: int = 2  # of a typical table, for it
    numbers: bool = False  # whether it covers distribution functions
    categorical: bool = True  # whether tables have all their cells, and not those of flags or products alone
    products: bool = False  # whether they are means of products of real numbers
    persons: int = 0  # of the draw that persons with events are compared with


class Law(Protocol):
    """A law of units: it answers the queries that units are asked, and draws units."""

    def table(self, query: Query) -> Floats:
        """Shares of units, laid out like the values of a measurement."""

    def draw(self, units: int, streams: Streams) -> Any:
        """So many units, as codes."""

    def compared(self, told: Setting) -> Comparison:
        """What a certificate compares units with."""


@dataclass(frozen=True)
class Fitted:
    """Everything that leaves a fit: a law, the measurements kept, a certificate, the noisy spectrum. All of it is private."""

    law: Law
    measurements: Measurements | None = None
    spectrum: Spectrum | None = None
    certificate: Certificate | None = None
    size: tuple[int, float] | None = None  # a better noisy n and its deviation, where the model found one


class Model(Protocol):
    """A way from measurements to a law."""

    @property
    def certificate(self) -> Fraction:
        """The part of the budget that buys the certificate."""

    @property
    def first_pass(self) -> Sequence[Callable[[Array], Any]]:
        """Kernels that are asked for whatever the data is: an engine adds them up while it reads the table first."""
        return ()

    def shares(self, n: int, p: int, budget: Budget) -> Mapping[str, Fraction]:
        """The planned part of the budget for each purpose, from public numbers."""

    def ask(self, told: Setting) -> Asking[Fitted]:
        """Ask, and fit."""


def with_certificate(shares: Mapping[str, Fraction], certificate: Fraction) -> dict[str, Fraction]:
    """A plan's shares of what the certificate leaves, and the certificate's own."""
    return {name: share * (1 - certificate) for name, share in shares.items()} | {"certificate": certificate}


# The driver: the only place that holds units and gate together.


class _Units:
    """Units behind statistics: what is computed of them is sealed, and sums that are wanted again are kept."""

    def __init__(self, rows: Rows) -> None:
        self._rows, self._sums = rows, dict[Callable[..., Any], Exact[Any]]()

    def exact(self, statistic: Statistic, known: dict[Statistic, Exact[Any]]) -> Exact[Any]:
        """A statistic, sealed. What others are computed from is kept in `known`."""
        kernel = statistic.function
        for own in statistic.of:
            if own not in known:
                known[own] = self.exact(own, known)
        found = [known[own] for own in statistic.of]
        if found:
            return found[0].map(kernel, *statistic.arguments) if len(found) == 1 else Exact.of(kernel, *found)
        if statistic.whole:
            return self._rows.whole(kernel)
        if not statistic.kept:
            return self._rows.reduce(kernel)
        if kernel not in self._sums:
            self._sums[kernel] = self._rows.reduce(kernel)
        return self._sums[kernel]


def run(
    asks: Callable[[Setting], Asking[T]], rows: Rows, gate: Gate, public: Public | None = None, tick: Any = None
) -> T:
    """Answer what a model, or a part of one, asks until it returns."""
    return _answered(asks, _Units(rows), _setting(rows, gate, public, tick), gate)


def _setting(rows: Rows, gate: Gate, public: Public | None, tick: Any) -> Setting:
    planned = {name: charge.amount for name, charge in gate.planned.items()}
    sd = rows.size_sd if isinstance(rows, Counted) else 0.0
    public = public or (lambda _: np.random.default_rng())  # where nobody asks for the same twice
    return Setting(rows.n, rows.p, rows.steps, gate.budget, planned, public, tick or (lambda _: None), sd)


def _answered(asks: Callable[[Setting], Asking[T]], units: _Units, told: Setting, gate: Gate) -> T:
    with closing(asks(told)) as asking:
        try:
            wanted = next(asking)
            while True:
                known: dict[Statistic, Exact[Any]] = {}
                wanted = asking.send([found for ask in wanted for found in _measured(ask, units, known, told.n, gate)])
        except StopIteration as done:
            result: T = done.value
    return result


def _measured(ask: Ask, units: _Units, known: dict[Statistic, Exact[Any]], n: int, gate: Gate) -> Iterator[Measurement]:
    """Pass what is asked through the gate, one statistic after the other: strips of a matrix are large."""
    parts, exact = ask.parts, (units.exact(own.statistic, known) for own in ask.parts)
    found: Iterable[Measured]
    if ask.noise == "choice":
        chosen = gate.choose(ask.purpose, next(exact), len(parts[0].query.sets), ask.rounds, ask.moves)
        yield Measurement(parts[0].query, np.array(chosen), 0.0, ask.noise, purpose=ask.purpose)
        return
    if ask.noise == "cube":
        found = [gate.cube(ask.purpose, next(exact), ask.moves, parts[0].shape)]
    elif ask.noise == "knorm":
        found = gate.knorm(ask.purpose, list(exact), [own.shape for own in parts], ask.moves, ask.share)
    elif ask.noise == "independent" and len(parts) == 1 and parts[0].weight == 1:
        found = [gate.measure(ask.purpose, next(exact), parts[0].shape, ask.moves, ask.share)]
    elif ask.noise == "independent":
        joint = gate.joint(ask.purpose, ask.moves, ask.share)
        found = (joint.add(value, own.shape, own.weight) for own, value in zip(parts, exact, strict=True))
    else:
        matrix = gate.matrix(ask.purpose, ask.moves, ask.weights, ask.share, ask.noise == "signs")
        found = (matrix.add(value, *own.shape) for own, value in zip(parts, exact, strict=True))
    for own, measured in zip(parts, found, strict=True):
        counts = own.unit == 1
        values = measured.values if counts else measured.values / own.unit
        sd, per = (measured.sd, n) if counts else (measured.sd / own.unit, 1)
        yield Measurement(own.query, np.asarray(values, dtype=own.type), sd, measured.law, per, ask.purpose)


def count_units(rows: Rows, gate: Gate) -> Measured:
    """How many units there are, with noise; spends "size"."""
    return gate.measure(SIZE, Exact(np.array([rows.n], dtype=np.int64)), 1, OF_SIZE)


def fit(model: Model, rows: Rows, gate: Gate, public: Public, further: Sequence[Query] = ()) -> Fitted:
    """Measure what a model asks, and queries besides, through the gate; the law that comes of it, certified."""
    with Progress((("measuring", 1.0), ("certifying", 0.4))) as progress:
        progress.next()
        told, units = _setting(rows, gate, public, progress.tick), _Units(rows)
        found = _answered(model.ask, units, told, gate)
        if found.size is not None:  # a certificate must divide by the n that its law was told
            told = replace(told, n=found.size[0], size_sd=found.size[1])
        if further:
            more = _answered(lambda _: _tables_of(further), units, told, gate)
            kept = () if found.measurements is None else found.measurements.found
            found = replace(found, measurements=Measurements(told.n, (*kept, *more)))
        progress.next()
        if not model.certificate:
            return found
        return replace(found, certificate=_certificate(found.law, units, told, gate, further))


def planned(model: Model, n: int, p: int, budget: Budget, further: Sequence[Query] = ()) -> Mapping[str, Fraction]:
    """The part of the budget for each purpose."""
    shares = model.shares(n, p, budget)
    if not further:
        return shares
    own = model.shares(n, p, budget.part(1 - FURTHER_SHARE))
    return {name: share * (1 - FURTHER_SHARE) for name, share in own.items()} | {FURTHER: FURTHER_SHARE}


def _tables_of(queries: Sequence[Query]) -> Asking[list[Measurement]]:
    """Tables of queries in one mechanism: a unit adds non-negative numbers to each that sum to 1 at most."""
    count = sum(len(query.sets) for query in queries)
    parts = [Part(query, Statistic.tables(query), int(query.starts[-1])) for query in queries]
    return (yield [Ask(FURTHER, parts, Moves.histograms(count))])


def _certificate(law: Law, units: _Units, told: Setting, gate: Gate, queries: Sequence[Query]) -> Certificate:
    """How far the units are from the law, with noise: the same for every law.

    Of further queries the mean total variation of their tables counts among the shares out of place (docs/proofs/certificate.md).
    """
    seen, known = law.compared(told), dict[Statistic, Exact[Any]]()
    misplaced, farthest = None, units.exact(seen.farthest, known)
    whole = told.n * told.steps
    gaps = [Statistic.tables(q).map(mean_variation, law.table(q), q.starts, whole) for q in queries]
    if seen.misplaced is not None:
        misplaced = units.exact(together([seen.misplaced, *gaps]) if gaps else seen.misplaced, known)
    elif gaps:
        farthest = Exact.of(largest, farthest, *(units.exact(gap, known) for gap in gaps))
    found = certify(seen.degrees, farthest, told.n, gate, seen.categorical, misplaced, told.size_sd)
    if found.misplaced is not None:
        found = replace(found, misplaced=replace(found.misplaced, columns=seen.columns, numbers=seen.numbers))
    return replace(found, products=seen.products, persons=seen.persons)
