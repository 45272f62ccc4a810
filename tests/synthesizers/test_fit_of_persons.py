"""Persons with events, from codes to sequences: what is spent, how close the tables come, and what the certificate says."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import covey.engine.fit.events as fit
from covey.engine.budget import make_budget
from covey.engine.codes.events import WEIGHT_STEPS, Histories
from covey.engine.driver import fit as run_fit
from covey.engine.entropy import Streams
from covey.engine.gate import Gate
from covey.engine.models.persons.law import Reference
from covey.engine.models.persons.method import RegainPersons, count_factor, independent, lag_shares, shrunk
from covey.engine.models.persons.plan import PersonsPlan, few_persons, table_sensitivity, weights_of
from covey.engine.models.tables.important import Important
from covey.engine.models.tables.prior import Prior
from covey.engine.numbers.grid import Category, NumberGrid
from covey.engine.query import Factor, Query
from covey.engine.units.local import EventRows

PERSONS = Category(3, True), Category(2)
EVENTS = Category(4), NumberGrid(1000, 1)
PLAN = PersonsPlan(PERSONS, EVENTS, 5, True)
METHOD = RegainPersons(Fraction(1, 20), PLAN)


def town(n, seed=0):
    """The first attribute decides how many events there are, and their kind; a kind stays; the number follows the kind."""
    g = np.random.default_rng(seed)
    persons = np.stack([g.integers(0, 3, n), g.integers(0, 2, n)], axis=1)
    counts = np.minimum(g.poisson(1 + persons[:, 0]), 5)
    owner = np.repeat(np.arange(n), counts)
    kind = np.where(g.random(n) < 0.8, persons[:, 0], 3)[owner]
    value = np.minimum(1 + kind * 200 + g.integers(0, 200, len(kind)), 1000)
    return Histories.capped(persons, np.stack([kind, value], axis=1), owner, 5)


def fitted(linked, *budget, plan=PLAN):
    promise, streams = make_budget(*budget, persons=True), Streams.from_seed(1)
    rows, method = EventRows(linked), RegainPersons(Fraction(1, 20), plan)
    gate = Gate(promise, method.shares(rows.n, rows.p, promise), streams, steps=rows.steps)
    return run_fit(method, rows, gate, streams.postprocessing), gate


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(fit, "CENTRES", 40)
    monkeypatch.setattr(fit, "KINDS", 8)
    monkeypatch.setattr(fit, "STARTS", 1)
    monkeypatch.setattr(fit, "STEPS", 150)


def test_sequences_keep_links_within_the_certificate():
    truth = town(3000)
    found, gate = fitted(truth, 8.0, 1e-6)
    drawn = found.law.drawn(3000, np.random.default_rng(0), np.random.default_rng(1))
    factors = dict(enumerate((*map(Factor.plain, (3, 2, 4, 1001)), count_factor(5))))
    sets = {"across": (0, 2), "step": (2, 2), "two": (2, 2), "person": (0, 4)}
    tables = {kind: [Query([columns], factors, of=kind, total=False)] for kind, columns in sets.items()}
    tables = {"events": [Query([(4,)], factors, of="person", total=False)], **tables}
    gaps = Reference.of(drawn, tables).distances(truth)
    assert max(gaps.values()) < 0.08
    # A wrong program that links events to other persons keeps everything but the links.
    torn = replace(drawn, persons=np.random.default_rng(2).permutation(drawn.persons))
    assert Reference.of(torn, tables).distances(truth)["across"] > 0.15
    assert found.certificate is not None
    assert 0.005 < found.certificate.bound["across"] < 0.2
    assert "two events of one person" in found.certificate.sentence
    # A bound is about a draw of many: forty persons lie beyond it, and within the one that is stated of them.
    few = found.law.drawn(40, np.random.default_rng(3), np.random.default_rng(4))
    reference = found.law.reference
    stated = found.certificate.for_table(found.law.distances(few))
    apart = replace(reference, drawn=reference.sums(few), n=few.n).distances(truth)
    assert apart["event"] > found.certificate.bound["event"]
    assert all(apart[kind] <= stated[kind] for kind in stated)
    own = np.array([drawn.events[drawn.events[:, 0] == k, 1].mean() for k in range(3)])
    assert own == pytest.approx(np.array([100, 300, 500]), abs=40)
    assert sum(charge.amount for charge in gate.spent) <= gate.budget.amount
    assert not gate.unused


def test_pure_epsilon_and_events_without_order():
    plan = PersonsPlan(PERSONS, EVENTS, 5, False)
    found, gate = fitted(town(400), 4.0, plan=plan)
    assert {charge.purpose for charge in gate.spent} == {"events", "histograms", "tables", "certificate"}
    assert {m.query.of for m in found.measurements.found if m.query.degree == 2} == {"person", "across", "event", "two"}
    assert found.law.draw(50, Streams.from_seed(0)).n == 50


DRUGS = (*PERSONS, *[Category(2)] * 3)


def treated(n):
    """The town, where either of two drugs, but not both, has an effect: no pair of columns shows it."""
    g, own = np.random.default_rng(5), town(n)
    drugs = g.integers(0, 2, (n, 2))
    effect = drugs.sum(axis=1) % 2 ^ (g.random(n) < 0.05)
    return replace(own, persons=np.column_stack([own.persons, drugs, effect]))


@pytest.mark.parametrize("budget", [(8.0, 1e-6), (16.0,)])
def test_an_exclusive_or_of_a_person_is_chosen_measured_certified_and_followed(budget):
    truth, gaps = treated(3000), {}
    for triples in (0, 2):
        plan = replace(PersonsPlan(DRUGS, EVENTS, 5, True), important=Important(triples=triples))
        found, gate = fitted(truth, *budget, plan=plan)
        drawn = found.law.draw(3000, Streams.from_seed(2)).persons[:, 2:] @ [4, 2, 1]
        shares = [np.bincount(codes, minlength=8) / 3000 for codes in (drawn, truth.persons[:, 2:] @ [4, 2, 1])]
        gaps[triples] = np.abs(shares[0] - shares[1]).sum() / 2
        spent = {charge.purpose for charge in gate.spent}
        assert ({"choosing triples", "triples"} <= spent) == (triples > 0)
        assert sum(charge.amount for charge in gate.spent) == gate.budget.amount
        assert ("three" in found.certificate.bound) == (triples > 0)
    assert gaps[0] > 0.3
    assert gaps[2] < 0.1
    three = next(m for m in found.measurements.found if m.query.degree == 3)
    assert three.query.sets == [(2, 3, 4)]
    assert three.query.of == "person"
    far = np.abs(three.table((2, 3, 4)).ravel() - shares[1]).max()
    assert far < 5 * float(three.sd) / three.per
    assert "three attributes of a person" in found.certificate.sentence


def test_the_plan_is_public_and_its_shares_sum_to_one():
    budget = make_budget(1.0, 1e-9, persons=True)
    shares = PLAN.shares(10_000, budget, Fraction(1, 20))
    assert sum(shares.values()) == 1
    tables = PLAN.tables(10_000, budget)
    few = {kind: len(sets) for (kind, _), sets in tables.items()}
    assert few == {"person": 3, "across": 6, "event": 1, "step": 2, "two": 2}
    more = {kind: len(sets) for (kind, _), sets in PLAN.tables(200_000, budget).items()}
    assert (more["step"], more["two"]) == (4, 3)
    sensitivity = table_sensitivity(weights_of(tables))
    assert sensitivity.l1 == sensitivity.l2_squared == 2 * (13 + 3)
    single = PersonsPlan((Category(1), *PERSONS), EVENTS, 1, True).tables(10_000, budget)
    assert {kind for kind, _ in single} == {"person", "across", "event"}
    assert all(0 not in columns for sets in single.values() for columns in sets)


def test_what_matters_most_has_larger_weights_which_are_paid_for():
    """A pair's tables weigh four times as much, those of a column and of the target twice; one-way tables three times."""
    budget = make_budget(1.0, 1e-9, persons=True)
    plan = replace(PLAN, important=Important(frozenset({3}), ((0, 2),), 1))
    plain, heavy = (
        {(kind, columns): weight for (kind, weight), sets in own.tables(10_000, budget).items() for columns in sets}
        for own in (PLAN, plan)
    )
    assert plain.keys() == heavy.keys()
    times = {key: heavy[key] / weight for key, weight in plain.items()}
    assert times["across", (0, 2)] == 4
    assert {times[key] for key in times if {1, 3} & set(key[1])} == {2}
    assert times["step", (2, 2)] == times["person", (0, 4)] == 1
    assert plan.shares(10_000, budget, Fraction(1, 20)) == PLAN.shares(10_000, budget, Fraction(1, 20))
    first = {draw.attributes: draw.share for draw in plan.numbers.one_way.draws(budget)}
    usual = {draw.attributes: draw.share for draw in PLAN.numbers.one_way.draws(budget)}
    assert float(first[0,] / usual[0,] / (first[1,] / usual[1,])) == pytest.approx(3)
    # All persons move the weighed tables by as much as is paid for, and some by more than unweighed ones would be paid.
    factors = dict(enumerate((*map(Factor.plain, (3, 2, 4, 1001)), count_factor(5))))
    kernels = [(Query([columns], factors, of=kind).kernel(), float(w)) for (kind, columns), w in heavy.items()]
    people = [town(40, seed=3).some(k, 1) for k in range(16)]
    own = [[kernel(who).integers()[0] / WEIGHT_STEPS for kernel, _ in kernels] for who in people]
    apart = [[(w, x - y) for x, y, (_, w) in zip(a, b, kernels, strict=True)] for a, b in combinations(own, 2)]
    gaps = [sum(w * np.array([np.abs(x).sum(), (x**2).sum()]) for w, x in pair) for pair in apart]
    sensitivity = table_sensitivity(weights_of(plan.tables(10_000, budget)))
    assert (np.array(gaps) <= [float(sensitivity.l1), float(sensitivity.l2_squared)]).all()
    unpaid = table_sensitivity(weights_of(PLAN.tables(10_000, budget)))
    assert np.max(gaps, axis=0)[0] > float(unpaid.l1)


def test_a_prior_helps_where_it_is_right_and_is_given_up_where_it_is_wrong():
    """One-way shares of events by person: nearer to the truth with the right prior, and no farther with a wrong one."""
    right = Prior.of_persons(town(20_000, seed=9), "right")
    g = np.random.default_rng(1)
    wrong = Prior.of_persons(replace(town(5000), events=g.integers(0, (4, 1001), (len(town(5000).events), 2))), "wrong")
    truth = town(400)
    query = Query([(2,)], {2: Factor.plain(4)}, of="event", total=False)
    exact = query.kernel()(truth).integers()[0]
    assert right.shares(2, 4) == pytest.approx(exact / exact.sum(), abs=0.06)
    assert right.shares(0, 3) == pytest.approx(np.full(3, 1 / 3), abs=0.02)

    def apart(prior):
        gaps = []
        for seed in range(4):
            streams = Streams.from_seed(seed)
            promise, rows = make_budget(0.4, persons=True), EventRows(truth)
            method = replace(METHOD, certificate=Fraction(0), prior=prior)
            gate = Gate(promise, method.shares(rows.n, rows.p, promise), streams, steps=rows.steps)
            law = run_fit(method, rows, gate, streams.postprocessing).law
            drawn = query.kernel()(law.drawn(4000, np.random.default_rng(0), np.random.default_rng(1))).integers()[0]
            gaps.append(np.abs(drawn / drawn.sum() - exact / exact.sum()).sum() / 2)
        return np.mean(gaps)

    found = {name: apart(prior) for name, prior in (("none", None), ("right", right), ("wrong", wrong))}
    assert found["right"] < 0.8 * found["none"], found
    assert found["wrong"] < 1.6 * found["none"] + 0.05, found


def test_pure_weights_and_the_size_of_a_fit_follow_from_public_numbers():
    budget, pure = make_budget(1.0, 1e-9, persons=True), make_budget(1.0, persons=True)
    heavy = dict(PLAN.tables(10_000, pure).keys())
    assert heavy == {"person": 1, "across": Fraction(3, 5), "event": 2, "step": Fraction(3, 2), "two": Fraction(3, 2)}
    assert PLAN.growth(20_000, budget) == 1
    assert PLAN.growth(45_000, budget) == 1.5
    assert PLAN.growth(60_000, pure) == 1
    assert (PLAN.growth(100, pure), PLAN.growth(10**7, budget)) == (0.5, 2.0)


def test_noise_of_tables_without_a_signal_is_drawn_to_independence_and_signals_stay():
    g = np.random.default_rng(0)
    shares = [np.array([0.6, 0.4]), np.array([0.35, 0.35]), np.array([0.3, 0.5, 0.2])]
    counted = independent("across", (2, 1), shares, 0.7)  # the number of events: who has some does not have none
    assert counted[0].tolist() == [0, 0]
    assert counted.sum() == pytest.approx(0.7)
    assert independent("step", (1, 1), shares, 0.7) is None
    alone = np.full((8, 12), 1 / 96)
    noise = 0.01 * g.standard_normal((8, 12))
    signal = np.zeros((8, 12))
    signal[:, :8] = 0.1 * (np.eye(8) - 1 / 8)
    quiet, loud = shrunk(alone + noise, alone, 0.01), shrunk(alone + signal + noise, alone, 0.01)
    assert quiet.sum(axis=0) == pytest.approx((alone + noise).sum(axis=0))  # margins are left as they were measured
    assert np.abs(quiet - alone).sum() < 0.7 * np.abs(noise).sum()  # what is left is mostly that of the margins
    assert np.abs(loud - alone - signal).sum() < np.abs(noise).sum()
    # A wrong program that shrinks all tables alike, as if each were noise, loses the signal.
    assert np.abs(shrunk(alone + signal + noise, alone, 0.1) - alone - signal).sum() > 1.5 * np.abs(noise).sum()


def test_few_persons_are_advised_against_by_public_numbers():
    budget, pure = make_budget(1.0, 1e-9, persons=True), make_budget(1.0, persons=True)
    assert "too few" in few_persons(3000, budget)
    assert few_persons(8000, budget) == ""
    assert "without delta" in few_persons(8000, pure)


@pytest.mark.parametrize("ordered", [True, False])
def test_of_few_persons_steps_and_what_matters_are_measured(ordered):
    """Others would be noise that one-way tables pay for; pure ε, a larger ε and events without attributes keep them all."""
    budget, plan = make_budget(1.0, 1e-9, persons=True), PersonsPlan(PERSONS, EVENTS, 5, ordered)
    named = replace(plan, important=Important(frozenset(), ((0, 2),)))
    link = "step" if ordered else "two"
    assert {kind: sets for (kind, _), sets in plan.tables(900, budget).items()} == {link: [(2, 2), (3, 3)]}
    assert {kind: sets for (kind, _), sets in named.tables(900, budget).items()}["across"] == [(0, 2)]
    assert sum(plan.shares(900, budget, Fraction(1, 20)).values()) == 1
    assert plan.shares(900, budget, Fraction(1, 20))["histograms"] > plan.shares(1100, budget, 0)["histograms"]
    for usual in (make_budget(1.0, persons=True), make_budget(2.0, 1e-9, persons=True)):
        assert len(plan.tables(900, usual)) > 3
    assert not replace(plan, events=(Category(1),)).few(900, budget)
    found, gate = fitted(town(400), 1.0, 1e-6, plan=plan)
    assert {m.query.of for m in found.measurements.found if m.query.degree == 2} == {link}
    assert sum(charge.amount for charge in gate.spent) == gate.budget.amount
    assert found.law.draw(50, Streams.from_seed(0)).n == 50


def test_shares_of_lags_are_those_of_pairs():
    assert lag_shares(np.array([0.5, 0.5, 0, 0])) == (1.0, 0.0)
    # Of two events one pair; of three two next to each other, one apart.
    one, two = lag_shares(np.array([0, 0, 0.5, 0.5]))
    assert one == pytest.approx((1 + 2 / 3) / 2)
    assert two == pytest.approx((0 + 1 / 3) / 2)
