"""What was said about columns outlives the app: private, without rows, and gone when the table is taken from the workspace."""

import json
import re
from fractions import Fraction

import pytest

from covey.desk.web import workspace as workspaces
from covey.desk.web.folders import hold
from covey.desk.web.jobs import Job
from covey.ledger import Ledger
from tests.clinic import as_csv, clinic
from tests.desk.web.conftest import opened_workspace, served, words
from tests.desk.web.test_workspace import mode
from tests.synthesizers.test_proposals import WORDS, related

ROWS = [f"{20 + i % 37},{'AB'[i % 2]},{i % 29 + 0.5},{i % 23 + 100.5}" for i in range(400)]
TABLE = "\n".join(["age,ward,cost,weight", *ROWS]).encode() + b"\n"
AGE = {"type": "integer", "minimum": "0", "maximum": "120"}


@pytest.fixture
def restarted(tmp_path):
    """Starts the app again and again on the same disk; each start ends before the next."""
    running = []

    def start(killed=False):
        stop(killed)
        workspace = opened_workspace(tmp_path)
        site = served(alive := workspace.__enter__())
        running.append((site, workspace, alive))
        visitor = site.__enter__()
        visitor.enter()
        return visitor

    def stop(killed=False):
        while running:
            site, workspace, alive = running.pop()
            if killed:  # nothing is tidied up: the lock goes with the process, and all files stay
                alive.close = alive._hold.close
            site.__exit__(None, None, None)
            workspace.__exit__(None, None, None)

    yield start
    stop()


def described(page):
    """A table of which several things were said."""
    work = page.given(TABLE, "people.csv").id
    page.post(f"/work/{work}/columns/0", {**AGE, "public": "on", "own_name": "age", "action": "confirm"})
    page.post(f"/work/{work}/columns/1", {"type": "string", "enum": "A\nB\nC"})
    page.post(f"/work/{work}/columns/2/typed", {"type": "number", "minimum": "0", "maximum": "a lot"})
    return work


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
def test_column_work_survives_a_restart_and_rows_do_not(restarted, tmp_path, killed):
    page = restarted()
    work = described(page)
    before = page.workspace.work(work).columns
    page = restarted(killed)
    [draft] = [path for path in (tmp_path / "workspace").rglob("*") if path.is_file() and path.suffix != ".lock"]
    assert draft.name == "draft.json"
    assert mode(draft) == 0o600
    assert {mode(folder) for folder in (draft.parent, draft.parent.parent, tmp_path / "workspace")} == {0o700}
    assert "people.csv" in words(page.get("/"))
    assert "Give the file again" in words(page.get(f"/work/{work}/table"))
    assert page.get(f"/work/{work}/columns").headers["location"].endswith("/table")
    assert page.upload(work, TABLE, "people.csv").status_code == 303
    assert page.workspace.work(work).columns == before
    assert "a lot" in page.get(f"/work/{work}/columns").text


def test_a_draft_holds_what_was_said_and_nothing_that_was_only_drafted(restarted, tmp_path):
    page = restarted()
    work = described(page)
    text = page.workspace.work(work).folder.joinpath("draft.json").read_text()
    [weight] = [column.field for column in page.workspace.work(work).columns if column.called == "weight"]
    assert "weight" not in text
    assert str(weight.maximum) not in re.findall(r"[\d.]+", text)
    assert not [row for row in ROWS if row in text]
    # A table of which nothing was said leaves nothing behind.
    assert not page.given(TABLE).folder.joinpath("draft.json").exists()


@pytest.mark.parametrize("way", ["removed", "idle", "removed after a restart"])
def test_a_draft_is_removed_as_the_rows_are(restarted, tmp_path, way, monkeypatch):
    page = restarted()
    work = described(page)
    if way == "idle":
        page.workspace.sweep()
        assert page.workspace.work(work).folder.exists()
        monkeypatch.setattr(workspaces, "IDLE_SECONDS", -1)
        page.workspace.sweep()
    else:
        page = restarted() if "restart" in way else page
        page.sent(f"/work/{work}/close")
    assert not list((tmp_path / "workspace").rglob("draft.json"))
    page = restarted()
    assert page.get(f"/work/{work}/table").status_code == 404


def test_another_table_is_refused_and_loses_nothing(restarted):
    page = restarted()
    work = described(page)
    page = restarted()
    answer = page.upload(work, b"height,town\n1,a\n2,b\n3,a\n4,b\n")
    assert answer.status_code == 422
    assert "none of the columns that you described" in words(answer)
    page = restarted()
    # A table that is a little other: what is there counts.
    assert page.upload(work, TABLE.replace(b"cost", b"price")).status_code == 303
    assert page.workspace.work(work).columns[0].field.confirmed
    assert page.workspace.work(work).columns[2].called == "price"


def test_a_draft_that_cannot_be_read_is_no_obstacle(restarted, tmp_path):
    page = restarted()
    works = [described(page), described(page)]
    page = restarted()
    drafts = {work: page.workspace.folder / work / "draft.json" for work in works}
    drafts[works[0]].write_text("{")
    said = json.loads(drafts[works[1]].read_text())
    drafts[works[1]].write_text(json.dumps(said | {"order": {"another": "version"}}))
    page = restarted()
    assert page.get(f"/work/{works[0]}/table").status_code == 404
    assert page.upload(works[1], TABLE).status_code == 303
    assert not page.workspace.work(works[1]).columns[0].field.confirmed  # a fresh draft


def test_choices_rules_and_links_come_back_too(restarted):
    page = restarted()
    page.workspace.ledger.open_dataset("clinic", Fraction(9))
    tables = {name: as_csv(columns) for name, columns in clinic(120).items()}
    given = {"others": {"events": ("visits.csv", tables["visits"])}, "whose": "who"}
    before = page.given(tables["patients"], "patients.csv", **given)
    work = before.id
    link = {"persons": "people", "events": "stays", "at_most": "7"}
    page.sent(f"/work/{work}/columns/link", link)
    page.confirm_rest(work)
    forbidden = {"kind": "forbid", "field0": "people.age", "values0": "up to 15"}
    forbidden |= {"field1": "stays.ward", "values1": "a"}
    page.sent(f"/work/{work}/rules", forbidden)
    page.post(f"/work/{work}/privacy", {"mode": "private", "epsilon": "0.5", "dataset": "clinic"})
    page = restarted()
    assert page.upload(work, tables["patients"], "patients.csv", **given).status_code == 303
    after = page.workspace.work(work)
    assert (after.columns, after.rules, after.order) == (before.columns, before.rules, before.order)
    assert len(after.rules) == 1
    assert (after.start.unit.name, after.start.events.name, after.link.at_most) == ("people", "stays", 7)
    # What is paid for is chosen once more, before the eyes of whoever pays.
    assert not after.chosen


def test_rows_that_a_paid_release_still_reads_outlive_a_restart(restarted, tmp_path):
    page = restarted()
    state = page.workspace.work(described(page))
    (state.folder / "job.gate").write_text("go")
    with (state.folder / "job.gate").open("rb") as worker:
        assert hold(worker)  # as a worker does when it has decided to go ahead
        page = restarted(killed=True)
        assert state.table.path.exists()
        assert page.workspace.work(state.id).words["tables"] == ["people.csv"]
    restarted()
    assert not state.table.path.exists()


def test_a_release_that_an_earlier_start_began_is_told_as_the_ledger_has_it(restarted, tmp_path):
    page = restarted()
    page.workspace.ledger.open_dataset("people", Fraction(2))
    work = described(page)
    order = {"epsilon": "1", "out": "x", "dataset": "people", "purpose": "release (app, 1)"}
    page.workspace.work(work).jobs["review"] = Job(order, tmp_path, state="cancelled")
    page.workspace.work(work).changed()
    page = restarted(killed=True)
    assert "Nothing was charged for it" in words(page.get(f"/work/{work}/table"))
    receipt = Ledger(tmp_path / "ledger.sqlite").charge("people", Fraction(1), Fraction(0), order["purpose"])
    assert "It was charged, and its bundle is not complete" in words(page.get(f"/work/{work}/table"))
    page = restarted()  # still known, though nothing was given in between
    page.workspace.ledger.mark_released(receipt, "0" * 64)
    assert "It was charged, and its bundle is complete" in words(page.get(f"/work/{work}/table"))


def test_a_computed_column_survives_a_restart_and_relations_that_were_only_seen_do_not(restarted):
    page, content = restarted(), related(1000).write_csv().encode()
    work = page.given(content, "t.csv").id
    page.confirm_rest(work)
    page.get(f"/work/{work}/rules/seen")
    for said in (WORDS[0], WORDS[2]):
        page.sent(f"/work/{work}/rules/seen", {"words": said})
    before = page.workspace.work(work)
    text = before.folder.joinpath("draft.json").read_text()
    assert "less_equal" in text
    assert not any(said in text for said in ("requires", "net + ", "rows", "broken"))
    page = restarted()
    page.upload(work, content, "t.csv")
    after = page.workspace.work(work)
    assert (after.columns, after.rules) == (before.columns, before.rules)
    page.post(f"/work/{work}/rules/computed/{next(iter(after.computed))}/remove")
    assert after.confirmed
    assert after.joint()["copy"].measured
