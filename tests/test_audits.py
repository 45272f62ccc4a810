"""The quick part of the audits: sound code raises no alarm, the audits have power, and every planted fault is caught."""

import re
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import covey
from audits import knowledge, learned, persons, trees
from audits.evidence import SPENDING
from audits.odometer import ride
from audits.rides import private
from audits.statistics import _bound, epsilon_lower_bound
from audits.suite import alarm, all_checks, all_faults, all_rides, cases, planted
from covey.engine.budget import DOMAINS
from covey.tables import schema
from tests.engine.test_entropy import names_of_streams

pytestmark = pytest.mark.usefixtures("few_steps")

QUICK = [name for name, case in cases().items() if case.fast]


@pytest.mark.parametrize("name", QUICK)
def test_no_mechanism_gives_away_more_than_it_claims_and_the_audit_sees_most_of_that(name):
    case = cases()[name]
    assert 0.8 * case.floor * case.claim <= case.measure(case.fast, seed=0) <= case.claim


@pytest.mark.parametrize("name", all_checks())
def test_what_needs_no_statistics(name):
    assert alarm(name, seed=0) == ""


@pytest.mark.parametrize("name", all_faults())
def test_planted_faults_are_caught(name):
    assert planted(name, seed=0)


@cache
def emptied():
    """Rides that no longer exercise what they name, and what the odometer says of each."""
    rides = all_rides()
    triples, twice, missing = (
        rides[name] for name in ("by person, triples", "numbers, persons", "learned, mostly missing")
    )
    rules, prior, across = (rides[name] for name in ("rules", "prior", "linked, rule across"))
    three = persons.person_ride(
        "three", persons.LABELS.focus(triples=1), persons.visits(400, 3, 5, values=4), 40.0, values=4
    )
    kept = {"a neighbour": knowledge.table(0, (50, True, "B", 10, 20, 5, 5, False, False, True, *knowledge.EYES))}
    plain = private(6.0, schema=knowledge.SCHEMA)
    return {
        "one candidate": (three, "a choice among one"),
        "too few candidates": (replace(triples, exercises={"candidates": 11}), "'candidates': 10 where 11"),
        "one row of two": (
            replace(twice, neighbours={"x": trees.table(0, KINDS[0], trees.PLAIN)}),
            "no neighbour replaces",
        ),
        "too many rows": (replace(twice, neighbours={"x": trees.table(0, *KINDS)}), "differs in 3 rows"),
        "the same table": (replace(twice, neighbours={"x": twice.table}), "differs in 0 rows"),
        "no holes": (replace(missing, table=learned.table(800, 0, learned.PLAIN)), "'missing'"),
        "rules that are kept": (replace(rules, neighbours=kept, files=False), "no neighbour breaks the rule"),
        "rules that are broken": (
            replace(rules, table=rules.stranger, files=False),
            "the table itself breaks the rule",
        ),
        "no prior": (replace(prior, make=plain), "'prior': 0 where 400"),
        "no rule across": (replace(across, make=all_rides()["linked, pure"].make), "'rule across'"),
        "another charge": (replace(rules, exercises={"charge important": 1}, files=False), "'charge important'"),
    }


KINDS = [("1234", "77", "2021-01-01", "2021-01-01", "C", "I10")] * 3


@pytest.mark.parametrize("name", emptied())
def test_a_ride_that_does_not_exercise_what_it_names_fails(name):
    one, words = emptied()[name]
    assert any(words in said for said in ride(replace(one, stranger=one.table), seed=0))


def test_the_rides_reach_every_charge_law_and_rule():
    """What they declare they prove (above). A new statistic needs a ride that reaches it."""
    shown = {name for one in all_rides().values() for name in one.exercises}
    call = re.compile(r'(?:Ask|gate\.(?:measure|joint|cube|matrix|signs|directions))\(\s*"([^"]+)"')
    source = [path.read_text(encoding="utf-8") for path in Path(covey.__file__).parent.rglob("*.py")]
    charges = {purpose for text in source for purpose in call.findall(text)} | {DOMAINS}
    assert len(charges) >= 20
    assert {f"charge {purpose}" for purpose in charges} <= shown
    assert {
        f"law {law}" for law in ("laplace", "gaussian", "cube", "knorm", "matrix", "signs", "choice", "bingham")
    } <= shown
    kinds = (*schema.KINDS, "across")
    assert {f"rule {kind}" for kind in kinds} <= shown
    assert {"prior", "drafted", "missing", "candidates", "labels", "rows of a person", "field derived"} <= shown


# Of which purpose, law and promise no ride shows more than half of a charge to be spent, and why.
UNSHOWN = {
    **dict.fromkeys([("size", law, "replaced") for law in ("pure", "gaussian")], "the number of units is public"),
    **dict.fromkeys(
        [(step, law, "added") for step in ("projection", "weights", "points") for law in ("pure", "gaussian")],
        "the paper's method is for replaced rows",
    ),
    **dict.fromkeys(
        [(step, "gaussian", "replaced") for step in ("projection", "weights", "points")], "the paper's method is pure"
    ),
    **dict.fromkeys(
        [("projection", "pure", "replaced"), ("points", "pure", "replaced")],
        "the worst neighbours are rare outcomes: the cases of PVEC and of damped means show them",
    ),
    **dict.fromkeys(
        [(purpose, "gaussian", promise) for purpose in ("row sums", "look") for promise in ("replaced", "added")],
        "asked under pure ε alone",
    ),
    **dict.fromkeys([("coding", "pure", promise) for promise in ("replaced", "added")], "asked under (ε, δ) alone"),
    ("columns and pairs", "gaussian", "added"): "one draw for both is for replaced rows",
}


def test_of_every_charge_a_ride_shows_more_than_half_to_be_spent():
    """Under both promises and by pure laws and Gaussian ones: half of its noise would be noticed. New charges need such rides."""
    laws = {"choice": ("pure", "gaussian"), "gumbel": ("pure", "gaussian"), "gaussian": ("gaussian",)}
    shown = set()
    for name in {name for one in all_rides().values() for name in one.exercises if name.startswith(SPENDING)}:
        charge, law, *added = name.removeprefix(SPENDING).split(", ")
        promise = "added" if added else "replaced"
        shown |= {(charge.partition(" by ")[0], kind, promise) for kind in laws.get(law, ("pure",))}
    sources = [path.read_text(encoding="utf-8") for path in Path(covey.__file__).parent.rglob("*.py")]
    purposes = names_of_streams(*sources)[1] - {"person"}  # a column that Spark selects, by the same word
    assert len(purposes) >= 20
    wanted = set(product(purposes, ("pure", "gaussian"), ("replaced", "added")))
    assert wanted - shown == set(UNSHOWN)
    functions = {"_one_way", "_count", "_judge_formula", "_read"}  # of a search, which asks under one purpose
    for function, law, promise in product(functions, ("laplace", "gaussian"), ("", ", added")):
        name = f"{SPENDING}relations by {function}, {law}{promise}"
        assert any(name in one.exercises for one in all_rides().values()), name


def test_the_registry_is_whole():
    """Fifteen faults and more; each names an alarm that exists and can be raised with few samples."""
    assert len(all_faults()) >= 15
    for fault in all_faults().values():
        assert fault.caught_by in all_checks() or cases()[fault.caught_by].fast
    for case in cases().values():
        for samples in {case.full, case.fast} - {0}:
            half = np.array([samples // 2])
            told_apart = _bound(half, half[0], 0 * half, half[0], case.delta)
            assert told_apart > case.claim, f"{case.name} cannot raise the alarm with {samples} samples"


def test_the_audit_is_tight_and_sound_on_the_laplace_mechanism():
    generator = np.random.default_rng(0)
    for epsilon in (0.5, 2.0):
        a, b = generator.laplace(0, 1 / epsilon, 400_000), generator.laplace(1, 1 / epsilon, 400_000)
        assert 0.95 * epsilon < epsilon_lower_bound(a, b) <= epsilon


def test_the_audit_says_nothing_about_equal_laws():
    generator = np.random.default_rng(1)
    assert epsilon_lower_bound(generator.random(10_000), generator.random(10_000)) < 0.05
