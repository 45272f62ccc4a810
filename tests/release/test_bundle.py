"""Bundles: whole or absent, public things only, and verifiable without true data."""

import dataclasses
import json
import os
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

import covey
from audits.gates import fitted
from covey.engine.budget import make_budget
from covey.engine.codes.counts import Counts, Moments
from covey.engine.entropy import Streams
from covey.engine.gate import Gate
from covey.engine.model import Fitted, SizeEstimate
from covey.engine.models.laws import BitLaw
from covey.engine.models.persons.law import PersonsLaw
from covey.engine.units.local import ArrayRows
from covey.errors import InputError, ParameterError
from covey.evaluation.comparison import Comparison
from covey.paper.blocks import BlockSums
from covey.release import bundle as module
from covey.release import drawing as drawing
from covey.release import summary
from covey.release.bundle import PrivateRelease, write_bundle
from covey.release.charts import percent
from covey.release.places import check_disk
from covey.release.statements import STEWARD, croissant
from covey.release.summary import ReleaseTally
from covey.release.verify import cite, file_digest, rows_path, verify_bundle
from covey.synthesizers import Prepared
from covey.synthesizers import private as private_module
from covey.tables.codec import Codec, EncodeLog
from covey.tables.columns import Table
from covey.tables.schema import Field, Schema
from covey.tables.sources import joined, read_table
from covey.workflow import resume
from tests.release.pages import check_page, table_named

pytestmark = [pytest.mark.usefixtures("few_steps"), pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")]


def test_a_bundle_holds_what_it_promises_and_verifies(folder):
    found = verify_bundle(folder)
    assert found.rows == 400
    assert folder.stat().st_mode & 0o777 == 0o755  # others can read it, and could not read the scratch folder
    facts = json.loads((folder / "privacy.json").read_text())
    assert (facts["epsilon"], facts["delta"], facts["n"], facts["private"]) == ("2", "1/1000000", 1500, True)
    assert facts["neighbours"].startswith("replace-one")
    assert {c["purpose"] for c in facts["charges"]} == {"histograms", "pairs", "ranks", "certificate"}
    certificate = json.loads((folder / "certificate.json").read_text())
    assert set(certificate["bound"]) == {"1", "2", "3", "4"}
    assert json.loads((folder / "croissant.json").read_text())["recordSet"][0]["field"][0]["name"] == "age"
    assert "differential privacy with ε = 2, δ = 1e-6" in (folder / "README.md").read_text()
    centres = np.load(folder / "model.npz")
    assert centres["weights"].sum() == pytest.approx(1)
    # One number for these rows, on every page: never below that of the model they were drawn from.
    for name in ("report.html", "README.md"):
        assert certificate["this_table"]["sentence"] in (folder / name).read_text()
    assert certificate["this_table"]["average_total_variation"] >= certificate["average_total_variation"]["bound"]


def test_anonymous_bundles_say_first_what_they_are_not(averaged, tmp_path):
    folder = write_bundle(averaged.release(100), tmp_path / "anonymous")
    assert (folder / "README.md").read_text().startswith("This table is NOT differentially private")
    facts = verify_bundle(folder).facts
    assert (facts["private"], facts["covariance_loss_note"]) == (False, "computed on real data")
    assert not (folder / "model.npz").exists()  # group means are not for publication


def test_a_seeded_bundle_is_marked_everywhere(visits, tmp_path):
    synth = covey.PrivateSynthesizer(1.0, schema=visits[1], seed=3).fit(visits[0])
    folder = write_bundle(synth.release(20), tmp_path / "seeded")
    assert "seeded: not private" in (folder / "README.md").read_text()
    facts = verify_bundle(folder).facts
    assert (facts["seeded"], facts["private"], facts["note"]) == (True, False, "seeded: not private")
    assert "seeded: not private, ε = 1" in cite(folder)["sentence"]
    page = check_page((folder / "report.html").read_text())
    assert page.text.count("seeded: not private") >= 3
    assert [e["text"] for e in page.elements if e["attrs"].get("class") == "badge good"] == []
    for name in ("croissant.json", "privacy.json"):
        assert "NOT private" in (folder / name).read_text()
    keywords = json.loads((folder / "dcat.json").read_text())["dcat:keyword"]
    assert "differential privacy" not in [word["@value"] for word in keywords]


@pytest.mark.parametrize(
    "name",
    ["synthetic.csv", "privacy.json", "schema.json", "model.npz", "measurements.npz", "README.md", "report.html"],
)
def test_a_changed_file_is_noticed(folder, name):
    with (folder / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(InputError, match=name):
        verify_bundle(folder)


def test_what_is_missing_and_what_is_extra_is_said(folder, tmp_path):
    with pytest.raises(InputError, match=r"there is no folder .*nowhere\.$"):
        verify_bundle(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"README\.md is a file"):
        verify_bundle(folder / "README.md")
    with pytest.raises(InputError, match="not a covey bundle"):
        verify_bundle(folder.parent)
    (folder / "more.txt").write_text("")
    with pytest.raises(InputError, match=r"differ from its list; extra: 'more\.txt'\.$"):
        verify_bundle(folder)
    (folder / "README.md").unlink()
    with pytest.raises(InputError, match=r"differ from its list; missing: 'README\.md'; extra: 'more\.txt'\.$"):
        verify_bundle(folder)
    (folder / "more.txt").unlink()
    with pytest.raises(InputError, match=r"differ from its list; missing: 'README\.md'\.$"):
        verify_bundle(folder)


def test_lies_are_noticed_even_with_right_checksums(folder):
    def refused(name, text, words):
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        module._write_sums(folder)
        with pytest.raises(InputError, match=words):
            verify_bundle(folder)
        (folder / name).write_bytes(before)

    refused("model.npz", pickle.dumps([1]), "no plain arrays")
    refused("privacy.json", "[" * 100_000, "nested too deeply")
    refused("certificate.json", '{"a":' * 100_000, "nested too deeply")

    facts, rows = (folder / "privacy.json").read_text(), (folder / "synthetic.csv").read_text()
    spent = json.loads(facts) | {"charges": [{"purpose": "all", "amount": "5"}]}
    refused("privacy.json", json.dumps(spent), "sum to 5")
    refused("privacy.json", json.dumps(json.loads(facts) | {"charges": [], "amount": "2"}), "larger amount")
    header, *lines = rows.splitlines()
    turned = "\n".join([header, *reversed(lines)]) + "\n"
    refused("synthetic.csv", turned, r"report\.html describes another table")
    (folder / "SHA256SUMS.report").unlink()
    refused("synthetic.csv", rows.replace("public", "martian", 1), "insurance")
    for lie in ({"epsilon": np.inf}, {"n": 10**400}, {"n": 7}, {"about": []}, {"synthetic_rows": {"a": "1"}}, {}):
        (folder / "privacy.json").write_text(json.dumps(json.loads(facts) | lie))
        if not lie:
            (folder / "synthetic.csv").rename(folder.parent / "rows.csv")
            (folder / "synthetic.csv").symlink_to(folder.parent / "rows.csv")
        module._write_sums(folder)
        for read in (verify_bundle, covey.load, resume):
            with pytest.raises(InputError, match=r"does not fit to this bundle|of 7|is a link to"):
                read(folder)


def test_only_public_types_have_a_way_out():
    """The fields of a release are a closed list; what is private can neither be put in nor written."""
    allowed = {
        PrivateRelease: {"Parts", "Description", "Fitted", "PrivacyStatement", "str", "Bounds"},
        Fitted: {"Law", "Measurements | None", "Spectrum | None", "Certificate | None", "SizeEstimate | None"},
        SizeEstimate: {"float"},
        BitLaw: {"WeightedPoints", "Limits"},
        PersonsLaw: {"SequenceLaw", "Mapping[int, Cells]", "int", "Reference | None"},
    }
    for kind, types in allowed.items():
        assert {field.type for field in dataclasses.fields(kind)} == types
    for private in (Moments, BlockSums, Counts, Prepared, Table, EncodeLog, Comparison):
        assert not any(hasattr(private, name) for name in ("save", "to_dict", "to_json", "write", "__reduce_covey__"))
    with pytest.raises((TypeError, AttributeError, ParameterError)):
        write_bundle(Prepared(ArrayRows(np.zeros((2, 2), dtype=np.int64)), (), None), os.devnull + "-bundle")


def test_nothing_but_the_private_results_reaches_a_bundle(visits, tmp_path, monkeypatch):
    """Two different tables of one size, the noisy results held fixed: the bundles are equal, byte for byte."""
    path, schema = visits
    synth = covey.PrivateSynthesizer(1.0, schema=schema)
    fixed, _ = fitted(synth.prepare(path).rows, synth._regain(), make_budget(1.0), Streams.from_seed(1))
    monkeypatch.setattr(private_module, "fit", lambda *_: fixed)
    monkeypatch.setattr(Gate, "spent", property(lambda gate: tuple(gate.planned.values())))
    header, *lines = path.read_text().splitlines()
    other = tmp_path / "other.csv"
    other.write_text("\n".join([header] + [lines[0]] * len(lines)) + "\n")
    sums = []
    for i, table in enumerate((path, other)):
        synth = covey.PrivateSynthesizer(1.0, schema=schema, seed=5).fit(table)
        sums.append((write_bundle(synth.release(200), tmp_path / f"b{i}") / "SHA256SUMS").read_text())
    assert sums[0] == sums[1]


@pytest.mark.parametrize("parquet", [False, True])
def test_rows_are_written_part_by_part(visits, tmp_path, monkeypatch, parquet):
    """Parts leave no seam: one header, every row, the same rows as drawn, and a bundle that is verified in parts too."""
    path, schema = visits
    monkeypatch.setattr(drawing.MakeRows, "size", 70)
    synth = covey.PrivateSynthesizer(1.0, schema=schema, seed=5).fit(path)
    release = synth.release(300)
    folder = write_bundle(release, tmp_path / "bundle", parquet=parquet)
    assert verify_bundle(folder).rows == 300
    written = read_table(rows_path(folder), schema)
    drawn = read_table(joined(release.parts), schema)
    assert written.rows == 300
    assert all((Codec(schema).encode(a)[0] == Codec(schema).encode(b)[0]).all() for a, b in [(written, drawn)])
    if not parquet:
        pictures_show_all_parts(folder, release, monkeypatch)


def pictures_show_all_parts(folder, release, monkeypatch):
    """Shares on the page are those of all rows, which differ from those of the first part; the map sees every third row."""
    codec, page = Codec(release.schema), check_page((folder / "report.html").read_text(encoding="utf-8"))
    rows, first = joined(release.parts), next(iter(release.parts))
    wards = {row[0]: row[2] for row in table_named(page, "Proportions of ward")}
    shares = [
        {ward: percent(count / len(table["ward"])) for ward, count in table["ward"].value_counts().iter_rows() if ward}
        for table in (rows, first)
    ]
    assert wards.items() >= shares[0].items()
    assert not wards.items() >= shares[1].items()
    monkeypatch.setattr(summary, "MAPPED_ROWS", 100)
    own = ReleaseTally.of(release).only
    codes = codec.encode(rows)[0]
    assert (own.some == codes[::3]).all()
    assert len(own.some_fine) == 100
    counted = [np.bincount(codes[:, j], minlength=size).tolist() for j, size in enumerate(codec.domain_sizes)]
    assert [counts.tolist() for counts in own.counts] == counted


def test_more_rows_than_the_disk_holds_are_refused(tmp_path):
    assert check_disk(10, 3, tmp_path / "out") == 10
    with pytest.raises(ParameterError, match="disk"):
        check_disk(10**15, 3, tmp_path / "out")
    with pytest.raises(ParameterError, match="the disk has"):
        check_disk(10**5000, 3, tmp_path / "out")


ROOT = Path(__file__).parents[2]


def read(folder, name):
    return json.loads((folder / name).read_text(encoding="utf-8"))


def test_croissant_says_where_rows_come_from_and_that_they_are_synthetic(bundles):
    for folder in bundles.iterdir():
        found = read(folder, "croissant.json")
        assert "http://mlcommons.org/croissant/1.1" in found["conformsTo"]
        assert found["rai:hasSyntheticData"] is True
        assert "1,500 rows" in found["prov:wasDerivedFrom"]["prov:label"]
        assert found["distribution"][0]["sha256"] == file_digest(folder / "synthetic.csv")
        kinds = {field["name"]: field["dataType"] for field in found["recordSet"][0]["field"]}
        assert (kinds["emergency"], kinds["age"], kinds["admitted"]) == ("sc:Boolean", "sc:Integer", "sc:Date")
    promise = read(bundles / "private", "croissant.json")["prov:wasGeneratedBy"]["prov:label"]
    assert "ε = 2, δ = 1e-6" in promise
    made = read(bundles / "anonymous", "croissant.json")["prov:wasGeneratedBy"]
    assert "NOT differential privacy" in made["prov:label"]


def test_special_values_make_a_column_text():
    schema = Schema((Field("ill", "boolean", required=True), Field("age", "integer", 0, 99, special=("N",))))
    table = {"ill": [True, False] * 50, "age": list(range(100))}
    release = covey.AnonymousSynthesizer(10, schema=schema).fit(table).release(50)
    [records] = croissant(release, {"synthetic.csv": "ab" * 32}, "2026-01-01")["recordSet"]
    assert [field["dataType"] for field in records["field"]] == ["sc:Boolean", "sc:Text"]


def test_the_catalogue_entry_names_the_file_and_its_digest(bundles):
    found = read(bundles / "private", "dcat.json")
    digest = file_digest(bundles / "private" / "synthetic.csv")
    assert found["@id"].endswith(digest)
    assert found["dcat:distribution"]["spdx:checksum"]["spdx:checksumValue"]["@value"] == digest
    assert found["healthdcatap:numberOfRecords"]["@value"] == "400"
    assert found["dct:type"]["@id"].endswith("SYNTHETIC_DATA")
    # What DCAT-AP's shapes ask of a file: where it is, and the class of its media type and of its digest's algorithm.
    file = found["dcat:distribution"]
    assert file["dcat:accessURL"]["@id"] == "synthetic.csv"
    assert file["dcat:mediaType"]["@type"] == "dct:MediaType"
    assert file["spdx:checksum"]["spdx:algorithm"]["@type"] == "spdx:ChecksumAlgorithm"


def test_what_a_steward_adds_for_health_data_speaks_the_words_of_the_entry(bundles):
    """The guide's lines, which HealthDCAT-AP's shapes accepted, use no prefix that the entry does not explain."""
    guide = (ROOT / "docs/guides/catalogues.md").read_text(encoding="utf-8")
    lines = guide.split("```json\n")[1].split("```")[0]
    added, entry = json.loads(lines), read(bundles / "private", "dcat.json")
    assert not set(added) & set(entry)
    used = set(re.findall(r'"([a-z]+):[A-Za-z]+"', lines))
    assert {"dct", "dcatap", "vcard"} <= used <= set(entry["@context"])


def test_the_registry_entry_is_yaml_and_leaves_to_the_steward_what_only_the_steward_knows(bundles):
    found = yaml.safe_load((bundles / "private" / "deployment.yaml").read_text(encoding="utf-8"))
    assert {*found} == {"url_slug", "status", "tier", "deployment"}  # the registry's schema allows no other keys
    assert (found["status"], found["tier"]) == ("Draft", 3)
    entry = found["deployment"]
    assert {*entry["basic"]} >= {"name", "data_curators", "description", "intended_use", "data_product_region"}
    assert {*entry["administrative"]} == {"sources", "registry_authors"}
    assert entry["privacy_loss"]["privacy_parameters"] == {"epsilon": 2.0, "delta": 1e-6}
    assert entry["dp_variant"]["variant_name"] == "Approximate DP"
    assert entry["privacy_loss"]["privacy_unit"] == "Record-level"
    assert entry["basic"]["data_curators"] == [STEWARD]
    assert not (bundles / "anonymous" / "deployment.yaml").exists()  # it is no deployment of differential privacy


def test_the_questions_of_nist_are_answered_from_the_statement(bundles):
    answers = read(bundles / "private", "privacy.json")["nist_sp_800_226"]
    assert "ε = 2, δ = 1e-6" in answers["privacy parameters"]
    assert "replace-one" in answers["neighbouring datasets"]
    assert answers["trust model"].startswith("central")
    assert all(answers.values())
