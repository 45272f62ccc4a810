"""Real records in convex bodies: rides for the odometer, and faults planted in their measurements."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np

import covey.paper.reals as reals
from audits.odometer import Ride
from audits.planting import Fault, replaced, told
from covey.engine.bodies import Ball, Box, Polytope, Simplex
from covey.engine.codes.counts import Spread
from covey.engine.gate import WHOLE, Gate
from covey.engine.sensitivity import Sensitivity
from covey.synthesizers import PrivateSynthesizer

FULL = "body, margins and moments"
GAUSSIAN = "body, margins and moments, (ε, δ)"


class Tube:
    """A user's own body, known by its projection alone: (x₁, x₂) in a disc of radius ½, x₃ between −1 and 1."""

    dimension, radius = 3, 1.25**0.5

    def project(self, points):
        """Coordinates of a product are projected one factor at a time."""
        length = np.sqrt((points[:, :2] * points[:, :2]).sum(axis=1, keepdims=True))
        disc = points[:, :2] * np.minimum(1.0, 0.5 / np.maximum(length, 1e-300))
        return np.hstack([disc, np.clip(points[:, 2:], -1.0, 1.0)])


def ride(name, body, X, *arguments, **options):
    """A body's ride: a row goes to the other end, to a border, far outside; rows of the stranger lie elsewhere altogether."""
    p = X.shape[1]
    ends = [np.full(p, -1e9), np.full(p, 1e9), 1e9 * np.eye(p)[0], 1e9 * np.eye(p)[-1]]
    first = X.copy()
    first[0] = body.project(ends[0][None])[0]
    each = options.get("rows_per_person", 1)
    first[:each] = first[0]
    rows = {f"end {i}": body.project(end[None])[0] for i, end in enumerate(ends)}
    rows |= {"far outside": ends[1], "the middle": X.mean(axis=0)}
    neighbours = {name: changed(first, row, each) for name, row in rows.items() if (row != first[0]).any()}
    stranger = body.project(2 * X.max(axis=0) - X)

    def make(seed):
        return PrivateSynthesizer(*arguments, body=body, seed=seed, **options)

    return Ride(name, make, first, neighbours, stranger)


def changed(X, row, each=1):
    """The table with its first record, or the first few, replaced."""
    Y = X.copy()
    Y[:each] = row
    return Y


def rides():
    """Every plan and law, on boxes, balls, simplices, polytopes and a body of a user's own."""
    g = np.random.default_rng(6)
    box = Box([0, -5, 10], [1, 5, 10.5])
    narrow = np.array([0.2, 1, 10.2]) + g.normal(0, 1, (900, 3)) * [0.02, 0.3, 0.02]
    ball = g.uniform(-0.5, 0.5, (300, 3))
    order = Polytope(np.array([[1.0, -1.0]]), np.zeros(1), Box([0, 0], [1, 1]))
    return [
        ride(FULL, box, narrow, 20.0),
        ride(GAUSSIAN, box, narrow, 8.0, 1e-5),
        ride("body, user's own", Tube(), ball, 60.0),
        ride("body, one column", Box([0], [1]), g.random((400, 1)), 4.0),
        ride("body, box", Ball(3), ball, 2.0),
        ride("body, box, (ε, δ)", Ball(3), ball, 2.0, 1e-5),
        ride("body, order", order, np.sort(g.random((500, 2)), axis=1), 20.0),
        ride("body, margins alone", Box([0] * 30, [1] * 30), g.random((2000, 30)) * 0.3, 3.0),
        ride("body, means alone", Simplex(4), g.dirichlet(np.ones(4), 60), 0.5),
        ride("body, means alone, (ε, δ)", Simplex(4), g.dirichlet(np.ones(4), 60), 0.5, 1e-3),
        # No law lies below rows that are 0: whichever it is, a row that leaves moves the certificate's distance by nearly 1/n.
        ride("body, rows at an end", Box([0], [1]), np.eye(60)[:, -1:], 0.1),
        ride("body, rows at an end, (ε, δ)", Box([0], [1]), np.eye(60)[:, -1:], 0.1, 1e-6),
        ride("body, persons", box, narrow, 60.0, rows_per_person=3),
    ]


# Faults.


def peeking(purpose):
    """Choices are made on what was measured, before it got its noise."""

    def exactly(real):
        def measure_it(self, name, exact, shape, sensitivity, share=WHOLE):
            found = real(self, name, exact, shape, sensitivity, share)
            return replace(found, values=exact._sealed) if name == purpose else found

        return measure_it

    return replaced((Gate, "measure", exactly))


def cut_too_little():
    return replaced((Spread, "encode", lambda real: lambda self, codes: np.trunc(real(self, codes) * 1.3)))


def not_cut():
    return replaced((Spread, "encode", lambda real: lambda self, codes: self.rows(codes)))


def ball_halved():
    return replaced((reals, "in_ball", lambda real: lambda R2, w: Sensitivity(l2_squared=real(R2, w).l2_squared / 4)))


def squares_like_pairs():
    """Squares get the noise of pairs: half of what their weight in the sensitivity allows."""

    def plain(real):
        def moments(setting, spread):
            with patch.object(reals, "Fraction", lambda a, b=1: WHOLE if (a, b) == (1, 2) else WHOLE * a / b):
                return (yield from real(setting, spread))

        return moments

    return replaced((reals, "measure_moments", plain))


def trace_of_one_row():
    """The matrix of (a, u) is said to move by the square of one row, not of two."""

    def half(real):
        return lambda self, purpose, sensitivity, *rest: real(
            self, purpose, Sensitivity(trace=sensitivity.trace / 2), *rest
        )

    return replaced((Gate, "matrix", half))


def scaled_by_the_batch():
    """Codes follow the largest number of the table, "which wastes no digits"."""

    def stretched(real):
        def codes(self, points):
            return real(self, self.lower + (points - self.lower) * self.width / (points.max(axis=0) - self.lower))

        return codes

    return replaced((reals.RealGrid, "codes", stretched))


def faults():
    """All of them."""
    return [
        Fault(
            "margins noised as for add or remove",
            f"odometer: {FULL}",
            told("margins", lambda _: Sensitivity(l1=1, l2_squared=1)),
        ),
        Fault("trees grown on exact counts", f"odometer: {FULL}", peeking("margins")),
        Fault("radius of a body from exact lengths", f"odometer: {FULL}", peeking("radius")),
        Fault("rows of a body cut too little", f"odometer: {FULL}", cut_too_little()),
        Fault("rows of a body not cut", f"odometer: {GAUSSIAN}", not_cut()),
        Fault("ball of a body halved", f"odometer: {GAUSSIAN}", ball_halved()),
        Fault("squares noised like pairs", f"odometer: {GAUSSIAN}", squares_like_pairs()),
        Fault("trace of one row", f"odometer: {FULL}", trace_of_one_row()),
        Fault("numbers scaled by the table", "odometer: body, box", scaled_by_the_batch()),
    ]
