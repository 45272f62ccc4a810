import datetime as dt

import numpy as np
import polars as pl
import pytest

from covey.tables.column_drafts import (
    BIRTH,
    MOST_CATEGORIES,
    NAMES,
    PERSONAL,
    ColumnDraft,
    convention,
    date_formats,
    decimal_mark,
    looks_coded,
    number_spelling,
    outward,
    personal,
    suggests,
)
from covey.tables.dialects import Dialect, Spelling
from covey.tables.schema import Schema

RNG = np.random.default_rng(7)
N = 400
ONE = [
    ([i % 93 + 3 for i in range(N)], ["abc", "1.234,5", "7.5", "007", "9" * 20, "[1, 2]"]),
    ([f"{i}.123" for i in range(N)], ["1.234,5", "1,234.5", "x"]),
    ([f"2024-03-{i % 28 + 1:02}" for i in range(N)], ["25/04/2021", "04/25/2021", "never", "2024-03-01T10:15:00"]),
    ([f"0{i % 9 + 1}/0{i % 7 + 1}/2024" for i in range(N)], ["25/04/2021", "04/25/2021"]),
    (["No", "Yes"] * (N // 2), ["1", "maybe", "yes", "3"]),
    (["0", "1"] * (N // 2), ["2", "Yes", "0.5"]),
    ([i % 5 + 1 for i in range(N)], ["x", "1.5", "999999"]),
    ([None] * N, ["5", "x", "2024-01-01"]),
    (range(1, N + 1), ["x", "99999", "7"]),
]


@pytest.mark.parametrize(
    ("cells", "separator", "spelling"),
    [
        (["1,019.75", "3", "12.5"], ",", Spelling(".", ",")),
        (["1.019,75", "3", "12,5"], ";", Spelling(",", ".")),
        (["1019,75", "3"], ",", Spelling(",", "")),
        (["1,234", "5"], ",", Spelling(".", ",")),  # stated: thousands in a file with commas
        (["1,234", "5"], ";", Spelling(",", "")),
        (["1 234,5", "-7"], ";", Spelling(",", " ")),
        (["1'234.5"], ";", Spelling(".", "'")),
        (["1.5", "2"], ",", None),
        (["1,5", "x"], ";", None),
        (["1,5,3"], ";", None),
        (["1,019.75", "1.019,75"], ";", None),
    ],
)
def test_numbers_in_other_spellings_are_recognised(cells, separator, spelling):
    found = number_spelling(pl.Series(cells), separator)
    assert (found and found[0]) == spelling


@pytest.mark.parametrize("separator", [",", ";", "\t", None])
@pytest.mark.parametrize(
    ("cells", "shown", "spelling"),
    [
        (["218.300", "93.994"], ".", None),
        (["218.300", "93.994"], None, None),
        (["218.300", "93.994"], ",", Spelling(",", ".")),
        (["218.300", "1.218.300"], None, Spelling(",", ".")),
        (["218,300", "93"], ".", Spelling(".", ",")),
        (["218,300", "93"], ",", Spelling(",", "")),
        (["0.994", "1.250"], ",", None),
    ],
)
def test_where_three_digits_follow_each_mark_other_columns_say_what_it_is(cells, separator, shown, spelling):
    found = number_spelling(pl.Series(cells), separator, shown)
    assert (found and found[0]) == spelling


@pytest.mark.parametrize(
    ("cells", "mark"),
    [
        ([["1.1", "-46.2"], ["93.994"]], "."),
        ([["0.123"]], "."),
        ([["4963.6", "NA"]], "."),
        ([["1,019.75"]], "."),
        ([["8,15", "7"], ["93,994"]], ","),
        ([["1.019,75"]], ","),
        ([["93.994", "218,300", "7"]], None),
        ([["1.5"], ["1,5"]], None),
        ([["1,2", "1,2,3"]], None),  # lists
        ([["19.03.2024", "1.2.3"]], None),
        ([["12.50 EUR"]], None),
        ([], None),
    ],
)
def test_a_decimal_mark_is_shown_by_numbers_in_which_it_groups_no_digits(cells, mark):
    assert decimal_mark(map(pl.Series, cells)) == mark


@pytest.mark.parametrize("odd", ["1.5", "1,5", "1.234,5", "x"])
@pytest.mark.parametrize("cells", [["93.994"] * 40, ["93,994"] * 40, ["8,15"] * 40, ["8.15"] * 40, ["7"] * 40])
def test_one_cell_shows_no_decimal_mark(cells, odd):
    assert decimal_mark([pl.Series([*cells, odd])]) == decimal_mark([pl.Series(cells)])


@pytest.mark.parametrize(
    ("cells", "formats"),
    [
        (["2024-03-19", "2024-12-01"], [("date", None)]),
        (["20240319", "20241201"], [("date", None)]),
        (["2024-03-19T10:15:00+02:00"], [("datetime", None)]),
        (["2024-03-19 10:15:00.123"], [("datetime", None)]),
        (["2024-03-19T10:15Z"], [("datetime", None)]),
        (["8:15", "23:59"], [("time", None)]),
        (["08:15:30.5"], [("time", None)]),
        (["19.03.2024", "1.2.2024"], [("date", "%d.%m.%Y")]),
        (["19.03.24"], [("date", "%d.%m.%y")]),
        (["19/03/2024", "01/02/2024"], [("date", "%d/%m/%Y")]),
        (["03/19/2024", "01/02/2024"], [("date", "%m/%d/%Y")]),
        (["03/04/2024", "01/02/2024"], [("date", "%d/%m/%Y"), ("date", "%m/%d/%Y")]),
        (["19.03.2024 10:15"], [("datetime", "%d.%m.%Y %H:%M")]),
        (["2024/03/19"], [("date", "%Y/%m/%d")]),
        (["19 Mar 2024"], [("date", "%d %b %Y")]),
        (["2024-02-31"], []),
        (["24:15"], []),
        (["19/13/2024"], []),
        (["03/19/2024", "19/03/2024"], []),
        (["12.5.3"], []),
        (["12345678"], []),
        (["noon"], []),
    ],
)
def test_dates_are_recognised_and_ambiguous_ones_named(cells, formats):
    assert date_formats(pl.Series(cells)) == formats


def test_limits_are_rounded_outward_on_the_1_2_5_grid():
    limits = {(0, 99): (0, 100), (3, 40): (2, 50), (-9000, 1341000): (-10000, 2000000), (16.3, 52864.7): (10, 100000)}
    limits |= {(-0.3, -0.012): (-0.5, -0.01), (1, 1): (1, 1), (0.3, 0.5): (0.2, 0.5)}
    assert {ends: outward(*ends) for ends in limits} == limits
    generator = np.random.default_rng(0)
    for a, b in np.sort(generator.normal(0, 10.0 ** generator.integers(-5, 9, (500, 1)), (500, 2))):
        low, high = outward(a, b)
        assert low <= a <= b <= high
        assert all(f"{abs(v):e}"[0] in "0125" for v in (low, high))


def test_conventions_are_completed_in_their_own_spelling_and_order():
    assert convention(["Feb", "Jan", "Mar", "Apr", "Jul", "Aug", "Dec"])[0][:3] == ("Jan", "Feb", "Mar")
    assert convention(["high", "low"]) == (("low", "medium", "high"), True)
    assert convention(["Yes", "No"]) == (("No", "Yes"), False)
    assert convention(["C", "A", "D", "B"]) == (("A", "B", "C", "D", "E", "F"), True)
    assert convention(["f", "m"]) == (("f", "m"), False)
    for other in (["a", "q"], ["yes"], ["Anna", "Eva"], ["yes", "maybe"], []):
        assert convention(other) is None


def test_what_points_to_persons_is_recognised():
    assert personal(pl.Series([f"p{j}@example.org" for j in range(9)])) is not None
    assert personal(pl.Series(["+43 1 234 56 78"] * 9)) is not None
    assert personal(pl.Series(["she came late and was tired again"] * 9)) == "it holds free text"
    assert personal(pl.Series(["Rome", "Oslo", "New York City"])) is None


def test_codes_are_told_from_quantities():
    generator = np.random.default_rng(1)
    codes = generator.choice(generator.choice(np.arange(1001, 9999), 60, replace=False), 5000)
    assert looks_coded(codes.astype(float), 5000)
    assert not looks_coded(generator.integers(1000, 9999, 5000).astype(float), 5000)  # hardly repeated
    assert not looks_coded((codes // 100 * 100).astype(float), 5000)  # rounded amounts
    assert not looks_coded(generator.integers(0, 99, 5000).astype(float), 5000)  # ages


# What columns are known for by their names, and names that only resemble them.
NAMED = {
    PERSONAL: (
        "id, patient_id, patientId, E-Mail, last_name, Name, phone, comments, MRN, ip",
        "age, video, paid, INDP, width, township, region, hip",
    ),
    NAMES: (
        "name, Name, Patient name, first_name, lastName, SURNAME, Nachname, full-name, nom, "
        "first, Last, fname, l_name, forename, Middle",
        "station_name, username_length, nominal, named, product, names_count, first_visit, lasts",
    ),
    BIRTH: (
        "dob, DOB, dateOfBirth, date of birth, birthdate, birth_day, patient_dob, Geburtsdatum",
        "birth_weight, doberman, births, birthplace, screening_date, stillbirth_dates",
    ),
}


@pytest.mark.parametrize("kind", NAMED)
def test_columns_are_known_by_their_names(kind):
    meant, others = (names.split(", ") for names in NAMED[kind])
    assert [name for name in meant if not suggests(name, kind)] == [n for n in others if suggests(n, kind)] == []


def propose(cells, name="x", **said):
    series = cells if isinstance(cells, pl.Series) else pl.Series([None if c is None else str(c) for c in cells])
    return ColumnDraft(name, series, ("",), Dialect(**said)).draft()


@pytest.mark.parametrize(
    ("cells", "type_", "parts"),
    [
        ([i % 93 + 3 for i in range(N)], "integer", {"minimum": 2, "maximum": 100}),
        ([i / 4 for i in range(N)], "number", {"minimum": 0, "maximum": 100, "decimals": 2}),
        ([1930 + i % 75 for i in range(N)], "integer", {"minimum": 1930, "maximum": 2010}),
        (["1,019.75", "3"] * 50 + [f"{i}.5" for i in range(100)], "number", {"spelling": Spelling(".", ",")}),
        ([f"{i},5" for i in range(N)], "number", {"spelling": Spelling(",", "")}),
        (["yes", "no"] * 9, "boolean", {}),
        ([f"19.{i % 12 + 1:02}.2024" for i in range(N)], "date", {"spelling": Spelling(date_format="%d.%m.%Y")}),
        (
            [f"2024-03-{i % 28 + 1:02}T10:15:00+02:00" for i in range(N)],
            "datetime",
            {"minimum": dt.datetime(2024, 1, 1)},
        ),
        ([f"2024-03-19 10:15:{i % 60:02}.123" for i in range(N)], "datetime", {}),
        ([f"{i % 24}:15" for i in range(N)], "time", {"minimum": dt.time(0), "maximum": dt.time(23, 59, 59)}),
        ([f"202403{i % 28 + 1:02}" for i in range(N)], "date", {"maximum": dt.date(2024, 12, 31)}),
        ([f"{i % 40:05}" for i in range(N)], "string", {"enum": tuple(f"{i:05}" for i in range(40))}),
        ([i % 5 + 1 for i in range(N)], "string", {"enum": tuple("12345")}),
        (["low", "high"] * 9, "string", {"enum": ("low", "medium", "high"), "ordered": True}),
        ([None] * 9, "string", {}),
        (
            pl.Series([float(7 * i % 390) for i in range(N)] + [-99.0] * 9),
            "integer",
            {"special": ("-99",), "minimum": 0},
        ),
        (pl.Series([i - 200 for i in range(N)]), "integer", {"special": (), "minimum": -200}),
    ],
)
def test_types_are_recognised(cells, type_, parts):
    field, note = propose(cells)
    assert field.type == type_
    assert {name: getattr(field, name) for name in parts} == parts
    assert not field.confirmed
    assert note.field == "x"
    assert note.choice
    assert note.reason
    assert field.warning == note.warning


@pytest.mark.parametrize("word", ["N", "NA", "?", ".", "<5", "-99", "n/a", "Refused"])
def test_a_few_words_among_numbers_are_special_values(word):
    field, note = propose([*[str(7 * i % 390) for i in range(N)], *[word] * 40])
    assert (field.type, field.minimum, field.maximum, field.special) == ("integer", 0, 500, (word,))
    assert word in note.choice


@pytest.mark.parametrize("word", ["NA", "?", "unknown", "k.A.", "-"])
@pytest.mark.parametrize("form", ["date 2024-03-{}", "date {}.3.2024", "number {},5", "number 1.0{},5", "time {}:30"])
def test_usual_words_among_dates_and_numbers_of_any_spelling_are_special_values(word, form):
    type_, _, form = form.partition(" ")
    for rows in (3, 40):  # more than strays: the columns became labels, or telephone numbers
        field, note = propose([*[form.format(j % 13 + 10) for j in range(N)], *[word] * rows])
        assert (field.type, field.special, word in note.choice) == (type_, (word,), True)


def test_words_that_few_rows_hold_are_not_drafted_among_numbers():
    field, note = propose([*[str(7 * i % 300) for i in range(N)], *["N"] * 40, "Eve Adams"])
    assert field.special == ("N",)
    assert "Eve" not in str(note)
    assert propose([*[str(i % 30) for i in range(N)], *[f"odd {i % 9}" for i in range(90)]])[0].type == "string"


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("x", [f"patient {j}" for j in range(N)]),
        ("x", range(1, N + 1)),
        ("x", [2**53 + 3 * j for j in range(N)]),
        ("x", [7_000_000 + 37 * j for j in range(N)]),
        ("patient_id", RNG.choice(90_000, N, replace=False)),
        ("mail", [f"p{j % 50}@example.org" for j in range(N)]),
        ("x", [f"p{j % 50}@example.org" for j in range(N)]),
        ("x", [f"Person{j % 250} Adams" for j in range(N)]),
        ("last_name", [f"Adams{j % 90}" for j in range(N)]),
        ("x", [f"she said that she was ill for {j % 7} days" for j in range(N)]),
        ("x", [f"{j:06}" for j in range(N)]),
        ("x", [f"{{'a': {j % 3}}}" for j in range(N)]),
        ("x", ["03/04/2024", "01/02/2024"] * 50),
        ("x", ["[1, 2]", "[]"] * 50),
        ("x", pl.Series([-10_000_000, 0]).cast(pl.Int32).cast(pl.Date)),
    ],
)
def test_columns_that_point_to_persons_or_cannot_be_read_are_left_out_without_their_values(name, cells):
    field, note = propose(cells, name)
    assert field is None
    assert note.choice == "left out"
    assert note.warning
    if not isinstance(cells, pl.Series):
        assert not any(str(cell) in str(note) for cell in cells if len(str(cell)) > 2)


def test_an_ambiguous_date_is_read_as_it_is_said_to_be():
    for said, day in (("%d/%m/%Y", dt.date(2024, 1, 1)), ("%m/%d/%Y", dt.date(2024, 1, 1))):
        field, _ = propose(["03/04/2024", "01/02/2024"] * 50, date_format=said)
        assert (field.type, field.minimum, field.spelling.date_format) == ("date", day, said)


def test_rare_labels_become_other():
    cells = ["Rome"] * 200 + ["Oslo"] * 190 + ["Eve"] * 4 + ["Adam"] * 4 + ["other"] * 2
    field, note = propose(cells)
    assert (field.enum, field.other) == (("Oslo", "Rome"), "other_")
    assert "; 3 rare ones are 'other_'" in note.choice
    assert "Eve" not in str(note)
    many, note = propose([f"town {j % 130}" for j in range(4000)])
    assert len(many.enum) == MOST_CATEGORIES
    assert many.other == "other"
    assert many.warning
    warned = [propose(["ok"] * 19 + ["SECRETJANE"] * rows)[0].warning for rows in (1, 4, 5)]
    assert [warning is not None for warning in warned] == [True, True, False]


def test_missing_words_that_were_said_are_missing():
    series = pl.Series(["1", "2", "-", "x"] * 50)
    field, _ = ColumnDraft("x", series, ("", "-", "x"), Dialect()).draft()
    assert field.enum == ("1", "2")
    assert not field.required


def handed(cells):
    """What learning is handed of a column."""
    field, note = propose(cells)
    return note.reason if field is None else Schema((field,)).to_learn().fields if field.constant is None else None


@pytest.mark.parametrize(("cells", "odd"), [(cells, odd) for cells, odds in ONE for odd in odds])
def test_one_cell_does_not_decide_what_learning_is_handed(cells, odd):
    cells = list(cells)
    assert handed([*cells[:-1], odd]) == handed(cells)
    assert handed([odd, *cells[1:]]) == handed(cells)


def test_many_odd_cells_do_decide():
    numbers = [i % 93 + 3 for i in range(N)]
    assert handed(numbers)[0].type == "integer"
    assert handed([*numbers[: N // 2], *[f"a long word {i % 5}" for i in range(N // 2)]])[0].type == "string"


@pytest.mark.parametrize(("words", "flags"), [(("Yes", "No"), ("No", "Yes")), (("0", "1"), ("0", "1"))])
def test_flags_keep_their_words_and_codes_stay_whole_numbers_when_they_are_learned(words, flags):
    field, _ = propose(list(words) * 30)
    assert (field.type, field.flags, field.to_learn().flags) == ("boolean", flags, flags)
    assert propose(["True", "false", "TRUE"] * 30)[0].flags == ("false", "true")
    assert propose([i % 5 + 1 for i in range(N)])[0].to_learn().type == "integer"
    assert propose([f"0{i % 5}" for i in range(N)])[0].to_learn().type == "string"
