"""What arithmetic refuses, room by room, and in which words; the largest scales that it takes."""

import re
from fractions import Fraction

import numpy as np
import pytest

from covey.engine import bodies as b
from covey.engine.codes.distance import marginal_error
from covey.engine.fit.devices import find_device
from covey.engine.noise.integers import CLAMP, add_noise, cube_noise, discrete_laplace, knorm_noise, rounded_gaussian
from covey.engine.noise.matrix import MatrixNoise
from covey.engine.numbers.grid import FINEST, Difference, NumberGrid
from covey.engine.numbers.lattice import Lattice
from covey.errors import ParameterError
from covey.paper import blocks
from covey.paper.covering import LatticeCovering
from covey.paper.groups import median_tree
from tests.engine.numbers.test_lattice import band

ONE, TWO = [Fraction(1)], [Fraction(1)] * 2


def seeded():
    return np.random.default_rng(0)


def got(limit, scale):
    return rf"at most {re.escape(limit)}, got {re.escape(f'{float(scale):.3g}')}\.$"


REFUSED = [
    # fit, groups, tables
    *(("device must be", lambda name=name: find_device(name)) for name in ("gpu", "torch", "", "cupy", 3)),
    *(("levels", lambda levels=levels: median_tree(np.zeros((10, 2)), levels)) for levels in (-1, 4)),
    *(("degree", lambda d=d: marginal_error(np.zeros((2, 3)), np.zeros((2, 3)), d)) for d in (0, 4, -1)),
    ("same columns", lambda: marginal_error(np.zeros((2, 3)), np.zeros((2, 4)))),
    # noise
    *(
        (rf"^scale must be positive and {got('2^58', s)}", lambda s=s: discrete_laplace(s, 1, seeded()))
        for s in (0, -1, 2**58 + 1, 2**59, float(2**60))
    ),
    *(
        (rf"^scale must be positive and {got('2^54/(dimension + 1)', s)}", lambda s=s, p=p: cube_noise(s, p, seeded()))
        for s, p in ((0, 3), (-1, 3), (Fraction(2**54 + 1, 4), 3), (2**54, 1))
    ),
    *((got("2^114", v), lambda v=v: rounded_gaussian(v, 1, seeded())) for v in (0, -1, 2**114 + 1, 2.0**118)),
    *(("scale must be positive and at most", lambda s=s: knorm_noise((2, 2), s, seeded())) for s in (0, -1, 2**53)),
    *(
        (
            r"^a statistic exceeds 2\^61 .*\. Use a coarser grid\.$",
            lambda x=x: add_noise(np.array([0, x]), np.zeros(2, int)),
        )
        for x in (CLAMP, -CLAMP)
    ),
    *(
        ("^scale and weights must be positive", lambda s=s, w=w: MatrixNoise(Fraction(s), w, seeded()))
        for s, w in ((0, TWO), (-1, TWO), (2**201, ONE), (1, [Fraction(0)]))
    ),
    ("^matrix noise has between 1", lambda: MatrixNoise(Fraction(1), [], seeded())),
    ("of signs at least 2, got 1", lambda: MatrixNoise(Fraction(1), ONE, seeded(), signs=True)),
    # numbers
    ("its grid has no value", lambda: NumberGrid(0)),
    ("is too fine", lambda: NumberGrid(FINEST + 1)),
    ("special codes", lambda: NumberGrid(5, -1)),
    ("outside the bounds", lambda: NumberGrid(10, 1, (0,))),
    ("above maximum", lambda: Difference(5, 4, 0, 10)),
    (r"2\^53", lambda: Difference(0, 2**60, 0, 10)),
    ("raise the later maximum", lambda: Difference(0, 10, 0, 50).check_base(0, 60)),
    ("raise the later maximum", lambda: Difference(-5, 5, 0, 100).check_base(0, 106)),
    ("too small", lambda: Difference(0, 10, 100, 200).check_base(0, 50)),
    ("no row was found", lambda: Lattice([0, 0], [9, 9], [band([1, 1], 30, 30)]).middle),
    ("more decimals", lambda: Lattice([0, 0], [9, 9], [band([2, 2], 5, 5)]).middle),
    ("contradict", lambda: Lattice([0, 0], [9, 9], [band([1, 1], 5, 5), band([1, 1], 6, 6)]).middle),
    ("more digits", lambda: Lattice([0, 0], [1 << 52, 1 << 52], [band([10**6, 1], None, 5)]).middle),
    # paper
    ("square", lambda: blocks.coordinates(np.zeros((2, 3)))),
    ("finite", lambda: blocks.coordinates(np.full((2, 2), np.nan))),
    ("symmetric", lambda: blocks.coordinates(np.array([[1.0, 0.5], [0.0, 1.0]]))),
    ("positive semidefinite", lambda: blocks.coordinates(np.array([[1.0, 2.0], [2.0, 1.0]]))),
    *(("positive numbers", lambda w=w: blocks.shares(2, w)) for w in ([1.0], [1.0, 0.0], [1.0, -1.0], [1.0, np.inf])),
    (
        "no common point",
        lambda: b.Intersection(b.Cube(2), b.HalfSpace([1, 1], -1), rounds=300).project(np.zeros((1, 2))),
    ),
    ("no common point", lambda: b.Polytope(np.ones((1, 2)), -np.ones(1), b.Cube(2)).project(np.ones((1, 2)))),
    ("no common point", lambda: b.bounding_box(b.Intersection(b.Box([0], [1]), b.Box([2], [3])))),
    ("bounded", lambda: b.bounding_box(b.HalfSpace([1.0, 0.0], 1.0))),
    ("lower must not exceed upper", lambda: b.Box([0, 1], [1, 0])),
    ("two lists of one length", lambda: b.Box([0], [1, 1])),
    ("at least 1", lambda: b.Box([], [])),
    ("size must be 0 or more", lambda: b.Ball(2, -1)),
    ("centre must have 2", lambda: b.Ball(2, 1, [0, 0, 0])),
    ("at least 1", lambda: b.Simplex(0)),
    ("at least one block", lambda: b.ProductOfSimplices([])),
    ("not all 0", lambda: b.HalfSpace([0, 0], 1)),
    ("G must have shape", lambda: b.Polytope(np.eye(3), np.ones(3), b.Cube(2))),
    ("at least one body", lambda: b.Intersection()),
    ("different dimensions", lambda: b.Intersection(b.Cube(2), b.Cube(3))),
    ("t must be 0 or more", lambda: LatticeCovering(-1, 0.5)),
    *(("alpha must be positive", lambda a=a: LatticeCovering(2, a)) for a in (0.0, -1.0, np.nan, np.inf)),
    # before anything is allocated
    *(
        ("larger alpha", lambda t=t, a=a: LatticeCovering(t, a))
        for t, a in ((60, 0.3), (2, 1e-7), (1, 1e-9), (300, 0.9))
    ),
]


@pytest.mark.parametrize(("words", "ask"), REFUSED)
def test_what_cannot_be_computed_is_refused(words, ask):
    with pytest.raises(ParameterError, match=words):
        ask()


def test_the_largest_are_taken():
    assert len(cube_noise(2**52, 3, seeded())) == 3
    assert len(knorm_noise((2, 2), 2**52, seeded())) == 2
    Difference(-5, 5, 0, 100).check_base(0, 105)
