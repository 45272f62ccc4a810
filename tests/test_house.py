"""The house keeps its shape: reasons beside numbers, and functions and files that can be seen at once."""

import ast
import importlib
import io
import re
import tokenize
from pathlib import Path

import pytest

import covey
from trust.mutants import TESTS as MUTANTS

SOURCE = Path(covey.__file__).parent
TESTS = Path(__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
LINES = 600
PARAMETERS = 6


def comments(text):
    """Lines that carry a comment of at least three words; remarks to tools are none."""
    found = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        words = token.string.lstrip("#").split()
        if token.type == tokenize.COMMENT and len(words) >= 3 and words[0].rstrip(":") not in ("noqa", "type"):
            found.add(token.start[0])
    return found


def decides(node):
    """Whether an assigned value is a number or an expression of numbers: other constants are words that say what they are."""
    numeric = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Tuple, ast.Load, ast.Name, ast.Call)
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    numbers = [
        part for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, int | float)
    ]
    return (
        bool(numbers)
        and all(isinstance(part, numeric) for part in ast.walk(node))
        and all(name == "Fraction" or name.isupper() for name in names)
        and not any(isinstance(part, ast.Constant) and isinstance(part.value, str | bytes) for part in ast.walk(node))
    )


def unexplained(text):
    """Public upper-case numbers of a module without a reason on their lines, above them, or above the run they stand in."""
    said, found, last = comments(text), [], (0, False)
    for node in ast.parse(text).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
        lines = range(node.lineno, node.end_lineno + 1)
        # A comment above the first of several constants on following lines speaks of all of them.
        above = node.lineno - 1 in said and node.lineno - 1 != last[0]
        explained = above or (last == (node.lineno - 1, True))
        last = (node.end_lineno, explained)
        public = any(name.isupper() and not name.startswith("_") for name in names)
        if public and decides(node.value) and not explained and not said & set(lines):
            found.append(names[0])
    return found


def test_every_number_that_decides_something_has_its_reason_beside_it():
    assert {path.relative_to(SOURCE).as_posix(): unexplained(path.read_text(encoding="utf-8")) for path in FILES} == {
        path.relative_to(SOURCE).as_posix(): [] for path in FILES
    }
    assert unexplained("LIMIT = 1 << 20") == ["LIMIT"]
    assert unexplained("LIMIT = 7  # noqa: X") == ["LIMIT"]
    assert unexplained("LIMIT = 7  # rows") == ["LIMIT"]
    assert unexplained("SHARE = Fraction(1, 3)") == ["SHARE"]
    assert unexplained("A = 1  # as many as fit\nB = 2") == ["B"]
    assert unexplained("# Both as measured on the bench.\nA = 1\nB = 2\n\nC = 3") == ["C"]
    assert unexplained("WORDS = ('a', 'b')\n_PRIVATE = 3\nLIMIT = 7  # rows of a block, for the cache") == []


def wordy(text):
    """Functions with more parameters than one keeps in mind, unless a reason is written on a line of the signature or in Args."""
    said, found = comments(text), []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        count = sum(argument.arg not in ("self", "cls") for argument in given)
        signature = range(node.lineno - 1, node.body[0].lineno)
        documented = "Args:" in (ast.get_docstring(node) or "")
        if count > PARAMETERS and not said & set(signature) and not documented:
            found.append(node.name)
    return found


def methods_of_documented_classes(text):
    """Constructors whose parameters the docstring of their class lists."""
    tree = ast.parse(text)
    return {
        node.name
        for made in ast.walk(tree)
        if isinstance(made, ast.ClassDef) and "Args:" in (ast.get_docstring(made) or "")
        for node in made.body
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_files_and_functions_can_be_seen_at_once(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LINES
    assert set(wordy(text)) <= methods_of_documented_classes(text)


def test_many_parameters_are_noticed():
    seven = "def f(a, b, c, d, e, g, h):"
    assert wordy(f"{seven}\n    pass") == ["f"]
    assert wordy(f"{seven}  # noqa: PLR0913\n    pass") == ["f"]
    assert wordy(f"{seven}  # one for each column of the paper's table\n    pass") == []
    assert wordy("def f(self, a, b, c, d, e, g):\n    pass") == []
    assert wordy(f'{seven}\n    """Do it.\n\n    Args:\n        a: first.\n    """') == []


def test_every_module_of_arithmetic_is_exercised_by_a_test_of_the_engine():
    rooms = [SOURCE / "engine" / room for room in ("codes", "draw", "fit", "noise", "numbers", "relations")]
    modules = [
        path.relative_to(SOURCE)
        for room in rooms
        for path in room.glob("*.py")
        if path.stem not in ("__init__", "search", "simpler")
    ]
    assert len(modules) > 25
    imported = "\n".join(path.read_text(encoding="utf-8") for path in (TESTS / "engine").rglob("test_*.py"))
    names = [".".join(("covey", *module.with_suffix("").parts)).rpartition(".") for module in modules]
    patterns = {f"{room}.{name}": rf"{re.escape(room)}(\.| import .*\b){name}\b" for room, _, name in names}
    assert [name for name, pattern in patterns.items() if not re.search(pattern, imported)] == []


def test_mutants_of_every_module_that_privacy_rests_on_meet_tests():
    files = [path.relative_to(SOURCE) for room in ("privacy", "engine/noise") for path in (SOURCE / room).rglob("*.py")]
    names = {".".join(("covey", *file.with_suffix("").parts)) for file in files if file.name != "__init__.py"}
    assert [name for name in sorted(names) if not any(f"{name}.".startswith(f"{known}.") for known in MUTANTS)] == []
    assert [test for tests in MUTANTS.values() for test in tests if not (TESTS.parent / test).exists()] == []


def exists(name):
    """Whether a dotted name leads to a module, or to something in one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        try:
            for part in parts[cut:]:
                found = getattr(found, part)
        except AttributeError:
            return False
        return True
    return False


def test_every_name_and_file_that_the_documents_mention_exists():
    root = TESTS.parent
    text = (root / "docs/house.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`(covey\.[\w.]+)`", text))
    assert len(names) > 30
    assert [name for name in sorted(names) if not exists(name)] == []
    assert exists("covey.engine.gate.Gate.measure")
    assert not exists("covey.engine.gate.Gate.peek")
    assert not exists("covey.engine.models.bits.bit_centres")
    rooms = "desk|engine|evaluation|ledger|paper|release|synthesizers|tables|workflow"
    for page in [root / "CONTRIBUTING.md", *root.glob("docs/**/*.md")]:
        written = page.read_text(encoding="utf-8")
        files = [f"src/covey/{name}" for name in re.findall(rf"`((?:{rooms})/[\w/]+\.\w+)`", written)]
        files += re.findall(r"`(tests/[\w/]+\.py)`", written)
        assert [name for name in files if not (root / name).exists()] == [], page.name
