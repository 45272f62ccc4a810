"""Persons with events: rides of the odometer on worst-case persons, and faults of weighting and linking that it must notice.

Person 0 has no events, one, as many as there may be or more, all alike or all different, as far away as can be; a stranger has
nothing in common with the table but the number of persons.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import compress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import covey.engine.fit.events
import covey.engine.models.persons.method
import covey.synthesizers.private
from audits.planting import Fault, replaced
from covey.engine.codes.events import WEIGHT_STEPS, Histories
from covey.engine.sensitivity import Sensitivity
from covey.release.model import write_model
from covey.synthesizers import PrivateSynthesizer
from covey.tables import reading as reading
from covey.tables.description import Description
from covey.tables.fields import Field
from covey.tables.resources import BARE, Parent, Resource
from covey.tables.rules import Condition, Forbid
from covey.tables.schema import Schema

MOST = 6
# What makes a fit quick, by module and name.
CHEAP = [
    (covey.engine.fit.events, "CENTRES", 12),
    (covey.engine.fit.events, "KINDS", 5),
    (covey.engine.fit.events, "STARTS", 1),
    (covey.engine.fit.events, "STEPS", 4),
    (covey.engine.models.persons.method, "COMPARED", (60, 60)),
]


def labels(name, count):
    return Field(name, "string", enum=tuple(str(k) for k in range(count)), required=True)


def package(ordered=True, number=False, timed=False, ruled=False):
    persons = Schema((labels("sex", 2), labels("region", 3)))
    value = Field("value", "integer", 0, 500) if number else labels("value", 3)
    day = Field("day", "integer", 0, 300, required=True, default=0)
    events = Schema((labels("ward", 4), value, *((day,) if ordered else ())))
    parent = Parent("people", "who", MOST, "day" if ordered else None, positions=timed, gaps=timed)
    tables = Resource("people", persons, "id"), Resource("visits", events, parent=parent)
    rule = Forbid((("people.sex", Condition(("1",))), ("visits.ward", Condition(("3",)))))
    return Description(tables, (rule,) if ruled else ())


def alone():
    """A package of one file: persons are those whom the events name."""
    events = package().events
    events = replace(events, parent=replace(events.parent, table="persons"))
    return Description((Resource("persons", BARE, "id"), events), alone=True)


def town(n, seed=0, number=False, least=0):
    """Persons 1 to n − 1 with up to eight events each, in no order; person 0 is added by `with_first`."""
    g = np.random.default_rng(seed)
    who = g.permutation(np.repeat(np.arange(1, n), g.integers(least, 9, n - 1)))
    people = [(g.integers(0, 2), g.integers(0, 3)) for _ in range(n)]
    values = g.integers(0, 501 if number else 3, len(who))
    return people, list(
        zip(who.tolist(), g.integers(0, 4, len(who)), values, g.integers(0, 301, len(who)), strict=True)
    )


def with_first(table, person, events, ordered=True):
    """Both tables with person 0, whose events are scattered among the others."""
    people, visits = [person, *table[0][1:]], list(table[1])
    for k, event in enumerate(events):
        visits.insert(len(visits) * k // max(1, len(events)), (0, *event))
    names = ("who", "ward", "value", "day") if ordered else ("who", "ward", "value")
    columns = list(zip(*visits, strict=True))
    return {
        "people": {
            "id": [f"p{k}" for k in range(len(people))],
            "sex": [str(a) for a, _ in people],
            "region": [str(b) for _, b in people],
        },
        "visits": {
            name: [f"p{w}" for w in column] if name == "who" else [str(v) for v in column]
            for name, column in zip(names, columns, strict=False)
        },
    }


def without(both, who):
    """Both tables without a person."""
    kept = {name: [own != who for own in both[name][key]] for name, key in (("people", "id"), ("visits", "who"))}
    return {name: {c: list(compress(cells, kept[name])) for c, cells in table.items()} for name, table in both.items()}


def person_neighbours(table, ordered, last):
    near, far = (0, 0, 0), (3, last, 300)
    kinds = {
        "no events": ((1, 2), []),
        "one event": ((1, 2), [far]),
        "all alike": ((1, 2), [far] * MOST),
        "beyond the limit": ((1, 2), [far] * 40),
        "all different": ((0, 1), [(k % 4, k * last // MOST, 50 * k) for k in range(MOST)]),
        "one after the other": ((1, 2), [(3, last, 300 - 10 * k) for k in range(MOST)]),
        "two kinds in turn": ((1, 0), [near, far] * (MOST // 2)),
    }
    return {name: with_first(table, *who, ordered) for name, who in kinds.items()}


def rides():
    """Pure and (ε, δ), with and without an order, categories and numbers. The first table's person has events all alike."""
    from audits.odometer import Ride

    found = []
    for name, arguments, ordered, number, alike in (
        ("linked, (ε, δ)", (4.0, 1e-4), True, False, MOST),
        ("linked, pure", (4.0,), True, False, MOST),
        ("linked, no order, from no events", (4.0,), False, False, 0),
        ("linked, numbers, (ε, δ)", (6.0, 1e-4), True, True, MOST),
        ("linked, places and gaps", (6.0,), True, False, MOST),
        ("linked, rule across", (6.0,), True, False, MOST),
        ("linked, important columns", (4.0, 1e-4), True, False, MOST),
    ):
        ruled = "rule" in name
        described, table = package(ordered, number, "gaps" in name, ruled), town(60, number=number)
        if "important" in name:
            described = described.focus(("people.sex", "visits.ward"), "visits.value", target="region")
        if ruled:  # nobody breaks it but neighbours and strangers
            table = [(0, region) for _, region in table[0]], table[1]
        last = 500 if number else 2
        first = with_first(table, (0, 0), [(0, 0, 0)] * alike, ordered)
        stranger = with_first(town(60, seed=7, number=number), (1, 1), [(2, 1, 9)] * 3, ordered)

        def make(seed, described=described, arguments=arguments):
            return PrivateSynthesizer(*arguments, schema=described, seed=seed)

        shows = {"rule across": 1} if ruled else {}
        found.append(Ride(name, make, first, person_neighbours(table, ordered, last), stranger, shows, files=ruled))
    return [*found, triples(), one_file()]


def triples():
    """Three columns of a person and the number of events: the two strongest of four triples."""
    from audits.odometer import Ride

    own, table = package(), town(150)
    unit = replace(own.unit, schema=replace(own.unit.schema, fields=(*own.unit.schema.fields, labels("drug", 2))))
    described = replace(own, tables=(unit, own.events)).focus(triples=2)

    def treated(both):
        people = both["people"]
        sums = [int(a) + int(b) + k for k, (a, b) in enumerate(zip(people["sex"], people["region"], strict=True))]
        return both | {"people": people | {"drug": [str(s % 2) for s in sums]}}

    first = treated(with_first(table, (0, 0), [(0, 0, 0)] * MOST))
    stranger = treated(with_first(town(150, seed=7), (1, 1), [(2, 1, 9)] * 3))
    others = {name: treated(both) for name, both in person_neighbours(table, True, 2).items()}

    def make(seed):
        return PrivateSynthesizer(60.0, schema=described, seed=seed)

    return Ride("linked, triples", make, first, others, stranger, {"candidates": 4})


def one_file():
    """Events alone: everybody has one, the number of persons is public, and that of events is not."""
    from audits.odometer import Ride

    table, described = town(60, least=1), alone()

    def events(both):
        return {"visits": both["visits"]}

    others = person_neighbours(table, True, 2)
    neighbours = {name: events(both) for name, both in others.items() if name != "no events"}
    first = events(with_first(table, (0, 0), [(0, 0, 0)]))
    stranger = events(with_first(town(60, seed=7, least=1), (1, 1), [(2, 1, 9)] * 3))

    def make(seed):
        return PrivateSynthesizer(4.0, schema=described, seed=seed)

    return Ride("linked, one file", make, first, neighbours, stranger)


def is_linked(subject):
    """Whether what is released are several tables."""
    described = getattr(subject, "described", None)
    return described is not None and described.schema is None


def face(synth):
    """Everything that leaves a fit of linked tables."""
    release = synth.release(20)
    with TemporaryDirectory() as folder:
        write_model(release, Path(folder))
        facts = [path.read_text(encoding="utf-8") for path in sorted(Path(folder).glob("*.json"))]
        files = [np.load(path) for path in sorted(Path(folder).glob("*.npz"))]
        arrays = [{name: file[name].tolist() for name in file.files} for file in files]
    sample = {name: frame.to_dict(as_series=False) for name, frame in synth.sample(20).items()}
    return {
        "facts": facts,
        "arrays": arrays,
        "rows": sample,
        "certificate": synth.certificate,
        "privacy": synth.privacy,
        "package": release.described.to_dict(),
    }


# Faults.


def whole_events():
    """Every event weighs a person: weights 1 instead of 1/N."""
    return replaced((Histories, "single", lambda _: property(lambda self: np.full(len(self.owner), WEIGHT_STEPS))))


def whole_pairs():
    """Every pair of events of a person weighs a person."""
    heavy = property(lambda self: np.where(self.counts > 1, WEIGHT_STEPS, 0))
    return replaced((Histories, "pair", lambda _: heavy))


def weights_unpaid():
    """The noise is that of tables of weight 1, whatever the weights of important ones are."""
    return replaced(
        (
            covey.engine.models.persons.method,
            "table_sensitivity",
            lambda _: lambda own: Sensitivity.histograms(len(own)),
        )
    )


def events_published():
    """The statement names the number of events."""
    seen = []

    def counting(real):
        def prepare(self, *given):
            found = real(self, *given)
            seen.append(found.records)
            return found

        return prepare

    def telling(real):
        return lambda budget, charges, n, *rest, **options: real(budget, charges, seen[-1], *rest, **options)

    return replaced((reading.Reader, "prepare", counting), (covey.synthesizers.private, "PrivacyStatement", telling))


def cap_looks_at_others():
    """The limit follows from the number of all events: what is cut of a person depends on how many others have."""

    def shared(_):
        def capped(cls, persons, events, owner, most):
            counts = np.bincount(owner, minlength=len(persons))
            place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
            keep = place < 1 + len(owner) % most
            return cls(persons, events[keep], owner[keep], most)

        return classmethod(capped)

    return replaced((Histories, "capped", shared))


def split_over_batches():
    """Events are weighed within each batch of the file: a person in two batches counts twice."""

    def within(_):
        def weigh(self):
            turn = np.arange(len(self.owner)) // 2  # batches of two events each
            pairs = np.stack([self.owner, turn], axis=1)
            _, place, count = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
            return WEIGHT_STEPS // count[place.ravel()]

        return property(weigh)

    return replaced((Histories, "single", within))


def gaps_ranked():
    """Times between events are counted by their rank among all: one person moves those of everybody else."""

    def ranked(real):
        def timed(owner, times, most):
            place, gap = real(owner, times, most)
            rank = np.argsort(np.argsort(gap, kind="stable"), kind="stable")
            return place, np.where(gap > 0, 1 + 300 * rank // len(rank), 0)

        return timed

    return replaced((reading, "timed", ranked))


def faults():
    """All of them."""
    from audits.persons import choice_in_ones
    from audits.trees import one_triple

    return [
        Fault("gaps by their rank among all", "odometer: linked, places and gaps", gaps_ranked()),
        Fault("each event weighs a person", "odometer: linked, (ε, δ)", whole_events()),
        Fault("weights of important tables unpaid", "odometer: linked, important columns", weights_unpaid()),
        Fault("choice of a person's triples in steps", "odometer: linked, triples", choice_in_ones()),
        Fault("two tables of triples noised like one", "odometer: linked, triples", one_triple()),
        Fault("each pair of events weighs a person", "odometer: linked, pure", whole_pairs()),
        Fault("persons of one file counted by their events", "odometer: linked, one file", whole_events()),
        Fault("number of events published", "odometer: linked, no order, from no events", events_published()),
        Fault("a limit that looks at other persons", "odometer: linked, (ε, δ)", cap_looks_at_others()),
        Fault("events of a person weighed batch by batch", "odometer: linked, pure", split_over_batches()),
        Fault("each event weighs a person, numbers", "odometer: linked, numbers, (ε, δ)", whole_events()),
    ]
