"""Any function of a table: the whole mechanism is run again on tables drawn from the centres, where the truth is known.

Each replicate draws as many rows as the confidential table has, measures them with the same budget, fits from scratch and draws
synthetic rows again: what a function of these rows misses of the truth is what it may have missed before. Starting a fit
at the centres would be quicker and wrong: they are the truth that it should not know (docs/proofs/intervals.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy.special import stdtrit

from covey.answers.answer import About, Answer, in_library
from covey.answers.source import streams_of
from covey.core.arrays import Array, processors
from covey.core.draw.balanced import keep_limits
from covey.core.draw.rounding import bootstrap, round_bits, round_categories
from covey.core.tables.events import Histories, places_within
from covey.engines.local import ArrayRows, EventRows
from covey.engines.rows import Rows
from covey.entropy import Streams
from covey.errors import CannotAnswerError, ParameterError, whole_number
from covey.methods.model import Fitted, Model, fit, planned
from covey.methods.regain.bits import RegainBits
from covey.methods.regain.plan import declared_coding
from covey.methods.regain.tables import RegainTables
from covey.privacy.budget import DOMAINS, RELATIONS, Budget
from covey.privacy.gate import Gate
from covey.progress import Progress, listening, silent
from covey.tree import drawn_columns, method_of

if TYPE_CHECKING:
    from covey.answers.release import Release

T = TypeVar("T")
NONE = Fraction(0)  # no certificate is bought: nobody reads it
TRUTH_ROWS = 8  # times n: what a function says of the centres themselves is read off so many rows
TICK = 0.5  # seconds between two looks at how far replicates have come
POOL = 4  # times as many persons as are wanted: what their balance hides is a quarter of what sampling adds, at most
FEWEST = 4  # replicates: fewer say next to nothing of their own spread


@dataclass(frozen=True)
class Replicate:
    """A table drawn from the centres, and the synthetic rows of a release of it."""

    table: Any
    rows: Any


@dataclass(frozen=True)
class Mechanism:
    """What made a release, to be run again on public tables."""

    release: Release
    library: str = "polars"  # of the frames that a function is given

    @property
    def budget(self) -> Budget:
        """What the release spent on all but learning domains and its certificate."""
        privacy = self.release.privacy
        spent = sum((c.amount for c in privacy.charges if c.purpose not in ("certificate", DOMAINS, RELATIONS)), NONE)
        return privacy.budget.part(spent / privacy.budget.amount)

    def method(self) -> Model:
        """The method for bits, or for categories and numbers, as public facts decide it."""
        codec = self.release.codec
        if self.release.flags:
            width = len(codec.names)
            declared = declared_coding(width, codec.limits) if codec.limits else None
            return RegainBits(NONE, declared, width=width, limits=codec.limits)
        method = RegainTables.of(codec, NONE, self.budget.pure)
        triples = len(self.release.evidence.found.chosen(3))
        if not triples:
            return method
        return replace(method, important=replace(method.important, triples=triples))  # whoever asked for them

    @property
    def known(self) -> bool:
        """Whether the release says all of how it was made: what it spent is what this method plans, and no prior was used."""
        privacy, budget = self.release.privacy, self.budget
        shares = self.method().shares(privacy.n, len(self.release.columns.names), budget)
        return privacy.prior is None and {c.purpose for c in privacy.charges} <= {*shares, "certificate", DOMAINS}

    def table(self, m: int, streams: Streams) -> Array:
        """Rows of codes as independent as people are. Balanced rows, which a release draws, would hide what sampling adds."""
        release, public = self.release, streams.postprocessing("table")
        cloud, codec, numbers = release.centres, release.codec, release.numbers
        chosen = bootstrap(cloud, m, public)
        if release.flags:
            bits = round_bits(cloud.points, chosen, public)
            return keep_limits(bits, codec.limits, public) if codec.limits else bits
        sizes = codec.domain_sizes if numbers is None else numbers.domain.sizes
        codes = round_categories(cloud.points, chosen, sizes, public)
        for j, cells in ({} if numbers is None else numbers.cells).items():
            codes[:, j] = cells.values(codes[:, j], public)
        return codes

    def rows(self, table: Any) -> Rows:
        """A table behind kernels."""
        return ArrayRows(table)

    def frame(self, codes: Any, streams: Streams) -> Any:
        """Codes as a frame of values."""
        public, coding = streams.postprocessing("decode"), self.release.codec.coding
        return in_library(self.release.codec.decode(codes.astype(np.int64), public, coding), self.library)

    def truth(self, streams: Streams) -> Any:
        """What the law itself says: many of its units, which are balanced."""
        own, release = streams.child("truth"), self.release
        return self.frame(release.fitted.law.draw(TRUTH_ROWS * release.privacy.n, own), own)

    def refit(self, streams: Streams) -> tuple[Any, Fitted]:
        """A table drawn from the law, and what the mechanism makes of it."""
        n, model, budget, own = self.release.privacy.n, self.method(), self.budget, streams.child("fit")
        table = self.table(n, streams.child("table"))
        rows = self.rows(table)
        with silent():
            gate = Gate(budget, planned(model, n, rows.p, budget), own, "covey", rows.steps)
            return table, fit(model, rows, gate, own.postprocessing)

    def again(self, streams: Streams) -> Replicate:
        """One replicate."""
        (table, fitted), drawn, own = self.refit(streams), streams.child("table"), streams.child("rows")
        rows = fitted.law.draw(self.release.parts.m or self.release.privacy.n, own)
        return Replicate(self.frame(table, drawn), self.frame(rows, own))


@dataclass(frozen=True)
class OfPersons(Mechanism):
    """The same of persons with events; frames are by the names of their tables."""

    def method(self) -> Model:
        """The method for their description."""
        return method_of(self.release.described, NONE)

    def rows(self, table: Any) -> Any:
        """Persons behind kernels."""
        return EventRows(table)

    def table(self, m: int, streams: Streams) -> Any:
        """Persons as independent as people are: some of many, for those that a law draws are balanced."""
        public = streams.postprocessing("table")
        many = self.release.persons.drawn(POOL * m, public, public)
        chosen = np.sort(public.integers(0, many.n, m))
        counts = many.counts
        owner = np.repeat(np.arange(m), counts[chosen])
        rows = (np.cumsum(counts) - counts)[chosen][owner] + places_within(owner)
        return Histories(many.persons[chosen], many.events[rows], owner, many.most)

    def frame(self, codes: Any, streams: Streams) -> Any:
        """Codes as frames of values."""
        described = self.release.described
        columns = drawn_columns(described, codes, streams.postprocessing("decode"))
        names = [part.name for part in described.tables]
        return {name: in_library(own, self.library) for name, own in zip(names, columns, strict=True)}


def mechanism_of(release: Release, library: str = "polars") -> Mechanism:
    """What made a release."""
    return (OfPersons if release.several else Mechanism)(release, library)


def replicates(mechanism: Mechanism, count: int, seed: int | None = None) -> list[Replicate]:
    """So many replicates, as many at a time as there are processors."""
    count = whole_number(count, "replicates", 1)
    return each(mechanism, count, streams_of(seed), mechanism.again)


def each(mechanism: Mechanism, count: int, streams: Streams, run: Callable[[Streams], T]) -> list[T]:
    """What a run of the mechanism gives, so many times."""
    if mechanism.release.measurements is None:
        raise CannotAnswerError("this release does not say how it was measured, so it cannot be run again.")
    if not mechanism.known:
        raise CannotAnswerError(
            "this release was made with a prior, or with triples, that its folder does not hold, so it cannot be run again. "
            "Shares, means, correlations and regressions can be answered without."
        )
    done = np.zeros(count)

    def one(k: int) -> T:
        def heard(share: float, _: str) -> None:
            done[k] = share

        with listening(heard):
            return run(streams.child(f"replicate {k}"))

    with Progress((("replicates", 1.0),)) as progress, ThreadPoolExecutor(min(count, processors())) as pool:
        progress.next()
        found = [pool.submit(one, k) for k in range(count)]
        while wait(found, timeout=TICK).not_done:
            progress.tick(float(done.mean()))
    return [own.result() for own in found]


def interval(  # the function, and how its interval is wanted
    mechanism: Mechanism,
    function: Callable[[Any], float],
    count: int,
    confidence: float,
    about: About,
    seed: int | None = None,
) -> Answer:
    """value ± t·rms of the errors of replicates: approximate, because the centres are not the population."""
    whole_number(count, "replicates", FEWEST, "Fewer say next to nothing.")
    if not callable(function):
        raise ParameterError(f"function must take a frame and give one number, got {function!r}.")
    value = _number(function(mechanism.release.rows(mechanism.library)))
    found = replicates(mechanism, count, seed)
    truth = _number(function(mechanism.truth(streams_of(seed)))) if about == "population" else None
    name = getattr(function, "__name__", "function")
    plain = Answer("function" if name == "<lambda>" else name, value, value, value, 0.0, confidence, about, "")
    return around(plain, function, found, truth)


def around(plain: Answer, function: Callable[[Any], float], found: Sequence[Replicate], truth: float | None) -> Answer:
    """The interval around a value: its errors in replicates are those against `truth`, or against their own tables."""
    count = len(found)
    errors = [_number(function(r.rows)) - (_number(function(r.table)) if truth is None else truth) for r in found]
    se = float(np.sqrt(np.mean(np.square(errors))))
    half = float(stdtrit(count, (1 + plain.confidence) / 2)) * se
    method = f"approximate: {count} replicates; where three columns matter at once it may be too short"
    return replace(plain, low=plain.value - half, high=plain.value + half, se=se, method=method)


def _number(value: Any) -> float:
    """What the function gave, as one number."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise ParameterError(
            f"the function must give one number for a frame, it gave {type(value).__name__}."
        ) from None
    if not np.isfinite(found):
        raise CannotAnswerError("the function has no finite value for these rows, so no interval can be given.")
    return found
