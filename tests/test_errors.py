"""Messages name arguments in the words of the place where they appear."""

import pickle
from fractions import Fraction

import polars as pl
import pytest
from click.testing import CliRunner

from covey.cli import main
from covey.errors import ArgumentError, CoveyError, InputError, MissingExtraError, UnknownDatasetError
from covey.table.schema import Field, Schema
from covey.workflow import refuse_misfits


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
    pl.DataFrame({"ward": ["a", "b"] * 50, "age": [5, 500] * 50}).write_csv(table)
    Schema((Field("age", "integer", 0, 9), Field("ward", "string", enum=("a", "b")))).save(schema)

    def run(*options):
        line = ["release", str(table), "--epsilon", "1", "--seed", "1", "--out", str(tmp_path / "out"), *options]
        return CliRunner().invoke(main, line).output

    assert (
        "give --schema, the public description of the table, or --learn to learn limits and categories with noise"
        in run()
    )
    assert "Give a small --delta, such as 1e-9" in run("--learn")
    assert "or allow more with --accept-misfits." in run("--schema", str(schema))
    with pytest.raises(InputError, match="or allow more with accept_misfits"):
        refuse_misfits({"age": Fraction(1)}, Fraction(0))
