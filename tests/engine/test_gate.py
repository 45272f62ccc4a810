"""The gate: exact values stay sealed, scales follow from charge and sensitivity, and the book is what was done."""

import ast
import copy
import pickle
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import covey
from audits.gates import a_budget, a_gate
from covey.engine.budget import make_budget
from covey.engine.entropy import Streams
from covey.engine.gate import Exact, Gate
from covey.engine.noise.directions import private_directions
from covey.engine.noise.law import BINGHAM, CUBE, MATRIX, SIGNS, independent_noise
from covey.engine.sensitivity import Sensitivity
from covey.errors import InternalError

SOURCE = Path(covey.__file__).parent
SECRET = Exact(np.arange(5))
WHOLE = Fraction(1)

LOOKS = {
    "bool": bool,
    "int": int,
    "float": float,
    "len": len,
    "list": list,
    "hash": hash,
    "array": np.asarray,
    "sum": np.sum,
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "format": "{:d}".format,
    "==": lambda e: e == 3,
    "!=": lambda e: e != Exact(3),
    "<": lambda e: e < 3,
    "+": lambda e: e + 1,
    "1 +": lambda e: 1 + e,
    "numpy +": lambda e: np.int64(1) + e,
    "[0]": lambda e: e[0],
    "in": lambda e: 3 in e,
    "if": lambda e: 1 if e else 2,
    "@": lambda e: e @ np.ones(5),
    "max": lambda e: max(e, e),
}


@pytest.mark.parametrize("name", LOOKS)
def test_an_exact_value_cannot_be_looked_at(name):
    with pytest.raises(TypeError):
        LOOKS[name](SECRET)


def test_an_exact_value_shows_nothing_of_itself():
    assert repr(SECRET) == str(SECRET) == "Exact(…)" == repr(Exact(7))
    assert not hasattr(SECRET, "__dict__")
    words = (
        r"^an exact value of real records cannot be shown, compared, converted or stored\. Measure it at the gate\.$"
    )
    with pytest.raises(TypeError, match=words):
        bool(SECRET)


def test_what_is_computed_from_exact_values_is_sealed_as_well():
    doubled = SECRET.map(lambda v, a, *, b: v * a + b, 2, b=7)
    together = Exact.of(lambda a, b: a + b, SECRET, doubled)
    assert isinstance(together, Exact)
    gate = a_gate("x", amount=10**9)  # noise of scale 1e-9: nothing is added
    assert gate.measure("x", together, 5, Sensitivity(l1=1)).values.tolist() == [7, 10, 13, 16, 19]


def inside(path):
    """Places where a file touches the inside of an exact value, or makes a gate that could."""
    text = path.read_text(encoding="utf-8")
    if not re.search(r"_sealed|\bclass .*(Exact|Gate)", text):
        return []
    tree = ast.parse(text)
    named = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "_sealed"]
    spelt = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value == "_sealed"]
    derived = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base).split(".")[-1].split("[")[0] in ("Exact", "Gate") for base in node.bases)
    ]
    return named + spelt + derived


def test_only_the_gate_touches_the_inside_of_an_exact_value(tmp_path):
    touching = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if inside(path)}
    assert touching == {"engine/exact.py", "engine/gate.py"}  # where it is sealed, and where it is opened
    for wrong in ("x = found._sealed", "x = getattr(found, '_sealed')", "class Open(Gate):\n    pass"):
        file = tmp_path / "wrong.py"
        file.write_text(wrong)
        assert inside(file)


@pytest.mark.parametrize("k", [1, 5])
def test_scales_follow_from_the_sensitivity_and_the_charge(k):
    pure, zcdp = a_budget(2, rows_per_person=k), a_budget(2, pure=False, rows_per_person=k)
    assert pure.laplace_scale(6) == 3 * k
    assert zcdp.variance(6) == Fraction(6 * k * k, 4)
    with pytest.raises(InternalError):
        pure.variance(1)
    with pytest.raises(InternalError):
        zcdp.laplace_scale(1)
    with pytest.raises(InternalError):
        pure.laplace_scale(None)


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("law", ["laplace", "gaussian", "cube", "knorm", "matrix", "signs", "bingham"])
def test_every_law_pays_for_all_rows_of_a_person(law, k):
    gate = a_gate("x", amount=8, pure=law != "gaussian", rows_per_person=k)
    counts = Exact(np.zeros(3, dtype=np.int64))
    if law in ("laplace", "gaussian"):
        gate.measure("x", counts, 3, Sensitivity(l1=2, l2_squared=2))
    elif law == "cube":
        gate.cube("x", counts, Sensitivity(linf=2), 3)
    elif law == "knorm":
        gate.knorm("x", [counts, counts], [3, 3], Sensitivity(table=2))
    elif law in ("matrix", "signs"):
        gate.matrix("x", Sensitivity(trace=2), [WHOLE] * 3, signs=law == "signs")
    else:
        gate.directions("x", Exact(np.eye(3)), Sensitivity(directions=2), 1)
    line = gate.book[0]
    assert (line.law.name, line.amount) == (law, 8)
    assert line.scale == (Fraction(2 * k * k, 16) if law == "gaussian" else Fraction(2 * k, 8))


@pytest.mark.parametrize("law", ["laplace", "gaussian", "cube", "knorm", "matrix", "signs"])
def test_sums_in_steps_are_noised_in_steps_and_told_in_ones(law):
    """A record weighs 1,000 here: scales are 1,000 times as large (variances a million times); what leaves is divided again."""
    plain = a_gate("x", "own", amount=8, pure=law != "gaussian")
    fine = Gate(plain.budget, dict.fromkeys(("x", "own"), Fraction(1, 2)), Streams.from_seed(1), steps=1000)
    ones, steps = Exact(np.full((3, 3), 10**6)), Exact(np.full((3, 3), 10**9))
    told = []
    for gate, exact in ((plain, ones), (fine, steps)):
        if law == "cube":
            told.append(gate.cube("x", exact.map(np.ravel), Sensitivity(linf=2), 9))
        elif law == "knorm":
            told += gate.knorm("x", [exact.map(np.ravel)], [9], Sensitivity(table=2))
        elif law in ("matrix", "signs"):
            joint = gate.matrix("x", Sensitivity(trace=2), [WHOLE] * 3, signs=law == "signs")
            told.append(joint.add(exact, slice(None), slice(None)))
        else:
            told.append(gate.measure("x", exact, (3, 3), Sensitivity(l1=2, l2_squared=2)))
        gate.measure("own", exact, (3, 3), Sensitivity(l1=2, l2_squared=2, summed=False))
    assert fine.book[0].scale == plain.book[0].scale * (10**6 if law == "gaussian" else 1000)
    assert fine.book[1].scale == plain.book[1].scale  # not a sum over records: it has steps of its own
    assert told[1].sd == pytest.approx(told[0].sd, rel=0.01)
    assert np.abs(told[1].values - 10**6).max() < 100 * told[1].sd
    assert (fine.spent, fine.unused) == (plain.spent, plain.unused)


@pytest.mark.parametrize("pure", [True, False])
def test_the_stated_standard_deviation_is_that_of_the_noise(pure):
    gate = a_gate("x", amount=Fraction(1, 50), pure=pure)
    joint = gate.joint("x", Sensitivity(l1=3, l2_squared=3))
    zero = Exact(np.zeros(40_000, dtype=np.int64))
    for weight in (1, Fraction(4)):
        found = joint.add(zero, 40_000, weight)
        assert found.values.std() == pytest.approx(found.sd, rel=0.03)
        assert found.values.std() != pytest.approx(found.sd * 1.5, rel=0.1)


def test_the_stated_standard_deviation_of_k_norm_noise_is_that_of_each_coordinate_and_sums_stay():
    exact = [Exact(np.array([5, 7, 8])), Exact(np.array([12, 8]))]
    drawn = []
    for i in range(600):
        found = a_gate("x", amount=Fraction(1, 3), streams=Streams.from_seed(i)).knorm(
            "x", exact, [3, 2], Sensitivity(table=1)
        )
        assert [m.values.sum() for m in found] == pytest.approx([20, 20])
        drawn.append([m.values[0] for m in found])
    sd = [m.sd for m in found]
    assert sd[1] == pytest.approx(3 * np.sqrt(4 * 5 / 3 * 2))
    of_entries = np.array(sd) * np.sqrt([2 / 3, 1 / 2])
    assert np.std(drawn, axis=0) == pytest.approx(of_entries, rel=0.12)
    assert np.std(drawn, axis=0) != pytest.approx(1.3 * of_entries, rel=0.15)
    assert np.mean(drawn, axis=0) == pytest.approx([5, 12], abs=1.5)


def test_k_norm_noise_is_refused_where_sums_are_secret_and_their_move_is_not_proved():
    secret = replace(a_budget(1), neighbours="add-or-remove-one")
    gate = Gate(secret, {"x": WHOLE}, Streams.from_seed(1))
    with pytest.raises(InternalError):
        gate.knorm("x", [Exact(np.array([5, 7]))], [2], replace(Sensitivity.histograms(1), table=1))
    assert not gate.book


def test_the_stated_standard_deviation_of_the_cube_is_that_of_its_noise():
    zero = Exact(np.zeros(4, dtype=np.int64))
    cube = np.array(
        [a_gate("x", streams=Streams.from_seed(i)).cube("x", zero, Sensitivity(linf=1), 4).values for i in range(1500)]
    )
    sd = a_gate("x").cube("x", zero, Sensitivity(linf=1), 4).sd
    assert sd == pytest.approx(np.sqrt(5 * 6 / 3))
    assert cube.std() == pytest.approx(sd, rel=0.06)
    assert cube.std() != pytest.approx(sd * 1.2, rel=0.1)


def test_the_book_holds_what_was_done_and_what_was_not_used_is_stated():
    gate = Gate(make_budget(1.0), {"a": Fraction(1, 2), "b": Fraction(1, 4), "c": Fraction(1, 4)}, Streams.from_seed(1))
    zero = Exact(np.zeros(2, dtype=np.int64))
    gate.measure("a", zero, 2, Sensitivity(l1=1), Fraction(1, 3))
    gate.measure("a", zero, 2, Sensitivity(l1=1), Fraction(2, 3))
    gate.measure("b", zero, 2, Sensitivity(l1=1), Fraction(1, 2))
    assert {charge.purpose: charge.amount for charge in gate.spent} == {"a": Fraction(1, 2), "b": Fraction(1, 8)}
    assert {charge.purpose: charge.amount for charge in gate.unused} == {"b": Fraction(1, 8), "c": Fraction(1, 4)}


def test_purposes_have_streams_of_their_own():
    draws = []
    for purpose in ("a", "b", "a"):
        gate = a_gate(purpose, amount=Fraction(1, 1000), streams=Streams.from_seed(3))
        draws.append(gate.measure(purpose, Exact(np.zeros(20, dtype=np.int64)), 20, Sensitivity(l1=1)).values.tolist())
    assert draws[0] == draws[2] != draws[1]
    joint, zero = (
        a_gate("a", amount=Fraction(1, 1000)).joint("a", Sensitivity(l1=1)),
        Exact(np.zeros(20, dtype=np.int64)),
    )
    assert joint.add(zero, 20).values.tolist() != joint.add(zero, 20).values.tolist()  # a second draw is new


def charges(found):
    return [(charge.purpose, charge.amount, charge.unit) for charge in found]


@pytest.mark.parametrize(
    ("shares", "fits"),
    [
        ({"a": Fraction(1, 3), "b": Fraction(2, 3)}, True),
        ({"a": Fraction(0)}, True),
        ({}, True),
        ({"a": Fraction(1, 3), "b": Fraction(2, 3) + Fraction(1, 10**9)}, False),
        ({"a": Fraction(3, 2), "b": Fraction(-1)}, False),
        ({"a": Fraction(-1, 2)}, False),
    ],
)
def test_plans_are_not_negative_and_sum_to_the_budget_at_most(shares, fits):
    if fits:
        Gate(make_budget(1.0), shares, Streams.from_seed(1))
        return
    with pytest.raises(InternalError) as said:
        Gate(make_budget(1.0), shares, Streams.from_seed(1))
    assert str(said.value).endswith("planned charges are not negative and sum to the budget at most.")


@pytest.mark.parametrize("pure", [True, False])
def test_a_plan_is_kept_in_the_unit_of_its_budget(pure):
    budget = a_budget(6, pure=pure)
    gate = Gate(budget, {"a": Fraction(1, 3), "b": Fraction(0)}, Streams.from_seed(1))
    assert charges(gate.planned.values()) == [("a", 2, budget.unit), ("b", 0, budget.unit)]
    assert (gate.allowance("a").amount, gate.allowance("a", Fraction(1, 4)).amount) == (2, Fraction(1, 2))
    found = gate.measure("a", Exact(np.zeros(2, dtype=np.int64)), 2, Sensitivity(l1=1, l2_squared=1), Fraction(1, 4))
    assert charges([found.charge]) == charges(gate.spent) == [("a", Fraction(1, 2), budget.unit)]
    assert charges(gate.unused) == [("a", Fraction(3, 2), budget.unit)]
    assert found.law is gate.book[0].law is independent_noise(pure)
    assert gate.book[0].purpose == "a"


def test_what_is_refused_is_named():
    gate, zero = a_gate("a"), Exact(np.zeros(2, dtype=np.int64))
    with pytest.raises(InternalError, match=r"a measurement names the charge 'b', which was not planned\.$"):
        gate.measure("b", zero, 2, Sensitivity(l1=1))
    gate.measure("a", zero, 2, Sensitivity(l1=1), Fraction(3, 4))
    for share in (Fraction(1, 2), Fraction(1, 4) + Fraction(1, 10**6), Fraction(0)):
        with pytest.raises(InternalError, match=r"the charge 'a' is spent: nothing is released\.$"):
            gate.measure("a", zero, 2, Sensitivity(l1=1), share)
    assert len(gate.book) == 1
    with pytest.raises(
        InternalError, match=r"a statistic has another shape than was declared: shapes must follow from public sizes\.$"
    ):
        a_gate("a").measure("a", zero, 3, Sensitivity(l1=1))


@pytest.mark.parametrize("pure", [True, False])
def test_a_weight_divides_the_scale(pure):
    gate = a_gate("a", amount=Fraction(1, 10**6), pure=pure)
    joint, zero = gate.joint("a", Sensitivity(l1=3, l2_squared=3)), Exact(np.zeros(2, dtype=np.int64))
    assert joint.add(zero, 2).sd == pytest.approx(joint.add(zero, 2, 4).sd * (4 if pure else 2))
    scale = float(gate.book[0].scale)
    assert joint.add(zero, 2).sd == pytest.approx(np.sqrt(2) * scale if pure else np.sqrt(scale))


def test_the_cube_gives_counts_back_on_their_own_grid():
    counts = Exact(np.array([5, 0, 12]))
    found = a_gate("a", amount=10**9).cube("a", counts, Sensitivity(linf=1), 3)
    assert found.values == pytest.approx([5, 0, 12], abs=1e-6)
    gate = a_gate("a", amount=Fraction(1, 100))
    found = gate.cube("a", counts, Sensitivity(linf=1), 3)
    assert (found.law, found.sd) == (CUBE, pytest.approx(100 * np.sqrt(4 * 5 / 3)))
    assert charges([found.charge]) == [("a", Fraction(1, 100), gate.budget.unit)]
    # Where the scale is large enough the grid is that of the counts: whole numbers come back.
    assert (found.values == np.rint(found.values)).all()
    fine = a_gate("a", amount=2).cube("a", counts, Sensitivity(linf=1), 3)
    assert not (fine.values == np.rint(fine.values)).all()
    assert (fine.values * 12 == np.rint(fine.values * 12)).all()  # 2·3 / (1/2) steps to a count


def test_blocks_of_a_matrix_carry_one_law():
    gate = a_gate("a", amount=Fraction(1, 50))
    joint = gate.matrix("a", Sensitivity(trace=2), [WHOLE] * 3)
    zero = Exact(np.zeros((2, 3), dtype=np.int64))
    found = joint.add(zero, slice(0, 2), slice(0, 3))
    again = joint.add(zero, slice(0, 2), slice(0, 3))
    assert (found.values == again.values).all()  # one matrix: its blocks are the same whenever they are asked for
    assert (found.values[:, :2] == found.values[:, :2].T).all()
    assert (found.law, found.sd) == (MATRIX, pytest.approx(100 * np.sqrt(2)))
    assert charges([found.charge]) == charges(gate.spent) == [("a", Fraction(1, 50), gate.budget.unit)]
    exact = a_gate("a", amount=10**9).matrix("a", Sensitivity(trace=2), [WHOLE] * 3)
    values = exact.add(Exact(np.arange(6).reshape(2, 3)), slice(0, 2), slice(0, 3)).values
    assert values.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_noise_of_signs_says_its_law_and_both_its_deviations():
    gate = a_gate("a", amount=Fraction(1, 50))
    joint = gate.matrix("a", Sensitivity(trace=2), [WHOLE] * 3, signs=True)
    pair = joint.add(Exact(np.zeros((1, 1), dtype=np.int64)), slice(0, 1), slice(1, 2))
    total = joint.add(Exact(np.zeros((1, 2), dtype=np.int64)), slice(2, 3), slice(0, 2))
    assert (pair.law, pair.sd) == (SIGNS, pytest.approx(100 * np.sqrt(6 * 8 / 32)))
    assert (total.law, total.sd) == (SIGNS, pytest.approx(100 * np.sqrt(6 / 4)))
    assert charges([pair.charge]) == charges(gate.spent) == [("a", Fraction(1, 50), gate.budget.unit)]


def test_directions_are_drawn_at_the_scale_that_was_paid_for():
    second = np.diag([3.0, 2.0, 1.0, 0.0])
    gate = a_gate("a", amount=4, streams=Streams.from_seed(5))
    found = gate.directions("a", Exact(second), Sensitivity(directions=2), 2)
    assert gate.book[0].scale == Fraction(1, 2)
    assert (found.law, np.isnan(found.sd), found.values.shape) == (BINGHAM, True, (4, 2))
    assert charges([found.charge]) == charges(gate.spent) == [("a", 4, gate.budget.unit)]
    for factor, same in ((2.0, True), (4.0, False)):  # one over the scale, and twice as much
        drawn = private_directions(second * factor, 2, Streams.from_seed(5).noise("a"))
        assert np.array_equal(found.values, drawn) == same


def test_choices_are_charged_round_by_round_and_leave_each_candidate_once():
    for pure in (True, False):
        gate = a_gate("choosing", amount=Fraction(1, 2), pure=pure)
        assert sorted(gate.choose("choosing", Exact(np.arange(3)), 3, 3, Sensitivity(score=2))) == [0, 1, 2]
        assert [line.amount for line in gate.book] == [Fraction(1, 6)] * 3
        with pytest.raises(InternalError, match="spent"):
            gate.choose("choosing", Exact(np.arange(3)), 3, 3, Sensitivity(score=2))
    with pytest.raises(InternalError, match="declared"):
        a_gate("choosing").choose("choosing", Exact(np.arange(3)), 4, 1, Sensitivity(score=2))
