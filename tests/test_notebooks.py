"""The notebooks of examples/paper: each runs at small sizes, draws its picture, and becomes a page whose links lead somewhere."""

import json
import re
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples" / "paper"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(FOLDER))
    mpl.use("svg")
    import common

    monkeypatch.setattr(common, "PICTURES", tmp_path)
    yield tmp_path
    mpl.pyplot.close("all")
    for name in ("common", "run", "pages"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_draws_the_picture_that_it_shows(path, folder):
    import run

    import pages

    run.run(path, small=True)
    shown = re.findall(r"!\[[^]]*\]\(\.\./pictures/paper/([\w-]+\.svg)\)", pages.page(path))
    assert shown == [picture.name for picture in folder.iterdir()]
    import common

    assert [picture.name for picture in common.saved] == shown
    assert (ROOT / "docs" / "pictures" / "paper" / shown[0]).exists()
    for target in re.findall(r"\]\(\.\./([^)]+)\)", pages.page(path)):
        assert (ROOT / "docs" / target).exists(), target


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_with_the_picture_that_is_shown_and_with_small_sizes(path):
    document = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        text = "".join(cell["source"])
        kinds = [output["output_type"] for output in cell["outputs"]]
        assert kinds == ["stream"] * ("print(" in text) + ["display_data"] * ("save(figure" in text)
    (picture,) = re.findall(r'save\(figure, "([\w-]+)"\)', "".join(code[-1]["source"]))
    shown = (ROOT / "docs/pictures/paper" / f"{picture}.svg").read_text(encoding="utf-8")
    assert "".join(code[-1]["outputs"][-1]["data"]["image/svg+xml"]) == shown
    (parameters,) = (cell for cell in code if "parameters" in cell["metadata"].get("tags", ()))
    names = set(re.findall(r"^(\w+) =", "".join(parameters["source"]), re.M))
    assert set(document["metadata"]["covey"]["small"]) == names


def test_a_notebook_that_fails_is_noticed(folder, tmp_path):
    import run

    broken = tmp_path / "broken.ipynb"
    cells = [{"cell_type": "code", "metadata": {}, "source": ["assert 1 > 2"]}]
    broken.write_text(json.dumps({"cells": cells, "metadata": {}}))
    with pytest.raises(AssertionError):
        run.run(broken)


def test_every_notebook_is_in_the_story_and_in_the_navigation():
    story, navigation = (ROOT / "docs/paper.md").read_text(), (ROOT / "mkdocs.yml").read_text()
    for path in NOTEBOOKS:
        assert f"notebooks/{path.stem}.md" in navigation
        assert f"examples/paper/{path.stem}.ipynb" in story
    for picture in (ROOT / "docs/pictures/paper").glob("*.svg"):
        assert f"pictures/paper/{picture.name}" in story
    assert len(NOTEBOOKS) == 9
