import contextlib
import importlib
import io
import re
from pathlib import Path

import pytest

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
    items = [
        "Algorithm 1",
        "Algorithm 2",
        "Algorithm 3",
        "Algorithm 4",
        *(f"Theorem {i}" for i in ("1.2", "3.10", "4.1", "4.4", "4.6", "5.6", "5.9", "5.12", "5.13", "5.14", "5.15")),
    ]
    assert [item for item in items if item not in text] == []
    assert len(NAMES) > 35


def test_links_between_pages_lead_somewhere():
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_readme_example_prints_what_it_says():
    """Word for word; numbers may differ a little, because matrix products round differently on other processors."""
    text = (ROOT / "README.md").read_text()
    code, said = re.search(r"```python\n(.*?)```\n+```text\n(.*?)```", text, re.S).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    number = r"0\.\d+"
    assert re.sub(number, "#", printed.getvalue()) == re.sub(number, "#", said)
    pairs = zip(re.findall(number, printed.getvalue()), re.findall(number, said), strict=True)
    assert all(float(a) == pytest.approx(float(b), rel=0.3) for a, b in pairs)
    assert len(re.findall(number, said)) >= 2


def test_the_other_readme_calls_are_accepted():
    text = (ROOT / "README.md").read_text()
    for code in re.findall(r"```python\n(.*?)```", text, re.S)[1:]:
        exec("import covey\n" + code, {})
    for options in re.findall(r"`(at_most=[^`]+|rows_per_person=\d+)`", text):
        exec(f"import covey\ncovey.PrivateSynthesizer(1.0, {options})", {})
