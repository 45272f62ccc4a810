"""Pictures of true columns: right, quick to tell long tails and point masses, and of nothing that is left out."""

import numpy as np
import pytest

from covey.desk.web.pictures import VISIBLE, pictures
from covey.tables.dialects import Dialect, Spelling
from covey.tables.fields import Field
from covey.tables.schema import Schema
from tests.desk.web.conftest import words

SCHEMA = Schema((Field("cost", "integer", confirmed=False),), dialect=Dialect(";"))


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    costs = [0] * 60 + list(range(1, 40)) + [5000]
    lines = [f"{cost};{'ab'[j % 2]};{j % 28 + 1:02}.01.2024;{'' if j < 10 else 1}" for j, cost in enumerate(costs)]
    path.write_text("\n".join(["cost;ward;seen;hole", *lines]) + "\n")
    return path


def test_a_long_tail_and_a_point_mass_are_seen(table):
    fields = [Field("cost", "integer", confirmed=False), Field("ward", "string", confirmed=False)]
    found = pictures(table, SCHEMA, fields)
    cost = found["cost"]
    assert cost.low < 0 < 5000 < cost.high
    assert sum(bar > 0 for bar in cost.bars) == 2
    assert min(bar for bar in cost.bars if bar) == VISIBLE
    assert "60% are exactly 0" in cost.words
    assert found["ward"].bars == (1.0, 1.0)
    limits = Field("cost", "integer", minimum=1, maximum=39, confirmed=False)
    assert cost.outside(limits) == 61  # zeros, and the one far out; the limits themselves are inside
    assert found["ward"].outside(Field("ward", "string", enum=("b", "c"), confirmed=False)) == 50


def test_dates_are_read_as_the_schema_spells_them_and_gaps_are_told(table):
    seen = Field("seen", "date", spelling=Spelling(date_format="%d.%m.%Y"), confirmed=False)
    found = pictures(table, SCHEMA, [seen, Field("hole", "integer", confirmed=False)])
    assert found["seen"].words.startswith("half below 2024-01-1")
    assert found["hole"].words.endswith("10% missing")
    days = (np.datetime64("2024-01-01") - np.datetime64("1970-01-01")).astype(int)
    assert found["seen"].low < days < found["seen"].high
    wrong = pictures(table, SCHEMA, [Field("ward", "number", confirmed=False)])
    assert wrong["ward"].bars == ()


def test_the_page_brings_pictures_of_kept_columns_alone_and_forgets_them_with_the_table(page):
    work = page.new_work()
    rows = "".join(f"MRN-{i:05},{20 + i % 60}\n" for i in range(300))
    assert page.upload(work, f"patient,age\n{rows}").status_code == 303
    places = {column.field.name: place for place, column in enumerate(page.workspace.work(work).columns)}
    drawn = page.get(f"/work/{work}/columns/{places['age']}/picture")
    assert "<svg" in drawn.text
    assert "half below" in words(drawn)
    assert drawn.headers["cache-control"] == "no-store"
    blank = page.get(f"/work/{work}/columns/{places['patient']}/picture")
    assert "<svg" not in blank.text
    assert "MRN" not in blank.text
    assert page.get(f"/work/{work}/columns/99/picture").status_code == 404
    # While limits are typed, the page counts the cells that they would move.
    typed = {"type": "integer", "minimum": "0", "maximum": "30"}
    said = words(page.post(f"/work/{work}/columns/{places['age']}/typed", typed))
    assert "Saved as you typed it. 245 cells of your table would be moved to a limit." in said
    kept = [path for path in page.workspace.work(work).folder.iterdir() if "table" not in path.name]
    files = b"".join(path.read_bytes() for path in kept)
    assert b"half below" not in files
    page.upload(work, "height\n1\n2\n")
    assert page.workspace.work(work)._pictures == {}
