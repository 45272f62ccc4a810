"""Configurations for the replay odometer: every plan, law and factor, on random, worst-case and borderline neighbours.

No factor is 1 in all of them: several scores, several rows a person, categories of 1 to 600, declared limits.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from audits import bodies, commands, events, knowledge, neighbours, persons
from audits.evidence import MORE_THAN_HALF, SPENDING
from audits.neighbours import grouped
from audits.odometer import Ride
from covey.engine.bodies import Ball, ProductOfSimplices
from covey.synthesizers import PrivateSynthesizer
from covey.tables.schema import Field, Schema


def private(*arguments, **options):
    """A maker of synthesizers with a given seed."""
    options = {
        "composition": "gaussian"
    } | options  # so that δ is spent where there is one: pure rides are rides of their own
    return lambda seed: PrivateSynthesizer(*arguments, seed=seed, **options)


def replaced(X, *rows):
    """The table with its first records replaced."""
    Y = X.copy()
    Y[: len(rows)] = rows
    return Y


def bits(n, p, density=0.5, seed=0):
    return (np.random.default_rng(seed).random((n, p)) < density).astype(np.uint8)


def halves(p):
    """Ones in the first half of the columns, and in the second."""
    first = (np.arange(p) < p // 2).astype(np.uint8)
    return first, 1 - first


def bit_neighbours(X):
    """Random, all bits flipped, and the two halves, which are orthogonal around a sparse centre."""
    p = X.shape[1]
    first, second = halves(p)
    return {
        "random": replaced(X, bits(1, p, seed=9)[0]),
        "all bits flip": replaced(X, 1 - X[0]),
        "nearly all": replaced(X, np.ones(p, dtype=np.uint8) if (X[0] == 0).any() else np.eye(p, dtype=np.uint8)[0]),
        "half the bits flip": replaced(X, np.where(np.arange(p) < p // 2, 1 - X[0], X[0])),
        "orthogonal": replaced(X, second) if (X[0] == first).all() else replaced(X, first),
    }


def bit_ride(name, X, *arguments, exercises=None, **options):
    stranger = 1 - bits(*X.shape, density=0.8, seed=5)
    return Ride(name, private(*arguments, **options), X, bit_neighbours(X), stranger, exercises or {})


def bit_rides():
    sparse = bits(1500, 30, 0.05)
    sparse[0], _ = halves(30)  # long: it is cut
    limits = [(list(range(20)), 3)]
    full = bits(800, 24, 0.2)
    full[0] = np.arange(24) % 2
    return [
        bit_ride("means", bits(12, 5), 0.2),
        bit_ride("means, (ε, δ)", bits(12, 5), 0.2, 0.01),
        bit_ride("matrix, row sums", bits(400, 4, 0.8), 4.0),
        bit_ride("matrix, nothing of δ spent", bits(400, 4, 0.8), 4.0, 1e-6, composition=None),
        bit_ride("matrix, six scores", grouped(4000, 7, 4), 60.0),
        bit_ride("parities", bits(3000, 5), 4.0, 1e-4, exercises={"charge moments": 5 + 10 + 10 + 5}),
        # With ε = 1 noise leaves one seed of sixty without a radius that cuts.
        bit_ride("ball, cut", sparse, 3.0, 1e-6),
        bit_ride("ball, three scores", grouped(3000, 3, 8), 2.0, 1e-6),
        bit_ride("declared limits", full, 1.0, 1e-4, at_most=limits),
        bit_ride("declared limits, pure", full, 3.0, at_most=limits),
    ]


def person_rides():
    """Five rows of one person replaced at once, all alike: the worst that group privacy allows."""
    X, p = bits(1500, 24, 0.3), 24
    first, second = halves(p)
    X[:5] = first
    others = {"five alike": replaced(X, *[second] * 5), "five flips": replaced(X, *(1 - X[:5]))}
    stranger = 1 - bits(1500, p, seed=5)
    codes = np.random.default_rng(1).integers(0, 4, (900, 3))
    codes[:5] = 0
    alike = {"five alike": replaced(codes, *np.full((5, 3), 3))}
    other = np.random.default_rng(2).integers(0, 4, (900, 3))
    # All ones: every mean lies on the same side of the centre, so that the certificate's distance moves by all of 5/n.
    ones = np.ones((40, 4), dtype=np.uint8)
    few = {"five alike": replaced(ones, *[[0] * 4] * 5)}
    return [
        Ride("persons", private(5.0, rows_per_person=5), X, others, stranger),
        Ride("persons, (ε, δ)", private(5.0, 1e-6, rows_per_person=5), X, others, stranger),
        Ride("persons, means", private(0.5, rows_per_person=5), ones, few, stranger[:40, :4]),
        # The certificate's two numbers, δ and rows out of place, move by all of 5/n together.
        Ride("persons, means, (ε, δ)", private(0.5, 0.01, rows_per_person=5), ones, few, stranger[:40, :4]),
        Ride("persons, categories", private(5.0, domain=[4] * 3, rows_per_person=5), codes, alike, other),
        Ride("persons, categories, (ε, δ)", private(5.0, 1e-6, domain=[4] * 3, rows_per_person=5), codes, alike, other),
    ]


def code_table(n, sizes, seed=0):
    g = np.random.default_rng(seed)
    return np.minimum((g.random((n, len(sizes))) ** 2 * sizes).astype(np.int64), np.array(sizes) - 1)


def category_ride(name, sizes, *arguments, n=2000, tied=False, **options):
    """Independent columns, or if they are `tied` columns that say the same; the stranger has independent ones."""
    last = np.array(sizes) - 1
    X = np.arange(n)[:, None] % 2 * last if tied else code_table(n, sizes)
    X[0] = 0
    one_way = np.bincount(X[:, -1], minlength=sizes[-1])
    rare = np.r_[last[:1], X[0, 1:-1], int(np.argmin(one_way))]
    neighbours = {
        "the other end": replaced(X, last),
        "random": replaced(X, code_table(1, sizes, seed=8)[0]),
        "one attribute": replaced(X, np.r_[last[:1], X[0, 1:]]),
        "a rare category, at a merge": replaced(X, rare),
    }
    stranger = last - code_table(n, sizes, seed=5)
    return Ride(name, private(*arguments, domain=sizes, **options), X, neighbours, stranger)


def alike_ride(name, n, p):
    """Rows that are all alike but one, and a third one that is replaced: no other moves the look at pairs as far."""
    alike = np.zeros((n, p), dtype=np.int64)
    alike[-1] = 2
    ride = category_ride(name, [5] * p, 1.0, n=n)
    return replace(ride, table=alike, neighbours={"a third one": replaced(alike, np.full(p, 4))})


def category_rides():
    return [
        category_ride("categories, matrix", [2, 3, 2, 2, 4, 2, 3, 2], 3.0),
        category_ride("categories, cells", [30, 1, 12], 1.0, ordinal=[0]),
        category_ride("categories, one-way tables alone", [2, 3, 2, 4], 0.5, n=500),
        category_ride("categories, look", [2, 3, 2, 4, 2, 2, 3], 1.0, n=700, tied=True),
        alike_ride("categories, look at rows that are alike", 1200, 7),
        category_ride("categories, one draw", [2, 3, 2, 4, 2], 1.0, 1e-6),
        category_ride("categories, (ε, δ)", [30, 1, 2, 12], 1.0, 1e-6, ordinal=[0]),
        # Ten triples, five products of four signs and one of five.
        replace(category_ride("yes/no, triples", [2] * 5, 20.0, triples=3), exercises={"candidates": 16}),
        category_ride("six hundred categories", [600, 3, 1], 1.0, 1e-6, ordinal=[0]),
        category_ride("six hundred categories, pure", [600, 3, 1], 1.0),
    ]


def table_rides():
    """Through the schema: numbers, dates, labels, holes."""
    schema = Schema(
        fields=(
            Field(name="age", type="integer", minimum=0, maximum=99, bins=8),
            Field(name="seen", type="date", minimum="2020-01-01", maximum="2021-12-31", bins=6),
            Field(name="ward", type="string", enum=("A", "B", "C"), other="other"),
        )
    )

    def table(seed, first):
        g = np.random.default_rng(seed)
        rows = [
            (str(a), f"202{d % 2}-0{1 + d % 9}-15", "ABCZ"[w])
            for a, d, w in zip(g.integers(0, 99, 800), g.integers(0, 90, 800), g.integers(0, 4, 800), strict=True)
        ]
        rows[0] = first
        return dict(zip(("age", "seen", "ward"), map(list, zip(*rows, strict=True)), strict=True))

    plain = table(0, ("30", "2020-05-05", "A"))
    neighbours = {
        "holes": table(0, ("", "", "")),
        "beyond the limits": table(0, ("1e9", "1066-10-14", "Q")),
        "at a bin's edge": table(0, ("25", "2020-05-01", "A")),
    }
    return [
        Ride("schema", private(2.0, schema=schema), plain, neighbours, table(5, ("1", "2021-12-31", "C"))),
        Ride(
            "schema, (ε, δ)", private(2.0, 1e-6, schema=schema), plain, neighbours, table(5, ("1", "2021-01-01", "C"))
        ),
    ]


def paper_rides():
    g = np.random.default_rng(4)
    X = g.uniform(-0.5, 0.5, (60, 3))
    X[0] = [1, 0, 0]
    neighbours = {
        "orthogonal": replaced(X, [0, 1, 0]),
        "opposite": replaced(X, [-1, 0, 0]),
        "at a cell's border": replaced(X, [0.25, 0.25, 0]),
        "far outside": replaced(X, [1e9, -1e9, 0]),
    }
    stranger = g.uniform(-0.9, 0.9, (60, 3))
    ball = Ball(3)

    def ride(name, **options):
        make = private(3.0, method="paper", body=ball, alpha=0.5, b=2.0, **options)
        return Ride(name, make, X, neighbours, stranger)

    # One category twice, so that each of two damped means moves by all of 2‖x‖₁/b when one of the two rows leaves.
    hot = np.eye(3)[[0, 0, 1, 1, 2, 2, 2]]
    moved = {"another category": replaced(hot, [0, 1, 0]), "between": replaced(hot, [0.5, 0.5, 0])}
    one_hot = private(3.0, method="paper", body=ProductOfSimplices([3]), t=3, alpha=0.5, b=1.0)

    return [
        Ride("paper, one-hot", one_hot, hot, moved, hot[::-1, ::-1]),
        ride("paper, t = 1", t=1),
        ride("paper, t = 2", t=2),
        ride("paper, t = 2, improved", t=2, constants="improved"),
        ride("paper, t = 3", t=3),
        Ride(
            "paper, persons",
            private(6.0, method="paper", body=ball, alpha=0.5, b=2.0, t=1, rows_per_person=3),
            replaced(X, *[[1, 0, 0]] * 3),
            {"three alike": replaced(X, *[[0, 1, 0]] * 3)},
            stranger,
        ),
    ]


# What the names of rides promise, in words of `audits.evidence`.
PROMISED = {
    "means": ("charge means", "law cube"),
    "matrix, row sums": ("charge row sums", "law signs"),
    "matrix, six scores": ("charge scores",),
    "ball, cut": ("charge coding",),
    "categories, matrix": ("charge pairs", "law matrix"),
    "categories, cells": ("charge histograms", "law laplace"),
    "categories, one-way tables alone": ("charge histograms", "law knorm"),
    "categories, look": ("charge look", "charge columns and pairs", "law knorm"),
    "categories, one draw": ("charge columns and pairs", "law gaussian"),
    "categories, (ε, δ)": ("charge certificate", "law gaussian"),
    "paper, t = 1": ("charge projection", "charge weights", "charge points", "law bingham"),
    "by person, triples": ("charge choosing triples", "charge triples", "law choice"),
    "by person, numbers": ("charge ranks",),
    "body, margins and moments": ("charge margins", "charge radius"),
    "linked, pure": ("charge events", "charge tables"),
    "draft, then learned": ("charge domains",),
}


# Of which charges, by which laws, a ride shows more than half to be spent: half of their noise would not pass unnoticed.
SPENT = {
    "means": ("means, cube",),
    "means, (ε, δ)": ("means, gaussian",),
    "matrix, row sums": ("row sums, laplace", "moments, signs"),
    "matrix, six scores": ("scores, laplace",),
    "parities": ("moments, gaussian",),
    "ball, cut": ("coding, gaussian",),
    "ball, three scores": ("scores, gaussian",),
    "persons, means": ("certificate, cube",),
    "categories, cells": ("pairs, laplace",),
    "categories, one-way tables alone": ("histograms, knorm",),
    "categories, look": ("columns and pairs, matrix", "columns and pairs, knorm"),
    "categories, look at rows that are alike": ("look, laplace",),
    "categories, one draw": ("columns and pairs, gaussian",),
    "yes/no, triples": ("choosing triples, choice", "triples, laplace"),
    "rules": ("histograms, laplace",),
    "rules, (ε, δ)": ("histograms, gaussian",),
    "paper, one-hot": ("weights, laplace",),
    "by person, numbers": ("ranks, laplace",),
    "by person, numbers, (ε, δ)": ("ranks, gaussian",),
    "body, margins and moments": ("margins, laplace", "radius, laplace", "moments, matrix"),
    "body, margins and moments, (ε, δ)": ("margins, gaussian", "radius, gaussian"),
    "body, rows at an end": ("certificate, laplace",),
    "body, rows at an end, (ε, δ)": ("certificate, gaussian",),
    "linked, pure": ("events, laplace",),
    "linked, (ε, δ)": ("events, gaussian",),
    "linked, triples": ("tables, laplace",),
    "linked, numbers, (ε, δ)": ("tables, gaussian",),
    "numbers": ("pairs, matrix",),
    "numbers, (ε, δ)": ("pairs, gaussian",),
    "numbers, important pairs": ("important, laplace",),
    "numbers, important pairs, (ε, δ)": ("important, gaussian",),
    "numbers, further queries": ("further queries, laplace",),
    "numbers, further queries, (ε, δ)": ("further queries, gaussian",),
    "numbers, triples of a target, (ε, δ)": ("triples, gaussian",),
    "learned numbers": ("domains, laplace", "relations by _one_way, laplace"),
    "learned, mostly missing": ("domains, gaussian",),
    "relations": ("relations by _count, gaussian", "relations by _read, gaussian"),
    "relations, pure": ("relations by _count, laplace", "relations by _read, laplace", "relations by run, gumbel"),
    "relations, none among few categories": ("relations by _one_way, gaussian",),
    "relations, counts of a formula": ("relations by _judge_formula, gaussian",),
    "relations, counts of a formula, pure": ("relations by _judge_formula, laplace",),
    "relations, added": tuple(
        f"relations by {function}, gaussian, added" for function in ("_one_way", "_count", "_judge_formula", "_read")
    ),
    "relations, added, pure": (
        *(f"relations by {function}, laplace, added" for function in ("_one_way", "_count", "_judge_formula", "_read")),
        "relations by run, gumbel, added",
    ),
    **{
        f"{neighbours.NAME}{ride}": tuple(f"{charge}, added" for charge in charges)
        for ride, charges in {
            "means": ("size, laplace", "means, cube", "certificate, cube"),
            "means, (ε, δ)": ("size, gaussian",),
            "body, means alone": ("certificate, laplace",),
            "body, means alone, (ε, δ)": ("means, gaussian", "certificate, gaussian"),
            "matrix": ("row sums, laplace", "moments, signs"),
            "matrix, six scores": ("scores, laplace",),
            "parities": ("moments, gaussian",),
            "ball, cut": ("coding, gaussian",),
            "ball, three scores": ("scores, gaussian",),
            "categories": ("histograms, knorm", "pairs, matrix"),
            "categories, look": ("look, laplace", "columns and pairs, knorm"),
            "triples": ("choosing triples, choice", "triples, laplace"),
            "triples, (ε, δ)": ("triples, gaussian",),
            "numbers": ("histograms, laplace", "pairs, laplace", "ranks, laplace"),
            "numbers, (ε, δ)": ("histograms, gaussian", "pairs, gaussian", "ranks, gaussian"),
            "important pairs": ("important, laplace", "further queries, laplace"),
            "important pairs, (ε, δ)": ("important, gaussian", "further queries, gaussian"),
            "learned": ("domains, gaussian",),
            "learned, pure": ("domains, laplace",),
            "persons with events": ("events, laplace", "tables, laplace"),
            "persons with events, (ε, δ)": ("events, gaussian", "tables, gaussian"),
            "body": ("margins, laplace", "radius, laplace", "moments, matrix"),
            "body, (ε, δ)": ("margins, gaussian", "radius, gaussian"),
        }.items()
    },
}


def with_evidence(found):
    """Rides by name, with what their names and the lists above promise of them."""
    shows = {name: dict.fromkeys(words, 1) for name, words in PROMISED.items()}
    spent = {name: {f"{SPENDING}{charge}": MORE_THAN_HALF for charge in charges} for name, charges in SPENT.items()}
    return {
        one.name: replace(one, exercises=shows.get(one.name, {}) | spent.get(one.name, {}) | one.exercises)
        for one in found
    }


def rides():
    """All configurations but those of numbers, learned domains and relations."""
    return [
        *bit_rides(),
        *person_rides(),
        *category_rides(),
        *table_rides(),
        *paper_rides(),
        *persons.rides(),
        *bodies.rides(),
        *events.rides(),
        *knowledge.rides(),
        *neighbours.rides(),
        *commands.rides(),
    ]
