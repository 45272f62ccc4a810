"""Tables with numbers on the odometer, and faults of trees: levels that are not paid for, splits that look at exact counts."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

import covey.engine.driver as driver
import covey.engine.models.tables.measure_tables as measure
import covey.engine.models.tables.plan_one_way as plan
import covey.engine.models.tables.triples
from audits.odometer import Ride
from audits.planting import Fault, replaced
from covey.engine.budget import Budget
from covey.engine.codes.counts import Counts
from covey.engine.gate import WHOLE, Gate, Joint
from covey.engine.models.tables.important import Important
from covey.engine.noise.law import CHOICE
from covey.engine.numbers.grid import Difference
from covey.engine.numbers.tree import Tree
from covey.engine.query import Factor, Query, mean_variation
from covey.engine.sensitivity import Sensitivity
from covey.engine.statistic import Statistic
from covey.synthesizers import PrivateSynthesizer
from covey.tables.schema import Field, LessEqual, Schema

FIELDS = (
    Field("income", "number", 0, 10**7, decimals=0, special=("refused",)),
    Field("age", "integer", 0, 120),
    Field("came", "date", "2015-01-01", "2030-12-31", required=True),
    Field("left", "date", "2015-01-01", "2031-12-31"),
    Field("ward", "string", enum=("A", "B", "C"), required=True),
    Field("code", "string", enum=("I10", "I11", "I20", "J45", "J46", "K50"), other="other", levels=1),
)
HALVES = {0: Factor(np.array([0, 5000, 10**7 + 3]), np.arange(2)), 1: Factor(np.array([0, 40, 122]), np.arange(2))}
WARDS = {4: Factor.plain(3)}
FURTHER = (Query([(0, 1), (1, 4)], HALVES | WARDS), Query([(4,)], WARDS))


@dataclass(frozen=True)
class Hundredfold:
    """Kernel: rows by ward, a hundred times each."""

    def __call__(self, batch):
        return Counts((100 * np.bincount(batch[:, 4], minlength=3),))


class HundredWards(Query):
    """A query with a kernel of its own, and what one row moves."""

    def kernel(self):
        return Hundredfold()

    def sensitivity(self):
        return Sensitivity(l1=200, l2_squared=2 * 100**2, added=Sensitivity(l1=100, l2_squared=100**2))


OWN = (HundredWards([(4,)], WARDS),)
PLAIN = ("30000", "40", "2020-05-05", "2020-05-07", "A", "J45")


def table(seed, *first):
    """Skewed incomes with zeros and refusals, ages that go with them, stays in hospital."""
    g = np.random.default_rng(seed)
    n = 1500
    income = np.where(g.random(n) < 0.2, 0, np.exp(g.normal(9 + seed % 3, 1, n))).astype(int)
    came = np.datetime64("2019-01-01") + g.integers(0, 900, n)
    left = came + g.geometric(0.3, n) - 1
    age = np.clip(20 + np.log1p(income) * 4 + g.normal(0, 5, n), 0, 120).astype(int)
    words = [("refused" if g.random() < 0.05 else str(x)) for x in income]
    codes = g.choice(["I10", "I11", "J45", "K50", "?", ""], n)
    columns = (words, age.astype(str), came.astype(str), left.astype(str), g.choice(list("ABC"), n), codes)
    rows = list(zip(*columns, strict=True))
    rows[: len(first)] = first
    return dict(zip([f.name for f in FIELDS], map(list, zip(*rows, strict=True)), strict=True))


def number_ride(name, *arguments, important=(), target=None, triples=None, further=(), **options):
    schema = Schema(FIELDS, rules=(LessEqual("came", "left"),), important=important, target=target, triples=triples)
    each = options.get("rows_per_person", 1)
    kinds = {
        "a random one": ("1234", "77", "2021-01-01", "2021-01-01", "C", "I10"),
        "the ends of all grids": ("10000000", "120", "2030-12-31", "2031-12-31", "C", "other"),
        "holes": ("refused", "", "", "", "", ""),
        "beyond the limits, and out of order": ("-1e30", "1e9", "2025-01-01", "1066-10-14", "Z", "Z99"),
        "one step aside": ("30001", "40", "2020-05-05", "2020-05-07", "A", "J46"),
    }
    neighbours = {name: table(0, *[first] * each) for name, first in kinds.items()}
    stranger = table(7, ("5", "5", "2016-06-06", "2018-06-06", "B", "K50"))

    def make(seed):
        synth = PrivateSynthesizer(*arguments, schema=schema, seed=seed, **options)
        synth.further = further
        return synth

    shows = {"rows of a person": each, "rule less_equal": 1, "field levels": 1, "field special": 1}
    shows |= {"candidates": 10} if triples else {}
    shows |= {"charge important": 1} if important or (target and not triples) else {}
    shows |= {"charge further queries": 1} if further else {}
    return Ride(name, make, table(0, *[PLAIN] * each), neighbours, stranger, shows)


def number_rides():
    """Trees, ranks and differences, under both guarantees, and for persons with several rows."""
    return [
        number_ride("numbers", 3.0),
        number_ride("numbers, (ε, δ)", 2.0, 1e-6),
        number_ride("numbers, persons", 6.0, rows_per_person=2),
        number_ride("numbers, important pairs", 3.0, important=(("income", "age"), ("age", "ward"), ("came",))),
        number_ride("numbers, important pairs, (ε, δ)", 2.0, 1e-6, important=(("income", "age"), ("left", "ward"))),
        number_ride("numbers, pairs of a target", 3.0, target="ward"),
        number_ride("numbers, pairs of a target, (ε, δ)", 0.5, 1e-6, target="ward"),
        number_ride("numbers, further queries", 3.0, further=FURTHER),
        number_ride("numbers, further queries, (ε, δ)", 2.0, 1e-6, further=FURTHER),
        number_ride("numbers, a kernel of one's own", 3.0, further=OWN),
        number_ride("numbers, a kernel of one's own, (ε, δ)", 2.0, 1e-6, further=OWN),
        number_ride("numbers, triples", 30.0, triples=3),
        number_ride("numbers, triples of a target, (ε, δ)", 9.0, 1e-6, target="ward", triples=2),
        number_ride("numbers, triples, persons", 60.0, triples=2, rows_per_person=2),
    ]


# Faults.


def levels_at_the_parents_charge():
    """Only the first round of a tree is paid for: its children count the same records, after all."""
    paid, now = {}, []

    def noting(real):
        def round_share(self, j, turn, pure):
            now.append((j, turn))
            return real(self, j, turn, pure)

        return round_share

    def once(real):
        def measure_it(self, purpose, exact, shape, sensitivity, share=WHOLE):
            j, turn = now.pop(0) if now else (None, 0)
            if turn:
                return Joint(self, paid[id(self), j], self.steps, paid[id(self), j].law).add(exact, shape)
            found = real(self, purpose, exact, shape, sensitivity, share)
            paid[id(self), j] = self.book[-1]
            return found

        return measure_it

    return replaced((plan.OneWayPlan, "round_share", noting), (Gate, "measure", once))


def a_level_forgotten():
    """Each level gets the share of one level fewer: the last one is not in the sum."""

    def fewer(real):
        def measure_it(self, purpose, exact, shape, sensitivity, share=WHOLE):
            return real(self, purpose, exact, shape, sensitivity, share * 6 / 5 if purpose == "histograms" else share)

        return measure_it

    return replaced((Gate, "measure", fewer))


def split_on_exact_counts():
    """The tree grows where the exact counts are large."""
    seen = {}

    def remembering(real):
        def measure_it(self, purpose, exact, *rest):
            found = real(self, purpose, exact, *rest)
            seen[np.asarray(found.values, dtype=np.float64).tobytes()] = exact._sealed
            return found

        return measure_it

    def seeing(real):
        def see(self, values, sd):
            self.exact = seen[np.asarray(values).tobytes()]
            return real(self, values, sd)

        return see

    def peeking(real):
        def grow(self):
            noisy = self.total[self.frontier].copy()
            self.total[self.frontier] = self.exact * self.times[self.frontier]
            before = self.frontier
            real(self)
            self.total[before] = noisy

        return grow

    return replaced((Gate, "measure", remembering), (Tree, "see", seeing), (Tree, "grow", peeking))


def one_cell_moves():
    """A replaced row is said to move one count, as if it were added or removed."""
    return replaced((measure, "PARTITION_SENSITIVITY", lambda _: Sensitivity(l1=1, l2_squared=1)))


def ranks_halved():
    """Signs of ranks that turn are forgotten: a product is said to move by U², not 2U²."""
    return replaced((measure, "flips", lambda real: lambda p: max(1, real(p) // 4)))


def one_important_pair():
    """However many pairs are important, they are noised like one."""

    def first(real):
        return lambda self, sizes: real(type(self)(self.attributes, self.pairs[:1]), sizes)

    return replaced((Important, "sensitivity", first))


def best_without_noise():
    """The strongest triple is chosen by exact scores."""
    return replaced(
        (Gate, "_choose", lambda real: lambda self, exact, noise, *rest: real(self, exact, 0 * noise, *rest))
    )


def choices_at_one_charge():
    """However many triples are chosen, each choice has the noise of a single one, and one of them is written down."""

    def once(real):
        def pay(self, purpose, share, law, sensitivity, *rest):
            if law is not CHOICE:
                return real(self, purpose, share, law, sensitivity, *rest)
            before = [line for line in self.book if line.law is CHOICE]
            if before:
                return before[0]
            return real(self, purpose, WHOLE, law, sensitivity, *rest)

        return pay

    return replaced((Gate, "_pay", once))


def choice_for_one_row():
    """The choice of triples covers one row of a person."""

    def forgetting(real):
        return lambda self, sensitivity, *cost: real(replace(self, rows_per_person=1), sensitivity, *cost)

    return replaced((Budget, "choice_scale", forgetting))


def no_choice_where_nothing_stands_out():
    """No triple is looked for where the exact scores of all are small."""

    def peeking(real):
        def choose(self, purpose, exact, candidates, rounds, sensitivity):
            rounds = rounds if exact._sealed.max() > 0.3 * self.steps * 1500 else 1
            return real(self, purpose, exact, candidates, rounds, sensitivity)

        return choose

    return replaced((Gate, "choose", peeking))


def scores_as_shares():
    """A score is said to move by 1, as a total variation does: these are sums, which move by 2, and a row may move two apart."""
    return replaced(
        (Budget, "choice_scale", lambda real: lambda self, sensitivity, *cost: real(self, sensitivity, *cost) / 4)
    )


def one_triple():
    """However many triples are measured, they are noised like one."""
    return replaced((covey.engine.models.tables.triples, "triple_sensitivity", lambda real: lambda count: real(1)))


def signs_twice():
    """Products of signs count twice in the choice, and its noise is that of once."""
    return replaced((covey.engine.models.tables.triples, "signs_of", lambda real: lambda *given: 2 * real(*given)))


def further_queries_as_one_table():
    """However many tables further queries have, they are noised like one."""

    def first(real):
        def measure_further(queries):
            asking = real(queries)
            found = yield [replace(ask, sensitivity=Sensitivity.histograms(1)) for ask in next(asking)]
            with suppress(StopIteration):
                asking.send(found)
            return found

        return measure_further

    return replaced((driver, "_measure_further", first))


def stretch_forgotten():
    """The certificate takes tables that a row moves by a hundred for tables that it moves by one."""

    def variation(law, query, setting):
        return Statistic.tables(query).map(mean_variation, law.table(query), query.starts, setting.total)

    return replaced((driver, "_variation", lambda real: variation))


def differences_by_the_table():
    """Distances are measured from the earliest base of the batch."""

    def shifted(real):
        def encode(self, base, end, has_base):
            return real(self, base - base.min() + 16_000, end, has_base)

        return encode

    return replaced((Difference, "encode", shifted))


def tree_faults():
    """All of them."""
    return [
        Fault("children at the parent's charge", "odometer: numbers", levels_at_the_parents_charge()),
        Fault("children at the parent's charge, (ε, δ)", "odometer: numbers, (ε, δ)", levels_at_the_parents_charge()),
        Fault("a level's charge forgotten", "odometer: numbers", a_level_forgotten()),
        Fault("split on exact counts", "odometer: numbers, (ε, δ)", split_on_exact_counts()),
        Fault("tree noise as for add or remove", "odometer: numbers", one_cell_moves()),
        Fault("rank sums' sensitivity quartered", "odometer: numbers, (ε, δ)", ranks_halved()),
        Fault("important pairs noised like one", "odometer: numbers, important pairs", one_important_pair()),
        Fault(
            "important pairs noised like one, (ε, δ)",
            "odometer: numbers, important pairs, (ε, δ)",
            one_important_pair(),
        ),
        Fault("choices of triples at one charge", "odometer: numbers, triples", choices_at_one_charge()),
        Fault("choice for one row a person", "odometer: numbers, triples, persons", choice_for_one_row()),
        Fault(
            "no choice where exact scores are small", "odometer: numbers, triples", no_choice_where_nothing_stands_out()
        ),
        Fault("scores of triples move by half", "odometer: numbers, triples", scores_as_shares()),
        Fault("products of signs count twice", "odometer: yes/no, triples", signs_twice()),
        Fault("triples noised like one", "odometer: numbers, triples", one_triple()),
        Fault("triples noised like one, (ε, δ)", "odometer: numbers, triples of a target, (ε, δ)", one_triple()),
        Fault("a triple chosen without noise", "triples: choices", best_without_noise()),
        Fault("further queries noised like one", "odometer: numbers, further queries", further_queries_as_one_table()),
        Fault(
            "further queries noised like one, (ε, δ)",
            "odometer: numbers, further queries, (ε, δ)",
            further_queries_as_one_table(),
        ),
        Fault(
            "a kernel of one's own noised like covey's",
            "odometer: numbers, a kernel of one's own",
            further_queries_as_one_table(),
        ),
        Fault(
            "a kernel of one's own noised like covey's, (ε, δ)",
            "odometer: numbers, a kernel of one's own, (ε, δ)",
            further_queries_as_one_table(),
        ),
        Fault("stretch forgotten in the certificate", "odometer: numbers, a kernel of one's own", stretch_forgotten()),
        Fault("differences from the earliest date", "odometer: numbers, (ε, δ)", differences_by_the_table()),
    ]
