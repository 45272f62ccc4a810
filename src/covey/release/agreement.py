"""What groups give away by agreeing: the risk of anonymous releases in figures that follow from the size of groups alone."""

from __future__ import annotations

EXAMPLES = (0.01, 0.05, 0.1, 0.25, 0.5)  # shares of people who have something, from a rare illness to a coin


def agreeing(r: int, share: float) -> float:
    """The chance that r people drawn at random all have something that this share of people have, or that none has it."""
    return float(share**r + (1 - share) ** r)


def risks(r: int) -> list[tuple[str, float]]:
    """For things that few and many people have: how often a group of r agrees on them, and so discloses them."""
    return [(f"{100 * share:g} of 100 people have it", agreeing(r, share)) for share in EXAMPLES]


def why(r: int) -> str:
    """What the figures mean."""
    return (
        f"If all {r:,} members of a group have the same value, their average is that value. Whoever knows that a person is in "
        "the group then knows it too. These are the probabilities for groups formed at random. Real groups hold similar people, "
        "so they agree more often."
    )
