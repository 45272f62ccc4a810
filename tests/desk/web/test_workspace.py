"""What lies in the workspace: private folders, drafts that are never taken for confirmed, reviews that hold once."""

import gzip
import json
import re
from fractions import Fraction
from urllib.parse import parse_qs

import pytest

from covey.desk.web import workspace as workspaces
from covey.desk.web.forms import read_field, read_rule
from covey.desk.web.pages.privacy import preview_noise
from covey.desk.web.security import Form
from covey.engine.budget import budget_for
from covey.errors import ParameterError
from covey.tables.dialects import Spelling
from tests.desk.web.conftest import opened_workspace, words
from tests.synthesizers.test_proposals import WORDS, related


def unconfirmed(state):
    return [column.called for column in state.kept if not column.field.confirmed]


def mode(path):
    return path.stat().st_mode & 0o777


def test_rows_lie_in_a_folder_that_is_closed_to_others_and_goes(tmp_path, page):
    work = page.ready_work()
    folder = page.workspace.work(work).folder
    assert mode(page.workspace.folder) == mode(page.workspace.folder.parent) == mode(folder) == 0o700
    files = list(folder.iterdir())
    assert len(files) == 2  # the table, and what was said about it
    assert all(mode(path) == 0o600 for path in files)
    page.post(f"/work/{work}/close")
    assert not folder.exists()
    untouched = page.new_work()
    page.upload(untouched, court_records())
    with opened_workspace(tmp_path) as second:  # which leaves alone what belongs to the living
        assert page.workspace.folder.exists()
        assert second.folder != page.workspace.folder
    page.workspace.close()
    assert list((tmp_path / "workspace").iterdir()) == []


BAD_TABLES = [
    (b"", "visits.csv", "visits.csv"),
    (b"a,b\n", "visits.csv", "no rows"),
    (b'a,b\n1,"2\n', "visits.csv", "unbalanced quote in line 2"),
    (b"\xff\xfe\xfa\x00", "visits.csv", "no rows"),  # a header of one letter, in UTF-16
    (b"not parquet", "visits.parquet", "visits.parquet is not a file that can be read"),
    (b"not gzip", "visits.csv.gz", "cannot read visits.csv.gz"),
    (gzip.compress(b"a\n" + b"1\n" * 2**22), "visits.csv.gz", "more than"),
    (b"a\n1\n", "visits.exe", "not a table covey can read"),
    (b"a\n1\n", "../../etc/passwd", "'passwd' is not a table"),
    (b"a\n1\n", "", "choose a table"),
]


def test_a_bad_table_gets_our_own_words_and_leaves_nothing(page):
    work = page.new_work()
    for content, name, said in BAD_TABLES:
        answer = page.upload(work, content, name)
        assert answer.status_code in (409, 422)
        assert said.lower() in words(answer).replace("&#39;", "'").lower()
        assert str(page.workspace.folder) not in answer.text
        assert "Traceback" not in answer.text
        assert list(page.workspace.work(work).folder.iterdir()) == []


def test_a_schema_of_before_is_taken_as_it_was_confirmed(page):
    first = page.ready_work()
    schema = page.get(f"/work/{first}/schema.json").content
    table = page.workspace.work(first).table.path.read_bytes()
    work = page.new_work()
    files = {"csrf": (None, page.csrf), "table": ("v.csv", table), "schema": ("schema.json", schema)}
    assert page.client.post(f"/work/{work}/table", files=files).status_code == 303
    assert page.workspace.work(work).confirmed
    files["schema"] = ("mine.json", b"{")
    answer = page.client.post(f"/work/{work}/table", files=files)
    assert answer.status_code == 422
    assert "mine.json is not JSON" in words(answer)


@pytest.mark.parametrize("name", ["list.csv", "../list.csv", "/etc/hostname", "file:///etc/hostname"])
def test_no_schema_that_is_given_reads_a_file_beside_its_copy(page, name):
    """Tables lie there; a list that becomes public is written into the schema before."""
    mark = {"name": "mark", "type": "string", "covey": {"derived": {"from": ["a"], "table": name}}}
    schema = {"fields": [{"name": "a", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}}, mark]}
    work = page.new_work()
    beside = page.workspace.work(work).folder / "list.csv"
    for place in (beside, page.workspace.folder / "list.csv"):
        place.write_text("a,mark\n1,READER-SECRET\n", encoding="utf-8")
    answer = page.upload(work, b"a\n1\n", others={"schema": ("schema.json", json.dumps(schema).encode())})
    assert answer.status_code == 422
    assert "here none is read" in words(answer)
    assert "READER-SECRET" not in answer.text
    assert list(beside.parent.iterdir()) == [beside]


@pytest.mark.parametrize("name", ["/etc/hostname.csv", "..\\..\\x.csv", "s3://bucket/x.csv", "file:///x.csv"])
def test_the_name_of_a_file_that_is_given_is_no_path(page, name):
    state = page.given(b"a,b\n1,2\n3,4\n", name)
    assert state.table.path.parent == state.folder
    assert state.table.name not in state.table.path.name


def test_drafts_are_never_shown_as_confirmed(page):
    state = page.given(b"age,name\n3,Anna\n97,Bert\n")
    work = state.id
    assert unconfirmed(state) == ["age", "name"]
    text = page.get(f"/work/{work}/columns").text
    assert "0 of 2 columns confirmed" in text
    assert "✓ Confirmed" not in text
    assert not [tag for tag in text.split("<") if 'name="public"' in tag and "checked" in tag]
    for step in ("rules", "privacy", "review"):
        assert page.get(f"/work/{work}/{step}").headers["location"].endswith("/columns")
    # Neither one column nor all of them without the steward's word.
    age = {"type": "integer", "minimum": "0", "maximum": "120", "action": "confirm"}
    assert page.post(f"/work/{work}/columns/0", age).status_code == 422
    assert page.post(f"/work/{work}/columns/confirm").status_code == 422
    assert unconfirmed(state) == ["age", "name"]
    page.sent(f"/work/{work}/columns/0", {**age, "public": "on"})
    assert unconfirmed(state) == ["name"]
    assert (state.columns[0].field.minimum, state.columns[0].field.maximum) == (0, 120)
    # Another change makes it a draft again.
    page.post(f"/work/{work}/columns/0", {**age, "maximum": "110", "action": "edit"})
    assert unconfirmed(state) == ["age", "name"]
    page.post(f"/work/{work}/columns/1", {"action": "drop"})
    assert state.described().unit.schema.names == ("age",)


def court_records():
    """Columns that point to persons beside some that do not."""
    names = [(f"Ada{i % 60}", ("Jones", "Smith")[i % 2], f"19{50 + i % 40}-0{1 + i % 9}-15") for i in range(400)]
    rows = [",".join((*name, str(20 + i % 37), "AB"[i % 2])) for i, name in enumerate(names)]
    return "\n".join(["first,surname,dob,age,ward", *rows]).encode() + b"\n"


def test_learning_the_rest_takes_nothing_along_that_may_point_to_persons(page):
    state = page.given(court_records())
    work = state.id
    assert [column.called for column in state.columns if not column.kept] == ["first"]
    assert [column.called for column in state.personal] == ["surname", "dob"]
    page.sent(f"/work/{work}/columns", {"action": "learn"})
    learned = {column.called: column.field.learn for column in state.columns if column.kept}
    assert learned == {"surname": False, "dob": False, "age": True, "ward": True}
    # What needs a person stands first, and what was left out last.
    states = re.findall(r'data-state="(\w+)"', page.get(f"/work/{work}/columns").text)
    assert states == ["look", "look", "done", "done", "out"]
    # Nothing is left for that word, and what is left cannot be confirmed with a tick: its name must be typed.
    page.refused(f"/work/{work}/columns", {"action": "learn"}, "cannot be done to any of these columns")
    shown = page.get(f"/work/{work}/columns/confirm").text
    assert "may identify persons" in shown
    assert 'name="own"' not in shown
    key = re.search(r'name="key" value="(\w+)"', shown)[1]
    page.post(f"/work/{work}/columns/confirm", {"what": "ticked", "own": ["surname", "dob"], "key": key})
    assert unconfirmed(state) == ["surname", "dob"]
    # Other limits do not make a date of birth another one.
    dob = {"type": "date", "minimum": "1900-01-01", "maximum": "2020-12-31"}
    page.post(f"/work/{work}/columns/{list(state.columns).index(state.personal[1])}", dob)
    assert state.drafts()[1] == state.personal


def test_one_choice_is_for_the_ticked_columns_or_for_all_of_a_group(page):
    state = page.given(court_records())
    work, called = state.id, [column.called for column in state.columns]
    assert called == ["surname", "dob", "age", "ward", "first"]

    def states():
        return [column.state for column in state.columns]

    groups = re.findall(r'id="group-(\w+)".*?name="all" value="([\d ]+)"', page.get(f"/work/{work}/columns").text, re.S)
    assert groups == [("look", "0 1 2"), ("open", "3"), ("out", "4")]
    # Ticks go before the group, and what cannot be done to a column is not done to it.
    page.sent(f"/work/{work}/columns", {"action": "drop", "all": "0 1 2", "place": ["2"]})
    assert states() == ["look", "look", "out", "open", "out"]
    page.sent(f"/work/{work}/columns", {"action": "keep", "all": "2 3"})
    assert states() == ["look", "look", "look", "open", "out"]
    page.sent(f"/work/{work}/columns", {"action": "learn", "all": "0 1 2"})
    assert states() == ["look", "look", "done", "open", "out"]
    page.sent(f"/work/{work}/columns", {"action": "reopen", "all": "2"})
    # Nothing that is named is nothing, not everything.
    for none in ({"all": ""}, {"all": "99"}, {"all": "", "place": ["-1", "x"]}):
        page.refused(f"/work/{work}/columns", {"action": "drop", **none}, "No column is chosen")
    page.refused(f"/work/{work}/columns", {"action": "drop", "all": "0 1 2 3"}, "Keep at least one")
    assert states() == ["look", "look", "look", "open", "out"]


def test_a_chosen_part_is_confirmed_as_it_was_shown_and_nothing_else(page):
    state = page.given(
        "ward,sex,age\n" + "".join(f"{'abc'[i % 3]},{'mf'[i % 2]},{i % 60 or 'HIV'}\n" for i in range(600))
    )
    work = state.id
    place = page.sent(f"/work/{work}/columns", {"action": "confirm", "all": "0 1", "place": ["1"]}).headers["location"]
    assert place.endswith("/columns/confirm?only=1")
    shown = page.get(place).text
    assert [name in words(page.get(place)) for name in ("sex", "ward", "age")] == [True, False, False]
    key = re.search(r'name="key" value="(\w+)"', shown)[1]
    # The key is that of what was shown: it does not confirm more.
    page.refused(f"/work/{work}/columns/confirm", {"public": "on", "key": key}, "Check it again", code=409)
    page.refused(
        f"/work/{work}/columns/confirm", {"public": "on", "key": key, "only": "0 1"}, "Check it again", code=409
    )
    page.sent(f"/work/{work}/columns/confirm", {"public": "on", "key": key, "only": "1"})
    assert unconfirmed(state) == ["ward", "age"]
    for place in ("columns", "columns/confirm"):  # a word among numbers, which can be taken out
        assert "1 to 100, or HIV" in words(page.get(f"/work/{work}/{place}"))
    page.sent(f"/work/{work}/columns/2", {"type": "integer", "minimum": "0", "maximum": "90", "special": ""})
    assert "HIV" not in json.dumps(state.described().to_dict())


def test_the_review_shows_first_what_may_point_to_persons_each_with_a_tick(page):
    state = page.given(court_records())
    work = state.id
    page.post(f"/work/{work}/columns", {"action": "learn"})
    for column in state.personal:
        page.post(f"/work/{work}/columns/{state.columns.index(column)}", {"action": "learn"})
    chosen = {"mode": "private", "epsilon": "1", "guarantee": "delta", "delta": "1e-7", "dataset": "visits"}
    page.sent(f"/work/{work}/privacy", chosen)
    text = page.get(f"/work/{work}/review").text
    assert re.findall(r'name="wanted" value="(\w+)"', text) == ["surname", "dob"]
    assert text.index('id="persons"') < text.index('id="what"')
    answer = page.refused(f"/work/{work}/release", {"review": page.review(work), "wanted": "dob"}, "Tick surname first")
    assert re.search(r'value="dob" form="release-form" checked', answer.text)
    assert state.jobs == {}


def test_nobody_is_asked_to_list_names(page):
    state = page.given(court_records())
    place = next(k for k, column in enumerate(state.columns) if column.called == "first")
    shown = page.get(f"/work/{state.id}/columns").text
    assert "it may identify persons" in shown
    assert "Ada1" not in shown
    page.post(f"/work/{state.id}/columns/{place}", {"action": "keep"})
    card, form = (
        f"/work/{state.id}/columns/{place}",
        {"type": "string", "enum": "", "public": "on", "action": "confirm"},
    )
    answer = page.refused(card, form | {"own_name": "first"}, "leave it out, because a list would be public")
    assert "List them" not in words(answer)
    # A list of one's own is public by a tick and by the column's name, typed.
    listed = form | {"enum": "Ada1\nAda2", "other": "other"}
    said = words(page.refused(card, listed)).replace("&#39;", "'")
    assert "Type 'first', the column's name, to publish what stands here" in said
    page.sent(card, listed | {"own_name": "first"})
    assert "first" not in unconfirmed(state)


@pytest.mark.parametrize(("change", "left"), [({"maximum": "120"}, "smallest"), ({"minimum": "-1"}, "largest")])
def test_changing_one_limit_does_not_confirm_the_other(page, change, left):
    state = page.given(court_records())
    work = state.id
    place = next(k for k, column in enumerate(state.columns) if column.called == "age")
    drafted = state.columns[place].field
    limits = {"type": "integer", "minimum": str(drafted.minimum), "maximum": str(drafted.maximum)}
    page.post(f"/work/{work}/columns/{place}", limits | change)
    assert f"its {left} value is still the one from your data" in state.columns[place].field.warning
    assert "age" not in [column.called for column in state.drafts()[0]]
    page.post(f"/work/{work}/columns/{place}", limits | {"minimum": "-1", "maximum": "120"})
    assert "age" in [column.called for column in state.drafts()[0]]


def test_htmx_gets_the_card_and_the_count(page):
    state = page.given(b"age,ward\n3,<script>alert(1)</script>\n97,b\n")
    form = {"type": "string", "enum": "a\r\n=cmd()", "public": "on", "action": "confirm", "own_name": "ward"}
    answer = page.post(f"/work/{state.id}/columns/1", form, headers={"hx-request": "true"})
    assert "1 of 2 columns confirmed" in answer.text
    assert "<html" not in answer.text
    assert state.columns[1].field.enum == ("a", "=cmd()")
    assert "<script>alert" not in page.get(f"/work/{state.id}/columns").text


def test_a_field_keeps_what_its_form_does_not_show(page):
    day, number = (column.field for column in page.given(b"t,n\n2024-01-01,1.5\n2024-12-31,2.5\n").columns)
    form = Form({"type": ["date"], "minimum": ["2020-01-01"], "maximum": ["2029-12-31"], "missing": ["on"]})
    read = read_field(form, day)
    assert (str(read.minimum), read.required, read.confirmed) == ("2020-01-01", False, False)
    assert read_field(Form({"type": ["string"]}), day).enum is None
    for wrong in ({"minimum": ["ten"]}, {"minimum": ["3"], "maximum": ["1"]}, {"bins": ["0"]}, {"decimals": ["x"]}):
        with pytest.raises(ParameterError):
            read_field(Form({"type": ["number"], "minimum": ["0"], "maximum": ["9"], **wrong}), number)


def test_rules_are_read_checked_and_told_in_words(page):
    work = page.ready_work()
    state = page.workspace.work(work)
    forms = {
        "Never together: age is at most 15; ward is geriatrics or maternity.": (
            "kind=forbid&field0=age&values0=up to 15&field1=ward&values1=geriatrics; maternity"
        ),
        "Exactly one of emergency, readmitted is true.": (
            "kind=at_most&fields=emergency&fields=readmitted&count=exactly&limit=1"
        ),
        "1 × age + -0.5 × cost is at most 100.": "kind=linear&terms=1 × age\n-0.5 * cost&maximum=100",
        "Together: age + cost is 100.": "kind=linear&terms=1 × age\n1 × cost&bound=exactly&maximum=100",
        "age is never above cost.": "kind=less_equal&left=age&right=cost",
        "If age is at most 15, then ward is surgery.": (
            "kind=requires&field_if=age&values_if=up to 15&field_then=ward&values_then=surgery"
        ),
    }
    wrong = ("kind=less_equal&left=age&right=ward", "kind=forbid&field0=ward&values0=mars", "kind=nonsense")
    both = "kind=at_most&fields=emergency&fields=readmitted"
    assert (
        read_rule(Form(parse_qs(f"{both}&limit=1")), state.joint()).words
        == "At most 1 of emergency, readmitted are true."
    )
    wrong += (
        f"{both}&limit=1",
        f"{both}&count=exactly&limit=2",
        "kind=at_most&fields=emergency&limit=x",
        "kind=linear&terms=age&maximum=1",
    )
    wrong += (
        "kind=requires&field_if=age&values_if=up to 15",
        "kind=forbid&field0=emergency&values0=true; false; missing",
        "kind=forbid&field0=age&values0=up to 15&field1=age&values1=from 90",
    )
    for said, form in forms.items():
        assert page.post(f"/work/{work}/rules", parse_qs(form)).status_code == 303, said
        assert state.rules[-1].words == said
        assert said in words(page.get(f"/work/{work}/rules"))
    for form in wrong:
        assert page.post(f"/work/{work}/rules", parse_qs(form)).status_code == 422, form
    assert len(state.rules) == 6
    # A column that a rule names cannot be left out before the rule goes.
    assert page.post(f"/work/{work}/columns/0", {"action": "drop"}).status_code == 422
    page.post(f"/work/{work}/rules/0/remove")
    assert len(state.rules) == 5


def test_predictions_come_from_public_sizes_alone(page):
    work = page.ready_work()
    page.workspace.work(work).table.path.unlink()

    def panel(**form):
        return words(page.get(f"/work/{work}/predict", params={"mode": "private", "dataset": "visits", **form}))

    small, large = panel(epsilon="0.1"), panel(epsilon="2")
    assert "of the rows would have to move" in small
    assert "Simulated rows" in small
    assert "pure ε" in small
    assert small != large
    assert "Lost in noise, cell by cell" in panel(epsilon="0.01")
    assert "does not cover" in panel(epsilon="3")
    assert "must be a number" in panel(epsilon="one")
    assert "not differential privacy" in panel(mode="anonymous", group_size="5")


def test_simulated_rows_blur_as_epsilon_falls_and_pairs_are_lost_by_name():
    """The noise has one shape, and its height follows ε; where it is larger than a cell's share the pair is named."""
    names, sizes = ("age", "ward", "only", "flag"), (40, 5, 1, 2)
    small, large = (preview_noise(names, sizes, 2000, budget_for(e, 0, 1)) for e in (0.05, 5.0))
    off = [max(abs(a - b) for a, b in one["cells"]) for one in (small, large)]
    assert off[0] > 5 * off[1]
    assert (small["column"], small["pair"]) == ("age", ("age", "ward"))
    assert small["lost"][0] == "age × ward"
    assert large["lost"] == []
    assert preview_noise(("only",), (1,), 2000, budget_for(1.0, 0, 1)) is None
    # However strong the noise, the cells of a table are shares of the same rows: of 41 columns they once summed to 146%.
    for columns in (2, 41):
        many = preview_noise([f"c{j}" for j in range(columns)], [12] * columns, 7000, budget_for(1.0, 0, 1))
        for k in (0, 1):
            assert sum(cell[k] for cell in many["cells"]) == pytest.approx(100)
        assert min(cell[1] for cell in many["cells"]) >= 0
    assert preview_noise(("age", "only"), (40, 1), 2000, budget_for(1.0, 0, 1))["pair"] is None


WRONG_CHOICES = [
    ({"epsilon": "0"}, "must be positive", 422),
    ({"epsilon": "one"}, "must be a number", 422),
    ({"epsilon": "11"}, "weak guarantee", 422),
    ({"epsilon": "1", "guarantee": "delta", "delta": "0.1"}, "below 1/n", 422),
    ({"epsilon": "3"}, "does not cover this", 409),
    ({"dataset": "nobody"}, "no dataset", 409),
    ({"dataset": ""}, "choose the dataset", 422),
    ({"rows": "0"}, "whole number", 422),
    ({"rows_per_person": "0"}, "rows_per_person", 422),
    ({"mode": "anonymous", "group_size": "1"}, "at least 2", 422),
    ({"mode": "anonymous", "group_size": "401"}, "must not exceed", 422),
    ({"mode": "other"}, "choose", 422),
]


def test_wrong_choices_are_refused_where_they_are_made(page):
    work = page.ready_work()
    page.workspace.work(work).chosen = False
    for choices, said, code in WRONG_CHOICES:
        answer = page.post(f"/work/{work}/privacy", {"mode": "private", "epsilon": "1", "dataset": "visits", **choices})
        assert answer.status_code == code, choices
        assert said.lower() in words(answer).lower(), choices
        assert not page.workspace.work(work).chosen
    assert page.workspace.ledger.datasets()[0].charges == 0


def test_a_dataset_is_opened_with_a_word_and_for_good(page):
    work = page.ready_work()
    form = {"name": "people", "budget": "3", "delta_budget": "1e-6", "epsilon": "0.5", "dataset": "visits"}
    assert page.post(f"/work/{work}/dataset", form).status_code == 422
    page.sent(f"/work/{work}/dataset", {**form, "final": "on"})
    assert page.workspace.work(work).order.dataset == "people"
    assert page.workspace.work(work).order.epsilon == Fraction(1, 2)
    page.refused(f"/work/{work}/dataset", {**form, "final": "on", "budget": "4"}, "final", code=409)
    assert "people" in words(page.get("/ledger"))


def test_a_broken_ledger_is_explained_on_the_page(page):
    work = page.ready_work()
    page.workspace.ledger.path.write_bytes(b"x" * 4096)
    assert "damaged" in words(page.get(f"/work/{work}/privacy"))
    assert "damaged" in words(page.get("/ledger"))


def test_labels_and_names_are_escaped_everywhere(page):
    state = page.given(b'"<b>x</b>"\n<i>y</i>\n<i>z</i>\n', '"><img src=x onerror=alert(1)>.csv')
    for path in ("/", f"/work/{state.id}/table", f"/work/{state.id}/columns"):
        text = page.get(path).text
        assert "<img src=x" not in text
        assert "<b>x" not in text
        assert "<i>y" not in text


def test_many_users_many_works_and_a_limit(page, monkeypatch):
    monkeypatch.setattr(workspaces, "MOST_WORKS", 3)
    assert [page.post("/work").status_code for _ in range(4)] == [303, 303, 303, 409]


def test_semicolons_and_decimal_commas_are_read_and_the_page_says_so(page):
    rows = "".join(f"{50 + i % 40},5;{i % 28 + 1:02}.03.2024\n" for i in range(60))
    state = page.given(f"weight;seen\n{rows}")
    assert [column.field.type for column in state.columns] == ["number", "date"]
    said = words(page.get(f"/work/{state.id}/columns"))
    assert "visits.csv: read with cells separated by semicolons" in said
    assert "because its cells are numbers, decimal mark ','" in said.replace("&#39;", "'")
    assert "%d.%m.%Y" in said


ROWS_OF_PERSONS = [f"MRN-{i // 3:04},{'abc'[i // 3 % 3]},{20 + i // 3 % 60}" for i in range(300)]
VISITS_OF_PERSONS = "\n".join(["patient,ward,age", *ROWS_OF_PERSONS, ""])


def test_rows_of_one_person_count_as_one_where_a_column_says_whose_they_are(page):
    state = page.given(VISITS_OF_PERSONS)  # of 100 persons with three rows each; the draft leaves their numbers out
    work, named = state.id, [column.called for column in state.columns]
    assert [column.called for column in state.columns if not column.kept] == ["patient"]
    page.post(f"/work/{work}/columns/{named.index('age')}", {"type": "integer", "minimum": "0", "maximum": "120"})
    assert page.confirm_rest(work).status_code == 303
    asked = {"mode": "private", "epsilon": "1", "dataset": "visits", "person": "patient"}
    shown = page.get(f"/work/{work}/privacy")
    assert "Column that identifies the person" in words(shown)
    assert "MRN-" not in shown.text
    # The same guards as on the command line: a column that is there, and one way to count.
    page.refused(f"/work/{work}/privacy", asked | {"person": "nobody"}, "identifies the person.")
    assert page.post(f"/work/{work}/privacy", asked | {"rows_per_person": "3"}).status_code == 422
    page.sent(f"/work/{work}/privacy", asked)
    review = page.get(f"/work/{work}/review")
    assert "100 persons, each with all their rows" in words(review)
    assert "--person patient" in review.text
    assert "person=&#39;patient&#39;" in review.text
    page.sent(f"/work/{work}/release", {"review": page.review(work), "seen": "on"})
    job = page.finished(work)
    assert job.state == "done", job.error
    facts = json.loads((job.bundle / "privacy.json").read_text(encoding="utf-8"))
    assert facts["n"] == 100
    written = b"".join(path.read_bytes() for path in job.bundle.iterdir())
    assert b"MRN-" not in written
    # From now on the dataset's unit is the person.
    assert page.post(f"/work/{work}/privacy", asked | {"person": "", "epsilon": "0.5"}).status_code == 409


def test_learned_columns_are_read_as_they_were_drafted(page):
    rows = "".join(f"{'abc'[i % 3]};{i % 60},5;{i % 28 + 1:02}.03.2024\n" for i in range(600))
    for said in ({}, {"decimal": ",", "date_format": "%d.%m.%Y"}):
        state = page.given(f"ward;cost;seen\n{rows}", **said)
        spellings = [Spelling(), Spelling(","), Spelling(date_format="%d.%m.%Y")]
        assert [column.field.spelling for column in state.columns] == spellings
        page.sent(f"/work/{state.id}/columns", {"action": "learn"})
        learned = [column.field for column in state.columns]
        assert [field.spelling for field in learned] == spellings
        assert all(field.learn and field.from_table for field in learned)


def test_limits_and_categories_are_learned_where_the_steward_cannot_write_them_down(page):
    rows = "".join(f"{'abc'[i % 3]},{20 + i % 60}\n" for i in range(600))
    state = page.given(f"ward,age\n{rows}")
    work = state.id
    page.sent(f"/work/{work}/columns/1", {"action": "learn"})
    assert "limits are learned with noise" in words(page.get(f"/work/{work}/columns"))
    page.sent(f"/work/{work}/columns/1", {"action": "reopen"})
    assert state.columns[1].field == state.columns[1].drafted  # nothing is lost by trying
    page.sent(f"/work/{work}/columns", {"action": "learn"})
    assert [column.field.learn for column in state.columns] == [True, True]
    asked = {"mode": "private", "epsilon": "2", "dataset": "visits"}
    page.refused(f"/work/{work}/privacy", asked, "delta")
    page.sent(f"/work/{work}/privacy", asked | {"guarantee": "delta", "delta": "1e-9"})
    schema = page.get(f"/work/{work}/schema.json").text
    assert "minimum" not in schema
    assert "enum" not in schema
    page.post(f"/work/{work}/release", {"review": page.review(work), "seen": "on"})
    job = page.finished(work)
    assert job.state == "done", job.error
    assert set(job.result["learned"]) == {"ward", "age"}


def test_relations_seen_in_the_table_are_added_by_one_click_and_written_nowhere_before(page):
    content = related(1000).write_csv().encode()
    state = page.given(content, "t.csv")
    place = f"/work/{state.id}/rules"
    assert not any(said in words(page.get(f"{place}/seen")) for said in WORDS)  # first its columns are confirmed
    page.confirm_rest(state.id)
    assert f'hx-get="{place}/seen"' in page.get(place).text
    shown = words(page.get(f"{place}/seen"))
    assert all(f"{said}. 0.00% of 1,000 rows break it" in shown for said in WORDS)
    kept = [path.read_text() for path in state.folder.iterdir() if path.suffix != ".csv"]
    assert kept
    assert not any(said in text for text in kept for said in (*WORDS, "never above", "missing together", "derived"))
    assert not state.rules
    assert not state.computed
    for said in (WORDS[0], WORDS[3]):
        page.sent(f"{place}/seen", {"words": said})
    schema = state.joint()
    assert schema["copy"].derived.expression == "net"
    assert schema["copy"].confirmed
    assert [sorted(rule.fields) for rule in schema.rules] == [["height", "weight"]] * 2
    now = words(page.get(place))
    assert "copy is computed from net." in now
    assert "If height is missing, then weight is missing." in now
    left = words(page.get(f"{place}/seen"))
    assert [said in left for said in WORDS] == [False, True, True, False, True]
    assert "No relation was seen" in words(page.post(f"{place}/seen", {"words": "net equals tax"}))
    assert "computed from net" in words(page.get(f"/work/{state.id}/columns"))
    chosen = {"mode": "private", "epsilon": "1", "dataset": "visits", "target": "copy", "important": ["copy", "net"]}
    page.sent(f"/work/{state.id}/privacy", chosen)
    assert (state.order.target, state.order.important) == (None, (("net",),))  # what is computed is not measured
    assert page.get(f"/work/{state.id}/review").status_code == 200
    at = next(iter(state.computed))
    page.sent(f"{place}/computed/{at}/remove")
    assert state.joint()["copy"].measured
    assert WORDS[0] in words(page.get(f"{place}/seen"))
    page.post(f"{place}/seen", {"words": WORDS[0]})
    page.post(f"/work/{state.id}/columns/{at}", {"action": "reopen"})
    assert unconfirmed(state) == ["copy"]
    assert state.columns[at].field.maximum is not None
