import numpy as np
import polars as pl
import pytest

from covey.table.dialects import Spelling
from covey.table.guessing import (
    convention,
    date_formats,
    holds_births,
    holds_names,
    is_hierarchy,
    looks_coded,
    named_for_persons,
    number_spelling,
    outward,
    personal,
)


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
    for low, high, wanted in [
        (0, 99, (0, 100)),
        (3, 40, (2, 50)),
        (-9000, 1341000, (-10000, 2000000)),
        (16.3, 52864.7, (10, 100000)),
        (-0.3, -0.012, (-0.5, -0.01)),
        (1, 1, (1, 1)),
        (0.3, 0.5, (0.2, 0.5)),
    ]:
        assert outward(low, high) == wanted
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
    for name in ("id", "patient_id", "patientId", "E-Mail", "last_name", "Name", "phone", "comments", "MRN", "ip"):
        assert named_for_persons(name), name
    for name in ("age", "video", "paid", "INDP", "width", "township", "street_type" * 0 + "region", "hip"):
        assert not named_for_persons(name), name


def test_codes_are_told_from_quantities():
    generator = np.random.default_rng(1)
    codes = generator.choice(generator.choice(np.arange(1001, 9999), 60, replace=False), 5000)
    assert looks_coded(codes.astype(float), 5000)
    assert not looks_coded(generator.integers(1000, 9999, 5000).astype(float), 5000)  # hardly repeated
    assert not looks_coded((codes // 100 * 100).astype(float), 5000)  # rounded amounts
    assert not looks_coded(generator.integers(0, 99, 5000).astype(float), 5000)  # ages
    assert is_hierarchy(pl.Series(["I10", "I10.9", "E11.65", "C50.911"]))
    assert is_hierarchy(pl.Series(["01.1", "01.11", "62.01"]))
    assert not is_hierarchy(pl.Series(["Rome", "I10"]))


def test_columns_of_names_are_known_by_theirs():
    for name in ("name", "Name", "Patient name", "first_name", "lastName", "SURNAME", "Nachname", "full-name", "nom"):
        assert holds_names(name), name
    for name in ("first", "Last", "fname", "l_name", "forename", "Middle"):
        assert holds_names(name), name
    for name in (
        "station_name",
        "username_length",
        "nominal",
        "named",
        "product",
        "names_count",
        "first_visit",
        "lasts",
    ):
        assert not holds_names(name), name


def test_columns_of_dates_of_birth_are_known_by_their_names():
    for name in ("dob", "DOB", "dateOfBirth", "date of birth", "birthdate", "birth_day", "patient_dob", "Geburtsdatum"):
        assert holds_births(name), name
    for name in ("birth_weight", "doberman", "births", "birthplace", "screening_date", "stillbirth_dates"):
        assert not holds_births(name), name
