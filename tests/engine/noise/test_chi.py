"""Chi variables with digits on demand: their law, and each decision against far more digits."""

from fractions import Fraction

import numpy as np
import pytest
from mpmath import exp, log, mpf, workdps
from scipy.stats import chi as chi_law
from scipy.stats import kstest

from covey.engine.noise.normals import CENTRE_BITS, Chi, Digits, Normals, accept, interval, power

FEW = Digits(x=4, coin=3, cell=6)


@pytest.mark.parametrize("degrees", [2, 3, 10, 1001])
def test_chi_variables_have_their_law_and_one_degree_more_is_another(degrees):
    values = Chi(np.full(60_000, degrees), np.random.default_rng(degrees)).value
    assert kstest(values, chi_law(degrees).cdf).pvalue > 1e-4
    if degrees < 100:
        assert kstest(values, chi_law(degrees + 1).cdf).pvalue < 1e-4
    assert kstest(values * 1.02, chi_law(degrees).cdf).pvalue < 1e-4


@pytest.mark.parametrize("degrees", [2, 30])
def test_the_law_is_the_same_where_nearly_every_decision_needs_more_digits(degrees):
    chi = Chi(np.full(4000, degrees), np.random.default_rng(1), FEW)
    assert len(chi.tail) > 100
    spread = np.random.default_rng(2).random(4000) * 2.0**-10  # digits that nobody has read are uniform
    values = chi.value + np.where(np.signbit(chi.offset), -spread, spread)
    assert kstest(values, chi_law(degrees).cdf).pvalue > 1e-4


def test_each_variable_has_its_own_degrees_of_freedom():
    degrees = np.array([2, 500, 3] * 700)
    values = Chi(degrees, np.random.default_rng(3)).value
    for k in (2, 3, 500):
        assert kstest(values[degrees == k], chi_law(k).cdf).pvalue > 1e-4


@pytest.mark.parametrize("n", [1, 7, 10_000])
def test_powers_are_right_to_the_digits_asked_for(n):
    for t in (
        Fraction(1, 10**9),
        Fraction(1, 3),
        Fraction(999, 1000),
        Fraction(1001, 1000),
        Fraction(7, 2),
        Fraction(400),
    ):
        with workdps(200):
            x = mpf(t.numerator) / t.denominator
            exact, ours = (x * exp(1 - x)) ** n, power(t, n, 50)
            assert abs(mpf(ours.numerator) / ours.denominator - exact) < mpf(10) ** -50
    assert power(Fraction(0), n, 50) == power(Fraction(-1), n, 50) == 0
    assert power(Fraction(1), n, 50) == 1


@pytest.mark.parametrize("n", [1, 2, 50, 9999])
@pytest.mark.parametrize("digits", [FEW, Digits()])
def test_decisions_agree_with_far_more_digits(n, digits):
    """V next to the float probability: decided lazily, then with the hardest continuation of what was read."""
    generator, answers = np.random.default_rng(n), set()
    centre = Fraction(round(np.sqrt(n) * 64), 64)
    normals = Normals(60, generator, digits)
    for i in range(60):
        # The middle of what the digits leave open, where further ones decide.
        r = float(centre) + normals.value[i] + np.copysign(2.0 ** -(digits.unit + 1), normals.value[i])
        with workdps(30):
            t = r * centre.numerator / mpf(centre.denominator) / n
            V = int((t * exp(1 - t)) ** n * mpf(2) ** 64) if r > 0 else 0
        V = min(V, 2**64 - 1)
        normals.generator = seen = Seen(generator)
        answer = accept(n, centre, normals, i, V)
        of_g = words_of(normals.tail.get(i, (0, 0)))
        of_v = [word for word in seen.words if word not in of_g]
        for word in of_v:
            V = (V << 64) + word
        for r in interval(normals, i, centre, 64 * len(of_g)):
            with workdps(400):
                t = mpf(r.numerator) / r.denominator * centre.numerator / centre.denominator / n
                p = exp(n * (log(t) + 1 - t)) if t > 0 else mpf(0)
                assert (mpf(V + answer) / mpf(2) ** (64 + 64 * len(of_v)) <= p) == answer
        answers.add(answer)
    assert answers == {True, False}


class Seen:
    """A generator that remembers the words it gave."""

    def __init__(self, generator):
        self.generator, self.words = generator, []

    def integers(self, *args, **options):
        word = self.generator.integers(*args, **options)
        self.words.append(int(word))
        return word


def words_of(tail):
    rest, size = tail
    return [(rest >> shift) & (2**64 - 1) for shift in range(0, size, 64)]


def test_a_length_is_never_negative_and_never_lost():
    """Two degrees of freedom and a proposal at zero: the sign of r decides, and the coin cannot keep r ≤ 0."""
    normals = Normals(1, np.random.default_rng(4))
    for offset, sign in ((-1.0, -1), (-1.0 - 2.0**-40, -1), (-1.0 + 2.0**-40, 1)):
        normals.value, normals.tail = np.array([offset]), {}
        kept = accept(1, Fraction(1), normals, 0, 0)
        assert kept == (sign > 0)
    assert (Chi(np.full(20_000, 2), np.random.default_rng(5)).value > 0).all()


def test_centres_are_whole_numbers_of_units():
    chi = Chi(np.arange(2, 300), np.random.default_rng(6))
    assert FEW.unit >= CENTRE_BITS
    assert np.abs(chi.centre * 2.0**-CENTRE_BITS - np.sqrt(np.arange(1, 299))).max() <= 2.0 ** -(CENTRE_BITS + 1)


def test_a_cut_variable_has_the_digits_of_its_normal_and_those_of_its_tail():
    """Away from the centre on either side. A centre that is forgotten, or digits that are added toward it, would show."""
    chi = Chi(np.full(50, 3), np.random.default_rng(7), FEW)
    for k, (centre, offset) in enumerate(zip(chi.centre, chi.offset, strict=True)):
        far = Fraction(float(offset)) + (-1 if np.signbit(offset) else 1) * Fraction(5, 1 << (FEW.unit + 3))
        exact = Fraction(int(centre), 1 << CENTRE_BITS)
        assert Fraction(chi.cut(k, (0, 0), 0), 1 << FEW.unit) == exact + Fraction(float(offset))
        assert Fraction(chi.cut(k, (5, 3), 3), 1 << (FEW.unit + 3)) == exact + far
    assert 0 < np.signbit(chi.offset).sum() < 50
