import ast
import contextlib
import importlib
import io
import re
from pathlib import Path

import pytest

from covey.desk.demo import example_visits

ROOT = Path(__file__).parents[1]
NAMES = sorted(set(re.findall(r"`((?:covey|tests)\.[\w.]+)`", (ROOT / "docs/paper-map.md").read_text())))
PROMISED = sorted(set(re.findall(r"^::: ([\w.]+)", (ROOT / "docs/api.md").read_text(), re.M)))


@pytest.mark.parametrize("name", NAMES + PROMISED)
def test_every_name_in_the_paper_map_and_on_the_page_of_the_api_exists(name):
    module, _, attribute = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        assert hasattr(importlib.import_module(module), attribute)


def test_the_paper_map_covers_the_algorithms_and_theorems():
    text = (ROOT / "docs/paper-map.md").read_text()
    theorems = ("1.2", "3.10", "4.1", "4.4", "4.6", "5.6", "5.9", "5.12", "5.13", "5.14", "5.15")
    items = [*(f"Algorithm {i}" for i in range(1, 5)), *(f"Theorem {i}" for i in theorems)]
    assert [item for item in items if item not in text] == []
    assert len(NAMES) > 35


def test_links_between_pages_lead_somewhere():
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_readme_example_prints_what_it_says(tmp_path, monkeypatch):
    """Word for word; numbers may differ a little, because matrix products round differently on other processors."""
    monkeypatch.chdir(tmp_path)
    example_visits(Path("visits.csv"), 20_000)
    text = (ROOT / "README.md").read_text()
    code, said = re.search(r"```python\n(.*?)```\n+```text\n(.*?)```", text, re.S).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    number = r"\d+\.\d+"
    assert re.sub(number, "#", printed.getvalue()) == re.sub(number, "#", said)
    pairs = zip(re.findall(number, printed.getvalue()), re.findall(number, said), strict=True)
    assert all(float(a) == pytest.approx(float(b), rel=0.3) for a, b in pairs)
    assert len(re.findall(number, said)) >= 2


def test_the_code_of_the_first_change_runs_as_it_stands(tmp_path, monkeypatch):
    """Each block by itself, the second after the first and the last with the release of the first: so does the page say."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/extending.md").read_text(encoding="utf-8"), re.S)
    printed, names = list[str](), [dict[str, object]() for _ in blocks]
    for block, own in zip(blocks, names, strict=True):
        own |= names[0] if own is names[1] else {}
        own |= {"release": names[0]["release"]} if own is names[-1] else {}
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(block, own)
        printed.append(said.getvalue())
    assert len(blocks) == 4
    assert all(printed)


def test_options_that_the_tutorial_names_are_accepted():
    text = (ROOT / "docs/tutorials/python.md").read_text()
    for options in (found := re.findall(r"`(at_most=[^`]+|rows_per_person=\d+)`", text)):
        exec(f"import covey\ncovey.PrivateSynthesizer(1.0, {options})", {})
    assert found


FIRST = [ROOT / "README.md", ROOT / "docs/index.md", ROOT / "docs/start.md", *(ROOT / "docs/tutorials").glob("*.md")]
LATER = [ROOT / f"docs/{name}.md" for name in ("faq", "known-limits", "method", "scale", "threat-model")]
LATER += (ROOT / "docs/guides").glob("*.md")
AVOIDED = re.compile(
    r"\bholes?\b|\bflags?\b|out of place|wrong cell|drawn again|whole and consistent|planted|says? whose|δ[₁₂₃₄]"
)


def prose(text):
    """What is left of a page without code."""
    return re.sub(r"```.*?```|`[^`\n]*`|\]\([^)]*\)", " ", text, flags=re.S)


@pytest.mark.parametrize("page", [*FIRST, *LATER], ids=lambda page: page.stem)
def test_pages_use_the_words_of_the_style_page_and_short_sentences(page):
    text = prose(page.read_text(encoding="utf-8"))
    assert AVOIDED.findall(text) == []
    for line in text.splitlines():
        sentences = re.split(r"(?<=[.:;!?)|])\s", line)
        assert [s for s in sentences if len(s.split()) > 32] == []
    assert AVOIDED.findall(prose("cells with holes `flag`")) == ["holes"]


def said_in_source(path):
    """What a module says to users: its string literals of three words and more, without docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in silent]
    return [text for text in texts if isinstance(text, str) and len(text.split()) >= 3]


def test_messages_report_and_app_use_the_words_of_the_style_page():
    found = {}
    for path in (ROOT / "src/covey").rglob("*.py"):
        if wrong := [text for text in said_in_source(path) if AVOIDED.search(text)]:
            found[path.name] = wrong
    for path in (ROOT / "src/covey").rglob("*.html"):
        if wrong := AVOIDED.findall(re.sub(r"{%.*?%}|{{.*?}}|<[^>]*>", " ", path.read_text(encoding="utf-8"))):
            found[path.name] = wrong
    assert found == {}


def test_the_readme_shows_code_early_and_stays_short():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    words = [word for word in text.split() if re.search(r"\w", word)]
    assert len(words) <= 700
    assert len(text.partition("```")[0].split()) <= 60
