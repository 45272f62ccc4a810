"""What a draft finds doubtful, column by column."""

import pytest

from covey.table.hints import hints
from covey.table.metadata import draft
from covey.table.sources import read_table

IDENTIFIER, DATES, COMMA, CODE = "identifier: leave", "yyyy-mm-dd", "decimal point", "code or quantity"


def hint(tmp_path, cells):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f'"{cell}",1\n' for cell in cells))
    table = read_table(tmp_path / "t.csv")
    found = hints(table, draft(table))
    assert set(found) <= {"x"}  # a flag is never doubtful
    return found.get("x")


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([f"patient {j}" for j in range(30)], IDENTIFIER),
        ([f"patient {j}" for j in range(30)] + [""], IDENTIFIER),
        (range(1, 10), IDENTIFIER),
        (range(1_000, 4_000, 17), IDENTIFIER),
        ([f"{j:06}" for j in range(300, 400, 3)], IDENTIFIER),
        ([f"{j % 28 + 1}.03.2024" for j in range(60)], DATES),
        ([f"{j % 12 + 1}/{j % 28 + 1}/24" for j in range(60)], DATES),
        ([f"{j % 28 + 1}.03.2024 12:30" for j in range(60)] + ["unknown"], DATES),
        ([f"{j},5" for j in range(60)], COMMA),
        (["1.250,75", "-3,1", "4", "", "7"] * 5, COMMA),
        (
            [f"town {j % 130}" for j in range(400)],
            "130 values; the 100 most frequent are kept, the rest become 'other'",
        ),
        ([f"{j % 30:03}" for j in range(100)], CODE),
        ([j % 5 + 1 for j in range(100)], f"5 different values; {CODE}"),
        ([j % 20 for j in range(100)], CODE),
    ],
)
def test_doubtful_columns_get_a_hint(tmp_path, cells, words):
    assert words in (hint(tmp_path, cells) or "")


@pytest.mark.parametrize(
    "cells",
    [
        ["f", "m"] * 20,
        ["0", "1"] * 20,
        [f"town {j % 100}" for j in range(400)],
        [j % 21 for j in range(100)],
        [0.5 * j for j in range(50)],
        [f"2024-03-{j % 28 + 1:02}" for j in range(60)],
        ["7"] * 30,
        [""] * 30,
        ["10.3", "4/5", "a,5", "1.2.3"] * 9,
        [3, 9, 70, 5],  # too few to tell
        ["2", "inf", "1e300"],
    ],
)
def test_ordinary_columns_get_none(tmp_path, cells):
    assert hint(tmp_path, cells) is None


def test_frames_with_types_get_hints_too():
    table = read_table({"id": list(range(100, 200)), "code": [1, 2, 3, None] * 25, "cost": [0.5, None] * 50})
    found = hints(table, draft(table))
    assert set(found) == {"id", "code"}
    assert IDENTIFIER in found["id"]
    assert CODE in found["code"]
