"""Both methods from end to end, on small tables that differ in one record: never above the claim.

Everything that leaves is looked at: centres, their number, weights, directions, certificate. A case lists several statistics,
and the audit picks the most telling one. Fitting makes these slower and blunter than the mechanisms alone, so no floor is set.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from audits.case import Case
from audits.gates import fit_bits, fit_categories, paper_gate
from covey.engine.bodies import Ball, Cube
from covey.engine.budget import make_budget
from covey.engine.codes.domain import Domain
from covey.engine.units.local import ArrayRows
from covey.paper.private import paper_parameters, private_centres
from covey.paper.records import boolean_records, real_records
from covey.synthesizers import PrivateSynthesizer
from covey.tables.schema import Field, Schema

SHARE = Fraction(1, 10)


@dataclass(frozen=True)
class Pair:
    """Two neighbouring tables, and in which way they are the worst."""

    words: str
    one: object
    other: object

    def __getitem__(self, which):
        return (self.one, self.other)[which]


def repeat(run, streams, count):
    """The statistics of many independent runs, a row for each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array([run(streams.child(str(i))) for i in range(count)], dtype=np.float64)


def of_cloud(cloud, certificate=None):
    """Statistics of everything that leaves: how many centres, their means and spread, the certificate."""
    mean = cloud.weights @ cloud.points
    out = [len(cloud), cloud.weights.max(), *mean[:3], mean.sum(), (cloud.weights @ cloud.points**2).sum()]
    if certificate is not None:
        out += [certificate.estimate[1], certificate.estimate[1] + mean.sum()]
    return np.round(out, 9)


# Algorithm 4.


def paper_case(name, pair, body, epsilon, full, fast, **options):
    par = paper_parameters(len(pair.one), body, Fraction(epsilon), **options)
    make = boolean_records if isinstance(body, Cube) else lambda X: real_records(X, body)

    def draw(which, streams, count):
        records = make(pair[which])

        def run(stream):
            cloud, seen = private_centres(records, body, par, paper_gate(par, stream))
            directions = seen[:, 0] ** 2 if par.t else np.zeros(1)
            w, y = cloud.weights, cloud.points
            return [*directions, *of_cloud(cloud), *w[:16], *(w[:, None] * y)[:16, 0]]

        return repeat(run, streams, count)

    return Case(name, pair.words, float(epsilon), draw, full, fast)


def paper_cases():
    e1, e2 = [1.0, 0.0], [0.0, 1.0]
    orthogonal = Pair("orthogonal replaced row", np.array([e1, e1, e1]), np.array([e1, e1, e2]))
    # In steps of α/√t = ½ the record at ¼ lies half-way between the cells of 0 and of ½.
    tie = Pair("a record half-way between two cells", np.array([[0.25], [0.0]]), np.array([[0.25], [0.5]]))
    damping = Pair("damping threshold crossed", np.array([[1.0], [-1.0], [-1.0]]), np.array([[1.0], [1.0], [-1.0]]))
    wide = Pair("p > n", np.ones((2, 5), dtype=np.uint8), np.array([[1] * 5, [0] * 5], dtype=np.uint8))
    empty = Pair("empty cell against singleton", np.array([e1]), np.array([e2]))
    return [
        paper_case("paper, PROJ", orthogonal, Ball(2), 3, 5_000, 400, t=1, alpha=0.5, b=1.0, shares=(0.98, 0.01, 0.01)),
        paper_case("paper, cells", empty, Ball(2), 2, 4_000, 200, t=2, alpha=0.9, b=1.0, shares=(0, 0.5, 0.5)),
        paper_case("paper, tie", tie, Ball(1), 2, 4_000, 200, t=1, alpha=0.5, b=1.0, shares=(0, 0.5, 0.5)),
        paper_case("paper, damping", damping, Ball(1), 2, 4_000, 0, t=1, alpha=0.5, b=1.5, shares=(0, 0.1, 0.9)),
        paper_case("paper, bits", wide, Cube(5), 2, 4_000, 0, t=1, alpha=0.7, constants="improved"),
    ]


# Regain.


def bits_case(name, pair, epsilon, delta, full, fast):
    budget = make_budget(epsilon, delta)

    def draw(which, streams, count):
        rows = ArrayRows(pair[which])

        def run(stream):
            found = fit_bits(rows, budget, stream)
            return of_cloud(found.law.cloud, found.certificate)

        return repeat(run, streams, count)

    return Case(name, pair.words, float(epsilon), draw, full, fast, float(delta))


def categories_case(name, pair, domain, epsilon, delta, full, fast):
    budget = make_budget(epsilon, delta)

    def draw(which, streams, count):
        rows = ArrayRows(np.array(pair[which]))

        def run(stream):
            found = fit_categories(rows, domain, budget, stream)
            return of_cloud(found.law.cloud, found.certificate)

        return repeat(run, streams, count)

    return Case(name, pair.words, float(epsilon), draw, full, fast, float(delta))


def bits(*records):
    return np.array(records, dtype=np.uint8)


def regain_cases():
    two = Pair("p = n, all bits flip", bits([1, 1], [0, 1]), bits([0, 0], [0, 1]))
    wide = Pair("p > n, all bits flip", bits([1] * 6, [0] * 6), bits([0] * 6, [0] * 6))
    long, few, many = (np.zeros(shape, dtype=np.uint8) for shape in ((200, 2), (20, 4), (60, 21)))
    pairs = Pair("a lone record", long, np.vstack([long[1:], bits([1, 1])]))
    parities = Pair("a lone record", few, np.vstack([few[1:], bits([1, 1, 1, 0])]))
    ball = Pair("a lone record", many, np.vstack([many[1:], bits([1] * 21)]))
    domain = Domain((3, 4), (False, True))
    codes = Pair("empty cell against singleton", [[0, 0], [1, 1]], [[0, 0], [2, 3]])
    return [
        bits_case("regain, means", two, 0.7, 0, 4_000, 200),
        bits_case("regain, means, wide", wide, 1, 0, 1_500, 0),
        bits_case("regain, means, (ε, δ)", two, 0.7, 0.05, 4_000, 200),
        bits_case("regain, matrix", pairs, 1, 0, 300, 0),
        bits_case("regain, parities, (ε, δ)", parities, 1, 0.04, 200, 0),
        bits_case("regain, ball, (ε, δ)", ball, 1, 0.01, 100, 0),
        categories_case("regain, categories", codes, domain, 1, 0, 1_000, 60),
        categories_case("regain, categories, (ε, δ)", codes, domain, 1, 0.05, 1_000, 60),
    ]


# From a table with names to everything that leaves, through the schema.

SCHEMA = Schema(
    fields=(
        Field(name="age", type="integer", minimum=0, maximum=99, bins=4),
        Field(name="ward", type="string", enum=("A", "B"), other="other"),
    )
)


def table_case(name, words, odd, delta, full, fast):
    """A plain record replaced by an odd one: prepared by the shipped codec, fitted, and looked at from outside."""
    plain = {"age": ["30", "70", "55"], "ward": ["A", "B", "A"]}
    strange = {"age": [*plain["age"][:2], odd["age"]], "ward": [*plain["ward"][:2], odd["ward"]]}
    pair = Pair(words, plain, strange)

    def draw(which, streams, count):
        synth = PrivateSynthesizer(1.0, delta, schema=SCHEMA, certificate_share=SHARE, seed=0, composition="gaussian")
        prepared = synth.prepare(pair[which])

        def run(stream):
            synth._next_streams = lambda: stream  # seeded, as all audits are
            synth.fit(prepared)
            return [synth.n, *of_cloud(synth.centres, synth.certificate)]

        return repeat(run, streams, count)

    return Case(name, words, 1.0, draw, full, fast, delta)


def table_cases():
    return [
        table_case("regain, missing", "a record of NaN", {"age": "NaN", "ward": ""}, 0.0, 600, 60),
        table_case("regain, out of range", "a record out of range", {"age": "1e9", "ward": "A"}, 0.0, 600, 0),
        table_case("regain, unknown, (ε, δ)", "an unknown category", {"age": "55", "ward": "Z"}, 0.05, 600, 0),
    ]


def cases():
    """All end-to-end cases."""
    return [*paper_cases(), *regain_cases(), *table_cases()]
