"""What a package index shows and pip resolves."""

import re
import tomllib
from pathlib import Path

import pytest

import covey
from trust.minimum import name_of, oldest
from trust.package import made, page

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def test_every_dependency_has_a_lower_bound():
    wanted = [*PROJECT["dependencies"], *(r for extra in EXTRAS.values() for r in extra)]
    loose = [r for r in wanted if not r.startswith("covey[") and not re.fullmatch(r"[\w.-]+(\[\w+\])?>=[\d.]+", r)]
    assert loose == []
    with pytest.raises(ValueError):
        oldest({"dependencies": ["numpy"], "optional-dependencies": {}})


def test_all_is_every_extra_of_a_user_but_gpu():
    inside = set(re.search(r"\[(.*)\]", EXTRAS["all"][0])[1].split(","))
    users = EXTRAS.keys() - {"all", "gpu", "table", "test", "dev", "bench", "docs", "trust"}
    assert inside == users  # table is part of the others


def test_pinned_versions_meet_the_bounds():
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    pinned = {name_of(name): tuple(map(int, re.findall(r"\d+", version))) for name, version in pinned.items()}
    for name, bound in oldest(PROJECT).items():
        assert pinned[name] >= tuple(map(int, re.findall(r"\d+", bound))), name


def test_the_page_of_the_index_is_the_readme_with_whole_addresses():
    assert PROJECT["readme"] == "PACKAGE.md"
    text = (ROOT / PROJECT["readme"]).read_text(encoding="utf-8")
    assert text == made(), "run: python -m trust.package"
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert links
    assert [link for link in links if not link.startswith("https://")] == []
    assert all(address.startswith("https://") for address in PROJECT["urls"].values())


def test_links_lead_into_the_repository_once_it_has_an_address():
    text = "![a](b.svg)\n[guide](docs/x.md) and [paper](https://p)"
    whole = "![a](https://r/raw/main/b.svg)\n[guide](https://r/blob/main/docs/x.md) and [paper](https://p)"
    assert page(text, "https://r") == whole
    assert page(text, None) == "\nguide and [paper](https://p)"


def test_the_citation_names_the_version_and_the_changelog_has_it():
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)
    assert cited is not None
    assert cited[1] == covey.__version__
    assert f"## {covey.__version__} (" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
