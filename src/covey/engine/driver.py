"""The driver of models: the only place that holds units and the gate together.

It computes what a model asks on the units, sealed, passes it through the gate and sends back what was measured. Whatever model
it runs, a law is certified in one way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from covey.engine.budget import Budget
from covey.engine.certificate import Certificate, certify
from covey.engine.codes.distance import largest
from covey.engine.gate import Exact, Gate, Measured
from covey.engine.measurement import Measurement, Measurements
from covey.engine.model import Ask, Asking, Comparison, Component, Fitted, Law, Model, Public, Setting
from covey.engine.noise.law import CHOICE, CUBE, KNORM, SIGNS
from covey.engine.progress import Progress
from covey.engine.query import OWN, Query, mean_variation
from covey.engine.sensitivity import Sensitivity
from covey.engine.statistic import Statistic, largest_of
from covey.engine.units.rows import Counted, Rows

T = TypeVar("T")
SIZE = "size"  # the charge of the number of units, where it is secret
SIZE_SHARE = Fraction(3, 100)  # of the budget: one-way tables, whose cells sum to n, refine it
SIZE_SENSITIVITY = Sensitivity(l1=0, l2_squared=0, summed=False, added=Sensitivity(l1=1, l2_squared=1, summed=False))
FURTHER = "further queries"  # the charge of queries that are measured besides what a model asks
FURTHER_SHARE = Fraction(1, 10)  # of the budget, for all of them


# A whole fit.


def fit(model: Model, rows: Rows, gate: Gate, public: Public, further: Sequence[Query] = ()) -> Fitted:
    """Measure what a model asks, and queries besides, through the gate; the law that comes of it, certified.

    Args:
        model: what asks, and fits.
        rows: the units.
        gate: with the charges that `planned_shares` says.
        public: makes streams for post-processing.
        further: queries that are measured and certified besides.
    """
    with Progress((("measuring", 1.0), ("certifying", 0.4))) as progress:
        progress.next()
        setting = _setting(rows, gate, public, progress.tick)
        driver = _Driver(_Units(rows), gate)
        fitted = driver.run(model.ask, setting)
        if fitted.size is not None:  # a certificate must divide by the n that its law was fitted with
            setting = setting.sized(fitted.size)
        if further:
            measurements = driver.run(lambda _: _measure_further(further), setting)
            fitted = _with_further(fitted, measurements, setting.n)
        progress.next()
        if not model.certificate:
            return fitted
        return replace(fitted, certificate=_certificate(fitted.law, further, setting, driver))


def planned_shares(
    model: Model, n: int, p: int, budget: Budget, further: Sequence[Query] = ()
) -> Mapping[str, Fraction]:
    """The share of the budget for each purpose."""
    if not further:
        return model.shares(n, p, budget)
    rest = 1 - FURTHER_SHARE
    shares = model.shares(n, p, budget.part(rest))
    return {name: share * rest for name, share in shares.items()} | {FURTHER: FURTHER_SHARE}


def count_units(rows: Rows, gate: Gate) -> Measured:
    """How many units there are, with noise. Costs "size"."""
    exact = Exact(np.array([rows.n], dtype=np.int64))
    return gate.measure(SIZE, exact, 1, SIZE_SENSITIVITY)


def run(
    part: Callable[[Setting], Asking[T]],
    rows: Rows,
    gate: Gate,
    public: Public | None = None,
    tick: Callable[[float], None] | None = None,
) -> T:
    """Answer what a model, or a part of one, asks until it returns."""
    return _Driver(_Units(rows), gate).run(part, _setting(rows, gate, public, tick))


def _setting(rows: Rows, gate: Gate, public: Public | None, tick: Callable[[float], None] | None) -> Setting:
    """What a model may know of these units, and may spend at this gate."""
    return Setting(
        n=rows.n,
        p=rows.p,
        steps=rows.steps,
        budget=gate.budget,
        amounts={name: charge.amount for name, charge in gate.planned.items()},
        public=public or (lambda _: np.random.default_rng()),  # where nobody asks for the same twice
        tick=tick or (lambda _: None),
        size_sd=rows.size_sd if isinstance(rows, Counted) else 0.0,
    )


# Units behind statistics.


Sealed = dict[Statistic, Exact[Any]]


@dataclass(frozen=True, eq=False, repr=False)
class _Units:
    """Units behind statistics: what is computed of them is sealed, and sums that are wanted again are kept."""

    rows: Rows
    sums: dict[Callable[..., Any], Exact[Any]] = field(default_factory=dict)

    def exact(self, statistic: Statistic, sealed: Sealed) -> Exact[Any]:
        """A statistic, sealed. What others are computed from is kept in `sealed`."""
        if not statistic.inputs:
            return self._sum(statistic)
        for needed in statistic.inputs:
            if needed not in sealed:
                sealed[needed] = self.exact(needed, sealed)
        values = [sealed[needed] for needed in statistic.inputs]
        if len(values) == 1:
            return values[0].map(statistic.function, *statistic.arguments)
        return Exact.of(statistic.function, *values)

    def _sum(self, statistic: Statistic) -> Exact[Any]:
        """A kernel's sum over all units."""
        kernel = statistic.function
        if statistic.all_at_once:
            return self.rows.whole(kernel)
        if not statistic.cached:
            return self.rows.reduce(kernel)
        if kernel not in self.sums:
            self.sums[kernel] = self.rows.reduce(kernel)
        return self.sums[kernel]


# From what is asked to what was measured.


@dataclass(frozen=True, eq=False, repr=False)
class _Driver:
    """Units and the gate that their statistics pass."""

    units: _Units
    gate: Gate

    def run(self, part: Callable[[Setting], Asking[T]], setting: Setting) -> T:
        """Answer what a model, or a part of one, asks until it returns."""
        with closing(part(setting)) as asking:
            try:
                asks = next(asking)
                while True:
                    asks = asking.send(self._measure_all(asks, setting.n))
            except StopIteration as done:
                result: T = done.value
        return result

    def _measure_all(self, asks: Sequence[Ask], n: int) -> list[Measurement]:
        """What a list of asks is sent; what they have in common is computed once."""
        sealed: Sealed = {}
        return [measurement for ask in asks for measurement in self._measure(ask, sealed, n)]

    def _measure(self, ask: Ask, sealed: Sealed, n: int) -> Iterator[Measurement]:
        """Pass what is asked through the gate, one component after the other: strips of a matrix are large."""
        exact = (self.units.exact(component.statistic, sealed) for component in ask.components)
        if ask.noise is CHOICE:
            yield self._choose(ask, next(exact))
            return
        released = self._released(ask, exact)
        for component, measured in zip(ask.components, released, strict=True):
            yield _measurement(ask, component, measured, n)

    def _choose(self, ask: Ask, scores: Exact[Any]) -> Measurement:
        """The places of the largest scores, as noise has them."""
        query = ask.components[0].query
        places = self.gate.choose(ask.purpose, scores, len(query.sets), ask.rounds, ask.sensitivity)
        return Measurement(query, np.array(places), 0.0, CHOICE, purpose=ask.purpose)

    def _released(self, ask: Ask, exact: Iterator[Exact[Any]]) -> Iterable[Measured]:
        """Exact values with noise, in their order."""
        gate, components = self.gate, ask.components
        first = components[0]
        if ask.noise is CUBE:
            return [gate.cube(ask.purpose, next(exact), ask.sensitivity, first.shape)]
        if ask.noise is KNORM:
            shapes = [component.shape for component in components]
            return gate.knorm(ask.purpose, list(exact), shapes, ask.sensitivity, ask.share)
        if ask.noise is None and len(components) == 1 and first.weight == 1:
            return [gate.measure(ask.purpose, next(exact), first.shape, ask.sensitivity, ask.share)]
        pairs = zip(components, exact, strict=True)
        if ask.noise is None:
            joint = gate.joint(ask.purpose, ask.sensitivity, ask.share)
            return (joint.add(value, component.shape, component.weight) for component, value in pairs)
        matrix = gate.matrix(ask.purpose, ask.sensitivity, ask.weights, ask.share, ask.noise is SIGNS)
        return (matrix.add(value, *component.shape) for component, value in pairs)


def _measurement(ask: Ask, component: Component, measured: Measured, n: int) -> Measurement:
    """What a model is sent of a component: counts, which are per unit, or values over their divisor."""
    values, sd, per = measured.values, measured.sd, n
    if component.divisor != 1:
        values, sd, per = values / component.divisor, sd / component.divisor, 1
    values = np.asarray(values, dtype=component.dtype)
    return Measurement(component.query, values, sd, measured.law, per, ask.purpose)


# Further queries.


def _measure_further(queries: Sequence[Query]) -> Asking[list[Measurement]]:
    """Tables of queries in one mechanism, with the noise that their sensitivities ask for."""
    components = [Component(query, Statistic.tables(query), int(query.starts[-1])) for query in queries]
    sensitivity = Sensitivity.together([query.sensitivity() for query in queries])
    measurements = yield [Ask(FURTHER, components, sensitivity)]
    return [_marked(measurement) for measurement in measurements]


def _marked(measurement: Measurement) -> Measurement:
    """A measurement that says where its cells are no shares of units."""
    if measurement.query.tables_hold_units:
        return measurement
    return replace(measurement, query=replace(measurement.query, of=OWN))


def _with_further(fitted: Fitted, measurements: list[Measurement], n: int) -> Fitted:
    """What leaves a fit, with further measurements after the model's own."""
    kept = () if fitted.measurements is None else fitted.measurements.found
    return replace(fitted, measurements=Measurements(n, (*kept, *measurements)))


# The certificate.


def _certificate(law: Law, further: Sequence[Query], setting: Setting, driver: _Driver) -> Certificate:
    """How far the units are from the law, with noise: the same for every law. Costs "certificate".

    Of further queries the mean total variation of their tables counts among the shares out of place (docs/proofs/certificate.md).
    """
    comparison = _with_variations(law.comparison(setting), [_variation(law, query, setting) for query in further])
    sealed: Sealed = {}
    largest_distance = driver.units.exact(comparison.largest_distance, sealed)
    variation = None
    if comparison.mean_variation is not None:
        variation = driver.units.exact(comparison.mean_variation, sealed)
    certificate = certify(
        comparison.degrees,
        largest_distance,
        setting.n,
        driver.gate,
        comparison.categorical,
        variation,
        setting.size_sd,
    )
    if certificate.misplaced is not None:
        misplaced = replace(certificate.misplaced, columns=comparison.columns, numbers=comparison.numbers)
        certificate = replace(certificate, misplaced=misplaced)
    return replace(certificate, products=comparison.products, persons=comparison.persons)


def _variation(law: Law, query: Query, setting: Setting) -> Statistic:
    """The mean total variation distance of a query's tables from the law's, in parts that one replaced unit moves by 1/n."""
    stretched = float(query.stretch)
    return Statistic.tables(query).map(
        mean_variation, law.table(query) / stretched, query.starts, setting.total * stretched
    )


def _with_variations(comparison: Comparison, variations: Sequence[Statistic]) -> Comparison:
    """A comparison that covers further variations: among the units out of place, or where there are none among distances."""
    if not variations:
        return comparison
    if comparison.mean_variation is not None:
        return replace(comparison, mean_variation=largest_of([comparison.mean_variation, *variations]))
    return replace(comparison, largest_distance=Statistic(largest, (comparison.largest_distance, *variations)))
