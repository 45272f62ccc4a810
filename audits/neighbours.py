"""Rows added and removed: rides of the odometer on neighbours of other lengths, and faults of this promise that it must notice.

Strangers have another number of rows: whatever told their number would differ.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np

import covey.engine.gate
import covey.engine.models.bits as bits_measured
import covey.engine.models.tables.measure_tables as tables_measured
import covey.engine.models.tables.table_counts as table_counts
import covey.synthesizers.private
from audits import events, persons, trees
from audits.odometer import Ride
from audits.planting import Fault, halved_for_an_added_row, replaced, told
from covey.engine.bodies import Box
from covey.engine.codes.events import WEIGHT_STEPS
from covey.engine.models.persons.law import Reference
from covey.engine.models.tables.measure_tables import PARTITION_SENSITIVITY
from covey.engine.sensitivity import Sensitivity
from covey.engine.units.rows import Counted
from covey.synthesizers import PrivateSynthesizer
from covey.tables.schema import Field, Schema

ADDED = {"neighbours": "add-or-remove-one"}
NAME = "added or removed, "


def private(*arguments, **options):
    options = {
        "composition": "gaussian"
    } | options  # so that δ is spent where there is one: pure rides are rides of their own
    return lambda seed: PrivateSynthesizer(*arguments, seed=seed, **ADDED, **options)


def array_ride(name, X, stranger, extremes, *arguments, **options):
    """The first row is removed, or one more is there: the first again, or one at an end."""
    others = {"one removed": X[1:], "the first again": np.vstack([X, X[:1]])}
    others |= {f"added, {k}": np.vstack([X, np.asarray(row, dtype=X.dtype)]) for k, row in enumerate(extremes)}
    return Ride(NAME + name, private(*arguments, **options), X, others, stranger, {"charge size": 1})


def grouped(n, groups, each, seed=0):
    """Columns in groups that mostly agree: as many strong directions as there are groups."""
    g = np.random.default_rng(seed)
    latent = g.random((n, groups)) < 0.5
    return (np.repeat(latent, each, axis=1) ^ (g.random((n, groups * each)) < 0.13)).astype(np.uint8)


def bit_ride(name, X, *arguments, **options):
    p = X.shape[1]
    stranger = np.ones((2 * len(X) // 3, p), dtype=np.uint8)
    half = (np.arange(p) < p // 2).astype(np.uint8)
    return array_ride(name, X, stranger, [np.zeros(p), np.ones(p), half], *arguments, **options)


def code_ride(name, sizes, n, *arguments, **options):
    g, last = np.random.default_rng(0), np.array(sizes) - 1
    X = np.minimum((g.random((n, len(sizes))) ** 2 * sizes).astype(np.int64), last)
    X[0] = 0
    extremes = [last, np.r_[last[:1], X[0, 1:]]]
    return array_ride(name, X, last - X[n // 3 :], extremes, *arguments, domain=sizes, **options)


def look_ride(name, sizes, n, *arguments):
    """Rows that are all alike: one with other categories everywhere moves every pair of columns as far as can be."""
    X, last = np.zeros((n, len(sizes)), dtype=np.int64), np.array(sizes) - 1
    stranger = np.random.default_rng(5).integers(0, last + 1, (2 * n // 3, len(sizes)))
    ride = array_ride(name, X, stranger, [last, np.r_[last[:1], X[0, 1:]]], *arguments, domain=sizes)
    return exercising("charge look", exercising("charge columns and pairs", ride))


def dependent(sizes, n, of):
    """Codes of which the last column is the sum of the first few: such triples stand out."""
    X = np.random.default_rng(3).integers(0, sizes, (n, len(sizes)))
    X[:, -1] = X[:, :of].sum(axis=1) % sizes[-1]
    X[0] = 0
    return X


def triple_ride(name, sizes, *arguments, of=2, triples=2):
    """Columns of which some say a third one together."""
    X, last = dependent(sizes, 3000, of), np.array(sizes) - 1
    extremes = [last, np.r_[last[:1], X[0, 1:]]]
    ride = array_ride(name, X, last - X[1000:], extremes, *arguments, domain=sizes, triples=triples)
    return replace(ride, exercises=ride.exercises | {"candidates": 10})


def table_ride(name, schema, make_rows, *arguments, **options):
    """Tables of text by column."""
    rows, other = make_rows(0, 700), make_rows(5, 450)
    names = [field.name for field in schema.fields]

    def table(some):
        return dict(zip(names, map(list, zip(*some, strict=True)), strict=True))

    ends = [tuple("" for _ in names), tuple("1e9" for _ in names), rows[0]]
    neighbours = {"one removed": table(rows[1:])} | {f"added, {k}": table([*rows, end]) for k, end in enumerate(ends)}
    made = private(*arguments, schema=schema, **options)
    return Ride(NAME + name, made, table(rows), neighbours, table(other), {"charge size": 1}, files=True)


def number_ride(name, *arguments, **focus):
    """Numbers and labels, some of which matter most, with queries besides."""
    schema = Schema(trees.FIELDS, **focus)
    rows, other = (list(zip(*trees.table(seed).values(), strict=True)) for seed in (0, 7))
    ends = {
        "the ends of all grids": ("10000000", "120", "2030-12-31", "2031-12-31", "C", "other"),
        "holes": ("refused", "", "", "", "", ""),
        "a plain one": trees.PLAIN,
    }

    def table(some):
        return dict(zip(schema.names, map(list, zip(*some, strict=True)), strict=True))

    def make(seed):
        synth = PrivateSynthesizer(*arguments, schema=schema, seed=seed, **ADDED)
        synth.further = trees.FURTHER
        return synth

    neighbours = {"one removed": table(rows[1:])} | {f"added, {k}": table([*rows, end]) for k, end in ends.items()}
    return Ride(NAME + name, make, table(rows), neighbours, table(other[:1000]), {"charge size": 1})


def learned_ride(name, *arguments):
    """Limits, and where there is a δ labels, are learned; strangers are so many that named labels are a small part of them."""
    kinds = ("integer", "string", "number") if len(arguments) > 1 else ("integer", "date", "number")
    schema = Schema(tuple(Field(field, kind, learn=True) for field, kind in zip(MIXED.names, kinds, strict=True)))

    def make_rows(seed, n):
        """Two rows of five have a word of their own; a date takes the place of words that cannot be learned."""
        words = [word if k % 5 < 3 else f"{word}{k}" for k, (_, word, _) in enumerate(mixed(seed, n))]
        days = [f"{2010 + len(word)}-0{1 + ord(word[0]) % 9}-11" for word in words]
        middle = words if kinds[1] == "string" else days
        return [(age, own, cost) for (age, _, cost), own in zip(mixed(seed, n), middle, strict=True)]

    def many(seed, n):
        return make_rows(seed, 700 if seed == 0 else 2000)

    ride = table_ride(name, schema, many, *arguments)
    return replace(ride, exercises=ride.exercises | {"learned": 2})


def mixed(seed, n):
    g = np.random.default_rng(seed)
    ages, wards, costs = g.integers(0, 99, n), g.choice(["A", "B", "C"], n), np.round(np.exp(g.normal(5, 1, n)), 1)
    return [(str(a), str(w), str(c)) for a, w, c in zip(ages, wards, costs, strict=True)]


MIXED = Schema(
    (
        Field("age", "integer", 0, 99),
        Field("ward", "string", enum=("A", "B", "C"), other="other"),
        Field("cost", "number", 0, 5000),
    )
)


def person_ride(name, schema, table, *arguments, values=2):
    """A person with one row or many is added; the table has all others."""
    p, last = table[1].shape[1], values - 1

    def without_first(both):
        whose, cells = both
        return {"who": [f"p{w}" for w in whose], **{f"f{i}": [str(c) for c in cells[:, i]] for i in range(p)}}

    neighbours = {
        "one row": persons.with_first(table, [[last] * p]),
        "many rows, alike": persons.with_first(table, [[0] * p] * 97),
        "many rows, of two kinds": persons.with_first(table, [[0] * p, [last] * p] * 20),
    }
    stranger = without_first(persons.visits(len(set(table[0])) // 2, p, 9, seed=5, values=values))
    made = private(*arguments, schema=schema, person="who")
    return Ride(NAME + name, made, without_first(table), neighbours, stranger, {"charge size": 1})


def fixed(ride, seed):
    """A ride that takes one seed whatever it is told: one under which noise makes many of few."""
    return replace(ride, make=lambda _: ride.make(seed))


def few_ride(name, *arguments):
    """Rows that are all alike, so few that the noisy number of them is far off, and one more at the other end."""

    def table(n, *more):
        rows = [("0", "A", "0")] * n + list(more)
        return dict(zip(MIXED.names, map(list, zip(*rows, strict=True)), strict=True))

    neighbours = {"added": table(20, ("99", "B", "5000")), "one removed": table(19)}
    return Ride(
        NAME + name, private(*arguments, schema=MIXED), table(20), neighbours, table(0, *mixed(5, 31)), {"law cube": 2}
    )


def event_ride(name, *arguments, persons=60):
    """A person with all events is removed."""
    table, described = events.town(persons), events.package()
    first = events.with_first(table, (1, 2), [(3, 2, 300)] * events.MOST)

    neighbours = {f"without {who}": events.without(first, who) for who in ("p0", "p7")}
    stranger = events.with_first(events.town(41, seed=7), (1, 1), [(2, 1, 9)] * 3)
    return Ride(NAME + name, private(*arguments, schema=described), first, neighbours, stranger, {"charge size": 1})


def body_ride(name, *arguments):
    g, box = np.random.default_rng(6), Box([0, -5, 10], [1, 5, 10.5])
    X = np.array([0.2, 1, 10.2]) + g.normal(0, 1, (900, 3)) * [0.02, 0.3, 0.02]
    extremes = [box.project(np.full((1, 3), end))[0] for end in (-1e9, 1e9)]
    stranger = box.project(2 * X.max(axis=0) - X)[:700]
    return array_ride(name, X, stranger, extremes, *arguments, body=box)


def exercising(what, ride):
    """A ride that must show something more."""
    return replace(ride, exercises={**ride.exercises, what: 1})


def rides():
    """Every model, pure and (ε, δ)."""
    g = np.random.default_rng(0)

    def bits(n, p, density):
        return (g.random((n, p)) < density).astype(np.uint8)

    sparse = bits(1500, 30, 0.05)
    sparse[0] = np.arange(30) < 15
    few, many = persons.visits(300, 4, 5), persons.visits(400, 3, 5, values=1001)
    corners = np.ones((60, 4))
    corners[1:] = g.random((59, 4))
    return [
        bit_ride("means", bits(12, 5, 0.5), 0.2),
        bit_ride("means, (ε, δ)", bits(12, 5, 0.5), 0.2, 1e-5),
        bit_ride("matrix", bits(400, 4, 0.8), 4.0),
        bit_ride("parities", bits(3000, 5, 0.5), 4.0, 1e-5),
        bit_ride("ball, cut", sparse, 1.0, 1e-6),
        bit_ride("declared limits", bits(800, 24, 0.2), 1.0, 1e-5, at_most=[(list(range(20)), 3)]),
        exercising("law knorm", code_ride("categories", [2, 3, 2, 4], 900, 3.0)),
        look_ride("categories, look", [5] * 7, 1200, 1.0),
        code_ride("categories, (ε, δ)", [30, 1, 2, 12], 2000, 1.0, 1e-6, ordinal=[0]),
        table_ride("numbers", MIXED, mixed, 3.0),
        table_ride("numbers, (ε, δ)", MIXED, mixed, 2.0, 1e-6),
        learned_ride("learned", 30.0, 1e-6),
        learned_ride("learned, pure", 30.0),
        triple_ride("triples", [2, 3, 2, 3, 2], 60.0),
        triple_ride("triples, (ε, δ)", [2, 3, 2, 3, 2], 12.0, 1e-6),
        number_ride("important pairs", 30.0, important=(("income", "age"), ("left", "ward"), ("came",))),
        number_ride("important pairs, (ε, δ)", 6.0, 1e-6, important=(("income", "age"), ("left", "ward"))),
        number_ride("triples of a target, (ε, δ)", 20.0, 1e-6, target="ward", triples=2),
        bit_ride("matrix, six scores", grouped(4000, 7, 4), 60.0),
        bit_ride("ball, three scores", grouped(3000, 3, 8), 2.0, 1e-6),
        person_ride("by person, flags", persons.flags(4), few, 4.0),
        person_ride("by person, numbers", persons.NUMBERS, many, 4.0, 1e-5, values=1001),
        fixed(few_ride("numbers, few rows", 0.05), 1),
        event_ride("persons with events", 4.0),
        fixed(event_ride("few persons with events", 0.02, persons=9), 2),
        event_ride("persons with events, (ε, δ)", 4.0, 1e-5),
        body_ride("body", 20.0),
        body_ride("body, (ε, δ)", 8.0, 1e-5),
        *(
            array_ride(name, corners, 1 - corners[:40], np.eye(4)[:1], *budget, body=Box([0] * 4, [1] * 4))
            for name, budget in {"body, means alone": (0.1,), "body, means alone, (ε, δ)": (0.1, 1e-6)}.items()
        ),
    ]


# Faults.


def exact_size_told():
    """The rows say their exact number after it was measured."""
    return replaced((Counted, "of", lambda real: classmethod(lambda cls, rows, size: cls(rows, rows.n, size.sd))))


def size_told_in_a_message():
    """A warning says how many rows there are."""

    def telling(real):
        def of(cls, rows, size):
            warnings.warn(f"{rows.n} rows", UserWarning, stacklevel=2)
            return real(rows, size)

        return classmethod(of)

    return replaced((Counted, "of", telling))


def centre_forgotten():
    """Ones are counted instead of signs, and half a step is taken for what moves them."""

    def ones(real):
        def column_sums(setting):
            found = real(setting)
            return replace(found, statistic=bits_measured.Statistic.sum(twice_the_ones).map(bits_measured.part))

        return column_sums

    return replaced((bits_measured, "column_sums", ones))


def twice_the_ones(batch):
    """Twice the ones: what signs are without their centre."""
    counts = bits_measured.counts.column_counts(batch)
    return counts + counts


def centre_of_pairs_noisy():
    """Pair tables are centred by a constant in place of the exact number of rows: what is added is no longer centred."""

    def constant(real):
        def centred(counts, domain):
            c, one_way = domain.counts[domain.block_of], np.diag(counts)
            return np.asarray(c[:, None] * c * counts - c[:, None] * one_way[:, None] - c * one_way + 1000)

        return centred

    return replaced((tables_measured, "centred_counts", constant))


def half_of_half():
    """A factor of the other promise is taken off once more."""

    def halved(real):
        def under(self, budget):
            found = real(self, budget)
            if not budget.size_is_secret or found.l1 is None:
                return found
            return replace(found, l1=Fraction(found.l1) / 2, l2_squared=Fraction(found.l2_squared) / 2)

        return under

    return replaced((Sensitivity, "under", halved))


def look_at_one_cell():
    """An added row is taken to move the look by one cell of each table, as it moves the tables: its margins are forgotten."""

    def one(sensitivity):
        bound = sensitivity.added.l1 / Fraction(4)
        return replace(sensitivity, added=replace(sensitivity.added, l1=bound, l2_squared=bound**2))

    return told("look", one)


def sums_kept():
    """K-norm noise that leaves the sums of tables as they are."""
    return replaced((covey.engine.gate, "knorm_noise", lambda real: lambda sizes, s, g, _: real(sizes, s, g)))


def tables_taken_for_halves():
    """An added row is taken to move a table by ½, as if half of its ℓ1 norm were the norm."""
    half = replace(PARTITION_SENSITIVITY, added=replace(PARTITION_SENSITIVITY.added, table=Fraction(1, 2)))
    return replaced((tables_measured, "PARTITION_SENSITIVITY", lambda real: half))


def exact_size_learned():
    """Learning is told the exact number of rows after it was measured."""

    def learned_on(real):
        def learn(rows, *rest):
            return real(rows.rows if isinstance(rows, Counted) else rows, *rest)

        return learn

    return replaced((covey.synthesizers.private, "learn", learned_on))


def shares_of_the_exact_number():
    """The certificate's distribution functions are those of the exact number of rows: they move more than over a noisy one."""

    def over_all(real):
        return lambda counts, edges, released, _: real(counts, edges, released)

    return replaced((table_counts, "kolmogorov_bound", over_all))


def shares_of_all_persons():
    """The certificate's tables of persons are shares of their exact number."""

    def over_all(real):
        return lambda self, sums, _: real(self, sums, int(sums[: self.starts[0][-1]].sum()) // WEIGHT_STEPS)

    return replaced((Reference, "_gaps", over_all))


# Charges whose noise is halved for an added row, and the rides that must show it.
HALVED_IN = (
    ("choosing triples", "triples"),
    ("important", "important pairs, (ε, δ)"),
    ("further queries", "important pairs"),
    ("triples", "triples, (ε, δ)"),
    ("certificate", "means"),
    ("domains", "learned, pure"),
)


def faults():
    """All of this promise."""
    return [
        Fault("functions over the exact n", f"odometer: {NAME}numbers, few rows", shares_of_the_exact_number()),
        Fault("shares of all persons", f"odometer: {NAME}few persons with events", shares_of_all_persons()),
        Fault("exact n after the gate", f"odometer: {NAME}numbers, (ε, δ)", exact_size_told()),
        Fault("n in a message", f"odometer: {NAME}means", size_told_in_a_message()),
        Fault("the centre of flags forgotten", f"odometer: {NAME}means, (ε, δ)", centre_forgotten()),
        Fault("pair tables centred by a constant", f"odometer: {NAME}categories, (ε, δ)", centre_of_pairs_noisy()),
        Fault("K-norm noise that keeps sums", "one-way tables, loose K-norm noise", sums_kept()),
        Fault("a look that moves by one cell", f"odometer: {NAME}categories, look", look_at_one_cell()),
        Fault("the norm of replaced rows", f"odometer: {NAME}categories", tables_taken_for_halves()),
        *(
            Fault(f"{purpose} halved for an added row", f"odometer: {NAME}{ride}", halved_for_an_added_row(purpose))
            for purpose, ride in HALVED_IN
        ),
        Fault("exact n in learning", f"odometer: {NAME}learned", exact_size_learned()),
        Fault("half of an added row's move", f"odometer: {NAME}by person, numbers", half_of_half()),
    ]
