"""Marks of numbers and formats of dates that a draft has found are kept where columns are learned, and said in the bundle."""

import json

import numpy as np
import polars as pl
import pytest

from covey import PrivateSynthesizer, Schema
from covey.release.bundle import write_bundle
from tests.commands import ok, run

pytestmark = [pytest.mark.usefixtures("few_steps"), pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")]

N = 400
_generator = np.random.default_rng(7)
COST = _generator.integers(1_000_00, 9_000_00, N) / 100
COUNT = _generator.integers(20_000, 900_000, N)
DAY = [(int(m), int(d)) for m, d in _generator.integers(1, [13, 29], (N, 2))]
WARD = _generator.choice(["north", "south"], N).tolist()
BUDGET = ("--epsilon", 8, "--delta", "1e-6", "--seed", 1)
# A table's columns as text, the separator, and what its numbers and dates should be learned as.
TABLES = {
    "American": (
        {"day": [f"{m}/{d}/2023" for m, d in DAY], "cost": [f"{c:,.2f}" for c in COST]},
        ",",
        {"day": {"format": "%m/%d/%Y"}, "cost": {"groupChar": ","}},
    ),
    "German": (
        {
            "day": [f"{d:02}.{m:02}.2023" for m, d in DAY],
            "cost": [f"{c:.2f}".replace(".", ",") for c in COST],
            "count": [f"{c:,}".replace(",", ".") for c in COUNT],
        },
        ";",
        {"day": {"format": "%d.%m.%Y"}, "cost": {"decimalChar": ","}, "count": {"decimalChar": ",", "groupChar": "."}},
    ),
    "decimal commas in a file of commas": (
        {"cost": [f"{c:.2f}".replace(".", ",") for c in COST], "count": COUNT.tolist()},
        ",",
        {"cost": {"decimalChar": ","}},
    ),
}
# Of its limits the upper one, learned in much noise, lies between these.
UPPER = {"day": ("2023", "2035"), "cost": (5000, 20_000), "count": (500_000, 2_000_000), "index": (500, 2000)}


def written(path, columns, separator=","):
    """A file with these columns and the wards."""
    frame = pl.DataFrame({"ward": WARD, **columns})
    frame.write_csv(path, separator=separator)
    return path


def fields_of(bundle):
    return {
        field["name"]: field for field in json.loads((bundle / "schema.json").read_text(encoding="utf-8"))["fields"]
    }


def require_learned(bundle, spelled, columns):
    """The bundle says how its table was spelled, and its limits are about those of the values that were spelled so."""
    facts = json.loads((bundle / "privacy.json").read_text(encoding="utf-8"))
    assert facts["source"]["synthetic"]["fields"] == spelled
    assert "the marks of numbers and the formats of dates were read from the table" in " ".join(facts["assumed"])
    for name in columns:
        require_upper(bundle, name)


def require_upper(bundle, name):
    low, high = UPPER[name]
    assert low <= fields_of(bundle)[name]["constraints"]["maximum"] <= high


@pytest.mark.parametrize("case", TABLES)
def test_what_a_draft_has_found_is_kept_with_and_without_its_schema(tmp_path, case):
    columns, separator, spelled = TABLES[case]
    table = written(tmp_path / "t.csv", columns, separator)
    ok("release", table, "--learn", *BUDGET, "--out", tmp_path / "direct")
    require_learned(tmp_path / "direct", spelled, columns)
    ok("init", table, "-o", tmp_path / "draft.json")
    ok("release", table, "--learn", "--schema", tmp_path / "draft.json", *BUDGET, "--out", tmp_path / "drafted")
    require_learned(tmp_path / "drafted", spelled, columns)
    for name in ("synthetic.csv", "schema.json", "privacy.json"):
        assert (tmp_path / "direct" / name).read_bytes() == (tmp_path / "drafted" / name).read_bytes()
    changed = json.loads(ok("evaluate", table, tmp_path / "direct", "--json").stdout)["changed"]
    assert not [found for found in changed if "type" in str(found)]


@pytest.mark.parametrize("case", TABLES)
def test_a_frame_of_text_is_learned_as_it_was_drafted(tmp_path, case):
    columns, _, spelled = TABLES[case]
    frame = pl.DataFrame({"ward": WARD, **columns})
    schema = Schema.draft(frame).to_learn()
    synth = PrivateSynthesizer(8, 1e-6, schema=schema, seed=1).fit(frame)
    write_bundle(synth.release(), tmp_path / "out")
    require_learned(tmp_path / "out", spelled, columns)


def test_a_mark_before_three_digits_is_what_other_columns_show(tmp_path):
    thirds = [f"{c // 1000}.{c % 1000:03}" for c in COUNT]
    shown = written(tmp_path / "shown.csv", {"index": thirds, "rate": [f"{c % 7 - 3}.{c % 9}" for c in COUNT]}, ";")
    ok("release", shown, "--learn", *BUDGET, "--out", tmp_path / "out")
    require_upper(tmp_path / "out", "index")  # 93.994 is about 94
    alone = written(tmp_path / "alone.csv", {"index": thirds}, ";")
    refused = run("release", alone, "--learn", *BUDGET, "--out", tmp_path / "none")
    assert refused.exit_code == 3
    assert "numbers such as 1.234, or thousands" in refused.output
    assert "--decimal and --thousands" in refused.output
    ok("release", alone, "--learn", *BUDGET, "--decimal", ".", "--out", tmp_path / "said")


def test_a_guess_at_a_comma_before_three_digits_is_said_and_not_released(tmp_path):
    table = written(tmp_path / "t.csv", {"index": [f"{c:,}" for c in COUNT]}, "\t")
    refused = run("release", table, "--learn", *BUDGET, "--out", tmp_path / "none")
    assert refused.exit_code == 3
    assert "numbers such as 1,234, or thousands" in refused.output
    ok("release", table, "--learn", *BUDGET, "--decimal", ".", "--thousands", ",", "--out", tmp_path / "said")
    assert fields_of(tmp_path / "said")["index"]["constraints"]["maximum"] >= 500_000


def test_a_point_beside_words_is_no_thousands_mark_in_a_file_of_commas(tmp_path):
    """218.300 was drafted as 218,300 there, and no check could tell."""
    cells = [f"{c // 1000}.{c % 1000:03}" if j % 4 else "NA" for j, c in enumerate(COUNT)]
    table = written(tmp_path / "t.csv", {"index": cells})
    ok("init", table, "-o", tmp_path / "draft.json")
    index = {f["name"]: f for f in json.loads((tmp_path / "draft.json").read_text())["fields"]}["index"]
    assert "groupChar" not in index
    assert index["constraints"]["maximum"] == 1000


def test_a_format_that_is_said_is_that_of_the_dates_which_it_fits(tmp_path):
    """One column can be read in two ways and another in one; what is said of the first changes nothing of the second."""
    unclear = [f"{d % 12 + 1:02}/{m:02}/2023" for m, d in DAY]
    clear = [f"{d:02}.{m:02}.2023" for m, d in DAY]
    table = written(tmp_path / "t.csv", {"unclear": unclear, "day": clear})
    refused = run("release", table, "--learn", *BUDGET, "--out", tmp_path / "none")
    assert refused.exit_code == 3
    assert "%d/%m/%Y and %m/%d/%Y. Give their format with --date-format, or name the columns to keep" in refused.output
    ok("release", table, "--learn", *BUDGET, "--columns", "ward,day", "--out", tmp_path / "without")
    require_learned(tmp_path / "without", {"day": {"format": "%d.%m.%Y"}}, ["day"])
    ok("release", table, "--learn", *BUDGET, "--date-format", "%d/%m/%Y", "--out", tmp_path / "said")
    require_learned(tmp_path / "said", {"unclear": {"format": "%d/%m/%Y"}, "day": {"format": "%d.%m.%Y"}}, ["day"])


def test_a_label_of_many_rows_is_no_row_of_totals(tmp_path):
    """A long table has rows of Total for each day; one row at the end that alone is called so is none of its records."""
    days = [f"2023-01-{d:02}" for d in range(1, 29)]
    rows = [(day, place, j) for place in ("east", "west", "Total") for j, day in enumerate(days)]
    table = tmp_path / "long.csv"
    pl.DataFrame(rows, schema=["day", "place", "cases"], orient="row").write_csv(table)
    ok("init", table, "-o", tmp_path / "draft.json")
    table.write_text(table.read_text().replace("Total", "north") + "2023-01-31,Total,9\n")
    refused = run("init", table, "-o", tmp_path / "other.json")
    assert refused.exit_code == 3
    assert "row of totals" in refused.output


@pytest.mark.parametrize(
    ("had", "said", "read"),
    [
        ({"decimalChar": ",", "groupChar": "."}, ("--decimal", "."), {}),
        ({"groupChar": ","}, ("--decimal", ","), {"decimalChar": ","}),
        ({"decimalChar": ","}, ("--thousands", ","), {"groupChar": ","}),
    ],
)
def test_a_mark_that_is_said_displaces_the_same_mark_of_the_schema(tmp_path, had, said, read):
    field = {"name": "cost", "type": "number", "constraints": {"minimum": 0, "maximum": 9}, **had}
    (tmp_path / "schema.json").write_text(json.dumps({"fields": [field]}))
    (tmp_path / "t.csv").write_text('cost\n"1"\n' * 1 + "2\n" * 300)
    ok("release", tmp_path / "t.csv", "--schema", tmp_path / "schema.json", *BUDGET, *said, "--out", tmp_path / "out")
    facts = json.loads((tmp_path / "out/privacy.json").read_text())
    assert facts.get("source", {"synthetic": {"fields": {"cost": {}}}})["synthetic"]["fields"]["cost"] == read
