"""Numeric records in a convex set K: household budgets, shares that cannot be negative and add up to at most one.

    python examples/numeric_records.py

K is public: the set in which every record lies, whatever the data is. Averages of records stay in K, and so does every synthetic
row. Records outside K would be moved to its nearest point.
"""

import numpy as np

import covey

KINDS = ("rent", "food", "travel", "savings")


def households(n: int, seed: int = 9) -> np.ndarray:
    """n fictitious budgets: which share of its income a household spends on what. The rest is everything else."""
    generator = np.random.default_rng(seed)
    poor = generator.random((n, 1)) < 0.4
    spread = np.where(poor, [[9, 7, 2, 0.5, 3]], [[5, 3, 3, 5, 4]])
    parts = generator.gamma(spread)
    return (parts / parts.sum(axis=1, keepdims=True))[:, :4]


def main() -> None:
    """From budgets to averages, and to private points of K."""
    budgets = households(5000)

    # K: every share between 0 and 1, and all of them together at most 1.
    K = covey.bodies.Polytope(np.ones((1, 4)), np.ones(1), within=covey.bodies.Box([0] * 4, [1] * 4))

    # Groups of at least 20 households, each replaced by its mean: anonymous, but NOT differentially private.
    anonymous = covey.AnonymousSynthesizer(group_size=20, body=K).fit(budgets)
    rows = anonymous.sample(5000)
    print(
        f"{anonymous.groups} groups of at least 20; the largest sum of shares in a row is {rows.sum(axis=1).max():.3f}"
    )
    print(
        "means, confidential:  "
        + "  ".join(f"{k} {a:.3f}/{b:.3f}" for k, a, b in zip(KINDS, budgets.mean(0), rows.mean(0), strict=True))
    )

    # Differentially private points of K: margins, means and covariances with noise, and points that have them.
    private = covey.PrivateSynthesizer(epsilon=1.0, body=K).fit(budgets)
    made = private.sample(5000)
    print(private.privacy)
    print(f"every private row lies in K: {bool((made >= -1e-9).all() and (made.sum(axis=1) <= 1 + 1e-9).all())}")
    print(
        "means, private:       "
        + "  ".join(f"{k} {a:.3f}|{b:.3f}" for k, a, b in zip(KINDS, budgets.mean(0), made.mean(0), strict=True))
    )
    true, other = np.corrcoef(budgets.T)[0, 3], np.corrcoef(made.T)[0, 3]
    print(f"correlation of rent and savings: {true:.2f} confidential, {other:.2f} private")
    print(private.certificate)


if __name__ == "__main__":
    main()
