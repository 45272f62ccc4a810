"""Algorithms 1 and 4: their parameters, their privacy, their edge cases. Accuracy is in test_theorems."""

from fractions import Fraction

import numpy as np
import pytest

from audits.gates import paper_gate
from covey.engine import gate as gate_module
from covey.engine.bodies import Ball, Box, Cube, HalfSpace, Intersection, ProductOfSimplices
from covey.engine.entropy import Streams
from covey.engine.gate import Exact
from covey.errors import ParameterError
from covey.paper import private as paper
from covey.paper.blocks import block_sums
from covey.paper.covering import LatticeCovering
from covey.paper.private import anonymous_centres, anonymous_parameters, paper_parameters, private_centres
from covey.paper.records import boolean_records, real_records


def scale(par):
    """c in A = c·Σxxᵀ, on which PROJ runs."""
    return float(par.charge("projection").amount / par.projection_cost)


def test_defaults_are_those_of_theorem_5_13():
    par = paper_parameters(10**6, Cube(100), Fraction(1), kappa=1 / 3)
    assert par.alpha == pytest.approx(np.log(1e6) ** -0.25)
    assert par.t == int(np.log(1e6) / 3 / np.log(7 / par.alpha)) == 1
    assert par.b == pytest.approx(np.sqrt(100 * 1e6 ** (2 / 3)))
    assert [c.amount for c in par.charges] == [Fraction(1, 3)] * 3
    assert par.means_noise == pytest.approx(12 * 10 / par.b)  # Lap(12√p/(bε))
    assert scale(par) == pytest.approx(1 / 6)  # nε/(6t)·S is ε/(6t)·Σxxᵀ


def test_improved_constants_say_so_and_halve_the_noise_of_the_cube():
    printed = paper_parameters(10**4, Cube(9), Fraction(1), t=2)
    improved = paper_parameters(10**4, Cube(9), Fraction(1), t=2, constants="improved")
    assert improved.means_noise == pytest.approx(printed.means_noise / 2)
    assert scale(improved) == pytest.approx(scale(printed) * 4 / 3)
    mixed = paper_parameters(10**4, Box([-1, -1], [1, 1]), Fraction(1), constants="improved")
    assert mixed.means_noise == pytest.approx(paper_parameters(10**4, Ball(2), Fraction(1)).means_noise)


def test_one_hot_rows_get_the_noise_of_their_own_l1_norm():
    """‖x‖₁ = q = 9 and ‖x‖ = 3 for every row: 4·3/b where √p·R would give 52.9/b. Balls and cubes are as in the paper."""
    par = paper_parameters(10**4, ProductOfSimplices([16, 7, 14, 6, 5, 2, 41, 74, 10]), Fraction(1), b=2.0)
    assert par.means_sensitivity == pytest.approx(12 / 2)
    for body in (Ball(7), Cube(7)):
        assert paper_parameters(10**4, body, Fraction(1), b=2.0).means_sensitivity == pytest.approx(4 * 7**0.5 / 2)


class Careless(ProductOfSimplices):
    """Projects to its tolerance, which is large."""

    def project(self, points):
        return super().project(points) * 1.3


def test_records_keep_the_l1_norm_that_the_noise_was_computed_for():
    x = np.eye(6)[np.random.default_rng(1).integers(0, 3, 40)] + np.eye(6)[np.random.default_rng(2).integers(3, 6, 40)]
    for body in (ProductOfSimplices([3, 3]), Careless([3, 3])):
        records = real_records(x, body)
        rows = np.concatenate(list(records.rows.batches()))
        assert np.abs(rows).sum(axis=1).max() * records.unit <= 2
    assert np.abs(Careless([3, 3]).project(x)).sum(axis=1).max() > 2.5


def test_small_tables_and_dimensions():
    assert anonymous_parameters(2, 5) == (0, 1.0)
    assert anonymous_parameters(9, 5)[0] == 0
    assert anonymous_parameters(31_622, 5)[0] > 0
    assert anonymous_parameters(31_622, 1)[0] == 1
    for n in (1, 2, 3):
        par = paper_parameters(n, Cube(2), Fraction(1))
        assert par.t == 0
    assert paper_parameters(100, Cube(2), Fraction(1), t=9).t == 2


def test_no_projection_is_charged_where_none_is_made():
    for t in (0, 3):
        par = paper_parameters(500, Cube(3), Fraction(1), t=t, alpha=0.7)
        assert par.charge("projection").amount == 0
        assert sum(c.amount for c in par.charges) == Fraction(2, 3)
    with pytest.raises(ParameterError, match="projection"):
        paper_parameters(500, Cube(3), Fraction(1), t=1, shares=(0, 0.5, 0.5))
    assert paper_parameters(500, Cube(3), Fraction(1), t=0, shares=(0, 0.5, 0.5)).charge("points").amount == 0.5


def test_algorithm_1_groups_are_never_too_small_and_centres_are_their_means():
    X = np.random.default_rng(0).integers(0, 2, (1003, 6), dtype=np.uint8)
    result = anonymous_centres(boolean_records(X), 10)
    sizes = np.bincount(result.groups)
    assert len(sizes) == 100
    assert sizes.min() == 10
    for j in (0, 57, 99):
        np.testing.assert_allclose(result.cloud.points[j], X[result.groups == j].mean(axis=0))
    np.testing.assert_allclose(result.cloud.weights @ result.cloud.points, X.mean(axis=0))


@pytest.mark.parametrize(
    "body",
    [
        Cube(3),
        Ball(3, 2.0, [1, 0, 0]),
        ProductOfSimplices([2, 1]),
        Box([-5, 0, 1], [5, 1, 1]),
        Intersection(Cube(3), HalfSpace([1, 1, 1], 1)),
    ],
)
def test_centres_always_lie_in_the_body(body):
    x = np.random.default_rng(0).standard_normal((200, 3))  # many records outside K: projected one by one
    par = paper_parameters(200, body, Fraction(1), t=1, alpha=0.5)
    cloud = private_centres(real_records(x, body), body, par, paper_gate(par, Streams.from_seed(0)))[0]
    np.testing.assert_allclose(body.project(cloud.points), cloud.points, atol=1e-6)
    assert len(cloud) == LatticeCovering(1, 0.5).size  # every cell is released, empty or not
    assert cloud.weights.sum() == pytest.approx(1)


def test_records_never_leave_the_unit_ball():
    x = 5 * np.random.default_rng(2).standard_normal((300, 4))
    for body in (Cube(4), Ball(4), Ball(4, 3.0, [0, 1, 0, 0]), Intersection(Ball(4), HalfSpace([1, 1, 0, 0], 0.1))):
        records = real_records(x, body)
        rows = np.concatenate(list(records.rows.batches()))
        assert (rows == np.rint(rows)).all()
        assert np.linalg.norm(rows, axis=1).max() <= records.radius * (1 + 1e-15)
        np.testing.assert_allclose(rows * records.unit, body.project(x), atol=1e-5 * body.radius)


def test_rounded_statistics_stay_within_the_sensitivity_that_the_noise_covers(monkeypatch):
    """Neighbouring tables, rounded to the grid: the ℓ1 distance never exceeds the one the scale was computed from."""
    seen = {}

    def record(statistic, noise):
        seen["grid"] = statistic
        return statistic + noise

    monkeypatch.setattr(gate_module, "add_noise", record)
    generator = np.random.default_rng(8)
    for constants in ("paper", "improved"):
        for b in (0.7, 2.5, 6.0):
            par = paper_parameters(6, Cube(3), Fraction(1), t=1, alpha=0.5, b=b, constants=constants)
            for _ in range(40):
                X, labels = generator.integers(0, 2, (6, 3), dtype=np.uint8), generator.integers(0, 3, 6)
                Y, moved = X.copy(), labels.copy()
                Y[0], moved[0] = generator.integers(0, 2, 3), generator.integers(0, 3)
                grids = []
                for rows, cells in ((X, labels), (Y, moved)):
                    gate = paper_gate(par, Streams.from_seed(0))
                    paper.noisy_damped_means(Exact(block_sums(rows, cells, 3)), 3, par, np.sqrt(3), gate)
                    grids.append(seen["grid"])
                allowed = gate.book[0].scale * par.charge("points").amount
                assert int(np.abs(grids[0] - grids[1]).sum()) <= allowed
