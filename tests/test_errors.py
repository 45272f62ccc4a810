"""Messages name arguments in the words of the place where they appear."""

import importlib
import pickle
import subprocess
import sys
from fractions import Fraction

import polars
import pytest

from covey.engine.fit.devices import find_device
from covey.errors import ArgumentError, CoveyError, InputError, MissingExtraError, UnknownDatasetError, optional
from covey.libraries import pl
from covey.tables.schema import Field, Schema
from covey.tables.sources import read_table
from covey.tables.sources.databases import Database
from covey.workflow import refuse_misfits
from tests.commands import run


def test_every_second_part_of_a_message_is_spelled_as_the_place_does():
    error = ArgumentError("give ", "target_error", ", or ", "epsilon", ".")
    assert str(error) == "give target_error, or epsilon."
    assert error.naming(lambda name: "--" + name.replace("_", "-")) == "give --target-error, or --epsilon."
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (ArgumentError, str(error))
    for plain in (CoveyError("alone"), MissingExtraError("alone"), InputError("alone")):
        assert str(plain) == plain.naming(str.upper) == "alone"
    unknown = UnknownDatasetError("books", "x", ("y",))
    assert str(pickle.loads(pickle.dumps(unknown))) == str(unknown)


def test_the_command_line_names_its_options_and_python_its_arguments(tmp_path):
    table, schema = tmp_path / "t.csv", tmp_path / "s.json"
    polars.DataFrame({"ward": ["a", "b"] * 50, "age": [5, 500] * 50}).write_csv(table)
    Schema((Field("age", "integer", 0, 9), Field("ward", "string", enum=("a", "b")))).save(schema)

    def told(*options):
        line = ["release", str(table), "--epsilon", "1", "--seed", "1", "--out", str(tmp_path / "out"), *options]
        return run(*line).output

    said = "give --schema, the public description of the table, or --learn to learn limits and categories with noise"
    assert said in told()
    assert "Give a small --delta, such as 1e-9" in told("--learn")
    assert "or allow more with --accept-misfits." in told("--schema", schema)
    with pytest.raises(InputError, match="or allow more with accept_misfits"):
        refuse_misfits({"age": Fraction(1)}, Fraction(0))


def test_heavy_packages_are_imported_late(tmp_path):
    """And pandas never, where a file is read: it would take longer than reading."""
    polars.DataFrame({"mood": ["good", "bad"] * 50}).write_parquet(tmp_path / "t.parquet")
    code = (
        "import sys, covey.tables.schema, covey.tables.codec, covey.tables.sources, covey.tables.metadata;"
        "late = not any(m in sys.modules for m in ('polars', 'pandas', 'pyarrow', 'yaml'));"
        "rows = covey.tables.sources.read_table(sys.argv[1]).rows;"
        "sys.exit(not late or rows != 100 or 'pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, tmp_path / "t.parquet"], check=False).returncode == 0


@pytest.mark.parametrize(
    ("package", "extra", "ask"),
    [
        ("torch", "gpu", lambda: find_device("torch:cpu")),
        ("torch", "gpu", lambda: find_device("cuda")),
        ("adbc_driver_postgresql.dbapi", "database", lambda: read_table(Database("postgresql://x/d", table="t"))),
    ],
)
def test_a_missing_extra_is_named(monkeypatch, package, extra, ask):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"covey\[{extra}\]"):
        ask()


def test_a_missing_package_names_the_install_line(monkeypatch):
    def refuse(name, *rest):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    monkeypatch.setattr(pl, "__dict__", {"_module": "polars"})  # nothing of it was used before
    with pytest.raises(MissingExtraError, match=r"pip install 'covey\[table\]'"):
        read_table({"age": [1]})
    with pytest.raises(MissingExtraError, match=r"this needs pandas: pip install pandas$"):  # which is nobody's extra
        optional("pandas")
