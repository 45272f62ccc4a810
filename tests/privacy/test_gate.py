"""The gate: exact values stay sealed, scales follow from charge and sensitivity, and the book is what was done."""

import ast
import copy
import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import covey
from audits.gates import a_budget, a_gate
from covey.entropy import Streams
from covey.errors import InternalError
from covey.privacy.budget import make_budget
from covey.privacy.gate import Exact, Gate, Moves

SOURCE = Path(covey.__file__).parent
SECRET = Exact(np.arange(5))
WHOLE = Fraction(1)

# Sealed.


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


def test_what_is_computed_from_exact_values_is_sealed_as_well():
    doubled = SECRET.map(lambda v: 2 * v)
    together = Exact.of(lambda a, b: a + b, SECRET, doubled)
    assert isinstance(together, Exact)
    gate = a_gate("x", amount=10**9)  # noise of scale 1e-9: nothing is added
    assert gate.measure("x", together, 5, Moves(l1=1)).values.tolist() == [0, 3, 6, 9, 12]


def inside(path):
    """Places where a file touches the inside of an exact value, or makes a gate that could."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
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
    assert touching == {"privacy/gate.py"}
    for wrong in ("x = found._sealed", "x = getattr(found, '_sealed')", "class Open(Gate):\n    pass"):
        file = tmp_path / "wrong.py"
        file.write_text(wrong)
        assert inside(file)


def smuggled(path):
    """Functions given to `map` or `of` that keep what they see: they call a method of, or assign to, something outside."""
    found = []
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not (
            isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("map", "of")
        ):
            continue
        for given in call.args:
            if isinstance(given, ast.Attribute) and given.attr in ("append", "add", "extend", "update", "setdefault"):
                found.append(given.lineno)
            if isinstance(given, ast.Lambda):
                found += [node.lineno for node in ast.walk(given) if isinstance(node, ast.NamedExpr)]
    return found


def test_no_function_that_is_mapped_keeps_what_it_sees(tmp_path):
    for path in (SOURCE / "methods").rglob("*.py"):
        assert not smuggled(path), path
    file = tmp_path / "wrong.py"
    file.write_text("seen = []\nexact.map(seen.append)")
    assert smuggled(file)


# Scales: in one place, for every law, with rows per person multiplied in.


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
@pytest.mark.parametrize("law", ["laplace", "gaussian", "cube", "matrix", "bingham"])
def test_every_law_pays_for_all_rows_of_a_person(law, k):
    gate = a_gate("x", amount=8, pure=law != "gaussian", rows_per_person=k)
    counts = Exact(np.zeros(3, dtype=np.int64))
    if law in ("laplace", "gaussian"):
        gate.measure("x", counts, 3, Moves(l1=2, l2_squared=2))
    elif law == "cube":
        gate.cube("x", counts, Moves(linf=2), 3)
    elif law == "matrix":
        gate.matrix("x", Moves(trace=2), [WHOLE] * 3)
    else:
        gate.directions("x", Exact(np.eye(3)), Moves(directions=2), 1)
    line = gate.book[0]
    assert (line.law, line.amount) == (law, 8)
    assert line.scale == (Fraction(2 * k * k, 16) if law == "gaussian" else Fraction(2 * k, 8))


@pytest.mark.parametrize("pure", [True, False])
def test_the_stated_standard_deviation_is_that_of_the_noise(pure):
    gate = a_gate("x", amount=Fraction(1, 50), pure=pure)
    joint = gate.joint("x", Moves(l1=3, l2_squared=3))
    zero = Exact(np.zeros(40_000, dtype=np.int64))
    for weight in (1, Fraction(4)):
        found = joint.add(zero, 40_000, weight)
        assert found.values.std() == pytest.approx(found.sd, rel=0.03)
        assert found.values.std() != pytest.approx(found.sd * 1.5, rel=0.1)
    cube = np.array(
        [
            a_gate("x", streams=Streams.from_seed(i)).cube("x", zero.map(lambda z: z[:4]), Moves(linf=1), 4).values
            for i in range(3000)
        ]
    )
    assert cube.std() == pytest.approx(np.sqrt(5 * 6 / 3), rel=0.05)


# The book.


def test_the_book_holds_what_was_done_and_what_was_not_used_is_stated():
    gate = Gate(make_budget(1.0), {"a": Fraction(1, 2), "b": Fraction(1, 4), "c": Fraction(1, 4)}, Streams.from_seed(1))
    zero = Exact(np.zeros(2, dtype=np.int64))
    gate.measure("a", zero, 2, Moves(l1=1), Fraction(1, 3))
    gate.measure("a", zero, 2, Moves(l1=1), Fraction(2, 3))
    gate.measure("b", zero, 2, Moves(l1=1), Fraction(1, 2))
    assert {charge.purpose: charge.amount for charge in gate.spent} == {"a": Fraction(1, 2), "b": Fraction(1, 8)}
    assert {charge.purpose: charge.amount for charge in gate.unused} == {"b": Fraction(1, 8), "c": Fraction(1, 4)}


def test_a_charge_cannot_be_spent_twice_and_must_be_planned():
    gate = a_gate("a")
    zero = Exact(np.zeros(2, dtype=np.int64))
    gate.measure("a", zero, 2, Moves(l1=1), Fraction(3, 4))
    for purpose, share in (("a", Fraction(1, 2)), ("a", Fraction(0)), ("b", WHOLE)):
        with pytest.raises(InternalError):
            gate.measure(purpose, zero, 2, Moves(l1=1), share)
    assert len(gate.book) == 1
    with pytest.raises(InternalError):
        Gate(make_budget(1.0), {"a": Fraction(2, 3), "b": Fraction(1, 2)}, Streams.from_seed(1))


def test_shapes_are_declared_and_never_follow_the_data():
    with pytest.raises(InternalError, match="shape"):
        a_gate("a").measure("a", Exact(np.zeros(3, dtype=np.int64)), 2, Moves(l1=1))


@pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_release_says_what_its_gate_wrote_down(delta):
    """With one centre's worth of structure no scores are worth measuring: their charge is stated as unused."""
    X = (np.random.default_rng(0).random((2000, 30)) < 0.5).astype(np.uint8)
    synth = covey.PrivateSynthesizer(20.0, delta, seed=1).fit(X)
    left = {charge.purpose: charge.amount for charge in synth.privacy.unused}
    assert set(left) == {"scores"}
    assert synth.privacy.spent + left["scores"] == synth.privacy.budget.amount


def test_purposes_have_streams_of_their_own():
    draws = []
    for purpose in ("a", "b", "a"):
        gate = a_gate(purpose, amount=Fraction(1, 1000), streams=Streams.from_seed(3))
        draws.append(gate.measure(purpose, Exact(np.zeros(20, dtype=np.int64)), 20, Moves(l1=1)).values.tolist())
    assert draws[0] == draws[2] != draws[1]
