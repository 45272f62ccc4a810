import pytest

from covey.errors import InputError
from covey.table.dialect_detection import assumptions, sniff
from covey.table.dialects import Dialect
from tests.table.test_workbook import workbook

ROWS = [["age", "city", "cost"], *[[str(i % 90), "Rom" if i % 2 else "Köln, am Rhein", f"{i},5"] for i in range(40)]]


def written(separator, quote=False):
    mark = '"' if quote else ""
    return "".join(separator.join(f"{mark}{cell}{mark}" for cell in row) + "\n" for row in ROWS)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "windows-1252", "utf-16-le"])
@pytest.mark.parametrize("separator", [";", "\t", "|"])
@pytest.mark.parametrize("skip", [0, 1, 3])
def test_separator_encoding_and_preamble_are_found(tmp_path, encoding, separator, skip):
    path = tmp_path / "t.csv"
    preamble = ["Costs of 2024", "", "exported by a clinic, in Wien"][:skip]
    path.write_bytes(("".join(line + "\n" for line in preamble) + written(separator)).encode(encoding))
    found = sniff(path, Dialect(), 10**6)
    assert (found.separator, found.skip_rows) == (separator, skip)
    assert found.encoding == {"utf-8-sig": "utf-8"}.get(encoding, encoding)


def test_commas_and_quotes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(written(",", quote=True), encoding="utf-8")
    found = sniff(path, Dialect(), 10**6)
    assert found == Dialect(",", encoding="utf-8", skip_rows=0)
    assert assumptions(found, Dialect()) is None
    path.write_text("name\nA;1\nB;2\n")  # one column, and cells with semicolons
    assert sniff(path, Dialect(), 10**6).skip_rows == 0


def test_a_line_for_spreadsheets_is_believed(tmp_path):
    (tmp_path / "t.csv").write_text("sep=;\na;b\n1;2\n", encoding="utf-8")
    assert sniff(tmp_path / "t.csv", Dialect(), 10**6) == Dialect(";", encoding="utf-8", skip_rows=1)


def test_what_was_said_is_not_looked_for(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Costs\n" + written(";"), encoding="windows-1252")
    said = Dialect("|", encoding="latin-1", skip_rows=0)
    assert sniff(path, said, 10**6) == said
    found = sniff(path, Dialect(), 10**6)
    assert assumptions(found, Dialect()) == (
        "read with cells separated by semicolons, text in windows-1252, 1 line before the header"
    )
    assert assumptions(found, found) is None


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            "a,b\nü,1\n".encode() + "ü,2\n".encode("latin-1"),
            "mixes UTF-8 with another encoding, which begins in line 3",
        ),
        (b"a,b\n\xfc,1\n\x81,2\n", r"neither UTF-8 \(line 2\) nor Windows-1252 \(line 3\)"),
        (b"", "is empty"),
    ],
)
def test_text_in_no_single_encoding_is_refused(tmp_path, data, words):
    (tmp_path / "t.csv").write_bytes(data)
    with pytest.raises(InputError, match=words):
        sniff(tmp_path / "t.csv", Dialect(), 10**6)


def test_rows_before_the_header_of_a_sheet_are_found(tmp_path):
    path = workbook(tmp_path / "t.xlsx", [["Report"], [], *ROWS])
    assert sniff(path, Dialect(sheet="Data"), 10**6) == Dialect(sheet="Data", skip_rows=2)
