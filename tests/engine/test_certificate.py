from fractions import Fraction
from math import ceil, log, sqrt

import numpy as np
import pytest

from audits.gates import a_gate
from covey.engine.budget import Charge
from covey.engine.certificate import NOISE_MISS, Certificate, Distances, OutOfPlace, certify, of_hundred
from covey.engine.entropy import Streams
from covey.engine.gate import Exact
from covey.engine.noise.integers import CoveyNoise
from covey.engine.noise.law import CUBE, LAPLACE
from covey.markup import card, meter

DISTANCES = {1: 0.002, 2: 0.004, 3: 0.001}


def release(distances, pure, generator, amount=Fraction(1, 20), n=2000):
    gate = a_gate("certificate", amount=amount, pure=pure, source=CoveyNoise(generator))
    return certify(list(distances), Exact(max(distances.values())), n, gate)


def told(distances, n, unit, value, categorical=False):
    """A certificate whose noise is told, and what was asked of the noise."""
    noise = Told(value)
    gate = a_gate("certificate", amount=Fraction(1, 20), pure=unit == "ε", source=noise)
    return certify(list(distances), Exact(max(distances.values())), n, gate, categorical), noise.asked


@pytest.mark.parametrize("pure", [True, False])
def test_the_bound_holds_at_least_95_per_cent_of_the_time_and_not_always(pure):
    generator = np.random.default_rng(0)
    amount = Fraction(1, 2) if pure else Fraction(1, 50)
    runs = [release({2: 0.3, 3: 0.1}, pure, generator, amount) for _ in range(3000)]
    covered = np.mean([run.bound[2] >= 0.3 for run in runs])
    assert 0.95 <= covered < 0.975  # a 96% bound: neither broken nor idle
    assert np.median([run.estimate[2] for run in runs]) == pytest.approx(0.3, abs=0.001)


class Told:
    """Noise that is told what to draw, and remembers what it was asked for."""

    def __init__(self, value):
        self.value, self.asked = value, []

    def laplace(self, scale, shape):
        self.asked.append(("laplace", scale, shape))
        return np.array([self.value], dtype=np.int64)

    def gaussian(self, variance, shape):
        self.asked.append(("gaussian", variance, shape))
        return np.array([self.value], dtype=np.int64)


@pytest.mark.parametrize(
    ("unit", "asked", "margin"),
    [
        ("ε", ("laplace", Fraction(1027 * 20), 1), ceil(1027 * 20 * log(12.5)) + 1),
        ("ρ", ("gaussian", Fraction(1027**2 * 10), 1), ceil(1027 * sqrt(10) * 1.750686071252170) + 1),
    ],
)
def test_every_number_of_the_release(unit, asked, margin):
    """One draw, for the largest of the distances, with room for its sensitivity of 1024 steps and three for rounding."""
    certificate, drawn = told({2: 0.5, 3: 0.25}, 1000, unit, -500)
    assert drawn == [asked]
    step = 1 / (1000 * 1024)
    assert certificate == Certificate(
        bound={2: (512_000 - 500 + margin) * step, 3: (512_000 - 500 + margin) * step},
        estimate={2: (512_000 - 500) * step, 3: (512_000 - 500) * step},
        charge=Charge("certificate", Fraction(1, 20), unit),
        categorical=False,
        confidence=0.95,
    )
    assert list(certificate.bound) == list(certificate.estimate) == [2, 3]
    assert told({2: 0.5}, 1000, unit, 0, True)[0].categorical


@pytest.mark.parametrize("unit", ["ε", "ρ"])
def test_noise_beyond_what_is_possible_is_cut(unit):
    low, high = (told({2: 0.5}, 10**6, unit, value)[0] for value in (-(10**9), 10**9))
    none = told({2: 0.0}, 10**6, unit, 0)[0]
    assert low.estimate[2] == 0
    assert low.bound == none.bound  # the margin alone: a bound never promises more than that
    assert (high.estimate[2], high.bound[2]) == (1, 1)


def sentence(bound, categorical=False):
    value = dict.fromkeys(bound, 0.001)
    return Certificate(bound, value, Charge("certificate", Fraction(1)), categorical).sentence


def test_the_sentence_reads_well_and_rounds_up():
    certificate = release(DISTANCES, True, np.random.default_rng(4))
    printed = float(certificate.sentence.split("at most ")[1].split(",")[0])
    assert printed >= certificate.bound[2]
    assert str(certificate) == certificate.sentence
    share = "The root mean square error of 2-way proportions is at most {}, with 95% confidence.{}"
    rest = " The same bound holds for {}-way ones."
    assert sentence({2: 0.0078125}) == share.format("0.0079", "")
    assert sentence({1: 0.00611, 2: 0.00611}) == share.format("0.0062", rest.format("1"))
    assert sentence({1: 0.1, 2: 0.1, 3: 0.1}) == share.format("0.10", rest.format("1 and 3"))
    assert sentence({1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0}) == share.format("1.0", rest.format("1, 3 and 4"))
    assert sentence({3: 0.5, 1: 0.5}).startswith("The root mean square error of 1-way proportions is at most 0.50,")
    assert sentence({2: 0.25}, True) == (
        "The root mean square error of 2-way tables, in L2 distance from 0 to 1, is at most 0.25, with 95% confidence."
    )


@pytest.mark.parametrize("pure", [True, False])
def test_the_yardstick_is_bounded_95_per_cent_of_the_time_and_not_always(pure):
    """One charge buys both numbers; the noise of one of them alone would miss too often, that of two draws never."""
    root = Streams.from_seed(7)
    amount, found = Fraction(1, 2) if pure else Fraction(1, 50), []
    for i in range(2000):
        gate = a_gate("certificate", amount=amount, pure=pure, streams=root.child(str(i)))
        found.append(certify([1, 2], Exact(0.1), 2000, gate, yardstick=Exact(0.3)))
    assert 0.95 <= np.mean([run.misplaced.bound >= 0.3 for run in found]) < 0.975
    assert 0.95 <= np.mean([run.bound[2] >= 0.1 for run in found]) < 0.975
    assert np.median([run.misplaced.estimate for run in found]) == pytest.approx(0.3, abs=0.001)
    margin = found[0].misplaced.bound - found[0].misplaced.estimate
    alone = (log(12.5) / 0.5 if pure else 1.7507 / sqrt(2 / 50)) / 2000
    assert margin == pytest.approx((1.402 if pure else sqrt(2)) * alone, rel=0.01)
    assert found[0].charge.amount == amount


def test_the_cubes_margin_is_enough_on_the_integers_at_every_scale():
    """P(z > m) of the law on pairs of integers, point by point; a margin a tenth smaller would not do."""

    def tail(m, s):
        x, rest = np.exp(-1 / s), -np.expm1(-1 / s)
        inside = np.exp(-(m + 1) / s) * ((2 * m + 3) / rest + 4 * x / rest**2)
        return inside / (1 + 8 * x / rest**2)

    for s in np.geomspace(2, 1e6, 60):
        margin = ceil(2 * s * CUBE.quantile(NOISE_MISS)) + 1
        assert tail(margin, s) <= NOISE_MISS
        assert tail(int(0.9 * margin) - 2, s) > NOISE_MISS
    # And the formula is the law: by adding up e^{−max|z|/s} over a square.
    z = np.arange(-80, 81)
    law = np.exp(-np.maximum(np.abs(z)[:, None], np.abs(z)) / 4.0)
    assert law[z > 10].sum() / law.sum() == pytest.approx(tail(10, 4.0), rel=1e-6)


def test_tiny_budgets_get_laplace_noise_on_both():
    gate = a_gate("certificate", amount=Fraction(1, 10**13))
    found = certify([2], Exact(0.1), 2000, gate, yardstick=Exact(0.3))
    assert (gate.book[0].law, gate.book[0].scale) == (LAPLACE, 2 * 1027 * 10**13)
    assert found.misplaced.bound == 1


def test_the_sentence_says_which_rows_would_have_to_move():
    told = (
        "In an average {}-column table at most {}% of the rows would have to move to match the real one "
        "(average total variation distance ≤ {}, with 95% confidence)."
    )
    also = " The proportion of rows below any value of a number is off by at most 3.1 percentage points."
    assert OutOfPlace(0.0301, 0.02, 2, True).sentence == told.format("two", "3.1", "0.031") + also
    assert OutOfPlace(0.123, 0.02, 1).sentence == told.format("one", "13", "0.13")
    assert [of_hundred(x) for x in (0.0, 0.00052, 0.001, 0.0999, 1.0)] == ["0.0", "0.052", "0.10", "10.0", "100"]
    own = Certificate({2: 0.1}, {2: 0.1}, Charge("c", Fraction(1)), True, misplaced=OutOfPlace(0.0301, 0.02))
    assert str(own) == own.misplaced.sentence
    assert own.technical.startswith(
        "The root mean square error of 2-way tables, in L2 distance from 0 to 1, is at most 0.10"
    )
    assert "2.0% estimated with noise, ≤ 3.1%" in own._repr_html_()
    table = own.for_table(Distances({2: 0.3}, 0.05))
    assert table.misplaced == pytest.approx(0.0801)
    assert own.for_table(Distances({2: 0.3}, 2.0)).misplaced == 1
    assert "average total variation ≤ 8.1% (computed without noise" in repr(table)


def test_a_notebook_shows_the_numbers_behind_the_sentence():
    certificate = Certificate({2: 0.0042, 1: 0.0042}, {2: 0.0021, 1: 0.00105}, Charge("c", Fraction(1)), False)
    rows = [
        ("In words", certificate.sentence),
        ("1-way", [meter(0.25), "0.001 estimated with noise, ≤ 0.0042"]),
        ("2-way", [meter(0.5), "0.0021 estimated with noise, ≤ 0.0042"]),
    ]
    assert certificate._repr_html_() == card("Accuracy certificate", "95% confidence", rows)


def test_tables_add_their_own_distance():
    certificate = release(DISTANCES, True, np.random.default_rng(5))
    table = certificate.for_table(Distances({1: 0.1, 2: 0.2}))
    assert table == {1: certificate.bound[1] + 0.1, 2: certificate.bound[2] + 0.2}
    assert certificate.for_table(Distances({2: 2.0, 4: 0.1})) == {2: 1.0}
