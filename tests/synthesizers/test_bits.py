"""regain from end to end: guarantees, budgets, accuracy, grace, wide tables, and audits that planted faults do not pass."""

import tracemalloc
import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import covey
from audits.gates import a_budget, a_gate, asked, fit_bits
from covey.desk.demo import example_patients
from covey.engine import arrays
from covey.engine.budget import make_budget
from covey.engine.codes.counts import UNIT, Coding, moments, wide_enough
from covey.engine.codes.distance import misplaced_bits
from covey.engine.codes.domain import Domain
from covey.engine.entropy import Streams
from covey.engine.fit import devices, wide
from covey.engine.models.bits import declared_coding, leading_directions, measure_ball, measure_matrix, plan_bits
from covey.engine.models.predict import flag_matrices, predict
from covey.engine.models.tables.plan_tables import histogram_share
from covey.engine.units.local import ArrayRows
from covey.errors import CoveyWarning, InputError, ParameterError

_, PATIENTS = example_patients(6000)
quiet = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")


def survey(n=4000, seed=0):
    generator = np.random.default_rng(seed)
    latent = generator.integers(0, 3, n)
    sizes = [12, 3, 2, 5]
    laws = [generator.dirichlet(np.full(c, 0.7), 3) for c in sizes]
    X = np.column_stack([[generator.choice(c, p=law[z]) for z in latent] for c, law in zip(sizes, laws, strict=True)])
    return X, sizes


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_bits_are_far_better_than_independent_columns(delta):
    synth = covey.PrivateSynthesizer(3.0, delta, seed=1).fit(PATIENTS)
    Z = synth.sample(6000)
    independent = (np.random.default_rng(0).random(PATIENTS.shape) < PATIENTS.mean(axis=0)).astype(np.uint8)
    for degree in (2, 3):
        ours, theirs = (covey.marginal_error(PATIENTS, table, degree) for table in (Z, independent))
        assert ours < 0.75 * theirs
    assert synth.certificate.bound[2] >= covey.marginal_error(PATIENTS, Z, 2)


def test_categories_are_far_better_than_independent_columns():
    X, sizes = survey()
    synth = covey.PrivateSynthesizer(4.0, 1e-6, domain=sizes, ordinal=[0], seed=2).fit(X)
    Z = synth.sample(4000)
    assert Z.dtype == X.dtype
    assert (np.array(sizes) > Z).all()
    assert (Z >= 0).all()

    def joint(table, a, b):
        out = np.zeros((sizes[a], sizes[b]))
        np.add.at(out, (table[:, a], table[:, b]), 1 / len(table))
        return out

    for a, b in ((0, 1), (1, 3)):
        true = joint(X, a, b)
        product = np.outer(true.sum(axis=1), true.sum(axis=0))
        assert np.abs(joint(Z, a, b) - true).sum() < 0.6 * np.abs(product - true).sum()


def test_few_columns_use_triples_and_quadruples():
    """Exclusive flags: a mixture that matches pairs alone would get triples wrong."""
    generator = np.random.default_rng(3)
    X = np.eye(6, dtype=np.uint8)[generator.integers(0, 6, 20_000)]
    Z = covey.PrivateSynthesizer(8.0, 1e-9, seed=3).fit(X).sample(20_000)
    assert covey.marginal_error(X, Z, 3) < 0.004


@quiet
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("kind", ["bits", "wide", "categories"])
@pytest.mark.usefixtures("few_steps")
def test_the_ledger_adds_up_exactly(delta, kind):
    if kind == "categories":
        X, sizes = survey(800)
        synth = covey.PrivateSynthesizer(0.7, delta, domain=sizes, seed=5).fit(X)
    else:
        X = PATIENTS[:800, :6] if kind == "bits" else PATIENTS[:800]
        synth = covey.PrivateSynthesizer(0.7, delta, composition="gaussian", seed=5).fit(X)
    unused = sum(charge.amount for charge in synth.privacy.unused)  # where no score is worth measuring
    assert synth.privacy.spent + unused == synth.privacy.budget.amount
    assert {charge.purpose for charge in synth.privacy.unused} <= {"scores"}
    assert all(isinstance(charge.amount, Fraction) and charge.amount > 0 for charge in synth.privacy.charges)
    assert {charge.unit for charge in synth.privacy.charges} == {"ε" if delta == 0 else "ρ"}


def test_declared_limits_are_enforced_and_shrink_the_noise():
    generator = np.random.default_rng(8)
    X = np.zeros((3000, 40), dtype=np.uint8)
    X[np.arange(3000), generator.integers(0, 40, 3000)] = 1
    limits = [(list(range(40)), 2)]
    coding = declared_coding(40, limits)
    assert coding.radius_squared / UNIT**2 < 2.0 < 40 / 4
    free = covey.PrivateSynthesizer(1.0, 1e-6, seed=9).fit(X)
    bound = covey.PrivateSynthesizer(1.0, 1e-6, at_most=limits, seed=9).fit(X)
    Z = bound.sample(3000)
    assert Z.sum(axis=1).max() <= 2
    assert covey.marginal_error(X, Z, 2) < covey.marginal_error(X, free.sample(3000), 2) * 1.2
    breaking = np.ones((50, 40), dtype=np.uint8)  # every record breaks the limit: trimmed, never an error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoveyWarning)
        assert covey.PrivateSynthesizer(1.0, at_most=limits, seed=9).fit(breaking).sample(20).sum(axis=1).max() <= 2


@quiet
@pytest.mark.usefixtures("few_steps")
def test_the_certificate_covers_end_to_end():
    """Forty runs from a small table to rows: misses are rare, though fits are cut short, which a certificate does not mind."""
    X = PATIENTS[:400, :8]
    misses = misplaced = 0
    for seed in range(40):
        synth = covey.PrivateSynthesizer(1.0, seed=seed).fit(X)
        Z = synth.sample(400)
        misses += any(covey.marginal_error(X, Z, d) > synth.certificate.bound[d] for d in (1, 2, 3, 4))
        misplaced += misplaced_bits(moments(X), synth.centres) > synth.certificate.misplaced.bound
    assert misses <= 5  # 5% of 40 is 2; six or more would have probability below 2%
    assert misplaced <= 5


@quiet
@pytest.mark.parametrize("delta", [0.0, 1e-9])
@pytest.mark.parametrize(
    "table",
    [
        *(np.zeros(shape, dtype=bool) for shape in ((1, 1), (2, 3), (30, 60))),
        *(np.ones(shape, dtype=bool) for shape in ((1, 5), (300, 4), (300, 30))),
        np.eye(7, dtype=bool),
        np.tile([[True, False]], (500, 1)),
    ],
    ids=lambda t: f"{t.shape}-{int(t.sum())}",
)
@pytest.mark.parametrize("epsilon", [1e-12, 0.1, 10.0])
def test_degenerate_tables_give_finite_valid_answers(table, delta, epsilon):
    synth = covey.PrivateSynthesizer(epsilon, delta, seed=11).fit(table)
    Z = synth.sample(20)
    assert Z.shape == (20, table.shape[1])
    assert np.isfinite(synth.centres.points).all()
    assert ((synth.centres.points >= 0) & (synth.centres.points <= 1)).all()
    assert 0 < synth.certificate.bound[1] <= 1


@quiet
@pytest.mark.parametrize("delta", [0.0, 1e-9])
@pytest.mark.parametrize("sizes", [(1,), (7,), (1, 1), (2, 2), (3, 1, 40), (200, 300)])
@pytest.mark.parametrize("n", [1, 3, 200])
def test_degenerate_categories_give_valid_answers(sizes, delta, n):
    X = np.zeros((n, len(sizes)), dtype=np.int64)
    for epsilon in (1e-12, 1.0):
        synth = covey.PrivateSynthesizer(epsilon, delta, domain=sizes, ordinal=[0], seed=12).fit(X)
        Z = synth.sample(15)
        assert (np.array(sizes) > Z).all()
        assert np.isfinite(synth.centres.points).all()


@quiet
def test_tiny_epsilon_is_no_worse_than_a_sane_guess():
    errors = []
    for seed in range(4):
        Z = covey.PrivateSynthesizer(1e-6, seed=seed).fit(PATIENTS[:300]).sample(300)
        errors.append(covey.marginal_error(PATIENTS[:300], Z, 1))
    half = np.sqrt(np.mean((PATIENTS[:300].mean(axis=0) - 0.5) ** 2))
    assert np.mean(errors) < 1.1 * half
    X, sizes = survey(300)
    codes = covey.PrivateSynthesizer(1e-6, domain=sizes, seed=1).fit(X).sample(3000)
    assert np.abs(np.bincount(codes[:, 1], minlength=3) / 3000 - 1 / 3).max() < 0.05


@pytest.mark.parametrize("table", [[[0, 3]], [[-1, 0]], [[0.5, 0]], [[0, 0, 0]]])
def test_codes_outside_the_domain_and_columns_beyond_the_last_are_refused(table):
    with pytest.raises(InputError, match=r"X (has|must)"):
        covey.PrivateSynthesizer(1.0, domain=[2, 3]).fit(np.array(table))
    with pytest.raises(ParameterError, match="at_most"):
        covey.PrivateSynthesizer(1.0, at_most=[([0, 1, 99], 1)]).fit(PATIENTS)


def test_plans_never_see_a_record():
    plan = plan_bits(20_000, 100, a_budget(1))
    assert plan.mechanism == "matrix"
    assert sum(plan.shares.values()) == 1
    for n, p, amount, pure in ((100, 16, 0.01, False), (10**6, 50, 0.5, False), (50, 50, 1, True), (9, 1, 1, True)):
        assert sum(plan_bits(n, p, a_budget(Fraction(amount), pure)).shares.values()) == 1
    few, many = (plan_bits(n, 16, a_budget(Fraction(1, 60), False)).mechanism for n in (2_000, 20_000))
    assert (few, many) == ("ball", "parities")  # relations of three columns pay once there are rows enough
    assert 0.1 <= histogram_share(10_000, Domain((9, 30), (False, True)), a_budget(Fraction(1, 50), False)) <= 0.8


def test_a_radius_is_not_taken_for_wide_because_noise_says_so():
    """The program that took the first radius with few rows outside clipped all rows of one release in a hundred to nothing."""
    assert wide_enough(np.array([0.9, 0.5, 0.19, 0.1, 0.0]), 0.2) == 2
    assert wide_enough(np.array([0.07, 0.2, 0.35, 0.8, 0.9, 0.47, 0.21]), 0.2) == 7
    assert wide_enough(np.array([0.07, 0.2, 0.35, 0.8, 0.9, 0.17, 0.1]), 0.2) == 5
    assert wide_enough(np.zeros(3), 0.2) == 0


@pytest.mark.parametrize("sizes", [(2,) * 20, (2, 3, 5), (9, 9, 9, 9), (7,)])
@pytest.mark.parametrize("delta", [0, Fraction(1, 10**9)])
def test_plan_and_release_expect_noise_by_one_rule(sizes, delta):
    """Over ε from hopeless to ample both say it, or neither does; and each of them changes its mind once."""
    said, domain = [], None if set(sizes) == {2} else sizes
    for epsilon in (Fraction(1, 10**12), Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(4), Fraction(1000)):
        planned = any("mostly noise" in words for words in predict(sizes, 400, make_budget(epsilon, delta)).warnings)
        advice = covey.PrivateSynthesizer(epsilon, delta, domain=domain, seed=1)._advice(400, sizes)
        assert planned == ("mostly noise" in advice), epsilon
        said.append(planned)
    assert said == sorted(said, reverse=True)
    assert (said[0], said[-1]) == (True, False)


@pytest.mark.parametrize(
    ("epsilon", "delta", "p", "words"),
    [
        (1, 0, 40, ", a positive delta or"),
        (1, Fraction(1, 10**9), 40, ", no delta (0.69 of its noise on the means) or"),
        (1, Fraction(1, 10**9), 300, "epsilon or fewer"),  # cube noise of so many columns is the larger one
    ],
)
def test_advice_says_whether_delta_helps(epsilon, delta, p, words):
    """n = 60: means alone. A Gaussian on 40 of them has deviation √(40/2ρ), the cube √(41·42/3)/ε."""
    (said,) = predict((2,) * p, 60, make_budget(epsilon, delta)).warnings
    assert words in said
    rho = float(make_budget(1, 1e-9).amount)
    assert np.sqrt(41 * 42 / 3) / np.sqrt(40 / (2 * rho)) == pytest.approx(0.69, abs=0.005)


N, P = 400, 40


def bits(n=N, p=P):
    return (np.random.default_rng(0).random((n, p)) < 0.3).astype(np.uint8)


@pytest.mark.parametrize("rows", [1, 7, P])
def test_matrix_noise_does_not_depend_on_the_strips(rows, monkeypatch):
    whole = asked(measure_matrix, ArrayRows(bits()), a_gate("moments", amount=3)).dense
    monkeypatch.setattr(arrays, "STRIP", rows * P)
    parts = asked(measure_matrix, ArrayRows(sp.csr_array(bits())), a_gate("moments", amount=3)).dense
    assert (parts.pair == whole.pair).all()
    assert (parts.mean == whole.mean).all()


class Counting:
    """Noise 1, 2, 3, …: it shows which sum got which draw."""

    def __init__(self):
        self.drawn = 0

    def gaussian(self, variance, size):
        count = int(np.prod(size))
        self.drawn += count
        return np.arange(self.drawn - count, self.drawn).reshape(size) + 1


@pytest.mark.parametrize("rows", [1, 7, P])
@pytest.mark.parametrize("clips", [False, True])
def test_every_pair_gets_a_draw_of_its_own(rows, clips, monkeypatch):
    monkeypatch.setattr(arrays, "STRIP", rows * P)
    declared = Coding(np.full(P, 300), 6 * UNIT**2, clips=True) if clips else Coding.half(P)
    plan = plan_bits(N, P, a_budget(5, pure=False), declared)
    gate = a_gate("moments", amount=5, pure=False, source=Counting())
    got = asked(measure_ball, ArrayRows(bits()), gate, plan).dense
    u = declared.encode(bits())
    noise = got.pair * N * UNIT**2 - u.T @ u
    upper = np.triu_indices(P, 1)
    assert noise[upper] == pytest.approx(P + 1 + np.arange(len(upper[0])), abs=1e-3)
    assert (got.pair == got.pair.T).all()
    assert (np.diag(got.pair) == 0).all()
    assert got.mean * N * UNIT - u.sum(axis=0) == pytest.approx(1 + np.arange(P), abs=1e-6)


def test_leading_directions_come_from_either_side():
    y = np.random.default_rng(2).standard_normal((30, 12)) * np.geomspace(3, 1, 12)
    w, v = leading_directions(y, 4)
    for tall, longer in ((y, np.vstack([y, np.zeros((60, 12))]) * np.sqrt(3)), (y.T.copy(), None)):
        values, vectors = leading_directions(tall, 4)
        k = len(tall)
        assert tall.T @ (tall @ vectors) / k == pytest.approx(vectors * values, abs=1e-9)
        assert vectors.T @ vectors == pytest.approx(np.eye(4), abs=1e-9)
        if longer is not None:
            assert leading_directions(longer, 4)[0] == pytest.approx(w)
    assert v.shape == (12, 4)


def test_the_estimate_of_memory_is_near_the_truth(monkeypatch):
    # Few steps and few rows: matrices of pairs are what is measured here, and they are the same in a full run.
    monkeypatch.setattr(wide, "SWEEPS", 1)
    monkeypatch.setattr(wide, "BASIS", 20)
    monkeypatch.setattr(devices, "descend_on", lambda xp, objective, x, steps: x)
    p, n = 1600, 300
    rows = ArrayRows((np.random.default_rng(3).random((n, p)) < 0.05).astype(np.uint8))
    tracemalloc.start()
    try:
        fit_bits(rows, make_budget(100.0, 1e-9), Streams.from_seed(1))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= flag_matrices(p) <= 3 * peak
