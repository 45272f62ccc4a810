import gzip

import pyarrow as pa
import pytest

from covey.errors import InputError
from covey.table.columns import SizeBudget
from covey.table.dialects import Dialect
from covey.table.sources import read_table
from covey.table.textfile import TextFile
from tests.table.examples import SCHEMA, cells


def text(path, data, block, skip_rows=0, encoding="utf-8"):
    path.write_bytes(data)
    file = TextFile(path, encoding, skip_rows, SizeBudget(path, 10**6))
    return b"".join(piece for piece, _ in file.pieces(block)), file.swapped


@pytest.mark.parametrize("block", [1, 2, 3, 1000])
@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"a,b\n1,x\ry\n2,z\r\n", b"a,b\n1,x\ry\n2,z\n"),
        (b"a,b\r\n1,x\ry\r\n2,z\n", b"a,b\n1,x\ry\n2,z\n"),
        (b"a,b\r1,x\r2,y\r", b"a,b\n1,x\n2,y\n"),
        (b'"a\r\nb",c\n1,x\r\n', b'"a\nb",c\n1,x\n'),
        (b'"a\nb",c\r1,x\r', b'"a\rb",c\n1,x\n'),
        (b"a,b\r", b"a,b\n"),
        (b"a,b", b"a,b"),
        (b"a,b\n1,x\r", b"a,b\n1,x\r"),
    ],
)
def test_the_header_decides_what_ends_a_line(tmp_path, data, wanted, block):
    found, swapped = text(tmp_path / "t.csv", data, block)
    assert found == wanted
    assert swapped == (data.partition(b'"a\nb"')[2] or data).endswith((b"a,b\r", b"c\r1,x\r", b"2,y\r"))


@pytest.mark.parametrize("block", [1, 2, 1000])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_before_the_header_are_skipped_and_do_not_decide(tmp_path, block, end):
    data = end.join([b"Report, 3", b"", b"a,b", b"1,2", b""])
    assert text(tmp_path / "t.csv", data, block, 2)[0] == b"a,b\n1,2\n"
    with pytest.raises(InputError, match="fewer than 9 lines"):
        text(tmp_path / "t.csv", data, block, 9)
    (tmp_path / "t.csv").write_bytes(b"Report\rof 2024\nage,sex\r\n1,f\n")
    assert cells(read_table(tmp_path / "t.csv", SCHEMA, dialect=Dialect(skip_rows=2))) == {"age": ["1"], "sex": ["f"]}


def test_packed_files_are_unpacked_and_broken_ones_refused(read):
    data = b"age,sex\n" + b"1,f\n2,m\n" * 300
    packed = {"t.csv.gz": gzip.compress(data), "t.csv.zst": pa.compress(data, "zstd", asbytes=True)}
    for name, content in packed.items():
        assert read(content, name).rows == 600
        for broken in (content[:-6], content[: len(content) // 2], b"no such thing", b""):
            with pytest.raises(InputError, match=name):
                read(broken, name)
        with pytest.raises(InputError, match="let its name end in"):
            read(content, "t.csv")
    with pytest.raises(InputError, match="size_limit"):
        read(pa.compress(b"age,sex\n" + b"1,f\n" * 10**6, "zstd", asbytes=True), "t.csv.zst", size_limit=10**5)


def test_windows_1252_is_read_when_declared(read):
    data = "age,sex\n1,ü\n2,€\n".encode("cp1252")
    assert cells(read(data, dialect=Dialect(encoding="windows-1252")))["sex"] == ["ü", "€"]
    with pytest.raises(InputError, match=r"not UTF-8, line 2.*windows-1252"):
        read(data)
