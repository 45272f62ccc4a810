import numpy as np
import pytest

from covey.errors import ParameterError
from covey.paper import bounds
from covey.paper.covering import LatticeCovering


def test_theorem_5_13_is_the_expectation_of_theorem_5_9():
    """Term by term, with the theorem's t = 1 at a million rows: tail by Lemma 5.5, then damping, weights and points."""
    n, p, d = 10**6, 50, 2
    alpha = np.log(n) ** -0.25
    s, b = LatticeCovering(1, alpha).size, np.sqrt(50 * n ** (2 / 3))
    tail = np.sqrt(1 + 2 * (np.sqrt(50 * 51 / 2) - 1) / (n / 6))
    points, weights = np.sqrt(100) * 12 * np.sqrt(50) / b, np.sqrt(s * (s + 1)) * 6 / n
    error = 16 * (4 * alpha**2 + min(tail, 1)) + 4 * s * b / n + 2 * weights + 4 * points
    # To the last digits: the noise on the weights is a ten-millionth of the sum, and s for √(s(s+1)) is a tenth of that.
    assert bounds._private_error(n, p, d, 1.0, 1 / 3, "paper") == pytest.approx(error, rel=1e-12)
    halved = bounds._private_error(n, p, d, 1.0, 1 / 3, "paper", halved=True)
    assert halved == pytest.approx(error - 2 * points)
    assert bounds.theorem_5_13(n, p, d, 1.0, 1 / 3).value == 4  # nothing can be worse than 4


def test_the_expected_tail_is_lemma_5_5_divided_by_the_scale():
    """Both constants, where neither is cut at 1: three of ten directions, 100,000 rows."""
    lost = 2 * sum(np.sqrt(q * (q + 1) / 2) - 1 for q in (10, 9, 8))
    for constants, pca, per_row in (("paper", 1 / 3, 1 / (3 * 6)), ("improved", 1 / 12, 1 / (3 * 4))):
        tail = np.sqrt(pca + lost / (100_000 * 0.7 * per_row))
        assert tail < 1
        assert bounds._expected_tail(100_000, 10, 3, 0.7, constants) == pytest.approx(tail, rel=1e-12)
    assert bounds._expected_tail(10, 10, 3, 0.7, "paper") == 1
    assert [bounds._expected_tail(100, 10, t, 0.7, "paper") for t in (0, 10)] == [1, 0]


def test_few_synthetic_rows_cost_one_part_for_drawing_and_one_for_rounding():
    n, p = 10**12, 20
    few, many = (bounds.theorem_5_15(n, p, 2, 1.0, 1 / 3, m, "improved").value for m in (50, n))
    assert few - many == pytest.approx(400 / 380 * 2 / 50, rel=1e-9)


def test_the_variance_of_a_number_in_k_intervals_is_lost_to_the_bound_and_no_further():
    x = np.linspace(-1, 1, 100_001)
    for k in (2, 5, 16):
        cells = np.minimum(((x + 1) * k / 2).astype(int), k - 1)
        means = np.bincount(cells, x) / np.bincount(cells)
        lost = x.var() - means[cells].var()
        assert bounds.variance_loss(k).value / 13 < lost <= bounds.variance_loss(k).value
        shuffled = np.random.default_rng(k).permutation(cells)
        mixed = (np.bincount(shuffled, x) / np.bincount(shuffled))[shuffled]
        assert k == 2 or x.var() - mixed.var() > bounds.variance_loss(k).value


def test_improved_constants_say_something_where_the_printed_ones_do_not():
    n, p = 10**12, 20
    assert bounds.theorem_5_15(n, p, 2, 1.0, 1 / 3, n).value == 1
    improved = bounds.theorem_5_15(n, p, 2, 1.0, 1 / 3, n, "improved").value
    assert 0.1 < improved < 0.5
    rms = bounds._private_error(n, p, 2, 1.0, 1 / 3, "improved", halved=True)
    assert improved == pytest.approx(400 / 380 * (rms**2 + 2 / n))
    assert bounds.theorem_1_2(1000).value == 1
    assert bounds.theorem_1_2(1000, "improved").value < 0.38
    for k in (16, 10**3, 10**9, 10**40):
        assert bounds.proposition_3_14(k).value < bounds.theorem_1_2(k, "improved").value <= bounds.theorem_1_2(k).value


def test_the_best_lattice_has_at_most_k_cells_and_no_other_t_does_better():
    assert bounds.best_lattice(5) == (0, 1.0)
    for k in (20, 300, 50_000):
        t, alpha = bounds.best_lattice(k)
        assert LatticeCovering(t, alpha).size <= k
        assert bounds.theorem_1_2(k, "improved").value == pytest.approx(alpha**2 + 0.5 / np.sqrt(t))
        for other in range(1, 8):
            mesh = 1 / max(k ** (1 / other) / np.sqrt(2 * np.e * np.pi) - 0.5, 1e-9)
            assert mesh**2 + 0.5 / np.sqrt(other) >= alpha**2 + 0.5 / np.sqrt(t) - 1e-12


def test_the_rate_is_the_one_printed():
    rate = np.log(np.log(1e6)) / (np.log(1e6) / 3) + 50 / 1e6 ** (2 / 3)
    assert bounds.private_rate(10**6, 50, 1.0, 1 / 3) == pytest.approx(rate)


IMPROVED = (np.sqrt(1000 / (2 * np.e * np.pi)) - 0.5) ** -2 + 0.5 / 2**0.5  # Theorem 1.2 at k = 1000: t = 2
LARGE = 10**300
ALPHA = (np.log(np.log(1e300)) / np.log(1e300)) ** 0.25  # 0.3119, so t = 222 dimensions
LOSS = 4 * ALPHA**2 + 1 / np.sqrt(222)


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (lambda: bounds.lemma_2_1(6, 3), 1 / 27),
        (lambda: bounds.lemma_2_1(6, 3, "improved"), 1 / 120),
        (lambda: bounds.lemma_3_2(0.25, 0.5), 0.75),
        (lambda: bounds.lemma_3_3(4), 0.5),
        (lambda: bounds.lemma_3_3(4, "improved"), 0.25),
        (lambda: bounds.lemma_3_6(0.25), 0.5),
        (lambda: bounds.proposition_3_7(0, 0.5), 1),
        (lambda: bounds.proposition_3_7(2000, 0.01), float("inf")),
        (lambda: bounds.proposition_3_7(3, 2.0), (2 * np.e * np.pi) ** 1.5),
        (lambda: bounds.proposition_3_7(1, 0.25), 4.5 * 4.132731354),
        (lambda: bounds.theorem_1_2(3), 1),
        (lambda: bounds.theorem_1_2(LARGE), LOSS),
        (lambda: bounds.theorem_1_2(1000, "improved"), IMPROVED),
        (lambda: bounds.theorem_1_2_equal(1), 1),
        (lambda: bounds.theorem_1_2_equal(9), 1),
        (lambda: bounds.median_tree(2), np.sqrt(4 / np.sqrt(27))),
        (lambda: bounds.median_tree(2**16 + 5), np.sqrt(4 / np.sqrt(27)) / 2),
        (lambda: bounds.theorem_3_10(2), 1),
        (lambda: bounds.theorem_3_10(5), 8 * 26),
        (lambda: bounds.theorem_3_10(2, "improved"), 1),
        (lambda: bounds.theorem_3_10(4, "improved"), 18),
        (lambda: bounds.corollary_3_12(3, 1), 0),
        (lambda: bounds.corollary_3_12(3, 3), 8),
        (lambda: bounds.remark_3_13(3), 16),
        (lambda: bounds.proposition_3_14(1), 1 / (80 * np.sqrt(np.log(2)))),
        (lambda: bounds.theorem_4_1(9, 1), 0),
        (lambda: bounds.theorem_4_1(9, 3), 8),
        (lambda: bounds.lemma_4_3(8), 0.125),
        (lambda: bounds.theorem_4_4(9, 1, 3), 65),
        (lambda: bounds.theorem_4_4(9, 4, 1), 0.25),
        (lambda: bounds.theorem_4_6(9, 1, 3, 6), 1),  # no marginal is off by more than 1
        (lambda: bounds.theorem_4_6(9, 100, 1, 6), 2 * 2 / 100),
        (lambda: bounds.theorem_4_6(10**6, 40, 2, 6, "improved"), 36 / 30 * ((IMPROVED + 1e-3) ** 2 + 2 / 40)),
        (lambda: bounds.theorem_1_2_equal(10**6, "improved"), IMPROVED + 1e-3),
        (lambda: bounds.variance_loss(4), 0.25),
        (lambda: bounds.markov(1e-4, 0.1, 0.05), 0.2),
        (lambda: bounds.markov(1e-4, 0.01, 0.05), 1),
        (lambda: bounds.lemma_5_1(1), 0),
        (lambda: bounds.lemma_5_1(2), np.sqrt(3) - 1),
        (lambda: bounds.lemma_5_2(10.0, 2), 20 * (np.sqrt(3) - 1)),
        (lambda: bounds.lemma_5_2(1.0, 2), 1),
        (lambda: bounds.lemma_5_3(3, 0.5), 3),
        (lambda: bounds.lemma_5_5([1.0, 30.0, 2.0], 1), 5 + 60 * (np.sqrt(6) - 1)),
        (lambda: bounds.lemma_5_5([1.0, 30.0, 2.0], 2), 1 + 60 * (np.sqrt(6) - 1 + np.sqrt(3) - 1)),
        (lambda: bounds.theorem_5_6(0.5, 0.25, 2), 16 * 1.25),
        (lambda: bounds.theorem_5_6(0.5, 0.25, 1, "improved"), 0),
        (lambda: bounds.theorem_5_6(0.5, 0.25, 3, "improved"), 2.5),
        (lambda: bounds.theorem_5_6_measured(0.125, 0.25, 3), 5 * 0.375),
        (
            lambda: bounds.theorem_5_9(0.5, 0.25, 2, s=3, b=5.0, n=10, weight_noise=0.5, point_noise=0.25),
            16 * 1.25 + 6 + 1 + 1,
        ),
        (
            lambda: bounds.theorem_5_9_measured(0.5, 0.25, 2, small=0.125, weight_noise=0.5, point_noise=0.25),
            0.75 + 0.5 + 1 + 1,
        ),
        (lambda: bounds.lemma_5_10(4.0, 2.0), 1),
        (lambda: bounds.theorem_5_14(10**9, 10, 1, 1.0, 1 / 3, 100, "improved"), 0.0115594815 + 0.01),
    ],
)
def test_each_bound_has_its_value(call, value):
    bound = call()
    assert bound.value == float(bound) == pytest.approx(value, rel=1e-7)
    assert str(bound) == f"{bound.statement} {bound.sign} {bound.value:.4g}"


def test_equal_groups_pay_for_the_merged_residuals():
    root = 10**150
    alpha = (np.log(np.log(1e150)) / np.log(1e150)) ** 0.25
    t = int(np.log(1e150) / np.log(7 / alpha))
    assert bounds.theorem_1_2_equal(root**2).value == pytest.approx(min(1, 4 * alpha**2 + 1 / np.sqrt(t)))
    # The last k at which one dimension is too much: a bound of 1 is all that can be said there.
    assert bounds.theorem_1_2(25).value == bounds.theorem_1_2_equal(15).value == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bounds.theorem_1_2(2), r"need k ≥ 3, got 2\."),
        (lambda: bounds.variance_loss(0), r"need k ≥ 1, got 0\."),
        (lambda: bounds.markov(-1.0, 0.1, 0.1), "need mean_square ≥ 0"),
        (lambda: bounds.markov(0.1, 0.0, 0.1), "need mean_square ≥ 0"),
        (lambda: bounds.markov(0.1, 0.1, 1.5), "need mean_square ≥ 0"),
        (lambda: bounds.theorem_1_2_equal(0), r"need k ≥ 1, got 0\."),
        (lambda: bounds.theorem_3_10(1), r"need d ≥ 2, got 1\."),
        (lambda: bounds.theorem_4_1(10, 0), r"need d ≥ 1, got 0\."),
        (lambda: bounds.theorem_4_4(10, 0, 2), r"need m ≥ 1, got 0\."),
        (lambda: bounds.theorem_4_6(10, 5, 3, 5), r"need d ≤ p/2, got d = 3, p = 5\."),
        (lambda: bounds.theorem_5_13(2, 5, 2, 1.0, 0.5), "need n ≥ 3, p ≥ 1, epsilon > 0 and 0 < kappa < 1"),
        (lambda: bounds.theorem_5_13(100, 0, 2, 1.0, 0.5), "need n ≥ 3"),
        (lambda: bounds.theorem_5_13(100, 5, 2, 0.0, 0.5), "need n ≥ 3"),
        (lambda: bounds.theorem_5_13(100, 5, 2, 1.0, 0.0), "need n ≥ 3"),
        (lambda: bounds.theorem_5_13(100, 5, 2, 1.0, 1.0), "need n ≥ 3"),
        (lambda: bounds.theorem_5_14(100, 5, 2, 1.0, 0.5, 0), r"need m ≥ 1, got 0\."),
        (lambda: bounds.theorem_5_15(100, 5, 3, 1.0, 0.5, 10), r"need d ≤ p/2, got d = 3, p = 5\."),
        (lambda: bounds.theorem_5_15(100, 6, 3, 1.0, 0.5, 0), "need m ≥ 1"),
        (lambda: bounds.lemma_3_3(0), "need t ≥ 1"),
        (lambda: bounds.lemma_3_6(0.0), "need alpha > 0"),
        (lambda: bounds.median_tree(1), "need k ≥ 2"),
        (lambda: bounds.lemma_5_1(0), "need q ≥ 1"),
        (lambda: bounds.lemma_5_2(-1.0, 3), "need a largest eigenvalue"),
        (lambda: bounds.lemma_5_3(1, -1.0), "need t ≥ 0 and beta"),
        (lambda: bounds.lemma_5_5([], 0), "need at least one eigenvalue"),
        (lambda: bounds.lemma_5_5([1.0, -1.0], 1), "need at least one eigenvalue and none below 0"),
        (lambda: bounds.lemma_5_5([1.0], 2), "need t between 0 and 1"),
        (lambda: bounds.lemma_5_10(0.0, 1.0), "need b > 0"),
        (lambda: bounds.proposition_3_7(-1, 0.5), r"need t ≥ 0 and alpha > 0, got -1 and 0\.5\."),
        (lambda: bounds.proposition_3_7(1, 0.0), "need t ≥ 0 and alpha > 0"),
        (lambda: bounds.proposition_3_14(0), r"need k ≥ 1, got 0\."),
    ],
)
def test_bounds_outside_their_theorem_are_refused(call, words):
    with pytest.raises(ParameterError, match="^" + words):
        call()
