"""Section 3: the law of total covariance, monotonicity, merger, tensorization, optimality; tensors of sections 2 and 5.

Each statement is shown to reject something: another partition, another centre, or a constant that would be too small.
"""

from itertools import permutations, product
from math import comb, factorial

import numpy as np
import pytest

from covey.paper import covariance_loss, microaggregate
from covey.paper.bounds import lemma_2_1, proposition_3_14, remark_3_13, theorem_3_10


def in_unit_ball(generator, n, p):
    x = generator.standard_normal((n, p))
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1) * generator.random((n, 1))


def conditional_expectation(x, labels):
    y = np.empty_like(x)
    for group in np.unique(labels):
        y[labels == group] = x[labels == group].mean(axis=0)
    return y


def moment(x, d):
    """E x^{⊗d} as a full tensor."""
    tensor = x
    for _ in range(d - 1):
        tensor = (tensor[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    return tensor.mean(axis=0)


def test_lemma_3_1_law_of_total_covariance_is_an_identity():
    generator = np.random.default_rng(1)
    for n, p, k in ((7, 3, 2), (50, 6, 9), (200, 4, 200)):
        x, labels = in_unit_ball(generator, n, p), generator.integers(0, k, n)
        y = conditional_expectation(x, labels)
        lost = np.cov(x.T, bias=True) - np.cov(y.T, bias=True)
        residual = (x - y).T @ (x - y) / n
        np.testing.assert_allclose(lost, residual, atol=1e-14)
        assert np.linalg.eigvalsh(residual).min() >= -1e-14
        assert covariance_loss(x, labels) == pytest.approx(np.linalg.norm(residual), abs=1e-14)
    # Bits and floats alike, and whatever groups are called.
    bits, labels = generator.integers(0, 2, (300, 5), dtype=np.uint8), generator.integers(0, 9, 300)
    names = np.array([f"group {10 - g}" for g in labels])
    assert covariance_loss(bits, labels) == pytest.approx(covariance_loss(bits.astype(float), names), abs=1e-14)


def test_lemmas_3_8_and_3_9_merging_sets_costs_something_and_at_most_the_merged_probability():
    generator = np.random.default_rng(3)
    for _ in range(50):
        x, fine = in_unit_ball(generator, 60, 4), generator.integers(0, 8, 60)
        extra = covariance_loss(x, np.where(fine < 3, 0, fine)) - covariance_loss(x, fine)
        assert -1e-15 <= extra <= np.mean(fine < 3)
        assert covariance_loss(x, fine) <= covariance_loss(x, fine // 3) + 1e-15
    # Attained by opposite points, so that no smaller multiple of the probability would do.
    opposite = np.array([[1.0], [-1.0], [0.0], [0.0]])
    assert covariance_loss(opposite, np.array([0, 0, 1, 2])) == pytest.approx(0.5)
    # Any other partition into more sets may lose more: a refinement is what the lemma is about.
    line = np.array([[-1.0], [-1.0], [1.0], [1.0], [0.0]])
    assert covariance_loss(line, np.array([0, 0, 1, 1, 2])) < covariance_loss(line, np.array([0, 1, 0, 2, 3]))


@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_theorem_3_10_tensorization_needs_the_groups_means(d):
    generator = np.random.default_rng(d)
    factor = theorem_3_10(d, "improved").value
    assert factor <= theorem_3_10(d).value <= 4.0**d

    def holds(x, y):
        lost = np.linalg.norm(moment(x, 2) - moment(y, 2))
        return np.linalg.norm(moment(x, d) - moment(y, d)) <= factor * lost + 1e-14

    for n, p, k in ((4, 2, 2), (20, 3, 4), (40, 4, 5), (6, 5, 1)):
        x, labels = in_unit_ball(generator, n, p), generator.integers(0, k, n)
        x /= max(np.linalg.norm(x, axis=1).max(), 1e-9)  # touch the unit sphere: the inequality has no more room
        assert holds(x, conditional_expectation(x, labels))
        centred = x - x.mean(axis=0)
        higher = np.linalg.norm(moment(centred, d) - moment(conditional_expectation(centred, labels), d))
        assert higher <= remark_3_13(d, "improved").value * covariance_loss(x, labels) + 1e-14
    if d > 2:
        # Another centre than the mean may keep all second moments and lose the higher ones: 1 for ±1, √½ for 0 and 1.
        x = np.array([[1.0], [-1.0], [1.0], [1.0]]) if d % 2 else np.array([[1.0], [0.0], [1.0], [0.0]]) ** 2
        first = np.ones_like(x) if d % 2 else np.full_like(x, np.sqrt(0.5))
        assert not holds(x, first)
        assert holds(x, np.full_like(x, x.mean()))


def separated_subset(n, p, generator):
    """Lemma 3.15: random points of p^{-1/2}{0,1}ᵖ, drawn again until they are 1/2-separated."""
    for _ in range(1000):
        x = generator.integers(0, 2, (n, p)) / np.sqrt(p)
        distance = np.linalg.norm(x[:, None] - x[None], axis=2)[np.triu_indices(n, 1)]
        if distance.min() > 0.5:
            return x
    raise AssertionError("no separated subset was found")


def test_lemma_3_15_and_proposition_3_14_every_partition_of_the_separated_set_loses():
    generator = np.random.default_rng(6)
    k = 4
    x = separated_subset(2 * k, int(16 * np.log(2 * k)) + 1, generator)
    least = min(
        covariance_loss(x, np.array(labels))
        for labels in product(range(k), repeat=2 * k - 3)
        for labels in [(0, 0, 1, *labels)]
    )
    assert least >= proposition_3_14(k).value
    for k in (10, 40):
        x = separated_subset(2 * k, int(16 * np.log(2 * k)) + 1, generator)
        for _ in range(100):
            labels = generator.integers(0, k, 2 * k)
            assert covariance_loss(x, labels) >= proposition_3_14(k).value
            assert np.mean(np.sum((x - conditional_expectation(x, labels)) ** 2, axis=1)) >= 1 / 16  # in the proof
        twins = np.repeat(x[:k], 2, axis=0)  # not separated: a partition into k sets loses nothing
        assert covariance_loss(twins, np.arange(2 * k) // 2) < proposition_3_14(k).value


def test_microaggregation_keeps_the_mean_and_drops_empty_blocks():
    generator = np.random.default_rng(7)
    x, labels = in_unit_ball(generator, 30, 3), generator.choice([0, 2, 5], 30)
    cloud = microaggregate(x, labels)
    assert len(cloud) == 3
    np.testing.assert_allclose(cloud.weights @ cloud.points, x.mean(axis=0), atol=1e-15)


def test_lemmas_3_11_and_3_16_are_identities():
    generator = np.random.default_rng(8)
    x = in_unit_ball(generator, 25, 4)
    products = x @ x.T
    assert np.mean(products**2) == pytest.approx(np.linalg.norm(x.T @ x / 25) ** 2)
    distances = np.sum((x[:, None] - x[None]) ** 2, axis=2)
    assert np.mean(np.sum((x - x.mean(axis=0)) ** 2, axis=1)) == pytest.approx(distances.mean() / 2)
    assert np.mean(np.sum(x**2, axis=1)) > 1.01 * distances.mean() / 2  # about the mean, not about 0


def test_lemma_2_1_subsets_against_off_diagonal_entries():
    generator = np.random.default_rng(9)
    p, d = 7, 3
    X = generator.standard_normal((p,) * d)
    X = sum(np.transpose(X, order) for order in permutations(range(d)))
    distinct = [i for i in product(range(p), repeat=d) if len(set(i)) == d]
    off = sum(X[i] ** 2 for i in distinct)
    subsets = sum(X[i] ** 2 for i in distinct if i == tuple(sorted(i))) / comb(p, d)
    assert off == pytest.approx(factorial(d) * comb(p, d) * subsets)
    assert subsets == pytest.approx(lemma_2_1(p, d, "improved").value * off)
    assert subsets <= lemma_2_1(p, d).value * off
    assert subsets > off / p**d  # 1ᵈ in place of 2ᵈ would be too little


def power(u, d):
    tensor = u
    for _ in range(d - 1):
        tensor = np.multiply.outer(tensor, u)
    return tensor


def test_lemmas_5_7_and_5_8_tensor_powers_move_with_their_vectors():
    generator = np.random.default_rng(10)
    for d in (1, 2, 3, 4):
        u, v = in_unit_ball(generator, 6, 3), in_unit_ball(generator, 6, 3)
        weights, others = generator.random(6), generator.random(6)
        for a, b in zip(u, v, strict=True):
            assert np.linalg.norm(power(a, d) - power(b, d)) <= d * np.linalg.norm(a - b) + 1e-15
        left = sum(l * power(a, d) - m * power(b, d) for l, a, m, b in zip(weights, u, others, v, strict=True))
        moved = d * weights @ np.linalg.norm(u - v, axis=1) + np.abs(weights - others).sum()
        assert np.linalg.norm(left) <= moved + 1e-15
        if d > 1:  # d is attained in the limit: a step along a unit vector
            a, b = np.array([1.0, 0.0]), np.array([1 - 1e-6, 0.0])
            assert np.linalg.norm(power(a, d) - power(b, d)) > (d - 1) * np.linalg.norm(a - b)
