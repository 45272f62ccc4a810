"""What a release will be like, predicted from public sizes before any data is opened: error, time, memory, small groups.

Memory is the one estimate that plans state and refusals rest on. Rows stream, so what grows with them is bounded: parts in
flight, kept rows, and one part of synthetic rows. What grows with the columns are matrices over bins or flags, and centres over
all categories. The constants are fitted to whole releases: benchmarks/memory.py, docs/benchmarks/memory.csv.

A group with its own mean shows as one strong direction in the covariances of all bins: its category against the bins of a number.
The denoiser keeps directions that stand out of the noise, and takes the others for noise: of those no more than the overall mean
is left. The edge of the noise and the number of bins are public (docs/known-limits.md; checked by benchmarks/groups.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import e, sqrt
from typing import Any

import numpy as np

from covey.engine.arrays import Floats, allowed_memory, require_memory
from covey.engine.budget import Budget
from covey.engine.codes.domain import Domain
from covey.engine.draw.balanced import REFINE_CATEGORIES
from covey.engine.fit.spectrum import ANGLES, ROOM
from covey.engine.fit.wide import LOW_RANK_CATEGORIES, LOW_RANK_COLUMNS
from covey.engine.model import CERTIFICATE_SHARE
from covey.engine.models.bits import expected_pair_noise, plan_bits
from covey.engine.models.tables.important import NOTHING, Important
from covey.engine.models.tables.method import CENTRES
from covey.engine.models.tables.plan_tables import (
    DESIGN_WORDS,
    TablePlan,
    histogram_share,
    most_bins,
    pair_law,
    planned_bins,
)
from covey.engine.models.tables.table_counts import whole_ranges
from covey.engine.models.tables.triples import triple_noise
from covey.engine.noise.integers import cube_deviation
from covey.engine.noise.law import UNMEASURED
from covey.engine.numbers.grid import CELLS, Attribute, Category, NumberGrid, grids
from covey.engine.sensitivity import Sensitivity
from covey.engine.unit import ADD_REMOVE, REPLACE
from covey.engine.units.local import SORTED_BYTES
from covey.errors import ParameterError

# Pure laws are taken where their expected noise on pairs is at most so many times the Gaussian one's, for flags by the kind of
# neighbours: their noise on means is far smaller, and it is known exactly. Chosen on nltcs, msnbc and plants (small.md).
PURE_FLAGS = {REPLACE: 1.26, ADD_REMOVE: 0.92}
# With less Gaussian noise than this on a pair of flags three columns decide, which pure laws do not measure: their errors are
# 1.1 to 5.4 times as large there, those of pairs 0.4 to 1.1 times (nltcs, plants, accidents, msnbc, 6 to 17 columns).
THREE_COLUMNS = 0.0006
SOME = 1000  # rows: how noises compare does not depend on their number
# How far from independent columns must be for pairs with Gaussian noise to pay, beyond which columns matter more than pairs:
# set on telco, where Gaussian noise is better at 0.07 (1,000 rows) and pure noise at 0.14 (500). At 0.083 (300 rows, ε = 3) telco
# would still be better with Gaussian noise, and is no worse than noisy margins with pure noise; bank needs that at 0.078.
FEW_ROWS = 0.075
# Denoising leaves about this part of the noise on a pair share: the public tables of docs/benchmarks lie between 0.1 and 1.4.
LEFT_AFTER_DENOISING = 0.6
COARSE = 12  # categories of a column that matter here: beyond them most rows stand in few of them
NOISE = 0.1  # predicted error of a 2-way share beyond which a release is mostly noise
# Rows out of place grow with the noise, and far more slowly where there is much of it: the fit takes columns for independent
# rather than believe noise. Fitted to adult, national2019 and randhie (docs/benchmarks), right within a factor of 1.8 there.
SLOW, POWER = 0.07, 0.4
ONE_WAY_LEFT = 0.4  # of the noise on a one-way table
CHANCE = 0.2  # of √(cells/n): what drawing rows adds
STARTING = 2.0  # seconds before anything is read: Python and its libraries
NO_ROOM = "this machine has too little memory: a release would be refused, and nothing charged"
BLIND = 0.5  # error of a share that is guessed blindly, as far as it can be off on average
LIBRARIES = 220 << 20  # Python and its libraries, once a table is read and a report written
PART = 1 << 18  # rows that are held at once, while they are read or drawn: longer tables come in parts
KEPT = 1 << 28  # bytes of encoded rows that are kept; a byte holds eight flags, a code takes two
FLAG, CODE = 30, 60  # bytes of a cell of a part, as code, as value and as the report counts it


@dataclass(frozen=True)
class Prediction:
    """Rules of thumb, from public numbers alone."""

    epsilon: float
    delta: float
    error: float
    misplaced: float
    stages: dict[str, float]  # seconds, stage by stage
    memory_gib: float
    warnings: tuple[str, ...]
    groups: SmallGroups | None = None  # below which size means of groups are pulled towards the overall mean

    @property
    def seconds(self) -> float:
        """Of all stages."""
        return sum(self.stages.values())

    @property
    def sentence(self) -> str:
        """The yardstick: what certificates bound and evaluations find."""
        out = f"{100 * self.misplaced:.2g}%"
        return f"in an average two-column table about {out} of the rows would have to move to match the real one"

    def as_dict(self) -> dict[str, Any]:
        """For a JSON answer."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "average_total_variation": self.misplaced,
            "predicted_error": self.error,
            "seconds": self.seconds,
            "seconds_by_stage": self.stages,
            "memory_gib": self.memory_gib,
            "smallest_group": None if self.groups is None else self.groups.rows,
            "warnings": list(self.warnings),
        }


def predict(
    sizes: Sequence[int], n: int, budget: Budget, attributes: Sequence[Attribute] = (), delta: Fraction = Fraction(0)
) -> Prediction:
    """Predicted average total variation, time and memory.

    n counts rows, or where the promise is to persons with all their rows these persons. Time and memory are then those of as many
    rows: how many there are is not public. Memory and small groups follow from the attributes; without any, sizes are those of
    categories. Where δ is allowed and the budget is pure all the same, because that has less noise, `delta` is what was allowed.
    """
    error, kinds = predicted_error(sizes, n, budget), attributes or [Category(size) for size in sizes]
    needed, warnings = release_memory(kinds, n, budget), []
    if mostly_noise(error):
        warnings.append(f"the result will be mostly noise; {remedies(sizes, n, budget, offered=delta > 0)}")
    if budget.epsilon > 10:
        warnings.append("an epsilon above 10 is a weak guarantee")
    if needed > allowed_memory():
        warnings.append(NO_ROOM)
    return Prediction(
        float(budget.epsilon),
        float(max(budget.delta, delta)),
        error,
        predicted_misplaced(sizes, n, budget),
        expected_seconds(sizes, n),
        needed / 2**30,
        tuple(warnings),
        small_groups(kinds, n, budget),
    )


def solve_epsilon(
    sizes: Sequence[int], n: int, promise: Callable[[float], Budget], target: Fraction | None
) -> Fraction:
    """The smallest ε, to two digits, for which at most this share of rows is predicted to be out of place."""

    def misplaced(epsilon: float) -> float:
        return predicted_misplaced(sizes, n, promise(epsilon))

    if target is None or not 0 < target < Fraction(1, 2):
        raise ParameterError(f"target-error must lie between 0 and 0.5, got {target}.")
    budget = promise(1.0)
    low, high = 1e-6 * budget.rows_per_person, 1e6
    if misplaced(high) > target:
        raise ParameterError(
            f"with {n} {budget.counted} no epsilon is predicted to reach an average total variation distance of "
            f"{float(target):g}: sampling alone costs more. Ask for a larger target error."
        )
    for _ in range(80):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if misplaced(middle) > target else (low, middle)
    digits = int(np.ceil(-np.log10(high))) + 1
    return Fraction(int(np.ceil(high * 10.0**digits))) / Fraction(10) ** digits


def least_noise(attributes: Sequence[Attribute], budget: Budget, n: int | None = None) -> Budget:
    """The budget of a promise with δ, or that of pure ε where its laws have less noise: a function of public numbers.

    The number of rows is one of them where rows are replaced: with few of them columns are all that can be measured well, and
    with many of them three yes/no columns too.
    """
    pure, kinds = budget.without_delta, tuple(attributes)
    if budget.pure or any(isinstance(a, NumberGrid) or a.groups for a in kinds) or sum(a.size > 1 for a in kinds) < 2:
        return budget
    if all(a.size == 2 for a in kinds):
        one, other = (expected_pair_noise(SOME, len(kinds), own) for own in (pure, budget))
        clear = n is not None and len(kinds) > 2 and not budget.size_is_secret and other * SOME < THREE_COLUMNS * n
        return pure if one <= PURE_FLAGS[budget.neighbours] * other and not clear else budget
    plan = TablePlan(kinds)
    pairs = [plan.required_dependence(SOME, own) for own in (pure, budget)]
    columns = [float(plan.one_way.deviations(own) @ plan.domain.counts) for own in (pure, budget)]
    few = n is not None and not budget.size_is_secret and plan.required_dependence(n, budget) > FEW_ROWS
    return pure if (few or pairs[0] <= pairs[1]) and columns[0] <= columns[1] else budget


def flag_words(n: int, p: int, budget: Budget) -> str:
    """Of yes/no columns, whether their pairs are left out."""
    alone = p > 1 and plan_bits(n, p, budget.part(1 - CERTIFICATE_SHARE)).mechanism == "means"
    return DESIGN_WORDS["one-way"] if alone else ""


def expected_seconds(sizes: Sequence[int], n: int) -> dict[str, float]:
    """Processor seconds of a release, stage by stage, from public sizes alone: the report is written too.

    Fitted to tables of 3,000 to 200,000 rows and 10 to 200 columns of flags, categories and numbers, right within a factor of
    1.6 there, on a machine of 2024 (docs/benchmarks/growth.md has more). On three that it was not fitted to, with and without δ:
    11.1 said and 10 to 11 used (30,000 × 12, five numbers), 8.8 and 6.5 to 7.1 (100,000 × 40 flags), 15.9 and 14 to 18
    (national2019, 24 columns). A busy machine takes longer.
    """
    p, width = len(sizes), sum(min(c, 60) for c in sizes)
    cells = float(n * p)
    if all(size == 2 for size in sizes):
        measuring = 1.5 + 0.05 * min(p, 250) + 1.2e-5 * p**2 + 5e-8 * cells
        writing = 0.5 + 4e-7 * cells
    else:
        measuring = 0.5 + 4.3e-4 * cells**0.7 + 5e-6 * width**2
        writing = 1.0 + 1.3e-4 * min(cells, 1e6) ** 0.8 + 5e-7 * cells + 4e-6 * width**2
    before = {"checking": STARTING, "reading": 0.1 + 2e-7 * cells, "charging": 0.1}
    return before | {"measuring": measuring, "writing": writing}


def mostly_noise(error: float) -> bool:
    """The one rule by which a plan, and a release of the same sizes, say "mostly noise"."""
    return error > NOISE


def remedies(sizes: Sequence[int], n: int, budget: Budget, offered: bool = False) -> str:
    """What helps against noise. δ does, unless it was offered and not taken, or bits get means alone: cube noise is smaller."""
    p, delta = len(sizes), ", a positive delta" if budget.pure and not offered else ""
    if not budget.pure and max(sizes) <= 2 and plan_bits(n, p, budget).mechanism == "means":
        gaussian = float(budget.variance(p)) ** 0.5
        cube = cube_deviation(p) * budget.rows_per_person / float(budget.epsilon)
        delta = f", no delta ({cube / gaussian:.2g} of its noise on the means)" if cube < gaussian else ""
    return f"more {budget.counted}, a larger epsilon{delta} or fewer columns help"


def predicted_error(sizes: Sequence[int], n: int, budget: Budget) -> float:
    """Noise on a pair share, as far as denoising leaves it; never above that of a blind guess."""
    return float(min(BLIND, LEFT_AFTER_DENOISING * pair_noise(sizes, n, budget) + 0.1 / np.sqrt(n)))


def predicted_misplaced(sizes: Sequence[int], n: int, budget: Budget) -> float:
    """The share of rows that will be out of place in a typical table of two columns: a rule of thumb."""
    live = [size for size in sizes if size > 1]
    if not live:
        return 0.0
    seen, k = np.minimum(live, COARSE).astype(np.float64), len(live)
    cells = seen[0] if k == 1 else (seen.sum() ** 2 - (seen**2).sum()) / (k * (k - 1))
    noise = 0.4 * cells * pair_noise(sizes, n, budget)  # half the sum of mean absolute errors of normal noise
    left = LEFT_AFTER_DENOISING * noise
    if max(sizes) > 2:
        own = 0.4 * float(np.mean(np.minimum(live, 60))) * one_way_noise(sizes, n, budget)
        left = min(left, SLOW * noise**POWER) + own
    return float(min(BLIND, left + CHANCE * np.sqrt(cells / n)))


def expected_focus(plan: TablePlan, n: int, budget: Budget) -> dict[str, float]:
    """Predicted noise on 2-way shares: of important pairs, of the others, and of all if none were important.

    Single columns, merged categories and drawing add errors of their own, which do not shrink: docs/benchmarks/knowledge.md.
    """
    guess, rest, own = planned_bins(plan.domain), 1 - CERTIFICATE_SHARE, plan.remeasured(n, budget)

    def others(own: TablePlan) -> float:
        return pair_law(guess, budget.part(own.expected_shares(n, budget, rest)["pairs"])).sd / n

    share = budget.part(plan.shares(n, budget, rest)["important"])
    first, second = others(plan), own.sensitivity(guess.sizes).deviation(share) / n
    both = 1 / (1 / first**2 + 1 / second**2) ** 0.5 if first > 0 else second
    without = Important(target=own.target, triples=own.triples) if own.triples else NOTHING
    found = {"important": both, "others": first, "without": others(TablePlan(plan.attributes, without))}
    return {name: LEFT_AFTER_DENOISING * noise for name, noise in found.items()}


def focus_words(focus: Mapping[str, float], sizes: Sequence[int]) -> str:
    """What important pairs gain and the others lose, in rows out of place of tables of two columns."""
    seen = np.minimum([size for size in sizes if size > 1], COARSE).astype(np.float64)
    cells = (seen.sum() ** 2 - (seen**2).sum()) / (len(seen) * (len(seen) - 1))

    def moved(which: str) -> str:
        noise = 0.4 * cells * focus[which]
        if max(sizes) > 2:
            noise = min(noise, SLOW * (noise / LEFT_AFTER_DENOISING) ** POWER)
        return f"{100 * min(BLIND, noise):.2g}"

    return (
        f"noise moves about {moved('important')}% of the rows in an important two-column table (without this choice "
        f"{moved('without')}%, in other tables {moved('others')}%); errors of single columns, merged categories and "
        "drawing come on top and do not change"
    )


def expected_triples(important: Important, q: int, n: int, measuring: Budget | None) -> dict[str, float]:
    """How many triples would be chosen, among how many of q columns, on how many levels, and the noise on a cell as a share.

    `measuring` is what their tables may spend, where the plan gives them anything.
    """
    found: dict[str, float] = {"count": 0, "candidates": important.candidates(q), "levels": 0, "noise": 0.0}
    if measuring is None:
        return found
    affordable = important.affordable(n, q, measuring)
    noise = triple_noise(affordable.count, measuring) / n
    return found | {"count": affordable.count, "levels": affordable.levels, "noise": noise}


def triple_words(found: Mapping[str, float], counted: str = "rows") -> str:
    """The same in one line."""
    if not found["candidates"]:
        return "triples: none, because there are no three columns to choose from"
    if not found["count"]:
        return f"triples: none, because noise would hide them or too few {counted} are there for so many columns"
    more = ", fours and fives of yes/no columns" if counted == "rows" else ""
    return (
        f"triples: the {found['count']} strongest of {found['candidates']:,} triples{more} are chosen with noise and measured, "
        f"on {found['levels']} levels a column at most; noise on a share about {found['noise']:.2g}"
    )


def one_way_noise(sizes: Sequence[int], n: int, budget: Budget) -> float:
    """The noise on a share of a one-way table, as far as denoising leaves it."""
    budget, plan = budget.part(1 - CERTIFICATE_SHARE), TablePlan(tuple(Category(size) for size in sizes if size > 1))
    own = budget.part(Fraction(histogram_share(n, plan.domain, budget)))
    sensitivity = Sensitivity.histograms(len(plan.attributes))
    sd = float(plan.one_way.deviations(own).mean()) if budget.pure else sensitivity.deviation(own)
    return ONE_WAY_LEFT * sd / n


def pair_noise(sizes: Sequence[int], n: int, budget: Budget) -> float:
    """The standard deviation of the noise on a cell of a pair table, before denoising."""
    domain = Domain(tuple(sizes), (False,) * len(sizes))
    budget = budget.part(1 - CERTIFICATE_SHARE)
    if all(c <= 2 for c in sizes):
        return expected_pair_noise(n, max(len(sizes), 2), budget)
    if sum(c > 1 for c in sizes) < 2:
        return Sensitivity.histograms(1).deviation(budget) / n
    share = Fraction(1 - histogram_share(n, domain, budget))
    law = pair_law(planned_bins(domain), budget.part(max(share, Fraction(1, 10))))
    return law.sd / n if law.family is not UNMEASURED else BLIND / LEFT_AFTER_DENOISING


def refuse_too_large(attributes: Sequence[Attribute], n: int, budget: Budget) -> None:
    """Refuse, before anything is charged or allocated, a table whose release needs more memory than there is."""
    wide = sum(attribute.size for attribute in attributes if isinstance(attribute, Category))
    what = f"a table of {len(attributes):,} columns with {wide:,} categories"
    require_memory(release_memory(attributes, n, budget), what, "Use fewer columns or categories.")


def release_memory(attributes: Sequence[Attribute], n: int, budget: Budget) -> int:
    """Bytes that a release of n rows takes at its peak, libraries included. More rows never take less."""
    q, held = len(attributes), min(n, PART)
    if all(isinstance(a, Category) and a.size == 2 for a in attributes):
        return int(LIBRARIES + min(KEPT, n * q / 8) + max(FLAG * q * held, flag_matrices(q)))
    wide = sum(min(a.size, CELLS) if isinstance(a, NumberGrid) else a.size for a in attributes)
    drawing = CODE * q * held + (20 * wide**2 if wide <= REFINE_CATEGORIES else 0)  # with pair tables to be matched
    fitting = bin_matrices(attributes, n, budget) + 5 * 8 * CENTRES * wide
    ranges = whole_ranges(attributes)
    late = 0 if ranges is None else sum(8 if attributes[j].size >> 32 else 4 for j in ranges.columns)
    return int(LIBRARIES + min(KEPT, 2 * n * q) + min(SORTED_BYTES, n * late) + max(drawing, fitting))


def flag_matrices(p: int) -> float:
    """Sums of a batch, the sums so far and their total, several denoisers; beyond LOW_RANK_COLUMNS a basis; and the centres."""
    matrices = (160 if p <= LOW_RANK_COLUMNS else 40) * p**2
    return matrices + 40 * 4 * 600 * min(p, 1000) + 40 * 4 * 200 * max(p - 1000, 0)


def bin_matrices(attributes: Sequence[Attribute], n: int, budget: Budget) -> float:
    """Covariances of all pairs of bins, as several denoisers hold them, and tables of two numbers at many correlations."""
    bins = expected_bins(attributes, n, budget)
    total = float(bins.sum())
    tied = bins[[isinstance(a, NumberGrid) or a.ordered for a in attributes]]
    tables = ANGLES * float(tied.sum() ** 2 - (tied**2).sum()) if grids(attributes) else 0
    return (130 if total > LOW_RANK_CATEGORIES else 250) * total**2 + 8 * tables * (tables <= ROOM)


def expected_bins(attributes: Sequence[Attribute], n: int, budget: Budget) -> Floats:
    """Bins of each attribute whose pairs are measured: as fine as noise and plan allow."""
    plan = TablePlan(tuple(attributes))
    shares = plan.expected_shares(n, budget, 1 - CERTIFICATE_SHARE)
    ordered = 1 / plan.bin_mass(n, budget.part(shares["pairs"]))
    most, found = most_bins(plan.domain), []
    for a, sd in zip(attributes, plan.one_way.deviations(budget.part(shares["histograms"])), strict=True):
        if isinstance(a, NumberGrid) or a.ordered:
            found.append(min(a.size, ordered))
        else:
            found.append(min(a.size, most, max(2.0, n / (3 * sd))))
    return np.array(found)


@dataclass(frozen=True)
class SmallGroups:
    """So many of n rows, or persons, below which the means of groups are not to be relied on."""

    rows: int
    n: int
    counted: str

    @property
    def sentence(self) -> str:
        """In plain words."""
        if 2 * self.rows > self.n:
            return f"At this budget, means of groups are pulled towards the overall mean, even for half of the {self.counted}."
        share = 100 * self.rows / self.n
        size = f"{self.rows:,} {self.counted} ({f'{share:.0f}' if share >= 1 else f'{share:.1g}'}%)"
        return f"At this budget, means of groups smaller than about {size} are pulled towards the overall mean."


def small_groups(attributes: Sequence[Attribute], n: int, budget: Budget) -> SmallGroups | None:
    """The size, to two digits, at which about half of a group's difference from the overall mean is left.

    The group's mean lies one standard deviation above that of the others. Its shares of B bins of equal mass then differ from
    theirs by √((e − 1)/B) (the χ² distance of two normal laws), times its share of the rows; noise of deviation s on a symmetric
    matrix of D bins ends at 2s√D. None where no column is a number, or there is no other one.
    """
    numbers = [j for j, a in enumerate(attributes) if isinstance(a, NumberGrid)]
    if not numbers or sum(a.size > 1 for a in attributes) < 2:
        return None
    plan, bins = TablePlan(tuple(attributes)), expected_bins(attributes, n, budget)
    merged = Domain(tuple(max(1, round(size)) for size in bins), plan.domain.ordered)
    law = pair_law(merged, budget.part(plan.expected_shares(n, budget, 1 - CERTIFICATE_SHARE)["pairs"]))
    if law.family is UNMEASURED:
        return SmallGroups(n, n, budget.counted)
    rows = 2 * law.sd * sqrt(merged.total) / sqrt((e - 1) / max(bins[numbers]))
    return SmallGroups(max(1, min(n, int(float(f"{rows:.1e}")))), n, budget.counted)
