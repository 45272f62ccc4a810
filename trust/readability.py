"""How much a reader must hold in mind for each statement, and how often a name says nothing.

    python -m trust.readability                  the whole of src, then its hardest files and functions
    python -m trust.readability src/covey/table  one room, or one file
    python -m trust.readability --check          files that changed; fails where one became too dense (`make check`)

Statements are measured, not lines: where a formatter breaks a line changes nothing. It is a ruler, not a judge: a formula may be
long, and `found` may be the right word once. Codebases that read well have 9 to 11 tokens in a statement, 1 to 4% of
statements with more than 30, and 0 to 4% of names that could name anything (docs/house.md).
"""

import argparse
import ast
import bisect
import io
import subprocess
import sys
import tokenize
from dataclasses import dataclass, fields
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = Path("src/covey")
# Words that could name anything: what is it that was found, told, given?
VAGUE_WORDS = """own found told said given known one more wanted kept seen there words left read held another plain made mine
theirs called named asked drawn before after first whole many few same rest things thing it its other others what that"""
PLACEHOLDERS = frozenset(VAGUE_WORDS.split())
TOKENS = (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP)
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
UNCOUNTED = FUNCTION | ast.ClassDef | ast.Import | ast.ImportFrom
NESTING = (
    ast.Call
    | ast.Subscript
    | ast.BinOp
    | ast.BoolOp
    | ast.IfExp
    | ast.Compare
    | ast.Lambda
    | ast.ListComp
    | ast.SetComp
    | ast.DictComp
    | ast.GeneratorExp
)
LONG = 30  # tokens: few statements of admired codebases have more
DEEP = 5  # calls, indices and operators inside each other
MANY_NAMES = 15  # in one function: more than a reader holds in mind
MOST_TOKENS = 16  # a statement on average; above it a file is packed, whatever its subject
FEW_STATEMENTS = 20  # below it one constructor decides the average


@dataclass
class Tally:
    """What was counted in a file, a function or the whole."""

    statements: int = 0
    tokens: int = 0
    long: int = 0
    deep: int = 0
    conditionals: int = 0
    names: int = 0
    placeholders: int = 0

    def add(self, other):
        for entry in fields(self):
            setattr(self, entry.name, getattr(self, entry.name) + getattr(other, entry.name))

    @property
    def density(self):
        """Tokens in a statement, on average."""
        return self.tokens / max(self.statements, 1)

    def percent(self, part, of="statements"):
        return 100 * getattr(self, part) / max(getattr(self, of), 1)

    def __str__(self):
        return (
            f"{self.statements} statements of {self.density:.1f} tokens, {self.percent('long'):.1f}% over {LONG}, "
            f"{self.percent('deep'):.1f}% nested {DEEP} deep, "
            f"{10 * self.percent('conditionals'):.0f} conditional expressions in 1,000, "
            f"{self.percent('placeholders', 'names'):.1f}% placeholder names"
        )


@dataclass
class Function:
    """A function, and how many names it binds."""

    place: str
    tally: Tally
    names: int
    vague: list

    @property
    def hardness(self):
        surplus_names = max(0, self.names - MANY_NAMES)
        return self.tally.long + self.tally.deep + surplus_names + 2 * len(self.vague)


def token_starts(text):
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.start for token in tokens if token.type in TOKENS]


def end_of_thought(statement):
    """Where a statement ends; of `if`, `for`, `with` only the line that decides counts."""
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body:
        return body[0].lineno, body[0].col_offset
    return statement.end_lineno, statement.end_col_offset


def depth(node):
    """How deep calls, indices, operators and comprehensions nest inside a statement."""
    inner = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
    deepest = max(map(depth, inner), default=0)
    return deepest + isinstance(node, NESTING)


def is_counted(node):
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return isinstance(node, ast.stmt) and not isinstance(node, UNCOUNTED) and not is_docstring


def bound_names(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg) and node.arg not in ("self", "cls"):
            yield node.arg


def measure(tree, starts):
    """The tally of a tree of syntax, of which `starts` has the places of all tokens."""
    tally = Tally()
    for node in ast.walk(tree):
        tally.conditionals += isinstance(node, ast.IfExp)
        if is_counted(node):
            begin = bisect.bisect_left(starts, (node.lineno, node.col_offset))
            length = bisect.bisect_left(starts, end_of_thought(node)) - begin
            tally.statements += 1
            tally.tokens += length
            tally.long += length > LONG
            tally.deep += depth(node) >= DEEP
    names = list(bound_names(tree))
    tally.names = len(names)
    tally.placeholders = sum(name in PLACEHOLDERS for name in names)
    return tally


def measure_text(text):
    return measure(ast.parse(text), token_starts(text))


def functions_of(path, tree, starts):
    for node in ast.walk(tree):
        if isinstance(node, FUNCTION):
            names = set(bound_names(node))
            place = f"{path}:{node.lineno} {node.name}"
            yield Function(place, measure(node, starts), len(names), sorted(names & PLACEHOLDERS))


def git(*words):
    """What git prints; None where it has no answer, as outside a clone."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def compared_with():
    """The commit that a change is compared with: where it left the main branch, or else the last commit but one."""
    for words in (("merge-base", "HEAD", "origin/main"), ("rev-parse", "--verify", "--quiet", "HEAD~1")):
        commit = git(*words)
        if commit is not None:
            return commit.strip()
    return None


def changed_files(commit):
    """Files of the source that are not as they were in a commit, new ones too."""
    listed = git("diff", "--name-only", "--diff-filter=d", commit, "--", str(SOURCE)) or ""
    untracked = git("ls-files", "--others", "--exclude-standard", "--", str(SOURCE)) or ""
    return sorted(Path(line) for line in (listed + untracked).splitlines() if line.endswith(".py"))


def became_too_dense(text, earlier):
    """Whether a file is packed, and more so than it was; `earlier` is None for a new file."""
    tally = measure_text(text)
    if tally.statements < FEW_STATEMENTS or tally.density <= MOST_TOKENS:
        return False
    return earlier is None or tally.density > measure_text(earlier).density


def check():
    """Print the figures of changed files; 1 if one of them became too dense."""
    commit = compared_with()
    if commit is None:
        print("readability: no earlier commit to compare with")
        return 0
    packed = []
    for path in changed_files(commit):
        text = (ROOT / path).read_text(encoding="utf-8")
        print(f"{path}: {measure_text(text)}")
        if became_too_dense(text, git("show", f"{commit}:{path}")):
            packed.append(path)
    for path in packed:
        print(f"{path} has more than {MOST_TOKENS} tokens in an average statement: give the parts of long ones names")
    return 1 if packed else 0


def show(folder, most):
    """Print the figures of a folder or file, then its hardest files and functions."""
    total, by_file, functions = Tally(), [], []
    for path in sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]:
        text = path.read_text(encoding="utf-8")
        tree, starts = ast.parse(text), token_starts(text)
        tally = measure(tree, starts)
        total.add(tally)
        by_file.append((path, tally))
        functions += functions_of(path, tree, starts)
    print(f"{len(by_file)} files: {total}\n\nhardest files")
    by_file.sort(key=lambda pair: -pair[1].density)
    for path, tally in [pair for pair in by_file if pair[1].statements >= FEW_STATEMENTS][:most]:
        print(f"  {path}: {tally}")
    print("\nhardest functions")
    functions.sort(key=lambda function: -function.hardness)
    for function in functions[:most]:
        tally, vague = function.tally, ", ".join(function.vague) or "none"
        counts = f"{tally.long} long and {tally.deep} deep of {tally.statements}"
        print(f"  {function.place}: {counts}, {function.names} names, vague: {vague}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / SOURCE)
    parser.add_argument("--check", action="store_true", help="changed files alone; fail where one became too dense")
    parser.add_argument("--most", type=int, default=12, help="rows of each list")
    options = parser.parse_args(arguments)
    if options.check:
        return check()
    show(options.folder, options.most)
    return 0


if __name__ == "__main__":
    sys.exit(main())
