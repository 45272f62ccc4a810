import numpy as np
import pytest

from audits.bodies import Tube
from covey.core.paper.bodies import (
    Ball,
    Box,
    HalfSpace,
    Intersection,
    Polytope,
    ProductOfSimplices,
    Simplex,
    bounding_box,
)
from covey.errors import ParameterError

BODIES = {
    "box": Box([-1, 0, 2], [1, 0.5, 2]),
    "ball": Ball(3, 0.7, [1, 0, 0]),
    "simplex": Simplex(3),
    "product": ProductOfSimplices([2, 1]),
    "polytope": Polytope(np.array([[1.0, 1, 1], [1, -1, 0]]), np.array([0.5, 0.0]), Box([0] * 3, [1] * 3)),
    "intersection": Intersection(Box([0] * 3, [1] * 3), Ball(3, 0.8), HalfSpace([1, 1, 1], 0.5)),
    "user's own": Tube(),
}


@pytest.mark.parametrize("name", BODIES)
def test_the_box_holds_the_body_and_is_not_much_larger(name):
    """The radius, which also holds it, is up to four times too wide for some of these: the second half would reject it."""
    body = BODIES[name]
    lower, upper = bounding_box(body)
    generator = np.random.default_rng(0)
    far = np.concatenate([np.eye(3), -np.eye(3), generator.standard_normal((300, 3))]) * 50
    points = body.project(far)
    assert (points >= lower - 1e-6).all()
    assert (points <= upper + 1e-6).all()
    slack = 0.06 if name == "intersection" else 0.01
    assert np.abs(points.max(axis=0) - upper).max() < slack
    assert np.abs(points.min(axis=0) - lower).max() < slack


def test_unbounded_and_empty_bodies_are_refused():
    with pytest.raises(ParameterError, match="bounded"):
        bounding_box(HalfSpace([1.0, 0.0], 1.0))
    with pytest.raises(ParameterError, match="no common point"):
        bounding_box(Intersection(Box([0], [1]), Box([2], [3])))
