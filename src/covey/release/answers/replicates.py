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

from covey.engine.arrays import processors
from covey.engine.budget import DOMAINS, RELATIONS, Budget
from covey.engine.draw.balanced import keep_limits
from covey.engine.driver import SIZE, SIZE_SHARE, count_units, fit, planned_shares
from covey.engine.entropy import Streams
from covey.engine.gate import Gate
from covey.engine.model import Fitted, Model
from covey.engine.models.bits import RegainBits, declared_coding
from covey.engine.points import bootstrap, round_bits, round_categories
from covey.engine.progress import Progress, listening, silent
from covey.engine.units.local import ArrayRows, EventRows
from covey.engine.units.rows import Counted
from covey.errors import CannotAnswerError, ParameterError, whole_number
from covey.release.answers.answer import About, Answer, in_library
from covey.release.answers.estimates import Rows
from covey.release.drawing import drawn_columns
from covey.tables.models import persons_model, table_model

if TYPE_CHECKING:
    from covey.release.answers.release import Release

T = TypeVar("T")
NONE = Fraction(0)  # no certificate is bought: nobody reads it
# What was measured before the fit, or beside it. Limits, labels and relations that were learned are taken as they are, and the
# number of units, where it is secret, is measured anew.
APART = {"certificate", DOMAINS, RELATIONS, SIZE}
TRUTH_ROWS = 8  # times n: what a function says of the centres themselves is read off so many rows
TICK = 0.5  # seconds between two looks at how far replicates have come
POOL = 4  # times as many persons as are wanted: what their balance hides is a quarter of what sampling adds, at most
FEWEST = 4  # replicates: fewer say next to nothing of their own spread


@dataclass(frozen=True)
class Replicate:
    """A table drawn from the centres, and the synthetic rows of a release of it: as frames, or as rows of units."""

    table: Any
    rows: Any


@dataclass(frozen=True)
class Mechanism:
    """What made a release, to be run again on public tables; of persons with events frames are by the names of their tables."""

    release: Release
    library: str = "polars"  # of the frames that a function is given

    @property
    def budget(self) -> Budget:
        """What the release spent on its fit."""
        privacy = self.release.privacy
        spent = sum((c.amount for c in privacy.charges if c.purpose not in APART), NONE)
        return privacy.budget.part(spent / privacy.budget.amount)

    def method(self) -> Model:
        """The method for bits, for categories and numbers, or for persons, as public facts decide it."""
        codec = self.release.codec
        triples = sum(len(self.release.evidence.found.chosen(d)) for d in (3, 4, 5)) or None  # whoever asked for them
        if self.release.several:
            return persons_model(self.release.described.focus(triples=triples), NONE)
        if self.release.flags:
            width = len(codec.names)
            declared = declared_coding(width, codec.limits) if codec.limits else None
            return RegainBits(NONE, declared, width=width, limits=codec.limits)
        method = table_model(codec, NONE, self.budget.pure)
        return replace(method, important=replace(method.important, triples=triples)) if triples else method

    @property
    def known(self) -> bool:
        """Whether the release says all of how it was made: what it spent is what this method plans, and no prior was used."""
        privacy, budget = self.release.privacy, self.budget
        shares = self.method().shares(privacy.n, len(self.release.columns.names), budget)
        return privacy.prior is None and {c.purpose for c in privacy.charges} <= {*shares, *APART}

    def table(self, m: int, streams: Streams) -> Any:
        """Codes of units as independent as people are. Balanced ones, which a release draws, would hide what sampling adds."""
        release, public = self.release, streams.postprocessing("table")
        if release.several:
            return release.persons.drawn(POOL * m, public, public).resampled(m, public)  # a law draws balanced ones
        cloud, codec, numbers = release.row_law.cloud, release.codec, release.numbers
        chosen = bootstrap(cloud, m, public)
        if release.flags:
            bits = round_bits(cloud.points, chosen, public)
            return keep_limits(bits, codec.limits, public) if codec.limits else bits
        sizes = codec.domain_sizes if numbers is None else numbers.domain.sizes
        codes = round_categories(cloud.points, chosen, sizes, public)
        for j, cells in release.cells.items():
            codes[:, j] = cells.values(codes[:, j], public)
        return codes

    def frame(self, codes: Any, streams: Streams) -> Any:
        """Codes as a frame of values."""
        public, release = streams.postprocessing("decode"), self.release
        if not release.several:
            return in_library(release.codec.decode(codes.astype(np.int64), public, release.codec.coding), self.library)
        tables = zip(release.described.tables, drawn_columns(release.described, codes, public), strict=True)
        return {part.name: in_library(own, self.library) for part, own in tables}

    def truth(self, streams: Streams) -> Any:
        """What the law itself says: many of its units, which are balanced."""
        own, release = streams.child("truth"), self.release
        return self.frame(release.fitted.law.draw(TRUTH_ROWS * release.privacy.n, own), own)

    def refit(self, streams: Streams) -> tuple[Any, Fitted]:
        """A table drawn from the law, and what the mechanism makes of it."""
        n, model, budget, own = self.release.privacy.n, self.method(), self.budget, streams.child("fit")
        table = self.table(n, streams.child("table"))
        rows: Any = EventRows(table) if self.release.several else ArrayRows(table)
        promised = self.release.privacy.budget
        if promised.size_is_secret:
            counting = Gate(promised.part(SIZE_SHARE), {SIZE: Fraction(1)}, own.child(SIZE))
            rows = Counted.of(rows, count_units(rows, counting))
        with silent():
            gate = Gate(budget, planned_shares(model, rows.n, rows.p, budget), own, rows.steps)
            return table, fit(model, rows, gate, own.postprocessing)

    def again(self, streams: Streams) -> Replicate:
        """One replicate."""
        (table, fitted), drawn, own = self.refit(streams), streams.child("table"), streams.child("rows")
        rows = fitted.law.draw(self.release.parts.m or self.release.privacy.n, own)
        return Replicate(self.frame(table, drawn), self.frame(rows, own))

    def runs(self, count: int, streams: Streams, run: Callable[[Streams], T]) -> list[T]:
        """What a run gives, so many times, as many at a time as there are processors."""
        if self.release.measurements is None:
            raise CannotAnswerError("this release does not say how it was measured, so it cannot be run again.")
        if not self.known:
            raise CannotAnswerError(
                "this release was made with a prior, or with triples or queries, that its folder does not hold, so it cannot be "
                "run again. Shares, means, correlations and regressions can be answered without."
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
    streams: Streams,
) -> Answer:
    """value ± t·rms of the errors of replicates: approximate, because the centres are not the population."""
    whole_number(count, "replicates", FEWEST, "Fewer say next to nothing.")
    if not callable(function):
        raise ParameterError(f"function must take a frame and give one number, got {function!r}.")
    value = _number(function(mechanism.release.rows(mechanism.library)))
    found = mechanism.runs(count, streams, mechanism.again)
    truth = _number(function(mechanism.truth(streams))) if about == "population" else None
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
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise ParameterError(
            f"the function must give one number for a frame, it gave {type(value).__name__}."
        ) from None
    if not np.isfinite(found):
        raise CannotAnswerError("the function has no finite value for these rows, so no interval can be given.")
    return found


# Rows of units.


def in_units(release: Release, codes: Any, streams: Streams) -> Rows:
    """Rows of codes by the units that numbers were measured in; of persons each with one of their events and how many."""
    if release.several:
        counts, public = codes.counts, streams.postprocessing("one event")
        at = np.cumsum(counts) - counts + np.floor(public.random(len(counts)) * counts).astype(np.int64)
        some = codes.events[np.minimum(at, len(codes.events) - 1)]
        codes = np.column_stack([codes.persons, np.where(counts[:, None] > 0, some, -1), counts])
    units = codes.astype(np.int64)
    for j in release.cells:
        units[:, j] = np.searchsorted(release.evidence.margins[j].edges, units[:, j], side="right") - 1
    return Rows(units.astype(np.min_scalar_type(-1 - int(units.max(initial=0)))))  # the smallest that hold them, and -1
