"""Relations found with noise, under audit: rides for the odometer, and planted faults."""

from __future__ import annotations

from fractions import Fraction
from unittest.mock import patch

import numpy as np

import covey.engine.relations.literals
import covey.engine.relations.search
import covey.synthesizers.private
from audits.odometer import Ride
from audits.planting import Fault, replaced
from covey.engine.budget import RELATIONS, Budget
from covey.engine.codes.counts import part
from covey.engine.relations.formulas import Broken
from covey.engine.relations.literals import Cells
from covey.engine.relations.search import Search
from covey.engine.sensitivity import Sensitivity
from covey.engine.units.rows import Counted
from covey.synthesizers import PrivateSynthesizer
from covey.tables.schema import Field, Schema

SCHEMA = Schema(
    fields=(
        Field("code", "string", enum=("A1", "A2", "B1", "B2"), required=True),
        Field("grade", "string", enum=("A", "B"), required=True),
        Field("level", "string", enum=("low", "high"), required=True),
        Field("amount", "integer", minimum=0, maximum=400, required=True),
        Field("fee", "integer", minimum=0, maximum=100),
        Field("total", "integer", minimum=0, maximum=500),
    ),
    relations="learn",
)
ODD = ("A1", "B", "high", "0", "", "77")  # breaks all that holds elsewhere
HOLES = ("B2", "B", "low", "400", "", "")
# Total is no sum, and then one that cannot be computed: such a row leaves one of two counts of a formula and enters the other.
NO_SUM, NO_FEE = ("A1", "A", "low", "100", "5", "499"), ("A1", "A", "low", "100", "", "105")
# Few categories, of which pure laws would make less noise: relations are looked for by Gaussian ones all the same.
FEW = Schema(
    fields=tuple(Field(name, "string", enum=("x", "y", "z"), required=True) for name in ("one", "two")),
    relations="learn",
)
LOOSE = {"neighbours": "add-or-remove-one"}
COMMON = ("A1", "A", "low", "10", "10", "20")


def table(n, seed, *first, related=True):
    """Rows in which grade is a letter of code, level follows from amount, and total is a sum; the first ones as given."""
    g = np.random.default_rng(seed)
    amount, fee, code = g.integers(0, 400, n), g.integers(0, 100, n), g.choice(["A1", "A2", "B1", "B2"], n)
    rows = [
        (c, c[0], "high" if a > 250 else "low", str(a), str(f), str(a + f))
        for c, a, f in zip(code.tolist(), amount.tolist(), fee.tolist(), strict=True)
    ]
    if not related:
        columns = [g.permutation(np.array(column)).tolist() for column in zip(*rows, strict=True)]
        rows = list(zip(*columns, strict=True))
    rows[: len(first)] = first
    return dict(zip(SCHEMA.names, map(list, zip(*rows, strict=True)), strict=True))


def unrelated(seed, *first):
    """Rows of few categories that say nothing of each other."""
    drawn = np.random.default_rng(seed).choice(["x", "y", "z"], (3000, 2)).tolist()
    drawn[: len(first)] = map(list, first)
    return dict(zip(FEW.names, map(list, zip(*drawn, strict=True)), strict=True))


def appended(columns, row):
    """A table with one row more."""
    return {name: [*cells, cell] for (name, cells), cell in zip(columns.items(), row, strict=True)}


def private(*arguments, **options):
    """A maker of synthesizers with a given seed."""
    return lambda seed: PrivateSynthesizer(*arguments, seed=seed, **options)


def relation_rides():
    """Under both promises, and several rows a person."""
    ways = {"odd": ODD, "holes": HOLES}
    others = {name: table(1500, 0, first) for name, first in ways.items()}
    stranger = table(1500, 9, HOLES, related=False)
    shown = {f"charge {RELATIONS}": 10, "law gumbel": 4}
    two = {"two rows": table(1500, 0, ODD, HOLES)}
    added = {f"added, {name}": appended(table(1500, 0, COMMON), first) for name, first in ways.items()}
    fewer = table(1100, 9, HOLES, related=False)
    few = {"charge " + RELATIONS: 1, "charge columns and pairs": 1}
    return [
        Ride(
            "relations, none among few categories",
            private(8.0, 1e-9, schema=FEW),
            unrelated(0, "xx"),
            {"the other end": unrelated(0, "zz")},
            unrelated(9),
            few,
        ),
        Ride("relations", private(6.0, 1e-6, schema=SCHEMA), table(1500, 0, COMMON), others, stranger, shown),
        Ride("relations, pure", private(90.0, schema=SCHEMA), table(1500, 0, COMMON), others, stranger, shown),
        *(
            Ride(
                f"relations, {name}",
                private(*budget, schema=SCHEMA),
                table(1500, 0, NO_SUM),
                {"no fee": table(1500, 0, NO_FEE)},
                stranger,
                shown,
            )
            for name, budget in {"counts of a formula": (6.0, 1e-6), "counts of a formula, pure": (90.0,)}.items()
        ),
        Ride(
            "relations, persons",
            private(12.0, 1e-6, schema=SCHEMA, rows_per_person=2),
            table(1500, 0, COMMON, COMMON),
            two,
            stranger,
            shown,
        ),
        *(
            Ride(
                f"relations, {name}",
                private(*budget, schema=SCHEMA, **LOOSE),
                table(1500, 0, COMMON),
                added,
                fewer,
                shown,
            )
            for name, budget in {"added": (6.0, 1e-6), "added, pure": (90.0,)}.items()
        ),
    ]


# Faults.


def candidates_from_rows():
    """Formulas that most rows break are no candidates: nothing is chosen among them, at no cost."""

    def fewer(real):
        def run(self):
            self.open[len(self.of) :] &= self.counted._sealed.values[0][:, 0] < self.n // 2
            return real(self)

        return run

    return replaced((Search, "run", fewer))


def chance_from_rows():
    """What chance does is computed on a permutation of the true rows that is drawn from the rows themselves."""
    kept = []

    def keeping(real):
        def count(self, batch):
            kept[:] = [np.array(batch)]
            return real(self, batch)

        return count

    def peeking(real):
        def by_chance(self, codes):
            expected = real(self, codes)
            if not kept:
                return expected
            own = np.random.default_rng(int(kept[-1].sum()))
            mixed = np.stack([own.permutation(column) for column in kept[-1].T], axis=1)
            broken = Broken(self.columns, self.candidates)(mixed).values[0][:, 0]
            return broken * (self.n / len(mixed))

        return by_chance

    return replaced((Cells, "__call__", keeping), (Search, "_by_chance", peeking))


def confirmed_exactly():
    """Whether a candidate holds is decided by the exact number of rows that break it."""

    def exactly(real):
        def count(self, i):
            _, sd = real(self, i)
            return float(self.broken._sealed[i]), sd

        return count

    return replaced((Search, "_count", exactly))


def function_from_exact_counts():
    """The table of a function is read as it is; its noise is drawn and not added."""

    def exact(real):
        def read(self, function):
            real(self, function)
            return tuple(function.table(self.tables._sealed, self.cells.domain).argmax(axis=1).tolist())

        return read

    return replaced((Search, "_read", exact))


def scores_twice_as_sensitive():
    """Rows that break a candidate count twice in its score, and the noise of the choice is that of one."""

    def doubled(_):
        return lambda tables, broken, of: 2 * np.concatenate([of.broken(tables), part(broken)[:, 0]])

    return replaced((covey.engine.relations.search, "_violations", doubled))


def size_in_a_function():
    """The number of rows that a function gets wrong is counted from the noisy number of rows: scores move to both sides."""

    def noisy(real):
        def unlike(table, function):
            return real(table, function) if function.map else int(1500 - table.max(axis=1).sum())

        return unlike

    return replaced((covey.engine.relations.literals, "_unlike", noisy))


def one_way_like_one_column():
    """Cells of all columns get the noise of one."""

    def fewer(real):
        def measure(self, exact, shape, sensitivity, share):
            small = Sensitivity(l1=2, l2_squared=Fraction(2)) if len(shape) == 1 and shape[0] > 2 else sensitivity
            return real(self, exact, shape, small, share)

        return measure

    return replaced((Search, "_measure", fewer))


def counts_of_formulas_like_one():
    """The two counts of a formula, one of which a row may leave for the other, get the noise of a single one."""
    search = covey.engine.relations.search

    def fewer(real):
        def judge(self, *given):
            with patch.object(search, "TWO", search.ONE):
                return real(self, *given)

        return judge

    return replaced((Search, "_judge_formula", fewer))


def size_told_to_the_search():
    """The search is told the exact number of rows after it was measured."""

    def exactly(real):
        return lambda rows, *rest: real(rows.rows if isinstance(rows, Counted) else rows, *rest)

    return replaced((covey.synthesizers.private, "find_relations", exactly))


def price_of_a_bounded_range():
    """A choice is paid as if its range were half of what it is."""

    def cheaper(real):
        return lambda self, sensitivity, *gumbel: real(self, sensitivity, *gumbel) / (2 if gumbel else 1)

    return replaced((Budget, "choice_scale", cheaper))


def law_chosen_after_the_search():
    """Once relations are known, pure noise is promised for the schema that has them; what was drawn is Gaussian."""

    def anew(real):
        def choose(self, *n):
            with patch.object(self, "_declared", None):
                real(self, *n)

        return choose

    return replaced((PrivateSynthesizer, "_choose_law", anew))


def faults():
    """All of them."""
    both = counts_of_formulas_like_one()
    return [
        Fault(
            "relations: a law chosen after the search",
            "odometer: relations, none among few categories",
            law_chosen_after_the_search(),
        ),
        Fault("relations: candidates that depend on rows", "odometer: relations", candidates_from_rows()),
        Fault("relations: chance from a permutation of the rows", "odometer: relations", chance_from_rows()),
        Fault("relations: confirmed by the exact count", "odometer: relations", confirmed_exactly()),
        Fault("relations: a function read off exact counts", "odometer: relations", function_from_exact_counts()),
        Fault("relations: scores that move by two", "odometer: relations", scores_twice_as_sensitive()),
        Fault("relations: functions counted from a noisy n", "odometer: relations, added", size_in_a_function()),
        Fault("relations: all columns noised like one", "odometer: relations", one_way_like_one_column()),
        Fault("relations: counts of a formula noised like one", "odometer: relations, counts of a formula", both),
        Fault(
            "relations: counts of a formula noised like one, pure",
            "odometer: relations, counts of a formula, pure",
            both,
        ),
        Fault("relations: the search told the exact n", "odometer: relations, added", size_told_to_the_search()),
        Fault("relations: a choice with half the noise", "odometer: relations, pure", price_of_a_bounded_range()),
    ]
