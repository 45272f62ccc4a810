import pytest

from covey.tables.sources import read_table
from tests.tables.examples import SCHEMA


@pytest.fixture
def read(tmp_path):
    def read(data, name="t.csv", **options):
        (tmp_path / name).write_bytes(data)
        return read_table(tmp_path / name, SCHEMA, **options)

    return read
