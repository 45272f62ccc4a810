"""What each bad input must give, by its number, through the command line.

Exit codes: 2 a bad public parameter, no data opened, nothing charged; 3 preparing failed, nothing charged; 4 the ledger
refuses. What one record holds changes nothing that leaves but the sampled rows and the noise: see `Desk.twins`.
"""

import csv
import gzip
import io
import json
import os
import re
import tempfile
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import covey
from covey.engine import arrays as arrays_module
from covey.release import bundle as bundles
from covey.tables import reading as reading
from covey.tables.codec import Codec
from covey.tables.schema import Schema
from covey.tables.sources import GUARDED, csvfile, open_source
from covey.workflow import CHARGE_STAYS
from tests.commands import ok, run, spent
from tests.entries import entry

pytestmark = [pytest.mark.usefixtures("few_steps"), pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")]

HEADER = "city,age,income,member,joined"
CLEAN = "Rome,34,1234.56,true,2020-05-17"
PLACE = 17  # of the record that differs between neighbours
FIELDS = [
    entry("city", "string", enum=["Rome", "Oslo", "Lima"], other="other"),
    entry("age", "integer", 0, 99, bins=5),
    entry("income", "number", 0, 5000, bins=4, decimals=2),
    entry("member", "boolean", required=True),
    entry("joined", "date", "2020-01-01", "2020-12-31", bins=4),
]
FILES = {"README.md", "SHA256SUMS", "SHA256SUMS.report", "croissant.json", "dcat.json", "deployment.yaml"}
FILES |= {"report.html", "model.npz", "measurements.npz", "synthetic.csv"}
FILES |= {f"{name}.json" for name in ("certificate", "measurements", "privacy", "schema")}


def records(n=60):
    generator = np.random.default_rng(11)
    cities = generator.choice(["Rome", "Oslo", "Lima"], n)
    days = np.datetime64("2020-01-01") + generator.integers(0, 366, n)
    # Values with five significant digits: a message that showed one would be found out.
    incomes = generator.integers(100_000, 500_000, n) / 100
    rows = zip(cities, generator.integers(18, 90, n), incomes, generator.random(n) < 0.5, days, strict=True)
    return [f"{c},{a},{i:.2f},{str(m).lower()},{d}" for c, a, i, m, d in rows]


ROWS = records()


def table_bytes(rows=ROWS, header=HEADER, end="\n"):
    return end.join([header, *rows, ""]).encode()


def with_record(*others):
    """The example table with some records replaced from one place on; bytes may hold what is no text."""
    lines = [row.encode() for row in ROWS]
    lines[PLACE : PLACE + len(others)] = [line if isinstance(line, bytes) else line.encode() for line in others]
    return b"\n".join([HEADER.encode(), *lines, b""])


def without_noise(words):
    """The certificate's bound is the only number in the words that carries noise."""
    return re.sub(r"at most [\d.]+ (stand|on)", r"at most … \1", words)


NOISY = ("bound", "estimate", "average_total_variation", "distribution_functions")


def without_rows(path):
    """What a file of a bundle says besides drawn rows and noise; midnight may lie between two releases."""
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return {name: (arrays[name].dtype, arrays[name].shape[1:]) for name in arrays.files}
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        return header, len(rows)
    text = without_noise(path.read_text(encoding="utf-8"))
    if path.name == "certificate.json":
        said = {key: value for key, value in json.loads(text).items() if key != "technical"}
        return {key: [*value] if key in NOISY else value for key, value in said.items()}
    if path.name in ("croissant.json", "dcat.json", "deployment.yaml"):
        return re.sub(r"[0-9a-f]{64}|20\d\d-\d\d-\d\d", "", text)
    return text if path.suffix in (".md", ".json") and path.name != "measurements.json" else None


# Strange cells are what these tests are about; tests/desk/cli/test_commands.py has the limit's own.
MISFITS = ("--accept-misfits", "1")
# What clean tables leave, by table, schema and options: every process releases each of them once.
CLEAN_TRACES = {}


class Desk:
    """A folder with a table, a confirmed schema and a ledger, and the commands run in it."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.monkeypatch = folder, monkeypatch
        self.ledger = folder / "books" / "ledger.sqlite"
        folder.mkdir(exist_ok=True)
        self.enter()
        (folder / "table.csv").write_bytes(table_bytes())
        self.schema(FIELDS)
        ok("ledger", "open", "people", "--budget", "20")

    def enter(self):
        self.monkeypatch.chdir(self.folder)
        self.monkeypatch.setenv("COVEY_LEDGER", str(self.ledger))

    def schema(self, fields, name="schema.json"):
        (self.folder / name).write_text(json.dumps({"fields": fields}), encoding="utf-8")

    def table(self, data, name="table.csv"):
        (self.folder / name).write_bytes(data)

    def release(self, *options, table="table.csv", epsilon="1", dataset="people", out="out"):
        names = ["--dataset", dataset] if dataset else []
        words = ("--schema", "schema.json", "--epsilon", epsilon, *names, "--out", out, *MISFITS, *options)
        return run("release", table, *words)

    def seeded(self, *options, out="out", **named):
        return self.release("--seed", "5", *options, dataset=None, out=out, **named)

    def left_behind(self):
        """Whatever a failed release might have left: its output, or the hidden folder it writes to."""
        return [path.name for path in self.folder.iterdir() if path.name == "out" or path.name.startswith(".covey")]

    def refused(self, result, code, *words, charged=0):
        """It failed as it should: code, message, no output, no charge and, but for preparing, no private cell."""
        assert result.exit_code == code, (result.output, result.exception)
        assert not result.stdout
        assert "Traceback" not in result.stderr
        for word in words:
            assert word in result.stderr
        if code != 3:
            assert not shown_cells(result.output)
        assert not self.left_behind()
        if charged is not None:
            assert spent() == charged

    def no_data(self):
        """From here on reading a table is a failure of the test."""

        def opened(*_, **__):
            raise AssertionError("the data was opened")

        self.monkeypatch.setattr(reading, "open_source", opened)

    def encoded(self, name="table.csv"):
        """Codes and the private log."""
        return Codec(Schema.load(self.folder / "schema.json")).encode(self.folder / name)

    def values(self, line):
        """How one record is understood: its columns, decoded without choice where the bins are single values."""
        self.table(with_record(line))
        codes, _ = self.encoded()
        assert len(codes) == len(ROWS)
        return codes[PLACE].tolist()

    def traces(self, data, *options):
        """Everything that leaves a release of this table, without sampled rows and noise."""
        self.table(data)
        result = self.release(*options, dataset=None if "--seed" in options else "people")
        assert result.exit_code == 0, (result.output, result.exception)
        checked = ok("verify", "out")
        events = json.loads(ok("ledger", "history", "people", "--json").stdout)["events"]
        return {
            "stdout": without_noise(result.stdout),
            "stderr": result.stderr,
            "verify": (checked.stdout, checked.stderr),
            "files": {path.name: without_rows(path) for path in (self.folder / "out").iterdir()},
            "events": [{k: v for k, v in event.items() if k != "time"} for event in events],
            "left behind": self.left_behind(),
        }

    def twins(self, dirty, clean=None, fields=FIELDS, modes=((),)):
        """A table and its clean neighbour leave the same traces, in a private run unless other modes are named."""
        clean = with_record(CLEAN) if clean is None else clean
        assert dirty != clean
        for mode in modes:
            public = json.dumps(fields), mode
            if (clean, *public) not in CLEAN_TRACES:
                CLEAN_TRACES[clean, *public] = self.apart("clean", clean, *public)
            seen = CLEAN_TRACES[clean, *public], self.apart("dirty", dirty, *public)
            assert seen[0] == seen[1]
            trial = {"deployment.yaml"} if "--seed" in mode else set()  # a seeded run is no deployment
            assert set(seen[0]["files"]) == FILES - trial
        self.enter()

    def apart(self, name, data, fields, mode):
        """The traces of a table, released in a folder of its own."""
        desk = Desk(Path(tempfile.mkdtemp(prefix=name, dir=self.folder)), self.monkeypatch)
        desk.schema(json.loads(fields))
        return desk.traces(data, *mode)


def shown_cells(words):
    """Distinctive private cells that appear in a message."""
    cells = {cell for row in ROWS for cell in row.split(",") if re.fullmatch(r"\d+\.\d\d|2020-\d\d-\d\d", cell)}
    return [cell for cell in cells if cell in words]


def bad_parameter(desk, result, *words):
    desk.refused(result, 2, *words)


@pytest.fixture
def desk(tmp_path, monkeypatch):
    return Desk(tmp_path, monkeypatch)


def bundle_bytes(folder):
    """The public files that a seed fixes to the byte; in what is public of a release, how its table was written is apart."""
    files = {name: (folder / name).read_bytes() for name in ("synthetic.csv", "certificate.json")}
    facts = json.loads((folder / "privacy.json").read_bytes())
    return files | {"privacy.json": {name: said for name, said in facts.items() if name != "source"}}


def same_as_clean(desk, data, *options, clean=None, name="table.csv"):
    """With a seed, this table gives the very bundle that the clean one gives: it was read as the same records."""
    desk.table(table_bytes() if clean is None else clean)
    assert desk.seeded(out="reference").exit_code == 0
    desk.table(data, name)
    result = desk.seeded(*options, table=name)
    assert result.exit_code == 0, (result.output, result.exception)
    assert bundle_bytes(desk.folder / "out") == bundle_bytes(desk.folder / "reference")


def test_twins_tells_tables_apart_that_leave_different_traces(desk):
    for shorter in (table_bytes(ROWS[1:]), with_record(*TRACELESS["04 ragged"]).replace(b"\n\n", b"\n")):
        with pytest.raises(AssertionError):  # the second as a reader has it that passes over blank lines
            desk.twins(shorter)


def parquet_of(data):
    file = io.BytesIO()
    pl.read_csv(data, infer_schema=False).write_parquet(file)
    return file.getvalue()


def unreadable(line=CLEAN):
    """By the number of the bad input: the table's name, what it holds (None where there is none), and words of the refusal."""
    workbook, packed = b"PK\x03\x04" + bytes(300), pa.compress(with_record(line), "zstd", asbytes=True)
    return {
        "01 absent": ("absent.csv", None, "absent.csv"),
        "01 absent parquet": ("absent.parquet", None, "absent.parquet"),
        "01 absent folder": ("no/such/folder.csv", None, "no/such/folder.csv"),
        "01 a folder": ("books", None, "books"),
        "01 a name too long for the system": ("a" * 300 + ".csv", None),
        "01 broken parquet": ("table.parquet", b"\x1f\x8b broken", "table.parquet"),
        "01 broken arrow": ("table.arrow", b"no table", "not a file that can be read as a table"),
        "01 truncated parquet": ("table.parquet", parquet_of(with_record(line))[:-50], "not a file that can be read"),
        "01 truncated gzip": ("table.csv.gz", gzip.compress(with_record(line))[:-9], "cannot read"),
        "01 truncated zstd": ("table.csv.zst", packed[:-9], "cannot read"),
        "01 no zstd": ("table.csv.zst", table_bytes(), "cannot read"),
        "01 zstd by another name": ("table.csv", packed, ".zst"),
        "01 password": ("table.xlsx", bytes.fromhex("d0cf11e0a1b11ae1") + bytes(3000), "password"),
        "01 truncated workbook": ("table.xlsx", workbook, "not a workbook"),
        "01 text as workbook": ("table.xlsx", table_bytes(), "not a workbook"),
        "01 workbook as text": ("table.csv", workbook, "Excel"),
        "02 empty": ("table.csv", b""),
        "02 blank lines": ("table.csv", b"\n\n"),
        "02 a byte order mark": ("table.csv", b"\xef\xbb\xbf"),
        "02 a header": ("table.csv", HEADER.encode()),
        "02 a header and blank lines": ("table.csv", HEADER.encode() + b"\n\r\n\n"),
        "02 parquet without rows": ("table.parquet", parquet_of(table_bytes([])), "no rows"),
        "05 a quote that is not closed": ("table.csv", with_record('"' + line), f"line {PLACE + 2}"),
        "05 a quote inside": ("table.csv", with_record(line.replace("o", 'o"', 1)), f"line {PLACE + 2}"),
        "05 a quoted part of a cell": ("table.csv", with_record('Ro"me",34,1,true,2020-05-17'), f"line {PLACE + 2}"),
        "05 text after a quote": ("table.csv", with_record('"Rome"x,34,1,true,2020-05-17'), f"line {PLACE + 2}"),
        "05 a quote in the header": ("table.csv", b'"' + table_bytes(), "line 1"),
        "01 mixed encodings": ("table.csv", with_record("Zürich" + line) + b"K\xf6ln,34,1,true,\n", "line 62"),
        "08 a huge field": ("table.csv", with_record(CLEAN.replace("Rome", "R" * 2**21)), "city", str(2**20), "limit"),
        "06 latin-1": ("table.csv", with_record("Málaga,34,1,true,2020-05-17".encode("latin-1")), "table.csv"),
        **{
            f"06 {code}": ("table.csv", table_bytes().decode().encode(code), "table.csv")
            for code in ("utf-16", "utf-16-le", "utf-32")
        },
        "10 a column is missing": ("table.csv", table_bytes(header=HEADER.replace("age", "years")), "'age'"),
    }


@pytest.mark.parametrize("case", unreadable())
def test_a_table_that_cannot_be_read_is_refused_in_the_same_words_whatever_a_record_holds(desk, case):
    said = set()
    for line in (CLEAN, "Oslo,61,4999.95,false,2020-11-30"):  # neighbours
        name, data, *words = unreadable(line)[case]
        if data is not None:
            desk.table(data, name)
        result = desk.release(table=name)
        desk.refused(result, 3, *words)
        said.add(result.stderr)
        if case.startswith("01") and data:  # a broken file is broken for a draft as well
            assert name in result.stderr
            desk.refused(run("init", name, "-o", "draft.json"), 3, name)
            assert not (desk.folder / "draft.json").exists()
    assert len(said) == 1


def test_bad_input_01_a_file_that_may_not_be_read(desk, monkeypatch):
    real = Path.open

    def refuse(self, *arguments, **named):  # root may read everything, so the system's refusal is played
        if self.name == "table.csv":
            raise PermissionError(13, "Permission denied", str(self))
        return real(self, *arguments, **named)

    monkeypatch.setattr(Path, "open", refuse)
    desk.refused(desk.release(), 3, "table.csv")


def lines_ending(*ends):
    """The example table, each line with the next of these ends."""
    return "".join(row + ends[i % len(ends)] for i, row in enumerate([HEADER, *ROWS])).encode()


def turned(row):
    return ",".join(row.split(",")[j] for j in (3, 0, 4, 2, 1))


# By the number of the bad input: what is read as the example table, and with which options.
AS_THE_EXAMPLE = {
    "06 a byte order mark": (b"\xef\xbb\xbf" + table_bytes(),),
    **{
        f"06 declared {code}": (table_bytes().decode().encode(code), "--encoding", code)
        for code in ("utf-16", "utf-32", "utf-16-le", "latin-1")
    },
    "07 mixed line ends": (lines_ending("\r\n", "\n"),),
    "07 mixed line ends, turned": (lines_ending("\n", "\r\n"),),
    "07 carriage returns, where they end the header": (lines_ending("\r"),),
    "11 columns in another order": (table_bytes(list(map(turned, ROWS)), turned(HEADER)),),
}


@pytest.mark.parametrize("case", AS_THE_EXAMPLE)
def test_another_spelling_of_a_table_gives_the_same_bundle(desk, case):
    data, *options = AS_THE_EXAMPLE[case]
    same_as_clean(desk, data, *options)


def in_another_dialect():
    """The example table and its schema as a spreadsheet in Vienna would export them."""
    fields = json.loads(json.dumps(FIELDS))
    fields[2] |= {"decimalChar": ",", "groupChar": "."}
    fields[4] |= {"format": "%d.%m.%Y"}
    lines = ["Income of members", "", HEADER.replace(",", ";")]
    for row in ROWS:
        city, age, income, member, joined = row.split(",")
        euros = f"{float(income):,.2f}".translate(str.maketrans(",.", ".,"))
        lines.append(";".join((city, age, euros, member, ".".join(reversed(joined.split("-"))))))
    schema = {"fields": fields, "dialect": {"delimiter": ";", "headerRows": [3]}, "encoding": "windows-1252"}
    return schema, "\r\n".join([*lines, "Zürich;34;1.234,56;true;17.05.2020", ""]).encode("windows-1252")


def test_bad_input_06_the_dialect_that_the_schema_records_is_used(desk):
    desk.table(table_bytes([*ROWS, "Zürich,34,1234.56,true,2020-05-17"]))
    assert desk.seeded(out="reference").exit_code == 0
    schema, data = in_another_dialect()
    (desk.folder / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
    for name, packed in (("table.csv", data), ("table.csv.gz", gzip.compress(data))):
        desk.table(packed, name)
        result = desk.seeded("--force", table=name)
        assert result.exit_code == 0, (result.output, result.exception)
        assert bundle_bytes(desk.folder / "out") == bundle_bytes(desk.folder / "reference")
        # The rows that leave are plain, and so is the schema beside them.
        assert (desk.folder / "out/schema.json").read_bytes() == (desk.folder / "reference/schema.json").read_bytes()
        ok("verify", "out")


def test_bad_input_06_a_dialect_that_is_not_there_is_refused(desk):
    schema, data = in_another_dialect()
    desk.table(data)
    desk.refused(desk.release(), 3, "not UTF-8")
    desk.refused(desk.release("--encoding", "ascii"), 3, "ascii")
    for dialect in ({}, {"delimiter": ";"}, {"delimiter": "|", "headerRows": [3]}, {"headerRows": [900]}):
        (desk.folder / "schema.json").write_text(json.dumps({**schema, "dialect": dialect}), encoding="utf-8")
        desk.refused(desk.release(), 3)
    (desk.folder / "schema.json").write_text(json.dumps({**schema, "dialect": {"delimiter": "x"}}), encoding="utf-8")
    bad_parameter(desk, desk.release(), "separator")


def test_bad_input_05_a_second_header_and_a_separator_inside_an_unquoted_cell(desk):
    desk.table(table_bytes([HEADINGS, *ROWS]))
    desk.refused(run("init", "table.csv", "-o", "draft.json"), 3, "second header")
    desk.table(with_record(CLEAN.replace("Rome", "Rome, Italy")))
    said = ok("init", "table.csv", "-o", "draft.json").output
    assert "surplus cells of 1 row ignored" in said
    assert "separator may be inside unquoted cells" in said


def test_bad_input_09_a_day_that_is_also_a_month(desk):
    """Two readings: the column is left out and the choice named; whoever says which gets it. Neighbours draft alike."""
    told = set()
    for day in ("04/05/2024", "12/01/2024"):
        rows = [f"{row.split(',')[0]},{j % 12 + 1:02}/{j % 11 + 1:02}/2024" for j, row in enumerate(ROWS)]
        rows[PLACE] = f"Rome,{day}"
        desk.table(table_bytes(rows, "city,seen"))
        said = ok("init", "table.csv", "-o", "draft.json", "--force").output
        assert "LEFT OUT: 1 column\n" in said
        assert "%d/%m/%Y and %m/%d/%Y" in said
        assert "--date-format" in said
        told.add((said, (desk.folder / "draft.json").read_bytes()))
        ok("init", "table.csv", "-o", "draft.json", "--force", "--date-format", "%d/%m/%Y")
        assert [field.type for field in Schema.load(desk.folder / "draft.json").fields] == ["string", "date"]
    assert len(told) == 1
    assert spent() == 0


@pytest.mark.parametrize("tail", [b'Rome,"', b"Rome,"], ids=["open-quote", "one-field"])
def test_bad_input_08_a_record_that_never_ends(desk, monkeypatch, tail):
    """A table may be of any length; what is held in memory at once may not."""
    monkeypatch.setattr(csvfile, "BLOCK", 1000)
    monkeypatch.setattr(csvfile, "RECORD_LIMIT", 2000)
    desk.table(table_bytes() + tail + (b"x" if tail.endswith(b",") else b"\n") * 10_000)
    desk.refused(desk.release(), 3, "table.csv", "line")


@pytest.mark.parametrize("kind", ["gz", "parquet"])
def test_bad_input_08_a_compression_bomb(desk, monkeypatch, kind):
    limit = 2**20
    monkeypatch.setitem(open_source.__kwdefaults__, "size_limit", limit)
    if kind == "gz":
        name = "bomb.csv.gz"
        desk.table(gzip.compress(table_bytes() + b"\n" * (4 * limit)), name)
    else:
        name = "bomb.parquet"
        row = pl.read_csv(io.BytesIO(table_bytes([CLEAN])))
        pl.concat([row] * 20_000).write_parquet(desk.folder / name, compression="zstd")
    assert (desk.folder / name).stat().st_size < limit
    desk.refused(desk.release(table=name), 3, name, str(limit), "limit")


@pytest.mark.parametrize("header", ["city,age,income,member,joined,joined", "city,age,income,member,joined,age"])
def test_bad_input_09_duplicate_columns(desk, header):
    desk.table(table_bytes(header=header))
    done = desk.release()
    assert done.exit_code == 0
    assert f"a column is called '{header.rpartition(',')[2]}_2': another one has the name" in done.output


def test_bad_input_10_extra_column_is_ignored_and_logged(desk):
    wide = table_bytes([f"secret{i},{row}" for i, row in enumerate(ROWS)], "note," + HEADER)
    same_as_clean(desk, wide)
    assert desk.encoded()[1].ignored == ("note",)
    for path in (desk.folder / "out").iterdir():
        assert b"note," not in path.read_bytes()
        assert b"secret" not in path.read_bytes()


REQUIRED = [
    entry("city", "string", enum=["Rome", "Oslo", "Lima"], required=True, default="Oslo"),
    entry("age", "integer", 0, 99, required=True, default=50, bins=5),
    *FIELDS[2:],
]
BLANKS = {"blank": ",,,,", "spaces": " ,  ,\t, ,   ", "quoted": '"","","","",""'}
BLANKS |= {"NaN": "NaN,nan,NAN,NaN,nan", "null": "null,NULL,null,Null,null"}

BEYOND = {
    "above": ("Rome,100,5000.01,true,2021-01-01", [4, 3, 3]),
    "below": ("Rome,-1,-0.01,true,2019-12-31", [0, 0, 0]),
    "inf": ("Rome,inf,inf,true,9999-12-31", [4, 3, 3]),
    "-inf": ("Rome,-inf,-inf,true,0001-01-01", [0, 0, 0]),
    "1e400": ("Rome,1e400,1e400,true,9999-12-31", [4, 3, 3]),
    "-1e400": ("Rome,-1e400,-1e400,true,0001-01-01", [0, 0, 0]),
    "digits": ("Rome," + "9" * 400 + "," + "9" * 30 + ",true,2020-12-31", [4, 3, 3]),
}

TEXTS = {
    "words": "Rome,forty,a lot,perhaps,yesterday",
    "comma": 'Rome,"1,5","1,5",true,"17,5,2020"',
    "locale": 'Rome,1 000,"1.234,56",ja,17.05.2020',
    "hex": "Rome,0x10,1_000,2,2020-13-45",
    "spaces": "Rome, 34 , 1234.56 , true , 2020-05-17 ",
    "arabic": "Rome,٣٤,½,✓,二〇二〇",
}

# By the number of the bad input: a record, and how it is read. Four of the columns have a last category for what is missing,
# the required flag is false then. What is written down of it, for the owner of the table, is tested in tests/tables.
BLANK, READ_CLEAN = [4, 5, 4, 0, 4], [0, 1, 0, 1, 1]
READ = {
    "04 short": ("Rome,34", [0, 1, 4, 0, 4]),
    "04 long": (CLEAN + ",surplus,fields", READ_CLEAN),
    "04 blank": ("", BLANK),
    "07 nul": ("\0,\0,\0,\0,\0", BLANK),
    "07 nul inside": ("Ro\0me,3\x004,12\x0034.56,tr\0ue,2020-05-17\0", BLANK),
    **{f"12 {name}": (line, BLANK) for name, line in BLANKS.items()},
    "13 unknown": (CLEAN.replace("Rome", "Atlantis"), [3, *READ_CLEAN[1:]]),
    **{f"14 {name}": (line, [0, *bins[:2], 1, bins[2]]) for name, (line, bins) in BEYOND.items()},
    **{f"15 {name}": (line, None) for name, line in TEXTS.items() if name != "spaces"},
    "15 spaces": (TEXTS["spaces"], READ_CLEAN),
}


@pytest.mark.parametrize("case", READ)
def test_a_strange_record_is_kept_and_read_by_one_rule(desk, case):
    line, codes = READ[case]
    found = desk.values(line)
    assert (found == codes) if codes else [found[1], found[2], found[4]] == [5, 4, 4]  # text in numbers is missing
    desk.schema(REQUIRED)  # where a category is required the default stands for it: Oslo, and the bin of 50
    if case[:2] in ("12", "13"):
        assert desk.values(line)[:2] == ([1, 2] if case[:2] == "12" else [1, 1])


HEADINGS = "town,years,euros,yes or no,day"
LABELS_NOBODY_HAS = ("Atlantis", "ROME", "x" * 5000, "Köln", '"a ""b"", c"')
HOSTILE = ("=cmd()", "<script>", "../x", "'=1+1", "\u202eabc", "\x1b[31mred", "%s{0}")
# By the number of the bad input: records of which none may leave a trace, alone or with the others of their line.
TRACELESS = {
    "04 ragged": ("Rome,34", "Rome", "", CLEAN + ",surplus,fields", "," * 30),
    "05 a header, a separator": (HEADINGS, CLEAN.replace("Rome", "Rome, Italy")),
    "06 another dialect": (
        'Rome,34,"1,234.56",true,2020-05-17',
        'Rome,34,"1234,56",true,2020-05-17',
        "Rome,34,1234.56,true,17.05.2020",
        "Rome;34;1234.56;true;2020-05-17",
        "Rome\t34\t1234.56\ttrue\t2020-05-17",
        "TOTAL,,99999.99,,",
    ),
    "07 nul": (
        "Ro\0me,34,1234.56,true,2020-05-17",
        "Rome,\0,12\x0034.56,true,2020-05-17",
        "Rome,34,1234.56,\0true,2020-\x0005-17",
        "\0,\0,\0,\0,\0",
    ),
    # One person's cell must not become several records, nor change the published number of rows.
    "07 carriage returns": (
        "Ro\rme,34,1234.56,true,2020-05-17",
        f"Rome\r{CLEAN}\r{CLEAN},34,1234.56,true,2020-05-17",
        "\r",
        "Rome,3\r4,1234.56,true,2020-05-17",
        CLEAN + "\r\r",
        '"Ro\rme",34,1234.56,true,2020-05-17',
        CLEAN + "\r",
    ),
    "12 missing": tuple(BLANKS.values()),
    "13 unknown": tuple(f"{label},34,1234.56,true,2020-05-17" for label in LABELS_NOBODY_HAS),
    "14 out of bounds": tuple(line for line, _ in BEYOND.values()),
    "15 text in numbers": tuple(TEXTS.values()),
    "34 hostile": tuple(",".join([label] * 5) for label in HOSTILE),
}


@pytest.mark.parametrize("name", TRACELESS)
def test_strange_records_leave_no_trace(desk, name):
    desk.twins(with_record(*TRACELESS[name]))
    if name.startswith("12"):
        desk.twins(with_record(*TRACELESS[name]), fields=REQUIRED)
    files = [path.read_bytes() for path in desk.folder.glob("dirty*/out/*") if path.suffix != ".npz"]
    told = [label for label in (*LABELS_NOBODY_HAS, *HOSTILE) if label != "ROME"]
    assert not [label for label in told for data in files if label.encode() in data]


# By the number of the bad input: options, and the word that the refusal has. No table is opened.
IMPOSSIBLE = [
    *(("06", ("--encoding", value), "encoding") for value in ("klingon", "", "base64")),
    *(
        ("23", ("--epsilon", value), "epsilon")
        for value in ("0", "-1", "-0.0", "nan", "inf", "-inf", "abc", "", "1e400")
    ),
    *(("23", ("--epsilon", value), "epsilon") for value in ("1e-13", "1e-10", "1,5")),
    ("25", ("--confirm-large-epsilon", "--epsilon", "1e7"), "epsilon"),
    ("26", ("--owner", "\udcfc"), "no character of UTF-8"),
    *(("26", ("--delta", value), "delta") for value in ("-1e-9", "1", "2", "nan", "inf", "abc", "")),
    *(("26", ("--rows-per-person", value), "rows") for value in ("0", "-1", "1.5", "abc")),
    *(
        ("26", ("--rows-per-person", str(10**k), "--delta", d), "rows")
        for k, d in product((13, 40, 400), ("0", "1e-9"))
    ),
    *(("27", ("--rows", value), "rows") for value in ("0", "-5", "2.5", "abc", "")),
    *(("27", ("--rows", str(value)), str(value)) for value in (10**15, 10**30)),
    ("32", ("--seed", "5"), "seed"),
    *(("32", ("--seed", value), "seed") for value in ("-1", "abc", "1.5", "")),
]


def flags(count):
    return [entry(f"f{j}", "boolean", required=True) for j in range(count)]


# Schemas, by the number of the bad input, and the word of their refusal; tests/tables/test_schema.py has more of them.
IMPOSSIBLE_SCHEMAS = {
    "09 a field twice": ([*FIELDS, FIELDS[1]], "age"),
    "14 limits that are reversed": ([entry("age", "integer", 9, 0), *FIELDS[2:]], "age"),
    "18 nothing but a constant": ([entry("city", "string", enum=["Rome"], required=True)], "constant"),
    "28 too many categories for memory": (
        [entry("city", "string", enum=[f"c{j}" for j in range(200)]), *FIELDS[1:]],
        "GiB",
    ),
    "28 too many flags for memory": (flags(200), "GiB"),
}


@pytest.mark.parametrize(("number", "options", "word"), IMPOSSIBLE, ids=lambda value: str(value)[:40])
def test_impossible_parameters_are_refused_before_data_is_opened(desk, number, options, word):
    desk.no_data()
    dataset = None if number == "32" and options[1] != "5" else "people"
    bad_parameter(desk, desk.release(*options, dataset=dataset), word)


@pytest.mark.parametrize("case", IMPOSSIBLE_SCHEMAS)
def test_impossible_schemas_are_refused_before_data_is_opened(desk, monkeypatch, case):
    fields, word = IMPOSSIBLE_SCHEMAS[case]
    desk.schema(fields)
    if "memory" in case:
        monkeypatch.setattr(arrays_module, "physical_memory", lambda: 2**21)
    desk.no_data()
    bad_parameter(desk, desk.release(), word)
    if case.startswith("09"):
        bad_parameter(desk, anonymize(desk, "--group-size", 5))


def wide(rows):
    """A table of flags, one letter each."""
    return table_bytes([",".join(row) for row in rows], ",".join(f"f{j}" for j in range(len(rows[0]))))


FEW, MANY = "with n = 5, 40 columns and epsilon = 1 ", wide(["10" * 100, "01" * 100] * 30)
# Little to go by: a schema, a table and a neighbour of it, δ, and what is said of it.
NOISE = {
    "03 one row": (FIELDS, [table_bytes(rows) for rows in (ROWS[:1], [CLEAN])], "0", "warning: with n = 1,"),
    "03 two rows": (FIELDS, [table_bytes([row, ROWS[1]]) for row in (ROWS[0], CLEAN)], "0", "warning: with n = 2,"),
    "19 columns": (flags(40), [wide([cell * 40] * 5) for cell in "01"], "0", f"warning: {FEW}; mostly noise"),
    "20 one flag": (FIELDS[3:4], [table_bytes(["true", "false"] * 30, "member")], "0", ""),
    "20 one category": (FIELDS[:1], [table_bytes(["Rome", "Oslo", "Lima"] * 20, "city")], "0", ""),
    **{f"24 tiny epsilon, δ = {delta}": (FIELDS, [table_bytes()], delta, "mostly noise") for delta in ("0", "1e-9")},
    **{f"24 tiny epsilon, flags, δ = {delta}": (flags(200), [MANY], delta, "mostly noise") for delta in ("0", "1e-9")},
}


@pytest.mark.parametrize("case", NOISE)
def test_little_to_go_by_runs_on_noise_and_says_so_from_public_numbers(desk, case):
    fields, tables, delta, words = NOISE[case]
    desk.schema(fields)
    epsilon, said = "1e-9" if case.startswith("24") else "1", set()
    for data in tables:
        desk.table(data)
        result = desk.release("--rows", "40", "--force", "--delta", delta, epsilon=epsilon)
        assert result.exit_code == 0, (result.output, result.exception)
        assert all(word in result.stderr for word in words.split("; "))
        said.add(result.stderr)
        ok("verify", "out")
    assert len(said) == 1
    assert not shown_cells(*said)
    with np.load(desk.folder / "out" / "model.npz") as centres:
        assert np.isfinite(centres["points"]).all()
        assert centres["weights"].sum() == pytest.approx(1)
    if case.startswith("03"):
        desk.twins(*tables)
    if case.startswith("24"):
        assert spent() == 1e-9  # the ledger's smallest step, rounded up


def test_bad_input_17_constant_columns_and_identical_rows_are_nothing_special(desk):
    same = [CLEAN] * len(ROWS)
    desk.twins(table_bytes(same), table_bytes([*same[1:], ROWS[0]]), modes=((), ("--seed", "5")))
    for rows in (same, ["Rome" + row[4:] for row in ROWS], [",,,,"] * len(ROWS)):
        desk.twins(table_bytes(rows), table_bytes())


def anonymize(desk, *options, out="out"):
    return run("anonymize", "table.csv", "--schema", "schema.json", "--out", out, *options)


def test_bad_input_25_large_epsilon_must_be_confirmed_and_is_on_the_certificate(desk):
    result = desk.release(epsilon="10.001", table="absent.csv")
    desk.refused(result, 2, "10", "--confirm-large-epsilon")
    for epsilon, option, large in (("10", (), False), ("10.001", ("--confirm-large-epsilon",), True)):
        ok("ledger", "open", epsilon, "--budget", "11")
        assert desk.release("--force", *option, epsilon=epsilon, dataset=epsilon).exit_code == 0
        said = json.loads((desk.folder / "out" / "certificate.json").read_text(encoding="utf-8")).get("note", "")
        for words in (said, (desk.folder / "out" / "README.md").read_text(encoding="utf-8")):
            assert ("larger than 10" in words) == large
        ok("verify", "out")


@pytest.mark.parametrize("delta", ["0.0167", "0.5", repr(1 / 50)])
def test_bad_input_26_delta_from_one_nth_on(desk, delta):
    # n is public, but only the table tells it: it is opened, and nothing is charged.
    desk.ledger.unlink()
    desk.ledger.with_name(desk.ledger.name + ".mark").unlink()
    ok("ledger", "open", "people", "--budget", "20", "--delta-budget", "0.9")
    bad_parameter(desk, desk.release("--delta", delta), "delta", "1/n")


# 30 to 32: the ledger, through the command line; tests/ledger/test_ledger.py has every way to damage one.


def test_bad_input_30_budget_exhausted(desk):
    """tests/desk/cli/test_commands.py has a dataset that nobody opened, and a δ that its budget does not cover."""
    for out in ("first", "second"):
        assert desk.release(epsilon="9.5", out=out).exit_code == 0
    desk.no_data()
    for name in ("table.csv", "absent.csv"):
        result = desk.release(epsilon="1.000000001", table=name)
        desk.refused(result, 4, "people", "Budget: ε = 20,", "Spent: ε = 19,", "Remaining: ε = 1,", charged=19)


@pytest.mark.parametrize("damage", ["read-only", "not-sqlite", "deleted"])
def test_bad_input_31_a_damaged_ledger_keeps_the_data_closed_and_its_bytes(desk, damage):
    assert desk.release(out="first").exit_code == 0
    if damage == "read-only":
        desk.ledger.chmod(0o400)
    elif damage == "not-sqlite":
        desk.ledger.write_bytes(b"this is no database" * 100)
    else:
        desk.ledger.unlink()
    desk.no_data()
    before = desk.ledger.read_bytes() if desk.ledger.exists() else None
    desk.refused(desk.release(), 4, str(desk.ledger.parent), charged=None)
    assert (desk.ledger.read_bytes() if desk.ledger.exists() else None) == before
    assert damage == "read-only" or run("ledger", "show").exit_code == 4
    assert run("ledger", "open", "people", "--budget", "20").exit_code == 4


def test_bad_input_32_a_seeded_run_is_stamped_and_not_charged(desk):
    """tests/release/test_bundle.py looks at the stamps in its files."""
    before = desk.ledger.read_bytes()
    result = desk.seeded("--ledger", str(desk.ledger))
    assert result.exit_code == 0
    assert "not private" in result.stdout
    assert ok("verify", "out").stdout.count("not private") == 1
    assert json.loads(ok("verify", "out", "--json").stdout)["privacy"]["private"] is False
    assert desk.ledger.read_bytes() == before
    assert spent() == 0
    assert desk.seeded("--ledger", "new.sqlite", "--force").exit_code == 0
    assert not (desk.folder / "new.sqlite").exists()


# 33 to 35: the output. What signal 9 leaves behind is looked at by tests/test_faults.py.


# What stands where the output should go, alone and with --force, a release must leave alone; and places that cannot be made.
IN_THE_WAY = (
    "taken",
    "file",
    "home",
    "downloads",
    ".",
    "table.csv",
    "./table.csv",
    "link.csv",
    "table.csv/out",
    "o" * 300,
)


@pytest.mark.parametrize("name", IN_THE_WAY, ids=lambda name: name[:20])
def test_bad_input_33_what_is_in_the_way_of_the_output_is_left_alone(desk, name):
    for folder in ("taken", "home", "downloads"):
        (desk.folder / folder).mkdir()
    for file in ("file", "home/precious", "downloads/precious"):
        (desk.folder / file).write_text("mine")
    (desk.folder / "downloads" / "SHA256SUMS").write_text("0" * 64 + "  image.iso\n")  # of other things
    (desk.folder / "link.csv").symlink_to("table.csv")
    before = {path: path.read_bytes() for path in desk.folder.rglob("*") if path.is_file()}
    desk.no_data()
    for force in ((), ("--force",)):
        for place in (name, str(desk.folder / name)):
            if force and name == "taken":  # an empty folder may be replaced
                continue
            bad_parameter(desk, desk.release(*force, out=place))
            bad_parameter(desk, anonymize(desk, "--group-size", "5", *force, out=place))
            if name.endswith(".csv"):
                assert run("init", "table.csv", "-o", place, *force).exit_code == 2
    assert {path: path.read_bytes() for path in desk.folder.rglob("*") if path.is_file()} == before


def test_bad_input_33_force_replaces_a_bundle(desk):
    assert desk.release().exit_code == 0
    first = (desk.folder / "out" / "SHA256SUMS").read_bytes()
    assert desk.release().exit_code == 2
    assert desk.release("--force").exit_code == 0
    assert (desk.folder / "out" / "SHA256SUMS").read_bytes() != first
    ok("verify", "out")
    assert desk.left_behind() == ["out"]
    assert spent() == 2


def test_bad_input_33_the_input_inside_a_forced_output_is_not_overwritten(desk):
    assert desk.seeded(out="bundle").exit_code == 0
    before = (desk.folder / "bundle" / "synthetic.csv").read_bytes()
    bad_parameter(desk, desk.release("--force", table="bundle/synthetic.csv", out="bundle"), "bundle")
    assert (desk.folder / "bundle" / "synthetic.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("init", "table.csv", "-o", "schema.json"), "schema.json"),
        (("demo", "--out", ".", "--rows", "200"), "patients.csv"),
        *(
            (("evaluate", "table.csv", "out", "-o", name), name)
            for name in ("table.csv", "patients.csv", "schema.json")
        ),
    ],
)
def test_bad_input_33_no_command_overwrites_a_file_unasked(desk, command, name):
    if command[0] == "evaluate":
        assert desk.seeded().exit_code == 0
    (desk.folder / "patients.csv").write_text("mine")
    before = (desk.folder / name).read_bytes()
    assert run(*command).exit_code == 2
    assert (desk.folder / name).read_bytes() == before


LABELS = ["=cmd()", "<script>alert(1)</script>", "../x", "+1", "-1", "@SUM(A1)", "/etc/passwd", "a,b", 'say "x"']


@pytest.mark.parametrize("name", ["=cmd()", "<script>", "../x", "/etc/passwd"])
def test_bad_input_34_hostile_labels_in_schema_data_and_ledger(desk, name):
    desk.schema([entry(name, "string", enum=LABELS, required=True), *FIELDS[1:]])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([name, *HEADER.split(",")[1:]])
    writer.writerows([LABELS[i % len(LABELS)], *row.split(",")[1:]] for i, row in enumerate(ROWS))
    desk.table(text.getvalue().encode())
    ok("ledger", "open", name, "--budget", "2")
    before = set(desk.folder.parent.rglob("*"))
    runs = {"out": desk.release("--rows", "300", dataset=name)}
    runs["anonymous"] = anonymize(desk, "--group-size", "5", "--rows", "300", out="anonymous")
    for out, made in runs.items():
        assert made.exit_code == 0, (made.output, made.exception)
        ok("verify", out)
        ok("evaluate", "table.csv", out)
        with (desk.folder / out / "synthetic.csv").open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        assert header[0].removeprefix("'") == name
        assert {row[0].removeprefix("'") for row in rows} <= set(LABELS)
        assert {row[0] for row in rows} & {"'=cmd()", "'@SUM(A1)"}
        cells = [cell for row in [header, *rows] for cell in row if cell not in ("+1", "-1")]  # numbers are no formulas
        assert not any(cell.startswith(GUARDED) for cell in cells)
        words = (desk.folder / out / "README.md").read_text(encoding="utf-8")
        assert "<script" not in words
        assert not any(label in words for label in LABELS if len(label) > 3)
    written = set(desk.folder.parent.rglob("*")) - before
    expected = {desk.folder / "out" / f for f in FILES} | {desk.folder / "anonymous" / f for f in FILES}
    assert written <= expected | {desk.folder / "out", desk.folder / "anonymous"}
    assert {path.name for path in (desk.folder / "out").iterdir()} == FILES


@pytest.mark.parametrize("label", ["a\rb", "a\nb", "\ud800", "\x1b[31m", "\u202e", "null", "NaN", "'=x", "x" * 5000])
def test_bad_input_34_odd_labels_in_the_schema_are_refused_or_verify(desk, label):
    # A public thing: refused before the charge, or carried to a bundle that is whole.
    desk.schema([entry("city", "string", enum=[label, "Rome"], required=True), *FIELDS[1:]])
    result = desk.release("--rows", "100")
    if result.exit_code == 2:
        bad_parameter(desk, result)
        return
    assert result.exit_code == 0, (result.output, result.exception)
    ok("verify", "out")


@pytest.mark.parametrize("writer", ["writing_csv", "write_document", "_write_sums", "_sync"])
def test_bad_input_35_disk_full_in_the_middle_of_writing(desk, monkeypatch, writer):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(bundles, writer, full)
        result = desk.release()
    assert result.exit_code == 5
    assert result.stderr.endswith("covey: No space left on device. " + CHARGE_STAYS + "\n")
    assert not desk.left_behind()
    assert spent() == 1
    assert desk.release().exit_code == 0
    assert spent() == 2  # and noise is never drawn again for free
    ok("verify", "out")


def test_bad_input_35_a_failed_replacement_keeps_the_old_bundle(desk, monkeypatch):
    assert desk.release().exit_code == 0
    old = (desk.folder / "out" / "SHA256SUMS").read_bytes()
    real = os.replace

    def full(source, target):
        if Path(target).name == "out" and "old" not in str(source):
            raise OSError(28, "No space left on device")
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        assert desk.release("--force").exit_code == 5
    assert desk.left_behind() == ["out"]
    assert (desk.folder / "out" / "SHA256SUMS").read_bytes() == old
    ok("verify", "out")
    assert spent() == 2


ODD = {
    "all missing": [""] * 60,
    "constant": ["5"] * 60,
    "one value beside holes": [""] * 59 + ["7"],
    "not numbers": ["nan", "inf", "-inf", "NaN", "+inf", "x"] * 10,
    "beyond the bounds": ["1e300", "-1e300", "9" * 400] * 20,
    "specials inside the range": ["3", "99", "N"] * 20,
    "tiny steps": [f"{5 + k * 1e-13:.13f}" for k in range(60)],
}


@pytest.mark.parametrize("delta", [0, 1e-3])
@pytest.mark.parametrize("name", ODD)
def test_odd_columns_give_valid_rows(name, delta):
    fields = [entry("a", "number", 0, 1000, decimals=2, special=["99", "N"])]
    schema = Schema.from_dict({"fields": [*fields, entry("b", "number", 0, 9, decimals=2, difference_from="a")]})
    table = {"a": ODD[name], "b": [str(k % 10) for k in range(60)]}
    rows = covey.PrivateSynthesizer(2.0, delta, schema=schema, seed=1).fit(table).sample(80)
    assert not schema.validate(rows)
