import numpy as np
import pytest

from covey.core.paper.bodies import Ball
from covey.core.paper.covering import LatticeCovering
from covey.core.tables.marginals import covariance_loss
from covey.errors import ParameterError
from covey.methods.paper import anonymous_centres
from covey.methods.records import real_records
from covey.privacy import bounds


def test_theorem_1_2_explicit_bound_holds_and_is_not_idle_for_large_k():
    assert bounds.theorem_1_2(3).value == 1
    values = [bounds.theorem_1_2(k).value for k in (10**9, 10**80, 10**200)]
    assert values == sorted(values, reverse=True)
    assert bounds.theorem_1_2(10**300).value < 1


def test_theorem_4_1_holds_for_algorithm_1():
    generator = np.random.default_rng(0)
    x = generator.standard_normal((2000, 4))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    result = anonymous_centres(real_records(x, Ball(4)), 4)
    assert covariance_loss(x, result.groups) <= bounds.theorem_1_2_equal(500).value
    assert result.covariance_loss == pytest.approx(covariance_loss(x, result.groups), rel=1e-4)


def test_tensorization_factor():
    assert [bounds.theorem_3_10(d).value for d in (2, 3, 4)] == [1, 8, 44]


def test_anonymous_theorems_stack_up():
    k, m, d, p = 400, 50, 2, 8
    one = bounds.theorem_4_1(k, d).value
    assert bounds.theorem_4_1(k, 1).value == 0
    assert bounds.theorem_4_4(k, m, d).value == pytest.approx(one**2 + 1 / m)
    assert bounds.theorem_4_6(k, m, d, p).value == pytest.approx(4 * (one**2 + 2 / m))


def test_private_theorems_say_that_their_constant_is_hidden():
    arguments = 10**6, 50, 2, 1.0, 1 / 3
    weighted = bounds.theorem_5_13(*arguments)
    assert not weighted.explicit
    assert "does not give" in str(weighted)
    rate = np.log(np.log(1e6)) / (np.log(1e6) / 3) + 50 / 1e6 ** (2 / 3)
    assert weighted.value == pytest.approx(256 * rate)
    assert bounds.theorem_5_14(*arguments, 100).value == pytest.approx(256 * rate + 0.01)
    assert bounds.theorem_5_15(*arguments, 100).value == pytest.approx(1024 * (rate + 0.01))


def test_deterministic_accuracy_terms():
    assert bounds.theorem_5_6(0.5, 0.2, 2).value == pytest.approx(16 * 1.2)
    value = bounds.theorem_5_9(0.5, 0.2, 2, s=10, b=3.0, n=100, weight_noise=0.1, point_noise=0.3).value
    assert value == pytest.approx(16 * 1.2 + 2 * 2 * 10 * 3 / 100 + 0.2 + 4 * 0.3)


def test_proposition_3_7_is_the_tight_end():
    assert LatticeCovering(4, 0.5).size <= bounds.proposition_3_7(4, 0.5).value <= (7 / 0.5) ** 4
    assert bounds.proposition_3_7(2000, 0.01).value == float("inf")


def test_a_bound_reads_as_a_sentence():
    assert str(bounds.theorem_3_10(3)).endswith("≤ 8 (explicit)")
    assert float(bounds.proposition_3_14(4)) == pytest.approx(1 / (80 * np.sqrt(np.log(8))))


LARGE = 10**300
ALPHA = (np.log(np.log(1e300)) / np.log(1e300)) ** 0.25  # 0.3119, so t = 222 dimensions
LOSS = 4 * ALPHA**2 + 1 / np.sqrt(222)


@pytest.mark.parametrize(
    ("call", "value", "explicit", "statement"),
    [
        (lambda: bounds.proposition_3_7(0, 0.5), 1, True, "number of points of the covering"),
        (lambda: bounds.proposition_3_7(3, 2.0), (2 * np.e * np.pi) ** 1.5, True, "number of points of the covering"),
        (lambda: bounds.proposition_3_7(1, 0.25), 4.5 * 4.132731354, True, "number of points of the covering"),
        (lambda: bounds.theorem_1_2(3), 1, True, "‖Σ_X − Σ_Y‖₂, partition into k sets"),
        (lambda: bounds.theorem_1_2(LARGE), LOSS, True, "‖Σ_X − Σ_Y‖₂, partition into k sets"),
        (lambda: bounds.theorem_1_2_equal(1), 1, True, "‖Σ_X − Σ_Y‖₂, k groups of equal size"),
        (lambda: bounds.theorem_1_2_equal(9), 1, True, "‖Σ_X − Σ_Y‖₂, k groups of equal size"),
        (lambda: bounds.theorem_3_10(2), 1, True, "ratio of the degree-d moment loss to the covariance loss"),
        (lambda: bounds.theorem_3_10(5), 8 * 26, True, "ratio of the degree-d moment loss to the covariance loss"),
        (
            lambda: bounds.proposition_3_14(1),
            1 / (80 * np.sqrt(np.log(2))),
            True,
            "a LOWER bound: least covariance loss of the separated set",
        ),
        (lambda: bounds.theorem_4_1(9, 1), 0, True, "‖mean x^{⊗d} − mean y^{⊗d}‖₂"),
        (lambda: bounds.theorem_4_1(9, 3), 8, True, "‖mean x^{⊗d} − mean y^{⊗d}‖₂"),
        (lambda: bounds.theorem_4_4(9, 1, 3), 65, True, "E ‖mean x^{⊗d} − mean u^{⊗d}‖₂²"),
        (lambda: bounds.theorem_4_4(9, 4, 1), 0.25, True, "E ‖mean x^{⊗d} − mean u^{⊗d}‖₂²"),
        (lambda: bounds.theorem_4_6(9, 1, 3, 6), 8 * 66, True, "E δ_d²"),
        (lambda: bounds.theorem_5_6(0.5, 0.25, 1), 5, True, "‖mean x^{⊗d} − Σ w_j y_j^{⊗d}‖₂"),
        (
            lambda: bounds.theorem_5_9(0.5, 0.25, 1, s=3, b=5.0, n=10, weight_noise=0.5, point_noise=0.25),
            5 + 3 + 1 + 0.5,
            True,
            "‖mean x^{⊗d} − Σ w̄_j ȳ_j^{⊗d}‖₂",
        ),
        (
            lambda: bounds.theorem_5_13(3, 1, 1, 0.5, 0.25),
            16 * (0.0940478276 / (0.25 * np.log(3)) + 3**-0.75 / 0.5),
            False,
            "E ‖mean x^{⊗d} − Σ w̄_j ȳ_j^{⊗d}‖₂²",
        ),
        (
            lambda: bounds.theorem_5_14(3, 1, 1, 0.5, 0.25, 1),
            16 * (0.0940478276 / (0.25 * np.log(3)) + 3**-0.75 / 0.5) + 1,
            False,
            "E ‖mean x^{⊗d} − mean u^{⊗d}‖₂²",
        ),
        (
            lambda: bounds.theorem_5_15(3, 2, 1, 0.5, 0.25, 1),
            32 * (0.0940478276 / (0.25 * np.log(3)) + 2 * 3**-0.75 / 0.5 + 1),
            False,
            "E δ_d²",
        ),
    ],
)
def test_each_bound_has_its_value_kind_and_words(call, value, explicit, statement):
    bound = call()
    assert (bound.value, bound.explicit, bound.statement) == (pytest.approx(value, rel=1e-7), explicit, statement)
    kind = "explicit" if explicit else "up to an absolute constant that the paper does not give"
    assert str(bound) == f"{statement} ≤ {bound.value:.4g} ({kind})"


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
        (
            lambda: bounds.theorem_5_15(100, 5, 3, 1.0, 0.5, 10),
            r"need d ≤ p/2 and m ≥ 1, got d = 3, p = 5, m = 10\.",
        ),
        (lambda: bounds.theorem_5_15(100, 6, 3, 1.0, 0.5, 0), "need d ≤ p/2 and m ≥ 1"),
        (lambda: bounds.proposition_3_7(-1, 0.5), r"need t ≥ 0 and alpha > 0, got -1 and 0\.5\."),
        (lambda: bounds.proposition_3_7(1, 0.0), "need t ≥ 0 and alpha > 0"),
        (lambda: bounds.proposition_3_14(0), r"need k ≥ 1, got 0\."),
    ],
)
def test_bounds_outside_their_theorem_are_refused(call, words):
    with pytest.raises(ParameterError, match="^" + words):
        call()
