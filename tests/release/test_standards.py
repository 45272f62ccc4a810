"""Metadata in the words of others: complete, consistent with the bundle, and the same for neighbouring tables."""

import json
import re
from pathlib import Path

import pytest
import yaml

import covey
from covey.release.statements import STEWARD, croissant
from covey.release.verify import file_digest
from covey.table.schema import Field, Schema

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.usefixtures("few_steps"),
    pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning"),
]


@pytest.fixture
def private(bundles):
    return bundles / "private"


@pytest.fixture
def anonymous(bundles):
    return bundles / "anonymous"


def read(folder, name):
    return json.loads((folder / name).read_text(encoding="utf-8"))


def test_croissant_says_where_rows_come_from_and_that_they_are_synthetic(private, anonymous):
    for folder in (private, anonymous):
        found = read(folder, "croissant.json")
        assert "http://mlcommons.org/croissant/1.1" in found["conformsTo"]
        assert found["rai:hasSyntheticData"] is True
        assert "1500 rows" in found["prov:wasDerivedFrom"]["prov:label"]
        assert found["distribution"][0]["sha256"] == file_digest(folder / "synthetic.csv")
        kinds = {field["name"]: field["dataType"] for field in found["recordSet"][0]["field"]}
        assert (kinds["emergency"], kinds["age"], kinds["admitted"]) == ("sc:Boolean", "sc:Integer", "sc:Date")
    promise = read(private, "croissant.json")["prov:wasGeneratedBy"]["prov:label"]
    assert "ε = 2, δ = 1e-6" in promise
    assert "NOT differential privacy" in read(anonymous, "croissant.json")["prov:wasGeneratedBy"]["prov:label"]


def test_special_values_make_a_column_text():
    schema = Schema((Field("ill", "boolean", required=True), Field("age", "integer", 0, 99, special=("N",))))
    table = {"ill": [True, False] * 50, "age": list(range(100))}
    release = covey.AnonymousSynthesizer(10, schema=schema).fit(table).release(50)
    [records] = croissant(release, {"synthetic.csv": "ab" * 32}, "2026-01-01")["recordSet"]
    assert [field["dataType"] for field in records["field"]] == ["sc:Boolean", "sc:Text"]


def test_the_catalogue_entry_names_the_file_and_its_digest(private):
    found = read(private, "dcat.json")
    digest = file_digest(private / "synthetic.csv")
    assert found["@id"].endswith(digest)
    assert found["dcat:distribution"]["spdx:checksum"]["spdx:checksumValue"]["@value"] == digest
    assert found["healthdcatap:numberOfRecords"]["@value"] == "400"
    assert found["dct:type"]["@id"].endswith("SYNTHETIC_DATA")
    # What DCAT-AP's shapes ask of a file: where it is, and the class of its media type and of its digest's algorithm.
    file = found["dcat:distribution"]
    assert file["dcat:accessURL"]["@id"] == "synthetic.csv"
    assert file["dcat:mediaType"]["@type"] == "dct:MediaType"
    assert file["spdx:checksum"]["spdx:algorithm"]["@type"] == "spdx:ChecksumAlgorithm"


def test_what_a_steward_adds_for_health_data_speaks_the_words_of_the_entry(private):
    """The guide's lines, which HealthDCAT-AP's shapes accepted, use no prefix that the entry does not explain."""
    guide = (ROOT / "docs/guides/catalogues.md").read_text(encoding="utf-8")
    lines = guide.split("```json\n")[1].split("```")[0]
    added, entry = json.loads(lines), read(private, "dcat.json")
    assert not set(added) & set(entry)
    used = set(re.findall(r'"([a-z]+):[A-Za-z]+"', lines))
    assert {"dct", "dcatap", "vcard"} <= used <= set(entry["@context"])


def test_the_registry_entry_is_yaml_and_leaves_to_the_steward_what_only_the_steward_knows(private, anonymous):
    found = yaml.safe_load((private / "deployment.yaml").read_text(encoding="utf-8"))
    assert {*found} == {"url_slug", "status", "tier", "deployment"}  # the registry's schema allows no other keys
    assert (found["status"], found["tier"]) == ("Draft", 3)
    entry = found["deployment"]
    assert {*entry["basic"]} >= {"name", "data_curators", "description", "intended_use", "data_product_region"}
    assert {*entry["administrative"]} == {"sources", "registry_authors"}
    assert entry["privacy_loss"]["privacy_parameters"] == {"epsilon": 2.0, "delta": 1e-6}
    assert entry["dp_variant"]["variant_name"] == "Approximate DP"
    assert entry["privacy_loss"]["privacy_unit"] == "Record-level"
    assert entry["basic"]["data_curators"] == [STEWARD]
    assert not (anonymous / "deployment.yaml").exists()  # it is no deployment of differential privacy


def test_the_questions_of_nist_are_answered_from_the_statement(private):
    answers = read(private, "privacy.json")["nist_sp_800_226"]
    assert "ε = 2, δ = 1e-6" in answers["privacy parameters"]
    assert "replace-one" in answers["neighbouring datasets"]
    assert answers["trust model"].startswith("central")
    assert all(answers.values())
