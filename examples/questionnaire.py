"""A questionnaire of 1,000 yes/no questions: what a wide table costs, and what helps.

    python examples/questionnaire.py [--people 5000] [--questions 1000] [--epsilon 4]

The noise on a share of two answers grows with the number of questions and shrinks with the number of people and with ε. covey
says so before it starts, from public numbers alone. A small δ helps wide tables most.
"""

import argparse
import time

import numpy as np

import covey


def questionnaire(people: int, questions: int, seed: int = 5) -> np.ndarray:
    """Fictitious answers, driven by ten traits of each person, as psychologists would have it."""
    generator = np.random.default_rng(seed)
    traits = generator.standard_normal((people, 10))
    loadings = generator.standard_normal((10, questions)) * 0.6
    leaning = generator.normal(0, 1, questions)
    return (traits @ loadings + leaning + generator.logistic(size=(people, questions)) > 0).astype(np.uint8)


def main() -> None:
    """Synthesize a wide table, and compare."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--people", type=int, default=5000)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--epsilon", type=float, default=4.0)
    given = parser.parse_args()

    X = questionnaire(given.people, given.questions)
    begin = time.perf_counter()
    synth = covey.PrivateSynthesizer(given.epsilon, delta=1e-9).fit(X)
    Z = synth.sample(given.people)
    print(f"{given.people} people × {given.questions} questions in {time.perf_counter() - begin:.1f} s")
    print(synth.certificate)

    # Compared with true rows: confidential. As a yardstick, rows whose answers do not depend on each other.
    independent = (np.random.default_rng(0).random(X.shape) < X.mean(axis=0)).astype(np.uint8)
    print(f"typical error of a share of two answers (confidential): {covey.marginal_error(X, Z, degree=2):.4f}")
    print(f"the same if answers did not depend on each other: {covey.marginal_error(X, independent, degree=2):.4f}")


if __name__ == "__main__":
    main()
