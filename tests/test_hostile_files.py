"""Small files that would unfold to gigabytes, nest without end or pretend to be numbers: refused in words, by their headers."""

import hashlib
import io
import json
import pickle
import zipfile

import numpy as np
import pytest

from covey.errors import InputError, LedgerError
from covey.privacy.ledger import Ledger
from covey.release.model import read_arrays
from covey.table.columns import guarded, unguarded
from covey.table.sources import open_source
from tests.commands import run

FORMATS = "http://schemas.openxmlformats.org"
SHEET = f'<worksheet xmlns="{FORMATS}/spreadsheetml/2006/main"><sheetData>%s</sheetData></worksheet>'


def relation(kind, target):
    related = f'<Relationship Id="r1" Type="{FORMATS}/officeDocument/2006/relationships/{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{FORMATS}/package/2006/relationships">{related}</Relationships>'


PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{FORMATS}/package/2006/content-types"/>',
    "_rels/.rels": relation("officeDocument", "xl/workbook.xml"),
    "xl/workbook.xml": f'<workbook xmlns="{FORMATS}/spreadsheetml/2006/main" '
    f'xmlns:r="{FORMATS}/officeDocument/2006/relationships"><sheets><sheet name="a" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": relation("worksheet", "worksheets/sheet1.xml"),
}


def workbook(path, *places):
    """A workbook whose cells lie at these places, each with the number 1."""
    rows = "".join(f'<row r="{row}"><c r="{column}{row}"><v>1</v></c></row>' for column, row in places)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in {**PARTS, "xl/worksheets/sheet1.xml": SHEET % rows}.items():
            packed.writestr(name, text)
    return path


def test_a_cell_at_the_far_corner_of_a_sheet_is_refused_before_room_is_made(tmp_path):
    far = workbook(tmp_path / "far.xlsx", ("A", 1), ("XFD", 1048576))
    assert far.stat().st_size < 3000
    with pytest.raises(InputError, match="1048576 rows and 16384 columns that is nearly empty"):
        open_source(far)
    result = run("init", far, "-o", tmp_path / "schema.json")
    assert result.exit_code == 3
    near = open_source(workbook(tmp_path / "near.xlsx", ("A", 1), ("B", 900)))
    assert sum(near.table(part).rows for part in near.parts()) == 899


def saved(path, **arrays):
    np.savez_compressed(path, **arrays)
    return path


def test_arrays_that_unfold_or_are_none_are_refused(tmp_path):
    bomb = saved(tmp_path / "bomb.npz", points=np.zeros(60_000_000))
    assert bomb.stat().st_size < 10**6
    with pytest.raises(InputError, match="unfolds to 480000"):
        read_arrays(bomb)
    with pytest.raises(InputError, match="not finite"):
        read_arrays(saved(tmp_path / "nan.npz", points=np.array([0.5, np.nan])))
    with pytest.raises(InputError, match="no plain arrays"):
        read_arrays(saved(tmp_path / "objects.npz", points=np.array([print], dtype=object)))
    for name, data in {"pickle.npz": pickle.dumps([1]), "empty.npz": b""}.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InputError, match="no plain arrays"):
            read_arrays(tmp_path / name)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(tmp_path / "header.npz", "w") as packed:
        packed.writestr("points.npy", header.getvalue())
    with pytest.raises(InputError, match="no plain arrays"):
        read_arrays(tmp_path / "header.npz")
    whole = read_arrays(saved(tmp_path / "whole.npz", points=np.array([0.5]), weights=np.array([1])))
    assert set(whole) == {"points", "weights"}


@pytest.fixture
def bundle(tmp_path, few_steps):
    table, schema = tmp_path / "t.csv", tmp_path / "s.json"
    table.write_text("a,b\n" + "true,false\n" * 30)
    fields = [{"name": name, "type": "boolean", "constraints": {"required": True}} for name in "ab"]
    schema.write_text(json.dumps({"fields": fields}))
    out = tmp_path / "out"
    line = ["release", str(table), "--schema", str(schema), "--epsilon", "1", "--seed", "5", "--out", str(out)]
    assert run(*line).exit_code == 0
    return out


def replaced_file(bundle, name, data):
    """Another file under the same name, with a fresh checksum: what a forger does."""
    (bundle / name).write_bytes(data)
    sums = bundle / "SHA256SUMS"
    lines = [line.split("  ", 1) for line in sums.read_text().splitlines()]
    fresh = hashlib.sha256(data).hexdigest()
    sums.write_text("".join(f"{fresh if file == name else digest}  {file}\n" for digest, file in lines))


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("model.npz", pickle.dumps([1]), "no plain arrays"),
        ("privacy.json", b"[" * 100_000, "nested too deeply"),
        ("certificate.json", b'{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_a_bundle_with_a_strange_file_is_not_whole(bundle, name, data, words):
    assert run("verify", bundle).exit_code == 0
    replaced_file(bundle, name, data)
    result = run("verify", bundle)
    assert result.exit_code == 3
    assert words in result.output


@pytest.mark.parametrize("label", ["＝1+1", "＠SUM(A1)", "＋1+1", "－1+1", "\u200b=1+1", "\ufeff=1+1", "\u2060@x"])
def test_full_width_signs_and_hidden_characters_are_guarded(label):
    assert guarded(label) == f"'{label}"
    assert unguarded(guarded(label)) == label


@pytest.mark.parametrize("url", ["postgresql://desk/ledger", "postgresql:/desk/ledger", "https://host/x", "s3://b/k"])
def test_a_url_is_no_path_of_a_ledger(tmp_path, monkeypatch, url):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COVEY_LEDGER", url)
    with pytest.raises(LedgerError, match="is a URL"):
        Ledger(url)
    result = run("ledger", "open", "people", "--budget", "1")
    assert (result.exit_code, list(tmp_path.iterdir())) == (4, [])
