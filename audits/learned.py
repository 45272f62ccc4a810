"""Learned domains under audit: rides for the odometer, checks of order and freshness, and planted faults."""

from __future__ import annotations

import warnings
from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

import numpy as np
from scipy.stats import norm

import covey.engine.gate
import covey.synthesizers.learning
import covey.synthesizers.private
import covey.tables.reading
from audits import events, persons
from audits.checks import Check
from audits.odometer import Ride, cheap_fits, fitted
from audits.planting import Fault, replaced
from audits.rides import private
from covey.engine.budget import make_budget
from covey.engine.codes.events import WEIGHT_STEPS
from covey.engine.codes.learned import Counting, kept_counts
from covey.engine.gate import Gate, Joint, Selection
from covey.engine.noise.law import LAPLACE
from covey.engine.sensitivity import Sensitivity
from covey.synthesizers import PrivateSynthesizer
from covey.tables.columns import parse
from covey.tables.provisional import LearnedColumn, Provisional
from covey.tables.schema import Field, Schema

NUMBERS = Schema(
    fields=(
        Field("age", "integer", learn=True),
        Field("cost", "number", learn=True),
        Field("seen", "date", learn=True),
        Field("ward", "string", enum=("A", "B"), other="other"),
    )
)
LABELS = Schema(
    fields=(
        Field("age", "integer", learn=True),
        Field("cost", "number", learn=True),
        Field("ward", "string", learn=True),
        Field("job", "string", learn=True),
        Field("sick", "boolean", learn=True),
    )
)


def table(n, seed, *first, names=("age", "cost", "seen", "ward", "job", "sick"), labels="ABC"):
    """Records of two or three of everything, the first ones as given."""
    g = np.random.default_rng(seed)
    drawn = zip(g.integers(15, 80, n), g.lognormal(3, 1, n), g.integers(0, 9, n), g.integers(0, 3, n), strict=True)
    rows = [
        (str(a), f"{c:.2f}", f"201{y}-05-17", labels[w], f"job {labels[a % 3]}", "true" if a % 2 else "false")
        for a, c, y, w in drawn
    ]
    rows[: len(first)] = first
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


PLAIN = ("30", "12.50", "2014-01-01", "A", "job A", "true")
OTHERWISE = ("77", "180.00", "2018-12-31", "B", "job B", "false")
HOLES = ("", "", "", "", "", "")
FAR = ("-999999", "1e14", "1066-10-14", "A", "job A", "true")
NEW = ("N", "none of it", "yesterday", "a ward of its own", "falconer", "true")


def mostly_missing(seed, *first, share=0.95, n=800):
    """The same, of which nearly all cells that are to be learned are missing."""
    full = table(n, seed, *first)
    for name in ("age", "cost", "ward", "job"):
        gone = np.random.default_rng([seed, len(name)]).random(n) < share
        gone[: len(first)] = False
        full[name] = ["" if g else cell for g, cell in zip(gone, full[name], strict=True)]
    return full


def far_values(*first):
    """The same, of which so many hold 5000 that one row would decide whether it stands out, if counts were exact."""
    columns, part = Provisional(NUMBERS).columns, make_budget(40.0).part(covey.synthesizers.learning.SHARE)
    least = kept_counts(part.deviation(2 * len(columns), 0), LAPLACE, sum(column.bins for column in columns))[0]
    full = table(800, 0, *first)
    full["age"][1 : 1 + int(least)] = ["5000"] * int(least)
    return full


def half_named(*first):
    """The same, of which half hold one ward and each of the others a ward of its own: one row decides who holds half."""
    full = table(800, 0, *first)
    full["ward"] = [full["ward"][0]] + ["A"] * 399 + [f"ward {j}" for j in range(400)]
    return full


def telling_delta(epsilon):
    """A δ near 1e-4 for which the threshold of the labels is rounded up by little: one lower shows."""
    q = len(LABELS.learns) - 1
    for delta in (Fraction(100 + j, 10**6) for j in range(100)):
        budget = make_budget(epsilon, delta, labels=True)
        sd = float(budget.part(covey.synthesizers.learning.SHARE).variance(2 * q)) ** 0.5
        if 0.7 < sd * norm.isf(float(budget.selection) / (2 * q)) % 1 < 0.95:
            return delta
    raise AssertionError("no such δ")


def learned_rides():
    """Numbers under pure ε; numbers and labels under (ε, δ); several rows a person, which may bring a label each."""
    ways = {"elsewhere": OTHERWISE, "holes": HOLES, "far outside": FAR, "new labels": NEW}
    others = {name: table(800, 0, first) for name, first in ways.items()}
    edge = ("5000", *PLAIN[1:])
    beside = {name: far_values(first) for name, first in ways.items()}
    stranger = table(800, 9, HOLES, labels="XYZ")
    alike = {"five alike": table(800, 0, *[NEW] * 5), "five apart": table(800, 0, *(_own(j) for j in range(5)))}
    delta = telling_delta(8)
    return [
        Ride("learned numbers", private(40.0, schema=NUMBERS), far_values(edge), beside, stranger),
        Ride("learned labels", private(8.0, delta, schema=LABELS), table(800, 0, PLAIN), others, stranger),
        Ride(
            "learned labels taken away",
            private(8.0, delta, schema=LABELS),
            table(800, 0, NEW),
            {"common ones": table(800, 0, PLAIN)},
            stranger,
        ),
        # Of forty and eighty seeds, budgets half as large leave three and ten without the labels or columns that are asked for.
        Ride(
            "learned, mostly missing",
            private(60.0, delta, schema=LABELS),
            mostly_missing(0, PLAIN),
            {name: mostly_missing(0, first) for name, first in ways.items()},
            mostly_missing(9, HOLES) | {"job": [""] * 800},
            {"missing": 0.9, "labels": 4},
        ),
        Ride(
            "learned numbers, mostly missing",
            private(120.0, schema=NUMBERS),
            mostly_missing(0, PLAIN),
            {name: mostly_missing(0, first) for name, first in ways.items()},
            mostly_missing(9, HOLES),
            {"missing": 0.9, "learned": 3},
        ),
        Ride(
            "learned labels, half of the rows",
            private(30.0, delta, schema=LABELS),
            half_named(PLAIN),
            {"less than half": half_named(NEW)},
            stranger,
        ),
        Ride(
            "learned labels, persons",
            private(30.0, delta, schema=LABELS, rows_per_person=5),
            table(800, 0, *[PLAIN] * 5),
            alike,
            stranger,
        ),
        *person_rides(),
    ]


def by_person(rows, n=400):
    """Records of persons with one each, and those of person 0 scattered among them."""
    places = np.linspace(0, n, len(rows)).astype(int)
    columns = {
        name: list(np.insert(np.array(values, dtype=object), places, own))
        for (name, values), own in zip(table(n, 0).items(), zip(*rows, strict=True), strict=True)
    }
    return {"who": np.insert(np.arange(1, n + 1), places, 0).astype(str).tolist(), **columns}


def person_rides():
    """A person with one record, or with many of one kind or all different; and persons with events, whose tables are learned."""
    kinds = {
        "one record, new labels": [NEW],
        "many alike": [NEW] * 97,
        "many apart": [_own(j) for j in range(97)],
        "many, of two kinds": [FAR, HOLES] * 20,
        "one with holes": [HOLES],
    }
    others, stranger = {name: by_person(rows) for name, rows in kinds.items()}, by_person([OTHERWISE] * 9)
    stranger["ward"] = [f"other {ward}" for ward in stranger["ward"]]
    shows = {"learned": 4, "labels": 4}
    town, apart = events.town(300, number=True), [(f"ward {k}", f"word {k}", 0) for k in range(40)]
    linked, ordered = (
        events.package(order, number=True).each(
            lambda part: replace(
                part.schema,
                fields=tuple(Field(f.name, f.type, learn=True, required=f.name == "day") for f in part.schema.fields),
            )
        )
        for order in (False, True)
    )
    near = events.person_neighbours(town, False, 500) | {
        "new labels": events.with_first(town, ("x", "y"), apart[:1], False),
        "many new labels": events.with_first(town, ("x", "y"), apart, False),
        "far outside": events.with_first(town, ("", ""), [("", 10**12, 0)] * 6, False),
    }
    first = events.with_first(town, (0, 0), [(0, 0, 0)] * 3, False)
    far = events.with_first(events.town(300, seed=7), (1, 1), [(2, 1, 9)] * 3, False)

    def by_who(epsilon, delta, schema):
        return lambda seed: PrivateSynthesizer(epsilon, delta, schema=schema, person="who", seed=seed)

    return [
        Ride("learned by person", by_who(20.0, 1e-4, LABELS), by_person([PLAIN]), others, stranger, shows),
        Ride("learned by person, pure", by_who(40.0, 0, NUMBERS), by_person([PLAIN]), others, stranger, {"learned": 3}),
        Ride("learned, linked", private(30.0, 1e-4, schema=linked), first, near, far, {"learned": 4, "labels": 6}),
        Ride(
            "learned, linked, with an order",
            private(30.0, 1e-4, schema=ordered),
            events.with_first(town, (0, 0), [(0, 0, 0)] * 3),
            events.person_neighbours(town, True, 500)
            | {"far away": events.with_first(town, ("x", "y"), [(f"ward {k}", -k, 10**k) for k in range(14)])},
            events.with_first(events.town(300, seed=7), (1, 1), [(2, 1, 9)] * 3),
            {"learned": 5},
        ),
        Ride(
            "learned, linked, one more or less",
            private(30.0, 1e-5, schema=linked, neighbours="add-or-remove-one"),
            near["many new labels"],
            {"removed": events.without(near["many new labels"], "p0")},
            far,
            {"learned": 4},
        ),
        Ride(
            "learned, linked, pure",
            private(40.0, schema=linked.each(lambda part: _declared(part.schema))),
            first,
            {name: near[name] for name in ("no events", "all alike", "beyond the limit", "far outside")},
            far,
            {"learned": 1},
        ),
    ]


def _declared(schema):
    """The texts of a package declared, and its numbers to be learned."""
    enum = tuple(map(str, range(4)))
    return replace(
        schema,
        fields=tuple(
            f if f.type == "integer" else Field(f.name, "string", enum=enum, other="other") for f in schema.fields
        ),
    )


def _own(j):
    """A record with labels that nobody else has."""
    return (f"N{j}", f"none {j}", "", f"ward {j}", f"falconer {j}", "true")


# Checks.


def order_of_records(seed):
    """The same records in another order give the same release under one seed."""
    one = next(ride for ride in learned_rides() if ride.name == "learned labels")
    turned = {name: values[::-1] for name, values in one.table.items()}
    with cheap_fits():
        faces = [fitted(one, given, Gate, seed)[1] for given in (one.table, turned)]
    return [] if faces[0] == faces[1] else ["the order of the records shows in the release"]


def fresh_domains(seed):
    """Domains are measured anew for each table, also by one synthesizer: no noisy count comes twice."""
    found, seen = [], []

    def spying(counts, *more):
        seen.append(np.array(counts))
        return real(counts, *more)

    real = covey.synthesizers.learning.kept_bins
    for delta, schema in ((0, NUMBERS), (0.001, LABELS)):
        synth = PrivateSynthesizer(40.0, delta, schema=schema)
        seen.clear()
        with (
            patch.object(covey.synthesizers.learning, "kept_bins", spying),
            cheap_fits(),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            for _ in range(2):
                synth.fit(table(800, 0, PLAIN))
        half = len(seen) // 2
        if half == 0 or any(np.array_equal(a, b) for a, b in zip(seen[:half], seen[half:], strict=True)):
            found.append(f"δ = {delta}: noisy counts of one fit served another")
    return found


def checks():
    """All of them."""
    return [
        Check("learned: order", "the order of records shows nowhere", order_of_records),
        Check("learned: fresh", "domains are measured anew for each fit", fresh_domains),
    ]


# Faults.


def threshold_without_the_one():
    return replaced((covey.engine.gate, "selection_threshold", lambda real: lambda *given: real(*given) - 1))


def threshold_for_one_row():
    return replaced(
        (covey.engine.gate, "selection_threshold", lambda real: lambda variance, delta, q, _: real(variance, delta, q))
    )


def threshold_for_one_label():
    """The threshold pays for one label of a person in each column, however many records bring one each."""

    def one_label(real):
        def threshold(variance, delta, q, k):
            return k + int(norm.isf(float(delta) / (2 * q)) * float(variance) ** 0.5)

        return threshold

    return replaced((covey.engine.gate, "selection_threshold", one_label))


def domains_noised_like_rows():
    """Counts in steps of a person get the noise of whole counts."""

    def careless(real):
        def select(self, *given):
            steps, self.steps = self.steps, 1
            found = replace(real(self, *given), steps=steps)
            self.steps = steps
            return found

        return select

    return replaced((Gate, "select", careless))


def whole_events():
    """Every event weighs as much as a person."""

    def heavy(_):
        return lambda rows: np.where(rows > 0, WEIGHT_STEPS, 0)

    return replaced((covey.tables.reading, "row_weights", heavy))


def delta_not_added():
    """The Gaussian part gets all of δ, and labels their part besides."""

    def generous(real):
        def make_budget(*given, labels=False, **options):
            whole = real(*given, **options)
            return replace(whole, selection=whole.delta / 10) if labels else whole

        return make_budget

    return replaced((covey.synthesizers.private, "make_budget", generous))


def first_occurrence():
    """Labels come out as they came in."""

    def unsorted(_):
        def name(self, exact, payment, threshold):
            noise = self._noise(payment.purpose).gaussian(payment.scale, len(exact._sealed))
            noisy = zip(exact._sealed.items(), noise.tolist(), strict=True)
            return {label: int(count + z) for (label, count), z in noisy if count + z > threshold}

        return name

    def as_they_came(real):
        def count(self, batch):
            found = real(self, batch)
            places = [np.unique(codes, return_index=True) for codes in batch.codes.T]
            first = [dict(zip(codes.tolist(), at.tolist(), strict=True)) for codes, at in places]
            words = [
                dict(sorted(words.items(), key=lambda item: first[j][self.bins[j] + batch.words[j].index(item[0])]))
                for j, words in enumerate(found.words)
            ]
            return replace(found, words=tuple(words))

        return count

    return replaced((Gate, "_name", unsorted), (Counting, "__call__", as_they_came))


def peek_at_histograms():
    """What leaves the gate are counts before they got their noise."""

    def peeking(real):
        def add(self, exact, shape, weight=1):
            found = real(self, exact, shape, weight)
            return replace(found, values=exact._sealed) if self.payment.purpose == "domains" else found

        return add

    return Joint, "add", peeking


def exact_limits():
    """Limits are read off the histogram before it got its noise."""
    return replaced(peek_at_histograms())


def exact_shares():
    """Which share of the rows named labels hold is read off their exact counts."""

    def peeking(real):
        def name(self, column, exact):
            return {label: exact._sealed.get(label, 0) for label in real(self, column, exact)}

        return name

    return replaced(peek_at_histograms(), (Selection, "name", peeking))


def grid_from_data():
    """The grid is stretched to the largest value of a column."""

    def stretched(_):
        def on_grid(self, series):
            if self.is_text:
                return np.full(len(series), -1), np.ones(len(series), dtype=bool)
            values = parse(series, self.field.type)
            there = ~np.isnan(values)
            size = np.abs(values[there]).max(initial=1.0)
            codes = np.full(len(series), -1)
            codes[there] = ((values[there] / size + 1) / 2 * (self.bins - 1)).astype(int)
            return codes, ~there

        return on_grid

    return replaced((LearnedColumn, "_on_grid", stretched))


def counts_cached():
    """Noisy counts are kept by their shape, "to save time"."""
    kept = {}

    def cached(real):
        def add(self, exact, shape, weight=1):
            found = real(self, exact, shape, weight)
            return kept.setdefault(shape, found) if self.payment.purpose == "domains" else found

        return add

    return replaced((Joint, "add", cached))


def one_column():
    """Noise as if one column were learned."""
    return replaced(
        (
            covey.synthesizers.learning,
            "column_sensitivity",
            lambda _: lambda q: Sensitivity(l1=2, l2_squared=Fraction(2)),
        )
    )


def scaled_where_missing(what):
    """Counts are scaled up to all records where cells are missing, "as they would be if nobody had left them out"."""

    def scaled(real):
        def count(self, batch):
            found = real(self, batch)
            times = np.maximum(1, len(batch) // np.maximum(1, (batch.codes >= 0).sum(axis=0)))
            words = tuple({w: c * int(t) for w, c in own.items()} for own, t in zip(found.words, times, strict=True))
            if what == "words":
                return replace(found, words=words)
            return replace(found, histograms=found.histograms * times[:, None])

        return count

    return replaced((Counting, "__call__", scaled))


def empty_columns_left_out():
    """A column in which no record has a value is left out, whatever its noisy counts say."""
    full = []

    def looking(real):
        def count(self, batch):
            found = real(self, batch)
            values = [
                h.any() if bins > 1 else bool(w)
                for bins, h, w in zip(self.bins, found.histograms, found.words, strict=True)
            ]
            full[:] = [bool(value) for value in values]
            return found

        return count

    def knowing(real):
        def field_of(column, counts, least, words):
            return real(column, counts, least, words) if full.pop(0) else None

        return field_of

    return replaced((Counting, "__call__", looking), (covey.synthesizers.learning, "_learned_field", knowing))


def faults():
    """All of them."""
    return [
        Fault(
            "label counts scaled where cells are missing",
            "odometer: learned, mostly missing",
            scaled_where_missing("words"),
        ),
        Fault(
            "counts of numbers scaled where cells are missing",
            "odometer: learned numbers, mostly missing",
            scaled_where_missing("bins"),
        ),
        Fault("empty columns left out", "odometer: learned, mostly missing", empty_columns_left_out()),
        Fault("label threshold one too low", "odometer: learned labels", threshold_without_the_one()),
        Fault("label threshold for one row a person", "odometer: learned labels, persons", threshold_for_one_row()),
        Fault("label threshold for one label a person", "odometer: learned by person", threshold_for_one_label()),
        Fault("rows of a person unweighted while learning", "odometer: learned by person, pure", persons.whole_rows()),
        Fault("learned counts noised like rows", "odometer: learned, linked", domains_noised_like_rows()),
        Fault("events unweighted while learning", "odometer: learned, linked", whole_events()),
        Fault("δ of labels not added", "odometer: learned labels", delta_not_added()),
        Fault("labels in order of first occurrence", "learned: order", first_occurrence()),
        Fault("limits from the exact histogram", "odometer: learned numbers", exact_limits()),
        Fault("shares of labels from exact counts", "odometer: learned labels, half of the rows", exact_shares()),
        Fault("a grid that depends on the data", "odometer: learned numbers", grid_from_data()),
        Fault("noisy counts cached between two fits", "learned: fresh", counts_cached()),
        Fault("learned columns noised like one", "odometer: learned numbers", one_column()),
    ]
