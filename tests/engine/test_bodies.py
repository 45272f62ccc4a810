from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.bodies import Tube
from covey.engine.bodies import (
    Ball,
    Body,
    Box,
    Cube,
    HalfSpace,
    Intersection,
    Polytope,
    ProductOfSimplices,
    Simplex,
    bounding_box,
    l1_radius,
)

BODIES = {
    "cube": Cube(4),
    "box": Box([-1, 0, 2, -3], [1, 0.5, 2, 3]),
    "ball": Ball(4, 0.7, [1, 0, 0, -1]),
    "simplex": Simplex(4),
    "product": ProductOfSimplices([3, 1]),
    "half-space": HalfSpace([1, -2, 0, 1], 0.3),
    "polytope": Polytope(np.array([[1.0, 1, 1, 1], [1, -1, 0, 0]]), np.array([1.5, 0.0]), Cube(4)),
    "intersection": Intersection(Cube(4), HalfSpace([1, 1, 1, 1], 1.5), HalfSpace([1, -1, 0, 0], 0)),
}


@pytest.mark.parametrize("name", BODIES)
def test_metric_projection_obeys_the_variational_inequality(name):
    """π(y) is the nearest point of K exactly if ⟨y − π(y), x − π(y)⟩ ≤ 0 for every x in K."""
    body = BODIES[name]
    assert isinstance(body, Body)
    generator = np.random.default_rng(0)
    y = 3 * generator.standard_normal((60, 4))
    projected = body.project(y)
    inside = body.project(2 * generator.standard_normal((60, 4)))
    products = np.einsum("ij,ikj->ik", y - projected, inside[None] - projected[:, None])
    assert products.max() < 1e-5
    np.testing.assert_allclose(body.project(projected), projected, atol=1e-6)
    if np.isfinite(body.radius):
        assert np.linalg.norm(projected, axis=1).max() <= body.radius + 1e-6


@settings(max_examples=30)
@given(st.sampled_from(sorted(BODIES)), st.integers(0, 2**32 - 1))
def test_projections_do_not_expand(name, seed):
    body = BODIES[name]
    x, y = 3 * np.random.default_rng(seed).standard_normal((2, 5, 4))
    assert (np.linalg.norm(body.project(x) - body.project(y), axis=1) <= np.linalg.norm(x - y, axis=1) + 1e-6).all()


@pytest.mark.parametrize("name", BODIES)
def test_the_projection_of_a_row_depends_on_that_row_alone(name):
    """Bit for bit, in any company: one slow or far record must not move another."""
    body = BODIES[name]
    generator = np.random.default_rng(3)
    y = np.vstack([3 * generator.standard_normal((30, 4)), [[60, -60, 60, 60], [0.5, 0.5, 0.5, 0.5]]])
    together = body.project(y)
    assert (np.vstack([body.project(row[None]) for row in y]) == together).all()
    assert (body.project(y[::-1])[::-1] == together).all()


def test_dykstra_agrees_with_the_quadratic_program():
    y = 2 * np.random.default_rng(1).standard_normal((40, 4))
    np.testing.assert_allclose(BODIES["polytope"].project(y), BODIES["intersection"].project(y), atol=1e-5)


def test_plain_alternating_projection_would_not_be_the_nearest_point():
    y = np.array([[2.0, -1.0]])
    bodies = Ball(2, 1.0), HalfSpace([1.0, 1.0], 0.2)
    naive = y
    for _ in range(500):
        for body in bodies:
            naive = body.project(naive)
    nearest = Intersection(*bodies).project(y)
    assert np.linalg.norm(nearest - y) < np.linalg.norm(naive - y) - 1e-3


def corners(G, h, p):
    """The vertices of Gx ≤ h in the unit cube, by brute force over all sets of p tight inequalities."""
    A, b = np.vstack([G, np.eye(p), -np.eye(p)]), np.r_[h, np.ones(p), np.zeros(p)]
    for tight in combinations(range(len(A)), p):
        if abs(np.linalg.det(A[list(tight)])) > 1e-9:
            x = np.linalg.solve(A[list(tight)], b[list(tight)])
            if (A @ x <= b + 1e-9).all():
                yield x


def test_the_radius_of_a_polytope_is_not_its_boxes():
    """At most 1 in all: radius 1 where the cube's is 2. For others never below the furthest corner, and seldom far above."""
    shares = Polytope(np.ones((1, 4)), np.ones(1), Cube(4))
    assert shares.radius == pytest.approx(1, abs=1e-5)
    assert Intersection(Cube(4), HalfSpace([1, 1, 1, 1], 1)).radius == pytest.approx(1, abs=1e-5)
    generator = np.random.default_rng(5)
    for _ in range(6):
        G, h = generator.standard_normal((3, 4)), generator.random(3) + 0.1
        furthest = max(np.linalg.norm(x) for x in corners(G, h, 4))
        both = Polytope(G, h, Cube(4)).radius, Intersection(Polytope(G, h, Cube(4)), HalfSpace([1, 0, 0, 0], 9)).radius
        for radius in both:
            assert furthest <= radius <= min(2, 1.3 * furthest)
    assert Intersection(Ball(2, 0.5), HalfSpace([1, 0], 1)).radius == 0.5
    assert Intersection(Box([0, 0], [1, 1]), Box([2, 0], [3, 1]), HalfSpace([1, 0], 1)).radius == pytest.approx(2**0.5)


def test_no_point_of_a_body_has_a_larger_l1_norm_and_some_come_close():
    generator = np.random.default_rng(6)
    for body in [*BODIES.values(), Simplex(9), ProductOfSimplices([5, 3, 4]), Box([-2.0], [1.0])]:
        if np.isfinite(body.radius):
            norms = np.abs(body.project(20 * generator.standard_normal((300, body.dimension)))).sum(axis=1)
            assert norms.max() <= l1_radius(body) * (1 + 1e-12) <= np.sqrt(body.dimension) * body.radius * (1 + 1e-12)
            assert norms.max() > 0.6 * l1_radius(body)
    adult = ProductOfSimplices([16, 7, 14, 6, 5, 2, 41, 74, 10])
    assert 4 * l1_radius(adult) / adult.radius == pytest.approx(12)  # 4√p would be 52.9


BOXED = {
    "box": Box([-1, 0, 2], [1, 0.5, 2]),
    "ball": Ball(3, 0.7, [1, 0, 0]),
    "simplex": Simplex(3),
    "product": ProductOfSimplices([2, 1]),
    "polytope": Polytope(np.array([[1.0, 1, 1], [1, -1, 0]]), np.array([0.5, 0.0]), Box([0] * 3, [1] * 3)),
    "intersection": Intersection(Box([0] * 3, [1] * 3), Ball(3, 0.8), HalfSpace([1, 1, 1], 0.5)),
    "user's own": Tube(),
}


@pytest.mark.parametrize("name", BOXED)
def test_the_box_holds_the_body_and_is_not_much_larger(name):
    """The radius, which also holds it, is up to four times too wide for some of these: the second half would reject it."""
    body = BOXED[name]
    lower, upper = bounding_box(body)
    generator = np.random.default_rng(0)
    far = np.concatenate([np.eye(3), -np.eye(3), generator.standard_normal((300, 3))]) * 50
    points = body.project(far)
    assert (points >= lower - 1e-6).all()
    assert (points <= upper + 1e-6).all()
    slack = 0.06 if name == "intersection" else 0.01
    assert np.abs(points.max(axis=0) - upper).max() < slack
    assert np.abs(points.min(axis=0) - lower).max() < slack
