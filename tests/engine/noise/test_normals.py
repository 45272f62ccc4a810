"""Normals with digits on demand: their law, and every decision against far more digits than it read."""

from bisect import bisect_right
from fractions import Fraction
from functools import cache
from itertools import accumulate

import numpy as np
import pytest
from mpmath import exp, floor, mpf, workdps
from scipy.stats import chisquare, norm

from covey.engine.noise import normals as module
from covey.engine.noise.normals import Digits, Normals, borders, guide_table, keep_probability, thresholds, whole

FEW = Digits(x=3, coin=2, cell=5)  # nearly every decision needs more


class Tape:
    """A generator that hands out given words, then those of a stream, and remembers how many it gave."""

    def __init__(self, *words, seed=0):
        self.words, self.given, self.rest = list(words), [], np.random.default_rng(seed)

    def integers(self, low, high, size=None, dtype=None):
        assert (low, high) == (0, 1 << 64)
        if size is not None:
            return self.rest.integers(0, 1 << 64, size, dtype=np.uint64)
        word = self.words.pop(0) if self.words else int(self.rest.integers(0, 1 << 64, dtype=np.uint64))
        self.given.append(word)
        return np.uint64(word)


def bins_p_value(values, count=80):
    """Chi-square test of standard normals in bins of equal probability."""
    edges = norm.ppf(np.arange(1, count) / count)
    return chisquare(np.bincount(np.searchsorted(edges, values), minlength=count)).pvalue


def full(normals, i, extra=40):
    """The number with so many more digits."""
    size = normals.magnitude(i, extra) * 2.0 ** -(normals.digits.unit + extra)
    return -size if np.signbit(normals.value[i]) else size


def test_normals_have_their_law_and_the_test_has_power():
    generator = np.random.default_rng(1)
    values = Normals(300_000, generator).value
    assert bins_p_value(values) > 1e-4
    assert bins_p_value(values * 1.015) < 1e-4  # a scale that is 1.5% off
    assert bins_p_value(values[np.abs(values) < 2.8]) < 1e-4  # a tail that is cut off
    for power, moment in ((1, 0), (2, 1), (3, 0), (4, 3), (6, 15)):
        sd = np.sqrt(norm.moment(2 * power) / len(values))
        assert abs((values**power).mean() - moment) < 4.5 * sd


def test_inside_its_cell_a_number_leans_as_the_density_does():
    """E[k(x − ½)] is about −E[k²]·2/8192/12; a sampler that keeps every proposal has 0."""
    values = np.abs(Normals(3_000_000, np.random.default_rng(8)).value) * 64
    k = np.floor(values)

    def lean(x):
        terms = k * (x - 0.5)
        return terms.mean(), terms.std() / np.sqrt(len(x))

    expected = -(k * k).mean() / 4096 / 12
    mean, sd = lean(values - k)
    assert abs(mean - expected) < 4 * sd
    mean, sd = lean(np.random.default_rng(9).random(len(k)))
    assert abs(mean - expected) > 4 * sd


def test_the_last_digits_of_any_number_of_normals_are_fair():
    assert Normals(0, np.random.default_rng(0)).value.shape == (0,)
    values = Normals(max(100_000, 2 * module.CHUNK + 5), np.random.default_rng(2)).value
    last = (np.abs(values) * 2.0**49).astype(np.int64)
    assert (last == np.abs(values) * 2.0**49).all()
    assert chisquare(np.bincount(last & 63, minlength=64)).pvalue > 1e-4


def test_the_law_does_not_depend_on_how_many_digits_are_read_at_first():
    few = Normals(20_000, np.random.default_rng(3), FEW)
    values = np.array([full(few, i) for i in range(20_000)])
    assert bins_p_value(values) > 1e-4
    assert bins_p_value(values * 1.05) < 1e-4


@cache
def shares():
    """P(K ≤ k) in 120-digit arithmetic."""
    with workdps(120):
        sums = list(accumulate(exp(-k * k / mpf(8192)) for k in range(2500)))
        return [s / sums[-1] for s in sums]


def cell_of(numerator, bits):
    """The cell of the uniform number numerator/2^bits."""
    with workdps(120):
        return bisect_right(shares(), mpf(numerator) / mpf(2) ** bits)


def cells(u, tape):
    numbers = Normals(0, tape)
    return numbers._cells(np.array(u, dtype=np.uint64)), numbers


@pytest.mark.parametrize("bits", [5, 20, 63])
def test_the_borders_of_the_cells_are_known(bits):
    table = thresholds(bits)
    with workdps(120):
        for share, border in zip(shares(), table[:-1], strict=False):
            assert int(floor(share * 2**bits)) == border
    assert table[-1] == 2**bits - 1
    low, high = borders(bits)
    assert all(a <= b <= a + 1 for a, b in zip(low, high, strict=True))


def test_a_number_on_a_border_is_not_decided_by_the_digits_it_has():
    """Each border itself, with continuations that fall just below and just above it; its neighbours need no more digits."""
    table = [int(x) for x in thresholds(63)]
    low = borders(63 + 128)[0]
    for k in (0, 1, 2, 57, 200, 500):
        rest = low[k] - (table[k] << 128)  # the border's own next digits, at most one unit of 2^-191 too low
        for further, answer in ((rest - 2, k), (rest + 2, k + 1)):
            tape = Tape(further >> 64, further & (2**64 - 1))
            found, _ = cells([table[k]], tape)
            assert found == [answer] == [cell_of((table[k] << 128) + further, 191)]
            assert tape.given
        tape = Tape()
        assert cells([table[k] - 1, table[k] + 1], tape)[0].tolist() == [k, k + 1]
        assert not tape.given


def test_every_beginning_that_holds_a_border_is_left_open():
    guide, left = guide_table(63)
    table = thresholds(63)
    inside = np.unique(table >> np.uint64(left)).astype(np.int64)
    assert (guide[inside] == -1).all()
    others = np.setdiff1d(np.arange(len(guide)), inside)
    assert (guide[others] == np.searchsorted(table, others.astype(np.uint64) << np.uint64(left))).all()
    assert (guide_table(5)[0] >= 0).sum() == 32 - len(np.unique(thresholds(5)))


def test_the_tail_is_not_swallowed_by_the_end_of_the_table():
    """The largest number of 63 digits has cells beyond the table; its continuation says which."""
    seen = set()
    for ones in (64, 70, 100, 127):
        word = (1 << 128) - 1 - (1 << (128 - ones))
        tape = Tape(word >> 64, word & (2**64 - 1), 5, 6, 7)
        found, _ = cells([2**63 - 1], tape)
        shown = 2**63 - 1
        for given in tape.given:
            shown = (shown << 64) + given
        assert found == [cell_of(shown, 63 + 64 * len(tape.given))]
        assert found[0] >= len(thresholds(63)) - 1
        seen.add(int(found[0]))
    assert len(seen) == 4  # not one cell for the whole tail
    assert max(seen) > 64 * 11  # eleven deviations and more


def test_cells_near_borders_and_anywhere_agree_with_far_more_digits():
    generator = np.random.default_rng(4)
    table = thresholds(20)
    near = (table[generator.integers(0, len(table), 60)].astype(np.int64) + generator.integers(-1, 2, 60)).clip(
        0, 2**20 - 1
    )
    for u in [*near, *generator.integers(0, 2**20, 60)]:
        tape = Tape(seed=int(u))
        numbers = Normals(0, tape, Digits(cell=20))
        found = numbers._cells(np.array([u], dtype=np.uint64))
        exact = int(u)
        for word in [*tape.given, int(generator.integers(0, 2**63))]:  # any continuation
            exact = (exact << 64) + word
        assert found == [cell_of(exact, 20 + 64 * (len(tape.given) + 1))]


def keeps(k, x_digits, x_bits, v_digits, v_bits):
    with workdps(220):
        x, v = mpf(x_digits) / mpf(2) ** x_bits, mpf(v_digits) / mpf(2) ** v_bits
        return v < exp(-x * (2 * k + x) / 8192)


@pytest.mark.parametrize("digits", [FEW, Digits(x=10, coin=8), Digits()])
def test_coins_agree_with_far_more_digits(digits):
    """Coins next to their threshold: lazily decided, then compared with any continuation of what was read."""
    generator = np.random.default_rng(5)
    answers, slow = set(), 0
    for seed in range(150):
        k, X = int(generator.integers(0, 700)), int(generator.integers(0, 1 << digits.x))
        V = int(keep_probability(k, X, digits.x, 60) * 2**digits.coin) + int(generator.integers(-1, 2))
        V = min(max(V, 0), (1 << digits.coin) - 1)
        tape, tail = Tape(seed=seed), {}
        answer = Normals(0, tape, digits)._coin(k, X, V, tail, 0)
        rest, size = tail.get(0, (0, 0))
        of_x = [(rest >> shift) & (2**64 - 1) for shift in range(0, size, 64)]
        of_v = [word for word in tape.given if word not in of_x]
        assert len(of_x) + len(of_v) == len(tape.given)
        for word in of_v:
            V = (V << 64) + word
        x, x_bits, v_bits = (X << size) + rest, digits.x + size, digits.coin + 64 * len(of_v)
        # The continuation that is hardest for the answer: all ones after a success, all zeros after a failure.
        hard = ((x << 200) + 2**200 - 1, (V << 200) + 2**200 - 1) if answer else (x << 200, V << 200)
        assert keeps(k, hard[0], x_bits + 200, hard[1], v_bits + 200) == answer
        answers.add(answer)
        slow += bool(tape.given)
    assert answers == {True, False}
    assert slow > 30


@pytest.mark.parametrize(
    ("k", "X", "bits", "digits"), [(0, 1, 3, 5), (3, 7, 3, 5), (900, 7, 3, 5), (40, 12345, 43, 200)]
)
def test_probabilities_are_right_to_the_digits_asked_for_even_if_few_bits_are_read(k, X, bits, digits):
    with workdps(digits + 40):
        x = mpf(X) / mpf(2) ** bits
        exact = exp(-x * (2 * k + x) / 8192)
        ours = keep_probability(k, X, bits, digits)
        assert abs(mpf(ours.numerator) / ours.denominator - exact) < mpf(10) ** -digits


def test_digits_that_a_coin_has_read_are_kept():
    """The number goes on with them, and they are never drawn again."""
    tail = {}
    for seed in range(200):
        tape = Tape(seed=seed)
        numbers = Normals(0, tape, Digits(x=3, coin=21))
        V = int(keep_probability(300, 5, 3, 40) * 2**21) - 9_000  # inside what three digits of x leave open
        if numbers._coin(300, 5, V, tail, 0):
            break
    rest, size = tail[0]
    assert size >= 64
    assert rest in (tape.given[0], (tape.given[0] << 64) + tape.given[2 % len(tape.given)])
    numbers.value, numbers.tail = np.array([(300 + 5 / 8) / 64]), dict(tail)
    before = len(tape.given)
    assert numbers.magnitude(0, 64) == (((300 << 3) + 5) << 64) + (rest >> (size - 64))
    assert len(tape.given) == before
    numbers.magnitude(0, size + 64)
    assert len(tape.given) == before + 1
    assert numbers.tail[0] == ((rest << 64) + tape.given[-1], size + 64)


def test_kept_digits_follow_their_number_when_others_are_refused():
    numbers = Normals(400, np.random.default_rng(6), FEW)
    assert len(numbers.tail) > 20
    again = np.array([full(numbers, i, 64) for i in range(400)])
    assert (np.abs(again) >= np.abs(numbers.value)).all()
    assert (np.abs(again) < np.abs(numbers.value) + 2.0**-9).all()
    # The coin favours a small x: given the first three digits, those that a coin has read are not uniform but biased low.
    assert (again == np.array([full(numbers, i, 64) for i in range(400)])).all()


class Fixed:
    """A generator whose first two arrays of words are given, element by element."""

    def __init__(self, first, second):
        self.arrays = [np.array([first, second], dtype=np.uint64)[:, None]]

    def integers(self, low, high, size=None, dtype=None):
        if size is None:
            return np.uint64(2**63)  # every further digit is ½ of its unit
        out = np.full(size, 2**63, dtype=np.uint64)
        if self.arrays:
            out[:, :1] = self.arrays.pop()
        return out


def test_minus_zero_keeps_its_sign():
    numbers = Normals(1, Fixed(first=1, second=0))  # sign bit, cell 0, x = 0…
    assert numbers.value[0] == 0
    assert np.signbit(numbers.value[0])
    assert numbers.magnitude(0, 64) == 2**63  # digits that come later belong to a negative number
    assert not np.signbit(Normals(1, Fixed(first=0, second=0)).value[0])


@pytest.mark.parametrize("k", [1023, 1024, 1500, 2**11, 2**14, 2**17 + 3])
def test_numbers_beyond_sixteen_lose_no_digit(monkeypatch, k):
    """Beyond 16 a float has no room for all digits read: the lowest ones go to the tail, and come back first."""
    monkeypatch.setattr(Normals, "_cells", lambda self, u: np.full(len(u), k))
    monkeypatch.setattr(Normals, "_coins", lambda self, k, x, V, X, tail: np.ones(len(k), bool))
    numbers = Normals(50, np.random.default_rng(7))
    words = np.random.default_rng(7).integers(0, 1 << 64, (2, 66), dtype=np.uint64)[1]
    for i in range(50):
        X = int(words[i] >> np.uint64(21))
        exact = (k << 43) + X
        assert numbers.magnitude(i, 0) == exact
        assert numbers.magnitude(i, 64) >> 64 == exact
        assert (
            0 <= Fraction(exact, 2**49) - Fraction(abs(float(numbers.value[i]))) < Fraction(float(np.spacing(k / 64)))
        )
    assert bool(numbers.tail)


def test_a_cut_number_and_its_tail_make_a_whole():
    assert whole(0.75, (0b1011, 4), 2, 3) == (3 << 3) + 0b101
    assert whole(-0.75, (0b1011, 4), 2, 4) == (3 << 4) + 0b1011
