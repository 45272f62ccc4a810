"""Every page runs from top to bottom where only covey and the extras that it names are installed."""

import re

import pytest
from click.testing import CliRunner

from covey.desk.cli import main
from tests.pages import ROOT, Environments, parts

DOCS = sorted(page for page in ROOT.glob("docs/**/*.md") if re.search(r"```(python|sh)\n", page.read_text("utf-8")))
PAGES = [ROOT / "README.md", ROOT / "PACKAGE.md", *DOCS]


@pytest.fixture(scope="session")
def environments(tmp_path_factory):
    return Environments(tmp_path_factory.mktemp("environments"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_runs_with_the_extras_that_it_has_named(page, environments, tmp_path):
    known = ""
    for extras, blocks in parts(page.read_text("utf-8")):
        wrong = environments.play(extras, [("python", "", known), *blocks], tmp_path)
        assert wrong == "", f"with covey[{','.join(sorted(extras))}]"
        known = "import covey"


def test_pages_were_found_and_name_what_they_need():
    assert {"README", "PACKAGE", "steward", "python", "analyst", "schema", "persons"} <= {p.stem for p in PAGES}
    readme = [extras for extras, _ in parts((ROOT / "README.md").read_text("utf-8"))]
    assert frozenset({"cli"}) in readme


def test_an_extra_that_a_page_forgets_is_noticed(environments, tmp_path):
    wrong = environments.play(frozenset(), [("python", "", "import polars")], tmp_path)
    assert "No module named 'polars'" in wrong
    wrong = environments.play(frozenset({"table"}), [("sh", "", "covey --version")], tmp_path)
    assert wrong.strip() == "covey's command line needs click: pip install 'covey[cli]'."


def test_the_recipe_of_the_help_page_works(environments, tmp_path):
    """The lines that `covey --help` gives for a first release, with a table and a name in their place."""
    said = CliRunner().invoke(main, ["--help"]).output
    lines = re.findall(r"^ +(covey (?:ledger|release|verify) .+)$", said, re.M)
    assert [line.split()[1] for line in lines][:3] == ["ledger", "release", "verify"]
    lines = lines[:3]
    recipe = "\n".join(lines).replace("TABLE", "visits.csv").replace("NAME", "visits")
    blocks = [("sh", "", "covey demo --table visits.csv --rows 1500"), ("sh", "", recipe)]
    assert environments.play(frozenset({"cli"}), blocks, tmp_path) == ""
    assert (tmp_path / "release" / "report.html").exists()
    assert len((tmp_path / "visits.csv").read_text().splitlines()) == 1501
