from fractions import Fraction

import numpy as np
import pytest

from covey.core.samplers import CoveyNoise
from covey.privacy.budget import Charge, make_budget
from covey.privacy.certificate import certify
from tests.audit import epsilon_lower_bound

DISTANCES = {1: 0.002, 2: 0.004, 3: 0.001}


def release(distances, pure, generator, amount=Fraction(1, 20), n=2000):
    return certify(distances, n, Charge("certificate", amount, "ε" if pure else "ρ"), CoveyNoise(generator))


@pytest.mark.parametrize("pure", [True, False])
def test_the_bound_holds_at_least_95_per_cent_of_the_time_and_not_always(pure):
    generator = np.random.default_rng(0)
    amount = Fraction(1, 2) if pure else Fraction(1, 50)
    runs = [release({2: 0.3, 3: 0.1}, pure, generator, amount) for _ in range(3000)]
    covered = np.mean([run.bound[2] >= 0.3 for run in runs])
    assert 0.95 <= covered < 0.975  # a 96% bound: neither broken nor idle
    assert np.median([run.estimate[2] for run in runs]) == pytest.approx(0.3, abs=0.001)


def test_margins_are_those_of_the_single_maximum():
    certificate = release({2: 0.5}, True, np.random.default_rng(1))
    margin = certificate.bound[2] - certificate.estimate[2]
    assert certificate.estimate[2] > 0
    assert margin == pytest.approx(np.log(1 / 0.08) / (2000 * 0.05), rel=0.01)


@pytest.mark.parametrize("pure", [True, False])
def test_a_bound_is_never_zero_nor_above_one(pure):
    generator = np.random.default_rng(2)
    for amount in (Fraction(10), Fraction(1, 10**6)):
        for _ in range(50):
            certificate = release({1: 0.0, 2: 0.0}, pure, generator, amount, n=10)
            assert 0 < certificate.bound[2] <= 1
            assert 0 <= certificate.estimate[2] <= 1


def test_the_release_is_private_and_halved_noise_is_caught():
    """Neighbours whose distances differ by 1/n, the most there is."""
    n, epsilon, generator = 50, Fraction(1), np.random.default_rng(3)

    def draws(value, amount):
        return [release({2: value}, True, generator, amount, n).bound[2] for _ in range(12_000)]

    assert 0.6 < epsilon_lower_bound(draws(0.5, epsilon), draws(0.52, epsilon)) <= 1
    assert epsilon_lower_bound(draws(0.5, 2 * epsilon), draws(0.52, 2 * epsilon)) > 1


def test_the_sentence_reads_well_and_rounds_up():
    certificate = release(DISTANCES, True, np.random.default_rng(4))
    assert certificate.sentence.startswith("The typical 2-way share is within 0.")
    assert "1 and 3-way ones" in certificate.sentence
    printed = float(certificate.sentence.split("within ")[1].split(" ")[0])
    assert printed >= certificate.bound[2]
    assert str(certificate) == certificate.sentence


def test_tables_add_their_own_distance():
    certificate = release(DISTANCES, True, np.random.default_rng(5))
    table = certificate.for_table({1: 0.1, 2: 0.2})
    assert table == {1: certificate.bound[1] + 0.1, 2: certificate.bound[2] + 0.2}


def test_zcdp_charges_are_in_rho():
    budget = make_budget(1.0, 1e-9)
    assert budget.unit == "ρ"
    certificate = release({2: 0.01}, False, np.random.default_rng(6), budget.amount / 20)
    assert certificate.bound[2] > certificate.estimate[2]
