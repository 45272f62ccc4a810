"""Persons with events: covey's linked tables beside events released alone, on a simulated hospital (real panels: panels.py).

python -m benchmarks.persons [--persons 20000] [--seed 1] [--pure] [--positions] [--gaps] [--each 10] [--triples 3]

Mean total variation of the tables of each group, between true and synthetic persons of the same number; beside it that of true
persons drawn again with replacement. "alone": the events as one table with person=…, all of the budget on it; its column is what
tables of one event cost by being linked. "not linked": persons and events as two releases with half of the budget each, what
would be released instead. Settings were chosen on the hospital of seed 0 and frozen; figures are of other seeds. With triples
persons have three flags more, two drugs and an effect of either but not of both, which no pair of columns shows.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import replace

import numpy as np

import covey
from covey.engine.codes.events import WEIGHT_STEPS, Histories
from covey.engine.models.persons.law import Reference
from covey.engine.query import mean_variation
from covey.errors import CoveyWarning
from covey.tables.description import Description
from covey.tables.fields import Field
from covey.tables.resources import Parent, Resource
from covey.tables.schema import Schema
from covey.workflow.evaluating import compared_tables

# The targets at 20,000 persons, (1, 1e-9), up to 20 events.
TARGETS = {"events": 0.012, "event": 0.045, "across": 0.033, "step": 0.055}
PURE = 1.6  # times the figures above, at most, under pure ε
LAST_DAY = 3_650  # of ten years
KINDS = ("events", "person", "across", "event", "step", "two")


def hospital(n, seed, most=20, each=None):
    """Persons (age, sex, region, insurance) and visits (ward, diagnosis, urgency, stay, outcome) with a disease behind them.

    With `each`, everybody has about so many visits.
    """
    g = np.random.default_rng(seed)
    sick = g.beta(0.8, 2.0, n)
    age = np.clip((g.beta(2, 2, n) * 0.7 + sick * 0.3) * 8, 0, 7.999).astype(int)
    sex, region = (g.random(n) < 0.48).astype(int), g.choice(5, n, p=[0.35, 0.25, 0.2, 0.12, 0.08])
    kind = np.minimum((g.random(n) * 0.5 + age / 16 + 0.15 * g.random(n)) * 6, 5).astype(int)
    insured = np.where(g.random(n) < 0.7, (age > 5).astype(int) * 2 + (region == 0), g.integers(0, 4, n))
    counts = np.minimum(g.poisson((0.6 + 9 * sick**1.5 + 0.25 * age) * g.gamma(2, 0.5, n)), most)
    if each is not None:
        counts = np.clip(g.poisson(each, n), 1, most)
    owner = np.repeat(np.arange(n), counts)
    m = len(owner)
    first = np.r_[True, owner[1:] != owner[:-1]]
    ward, diagnosis, home = np.zeros(m, int), np.zeros(m, int), (kind * 1.3).astype(int) % 8
    u, v = g.random(m), g.random(m)
    other, turn = g.choice(8, m, p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.07, 0.05, 0.03]), g.integers(0, 12, m)
    for i, who in enumerate(owner):
        if not first[i] and u[i] < 0.35:
            ward[i] = ward[i - 1] if u[i] < 0.25 else (ward[i - 1] + 1) % 8
        else:
            ward[i] = home[who] if u[i] < 0.8 else other[i]
        if not first[i] and v[i] < 0.4:
            diagnosis[i] = diagnosis[i - 1]
        else:
            by_ward, by_kind = ward[i] * 12 // 8 + turn[i] % 3, kind[who] * 2 + turn[i] % 2
            diagnosis[i] = (by_ward if v[i] < 0.8 else by_kind) % 12
    urgent = (g.random(m) < 0.15 + 0.4 * (age[owner] > 5) + 0.2 * (ward == 0)).astype(int) + (g.random(m) < 0.1)
    stay = np.minimum(g.poisson(0.8 + 0.5 * urgent + 0.3 * age[owner] + (ward == 3) * 2), 7)
    outcome = np.where(g.random(m) < 0.08 + 0.05 * stay * (age[owner] > 4), g.integers(1, 4, m), 0)
    persons, events = np.stack([age, sex, region, insured], 1), np.stack([ward, diagnosis, urgent, stay, outcome], 1)
    return Histories.capped(persons, events, owner, most), ((8, 2, 5, 4), (8, 12, 3, 8, 4)), ((0,), (3,))


def with_drugs(linked, sizes, seed):
    """Persons with two drugs and an effect, which nine of ten have who take one drug, and one of ten who take none or both."""
    g = np.random.default_rng(seed + 2000)
    drugs = (g.random((linked.n, 2)) < 0.5).astype(int)
    effect = drugs.sum(axis=1) % 2 ^ (g.random(linked.n) < 0.1)
    return replace(linked, persons=np.column_stack([linked.persons, drugs, effect])), ((*sizes[0], 2, 2, 2), sizes[1])


def three_way(found, linked):
    """Total variation of the table of the two drugs and the effect."""
    shares = [np.bincount(own.persons[:, -3:] @ [4, 2, 1], minlength=8) / own.n for own in (found, linked)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def chosen_triples(synth):
    return [own for found in synth.measurements.found if found.query.degree == 3 for own in found.query.sets]


def package(sizes, ordered, most, positions=False, gaps=False):
    """Categories of the two tables as a package; ordered ones have their order. With gaps the last column is a day."""

    def fields(letter, own, rising):
        names = [f"{letter}{j}" for j in range(len(own))]
        return tuple(
            Field(name, "string", enum=tuple(map(str, range(c))), required=True, ordered=j in rising)
            for j, (name, c) in enumerate(zip(names, own, strict=True))
        )

    place = Field("place", "integer", 1, 50, required=True, default=1)
    if gaps:
        place = Field("place", "integer", 0, LAST_DAY, required=True, default=0)
    persons = Resource("persons", Schema(fields("a", sizes[0], ordered[0])), "id")
    parent = Parent("persons", "who", most, "place", numbered=not gaps, positions=positions, gaps=gaps)
    events = Resource("events", Schema((*fields("x", sizes[1], ordered[1]), place)), parent=parent)
    return Description((persons, events))


def days(linked, seed):
    """When events were, in days: frequent ones of some persons, rare ones of others."""
    g = np.random.default_rng(seed + 1000)
    pace = g.choice([7, 30, 90], linked.n, p=[0.3, 0.4, 0.3])
    since = np.where(linked.places > 0, g.geometric(1 / pace[linked.owner]), g.integers(0, 365, len(linked.owner)))
    start = np.cumsum(linked.counts) - linked.counts
    whole = np.cumsum(since)
    return np.minimum(whole - (whole - since)[np.minimum(start, len(since) - 1)][linked.owner], LAST_DAY)


def gaps_of(owner, day):
    """Days between an event and the next one of the same person."""
    order = np.lexsort((day, owner))
    own, at = owner[order], day[order]
    return np.diff(at)[own[1:] == own[:-1]]


def tables_of(linked, day=None):
    counts = linked.counts
    place = np.arange(len(linked.owner)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    place = place if day is None else day
    persons = {f"a{j}": linked.persons[:, j].astype(str) for j in range(linked.persons.shape[1])}
    events = {f"x{j}": linked.events[:, j].astype(str) for j in range(linked.events.shape[1])}
    return {
        "persons": {"id": np.arange(linked.n).astype(str), **persons},
        "events": {"who": linked.owner.astype(str), **events, "place": place.astype(str)},
    }


def read_back(found, linked):
    persons = np.stack([found["persons"][f"a{j}"].cast(int).to_numpy() for j in range(linked.persons.shape[1])], axis=1)
    events = np.stack([found["events"][f"x{j}"].cast(int).to_numpy() for j in range(linked.events.shape[1])], axis=1)
    return Histories(persons, events, found["events"]["who"].to_numpy() - 1, linked.most)


def alone(tables, described, linked, sizes, epsilon, delta):
    """Mean total variation of tables of one event, if events are released alone, all of the budget on them."""
    synth = covey.PrivateSynthesizer(epsilon, delta, schema=described.events.written, person="who")
    rows = synth.fit(tables["events"]).sample(linked.n)
    drawn = np.stack([rows[f"x{j}"].cast(int).to_numpy() for j in range(len(sizes[1]))], axis=1)
    single = Histories(np.zeros((len(drawn), 1), int), drawn, np.arange(len(drawn)), 1)
    both = linked, replace(single, persons=np.zeros((single.n, linked.persons.shape[1]), int))
    [query] = compared_tables(*both, ordered=False)["event"]
    true, shares = (query.kernel()(own).integers()[0] / (own.n * WEIGHT_STEPS) for own in both)
    having = float((linked.counts > 0).mean())
    return mean_variation(true, shares * having, query.starts, 1)


def not_linked(tables, described, linked, sizes, delta):
    """Tables of two attributes of a person, and of one event, from two releases with half of the budget each."""
    synth = covey.PrivateSynthesizer(0.5, delta / 2, schema=described.unit.schema)
    rows = synth.fit({name: column for name, column in tables["persons"].items() if name != "id"}).sample(linked.n)
    drawn = np.stack([rows[f"a{j}"].cast(int).to_numpy() for j in range(len(sizes[0]))], axis=1)
    single = Histories(drawn, linked.events[:0], linked.owner[:0], linked.most)
    return own_pairs(linked, single), alone(tables, described, linked, sizes, 0.5, delta / 2)


def own_pairs(linked, found):
    """Mean total variation of two attributes of a person, without the number of events."""
    groups = compared_tables(linked, linked, ordered=True)
    [query] = groups["person"]
    last = linked.persons.shape[1] + linked.events.shape[1]
    pairs = replace(query, sets=[columns for columns in query.sets if last not in columns])
    return Reference.of(found, groups | {"person": [pairs]}).distances(linked)["person"]


def firsts(found, linked, sizes):
    """Mean total variation of the attributes of first events."""
    gaps = []
    for j, size in enumerate(sizes):
        one, two = (
            np.bincount(own.events[own.places == 0, j], minlength=size) / (own.places == 0).sum()
            for own in (found, linked)
        )
        gaps.append(np.abs(one - two).sum() / 2)
    return float(np.mean(gaps))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--persons", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pure", action="store_true")
    parser.add_argument("--positions", action="store_true", help="measure places too, so that first events are kept")
    parser.add_argument("--gaps", action="store_true", help="give events a day and measure the time between them")
    parser.add_argument("--each", type=float, help="about so many visits of every person of the hospital")
    parser.add_argument("--triples", type=int, help="give persons drugs with an effect, and look for so many triples")
    chosen = parser.parse_args()
    linked, sizes, ordered = hospital(chosen.persons, chosen.seed, each=chosen.each)
    if chosen.triples is not None:
        linked, sizes = with_drugs(linked, sizes, chosen.seed)
    delta = 0 if chosen.pure else 1e-9
    day = days(linked, chosen.seed) if chosen.gaps else None
    described = package(sizes, ordered, linked.most, chosen.positions, chosen.gaps)
    given = tables_of(linked, day)
    compared = compared_tables(linked, linked, ordered=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoveyWarning)
        begin, worked = time.perf_counter(), time.process_time()
        synth = covey.PrivateSynthesizer(1.0, delta, schema=described, triples=chosen.triples or 0).fit(given)
        drawn = synth.sample(linked.n)
        seconds, worked = time.perf_counter() - begin, time.process_time() - worked
        found = read_back(drawn, linked)
        unlinked = alone(given, described, linked, sizes, 1.0, delta)
        apart = not_linked(given, described, linked, sizes, delta)
    gaps = Reference.of(found, compared).distances(linked)
    again = Reference.of(linked.resampled(linked.n, np.random.default_rng(0)), compared).distances(linked)
    print(f"hospital, {linked.n} persons, {len(linked.events)} events, {'pure 1' if chosen.pure else '(1, 1e-9)'}")
    print("           ", *(f"{kind:>8}" for kind in KINDS))
    print("linked     ", *(f"{gaps.get(kind, float('nan')):8.4f}" for kind in KINDS))
    print("drawn again", *(f"{again.get(kind, float('nan')):8.4f}" for kind in KINDS))
    print(f"first events, each attribute alone: {firsts(found, linked, sizes[1]):.4f}")
    print(f"events alone, tables of one event: {unlinked:.4f}")
    own = own_pairs(linked, found)
    print(
        f"not linked, tables of a person's attributes: {apart[0]:.4f} (linked {own:.4f}); of one event: {apart[1]:.4f}"
    )
    if chosen.triples is not None:
        print(f"two drugs and their effect: {three_way(found, linked):.4f}; measured: {chosen_triples(synth)}")
    print(f"{seconds:.0f} s, {worked:.0f} processor seconds; {synth.certificate}")
    if day is not None:
        again = drawn["events"]
        true, own = gaps_of(linked.owner, day), gaps_of(again["who"].to_numpy(), again["place"].to_numpy())
        cuts = np.unique(np.quantile(true, np.arange(1, 20) / 20))
        shares = [
            np.bincount(np.searchsorted(cuts, x, side="right"), minlength=len(cuts) + 1) / len(x) for x in (true, own)
        ]
        far = np.abs(shares[0] - shares[1]).sum() / 2
        print(
            f"days between events: {far:.4f}; mean {true.mean():.1f} in truth, {own.mean():.1f} in the synthetic tables"
        )
    factor = PURE if chosen.pure else 1.0
    print({kind: f"{gaps[kind]:.4f} of {factor * most:.4f}" for kind, most in TARGETS.items()})


if __name__ == "__main__":
    main()
