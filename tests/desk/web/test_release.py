"""From the review to the bundle: one charge for one review, whatever is clicked, cancelled or killed."""

import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from threading import Semaphore

import polars as pl
import pytest

from covey.desk.web import jobs
from covey.desk.web.forms import PRIVATE, command_line, script
from covey.desk.web.jobs import Job, anonymous_seconds, open_gate
from covey.desk.web.pages import bundle as bundle_pages
from covey.desk.web.pages.shared import duration_words
from covey.engine.budget import make_budget
from covey.engine.models.predict import predict
from covey.ledger import Ledger
from covey.release.verify import verify_bundle
from covey.workflow import STAGES
from tests.desk.web.conftest import PUBLIC_LIMITS, Page, opened_workspace, words


def test_a_private_release_from_review_to_zip(page):
    work = page.ready_work(size=300, guarantee="delta", delta="1e-7", owner="Ada Lovelace", purpose="teaching")
    assert "2 of 2" not in words(page.get(f"/work/{work}/review"))
    assert "owner: Ada Lovelace; purpose: teaching" in words(page.get(f"/work/{work}/review"))
    page.sent(f"/work/{work}/release", {"review": page.review(work)})
    assert "Releasing" in words(page.get(f"/work/{work}/release"))
    job = page.finished(work)
    assert job.state == "done", job.message
    assert "Done in" in words(page.get(f"/work/{work}/job"))
    answer = page.get(f"/work/{work}/bundle")
    assert "95% confidence" in words(answer)
    download = page.get(f"/work/{work}/bundle.zip")
    assert 'filename="visits-release.zip"' in download.headers["content-disposition"]
    archive = zipfile.ZipFile(io.BytesIO(download.content))
    assert archive.testzip() is None
    assert {Path(name).name for name in archive.namelist()} == {path.name for path in job.bundle.iterdir()}
    assert verify_bundle(job.bundle).rows == 300
    assert len(page.charges()) == 1
    assert [event.kind for event in page.workspace.ledger.history("visits")] == ["open", "charge", "release"]
    report = page.get(f"/work/{work}/bundle/report").text
    assert all(said in report for said in ("Ada Lovelace", "teaching", "of a cap of"))
    # The ledger leads back to the bundle, which is found by its digest alone, after a restart too.
    link = re.search(r'href="(/ledger/bundle/[0-9a-f]{64})"', page.get("/ledger").text)
    assert page.get(link[1]).text == report
    assert page.get("/ledger/bundle/" + "0" * 64).status_code == 404
    # The evaluation: confidential, on the screen alone, gone when the rows are gone.
    before = set(page.workspace.out.rglob("*"))
    evaluation = page.post(f"/work/{work}/evaluate", timeout=600)  # a deadline for what hangs, not for what is slow
    assert "computed on real data" in evaluation.text
    assert "Average total variation distance" in evaluation.text
    assert "became missing" not in evaluation.text  # it is read as the release read it
    assert evaluation.headers["content-security-policy"].startswith("sandbox; default-src 'none';")
    assert set(page.workspace.out.rglob("*")) == before
    assert page.client.post(f"/work/{work}/evaluate", data={"csrf": "no"}).status_code == 403
    # The zip, the order and the schema leave no trace beside the table, and nothing private is in the bundle.
    assert not list(page.workspace.work(work).folder.glob("*.zip"))
    assert not [path for path in job.bundle.iterdir() if "visits" in path.name]


def test_rows_as_a_workbook_what_became_coarser_and_two_releases_side_by_side(page, monkeypatch):
    limits = PUBLIC_LIMITS.replace('["maximum", "120"]', '["maximum", "50"]')
    work = page.ready_work(300, limits, guarantee="delta", delta="1e-7", epsilon="0.5")
    bundles = [released(page, work).bundle]
    shown = words(page.get(f"/work/{work}/bundle"))
    assert "What became coarser" in shown
    assert "above 50, if any, were moved to 50" in shown
    download = page.get(f"/work/{work}/bundle.xlsx")
    assert 'filename="visits-synthetic.xlsx"' in download.headers["content-disposition"]
    found = pl.read_excel(io.BytesIO(download.content))
    assert found.equals(pl.read_csv(bundles[0] / "synthetic.csv", try_parse_dates=True))
    monkeypatch.setattr(bundle_pages, "SHEET_ROWS", 299)
    refused = page.get(f"/work/{work}/bundle.xlsx")
    assert (refused.status_code, "do not fit a workbook" in words(refused)) == (422, True)
    page.workspace.work(work).job.result.pop("verified")  # as if it were shown for the first time
    assert "bundle.xlsx" not in page.get(f"/work/{work}/bundle").text
    assert not list(page.workspace.work(work).folder.glob("*.xlsx"))
    # Another release of the same table, beside the first.
    page.sent(f"/work/{work}/again")
    again = {"mode": "private", "epsilon": "1", "guarantee": "delta", "delta": "1e-8", "dataset": "visits"}
    page.sent(f"/work/{work}/privacy", again)
    bundles.append(released(page, work).bundle)
    one, two = re.findall(r'<option value="(\w+)" selected>', page.get("/ledger").text)
    beside = page.get("/ledger/beside", params={"one": one, "two": two})
    assert beside.headers["content-security-policy"].startswith("sandbox; default-src 'none';")
    said = words(beside)
    assert f"The first is {bundles[0].name}, the second {bundles[1].name}." in said
    for part in ("ε = 0.5, δ = 1e-7", "ε = 1, δ = 1e-8", "How the budget was spent", "would have to move"):
        assert part in said
    for other in (one, "0" * 64, ""):
        assert page.get("/ledger/beside", params={"one": one, "two": other}).status_code == 422


def test_an_anonymous_release_tells_the_steward_alone_and_shows_its_report_apart(page):
    work = page.ready_work(mode="anonymous", group_size="10", sensitive="ward", format="parquet", rows="50")
    review = page.get(f"/work/{work}/review")
    assert "Not differential privacy" in words(review)
    job = released(page, work)
    assert job.state == "done", job.message
    said = words(page.get(f"/work/{work}/bundle"))
    assert "groups agree on ward" in said
    assert not any("agree on ward" in path.read_text(errors="ignore") for path in job.bundle.iterdir())
    assert (job.bundle / "synthetic.parquet").exists()
    assert page.charges() == []
    # The report is shown in a world of its own.
    text = page.get(f"/work/{work}/bundle").text
    assert re.search(r"<iframe[^>]+ sandbox>", text)
    answer = page.get(f"/work/{work}/bundle/report")
    assert answer.content == (job.bundle / "report.html").read_bytes()
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none';")
    assert "script" not in policy
    assert "connect" not in policy
    # A bundle of an earlier version has none: plain words instead.
    (job.bundle / "report.html").unlink()
    assert "In short" in words(page.get(f"/work/{work}/bundle"))
    assert page.get(f"/work/{work}/bundle/report").status_code == 404


def test_clicking_often_and_at_once_charges_once(page):
    work = page.ready_work()
    key = page.review(work)
    assert "when you press the button" in words(page.get(f"/work/{work}/review"))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: page.post(f"/work/{work}/release", {"review": key}), range(16)))
    assert {answer.status_code for answer in answers} == {303}
    assert page.finished(work).state == "done"
    page.sent(f"/work/{work}/release", {"review": key})
    assert len(page.workspace.work(work).jobs) == len(page.charges()) == 1
    # The page of the same review offers no second release; another one takes a word of its own.
    closed = page.get(f"/work/{work}/review")
    assert 'name="review"' not in closed.text
    assert "it has been released" in words(closed)
    assert "when you press the button" not in words(closed)
    page.post(f"/work/{work}/again")
    assert page.review(work) != key


def test_a_review_holds_only_for_what_it_showed(page):
    work = page.ready_work()
    key = page.review(work)
    page.post(f"/work/{work}/privacy", {"mode": "private", "epsilon": "2", "dataset": "visits"})
    page.refused(f"/work/{work}/release", {"review": key}, "changed", code=409)
    assert page.post(f"/work/{work}/release", {"review": "made up"}).status_code == 409
    assert page.workspace.work(work).jobs == {}


def released(page, work):
    """The job of a review, followed to its end."""
    page.sent(f"/work/{work}/release", {"review": page.review(work), "seen": "on"})
    return page.finished(work)


def remain(answer):
    """What a review says is left of the budget, now or afterwards."""
    return re.search(r"; ([\d.]+) of [\d.]+ (?:will )?remain", words(answer))[1]


@pytest.mark.parametrize("delta", ["0", "1e-9"])
def test_what_will_remain_is_what_remains(page, delta):
    """Of 2 pure releases of ε = 0.5 leave 1.5 and 1; Gaussian ones compose to less, and what is left is at the cap's δ."""
    guarantee = {"epsilon": "0.5", "guarantee": "pure" if delta == "0" else "delta", "delta": delta}
    said = []
    for _ in range(2):
        work = page.ready_work(size=60, **guarantee)
        said.append(remain(page.get(f"/work/{work}/review")))
        assert f"afterwards {said[-1]}" in words(page.get(f"/work/{work}/privacy"))
        assert released(page, work).state == "done"
        assert remain(page.get(f"/work/{work}/review")) == said[-1]
    assert said == ["1.5", "1"] if delta == "0" else 1.5 < float(said[1]) < float(said[0]) < 2


RELEASING = ("table", "columns", "columns/confirm", "rules", "privacy", "review", "bundle", "")


def test_every_page_of_a_table_that_is_being_released_leads_to_its_release(page):
    """Back, a reload or a second tab must not say that nothing was spent, and nothing can be changed from there."""
    page.workspace.slots = Semaphore(0)  # no job ever gets one
    work = page.ready_work()
    key = page.review(work)
    assert page.get("/alive").json() == {"releasing": []}
    page.post(f"/work/{work}/release", {"review": key})
    assert page.get("/alive").json() == {"releasing": [work]}
    for step in RELEASING:
        assert page.get(f"/work/{work}/{step}".rstrip("/")).headers["location"] == f"/work/{work}/release", step
    before = page.workspace.work(work).columns
    for path, form in (
        ("columns/0", {"action": "reopen"}),
        ("columns/0/typed", {"type": "integer", "maximum": "7"}),
        ("columns", {"action": "learn"}),
        ("rules/0/remove", {}),
        ("privacy", {"mode": "private", "epsilon": "2", "dataset": "visits"}),
    ):
        page.post(f"/work/{work}/{path}", form)
    assert (page.workspace.work(work).columns, page.workspace.work(work).review) == (before, key)
    assert page.upload(work, b"a\n1\n").status_code == 409
    # A second tab that still shows another review ends at the release as well.
    assert page.post(f"/work/{work}/release", {"review": "old"}).headers["location"].endswith("/release")
    # A job that waits can be cancelled, and costs nothing.
    assert "Waiting" in words(page.get(f"/work/{work}/release"))
    assert "Cancelled" in words(page.post(f"/work/{work}/cancel", headers={"hx-request": "true"}))
    assert (page.workspace.work(work).job.state, page.charges()) == ("cancelled", [])
    said = words(page.get(f"/work/{work}/review"))
    assert "it was cancelled, and nothing was charged" in said
    assert "has been released" not in said


def test_an_exhausted_budget_is_told_before_and_during(page):
    work, other = page.ready_work(epsilon="1.5"), page.ready_work(epsilon="1.5")
    late = page.review(other)
    assert released(page, work).state == "done"
    review = page.get(f"/work/{other}/review")
    assert "no longer covers" in words(review)
    assert re.search(r"<button[^>]+disabled>Release", review.text)
    # Even if the button were pressed: the worker asks the ledger first.
    page.post(f"/work/{other}/release", {"review": late})
    job = page.finished(other)
    assert job.state == "failed"
    said = words(page.get(f"/work/{other}/release"))
    assert "does not cover this" in said
    assert "Nothing was charged" in said
    assert len(page.charges()) == 1


def test_a_running_job_is_really_killed(page):
    work = page.ready_work()
    job = page.workspace.order(page.workspace.work(work))
    # Somebody else holds the ledger: the worker waits for it at its first stage.
    with closing(sqlite3.connect(page.workspace.ledger.path, isolation_level=None)) as held:
        held.execute("BEGIN EXCLUSIVE")
        page.workspace.start(job)
        while job.stage != "checking":
            assert not job.over
            time.sleep(0.005)
        assert job.cancel()
    assert job.process.wait(600) == -signal.SIGKILL
    assert job.state == "cancelled"
    assert page.charges() == []
    assert not job.bundle.exists()


def test_the_gate_lets_one_side_win(tmp_path):
    job = Job({"epsilon": "1", "out": "x"}, tmp_path, state="running")
    assert job.can_cancel
    assert open_gate(job.gate, "go")
    assert not job.can_cancel
    assert not job.cancel()
    assert job.state == "running"
    other = Job({"epsilon": "1", "out": "x"}, tmp_path, state="running")
    assert other.cancel()
    assert other.cancel()
    assert not open_gate(other.gate, "go")


def test_a_worker_that_finds_the_gate_shut_or_no_server_spends_nothing(page):
    work = page.workspace.work(page.ready_work())
    job = page.workspace.order(work)
    job.gate.write_text("cancel")
    job.run()
    assert job.state == "failed"
    assert "Nothing was charged" in job.message
    assert not job.bundle.exists()
    # The pipe to its server is broken from the start: it must end before it spends.
    job = page.workspace.order(work)
    place = job.folder / "job.json"
    place.write_text(json.dumps({"order": job.order, "gate": str(job.gate)}))
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-m", "covey.desk.web.jobs", str(place)], stdout=write, timeout=600)
    os.close(write)
    assert done.returncode in (0, 120)  # 120: Python could not flush the broken pipe at its end
    assert page.charges() == []
    assert not job.gate.exists()


def test_a_worker_killed_after_the_charge_is_told_by_the_ledger(page):
    work = page.ready_work(size=10_000)
    job = page.workspace.order(page.workspace.work(work))
    page.workspace.start(job)
    while not page.charges() and not job.over:
        time.sleep(0.01)
    assert not job.cancel()
    os.kill(job.process.pid, signal.SIGKILL)
    page.followed(job)
    assert len(page.charges()) == 1
    assert job.state == "failed"
    assert "charge was made" in job.message
    assert not job.bundle.exists()


def test_a_disk_that_is_full_or_a_table_that_is_gone_is_told(page):
    work = page.ready_work()
    review = page.review(work)
    page.workspace.work(work).table.path.unlink()
    page.post(f"/work/{work}/release", {"review": review})
    job = page.finished(work)
    assert job.state == "failed"
    assert "there is no file visits.csv" in job.message
    assert "Nothing was charged" in job.message
    assert str(page.workspace.folder) not in page.get(f"/work/{work}/release").text


def children(pid):
    """The processes that a process has started."""
    return [int(child) for place in Path(f"/proc/{pid}/task").glob("*/children") for child in place.read_text().split()]


def alive(pid):
    """Whether a process still runs; one that has ended may wait for somebody to ask after it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="/proc as Linux has it")
@pytest.mark.parametrize("moment", ["checking", "measuring"])
def test_a_killed_server_leaves_the_ledger_true(tmp_path, started, moment):
    ledger = tmp_path / "ledger.sqlite"
    Ledger(ledger).open_dataset("visits", Fraction(2))
    server = started("--no-browser", "--json", "--out", str(tmp_path / "out"))
    page = Page(json.loads(server.stdout.readline())["address"])
    page.enter()
    work = page.ready_work(5000)
    with closing(sqlite3.connect(ledger, isolation_level=None)) as other:
        if moment == "checking":  # another program holds the ledger, so that the worker waits before its charge
            other.execute("BEGIN IMMEDIATE")
        page.sent(f"/work/{work}/release", {"review": page.review(work)})
        while not (workers := children(server.pid)):
            time.sleep(0.02)
        words_of = {"checking": "Nothing has been charged yet", "measuring": "The charge is made"}
        while words_of[moment] not in (said := page.get(f"/work/{work}/job").text) and "Done" not in said:
            time.sleep(0.02)
        page.client.close()
        server.kill()
        server.wait()
    with opened_workspace(tmp_path) as anew:  # at once: what a paid worker still reads must not be tidied up beneath it
        restored = anew.work(work)
        assert [column["kept"] for column in restored.words["columns"]].count(True) >= 3
        while any(map(alive, workers)):  # a worker that was paid finishes alone; one that was not stops
            time.sleep(0.02)
        said = {"checking": "Nothing was charged for it", "measuring": "its bundle is complete"}
        assert said[moment] in anew.aftermath(restored)
    with opened_workspace(tmp_path) as last:
        assert list((tmp_path / "workspace").rglob("table-*")) == []
        last.close_work(last.work(restored.id))
    assert list((tmp_path / "workspace").iterdir()) == []
    book, spent = Ledger(ledger), moment == "measuring"
    book.verify()
    kinds = [event.kind for event in book.history("visits")]
    assert kinds == (["open", "charge", "release"] if spent else ["open"])
    bundles = list((tmp_path / "out").glob("release-*")) if spent else []
    assert len(bundles) == spent
    for bundle in bundles:
        verify_bundle(bundle)


def test_the_command_line_and_the_script_make_the_same_release(page, tmp_path, monkeypatch):
    private = page.ready_work(size=200, guarantee="delta", delta="1e-7", epsilon="0.25", important="age", target="ward")
    assert "age; what predicts ward" in words(page.get(f"/work/{private}/review"))
    anonymous = page.ready_work(size=200, mode="anonymous", group_size="10", sensitive="ward")
    # Both come from one order, which the next test reads back from its script: each way runs once.
    for work, export in ((private, "release.sh"), (anonymous, "release.py")):
        folder = tmp_path / work / export
        folder.mkdir(parents=True)
        shutil.copy(page.workspace.work(work).table.path, folder / "visits.csv")
        (folder / "schema.json").write_bytes(page.get(f"/work/{work}/schema.json").content)
        (folder / export).write_bytes(page.get(f"/work/{work}/{export}").content)
        here = Path(sys.executable).parent
        (folder / "covey").write_text(f'#!/bin/sh\nexec {sys.executable} -m covey.desk.cli "$@"\n')
        (folder / "covey").chmod(0o755)
        path = {"PATH": f"{folder}{os.pathsep}{here}{os.pathsep}{os.environ['PATH']}"}
        command = ["sh", export] if export.endswith("sh") else [sys.executable, export]
        done = subprocess.run(command, cwd=folder, env={**os.environ, **path}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found = verify_bundle(folder / "release")
        assert found.rows == 200
        assert found.facts["private"] == (work == private)
        own = json.loads((folder / "release" / "schema.json").read_text()).get("covey", {})
        assert (own.get("important"), own.get("target")) == ((["age"], "ward") if work == private else (None, None))
    assert [str(event.amount.epsilon) for event in page.charges()] == ["1/4"]


def test_exports_say_nothing_of_a_cell_that_does_not_fit(page):
    """The review counts such cells for the steward's eyes; the files beside it are kept, and handed on."""
    work = page.ready_work(size=60)
    kept = page.workspace.work(work)
    before = [page.get(f"/work/{work}/{name}").text for name in ("release.sh", "release.py")]
    head, first, *rest = kept.table.path.read_text().splitlines()
    place = head.split(";").index("age")
    cells = first.split(";")
    kept.table.path.write_text("\n".join([head, ";".join([*cells[:place], "999", *cells[place + 1 :]]), *rest]) + "\n")
    kept._fit = None
    assert "beyond a limit, and are moved to it" in words(page.get(f"/work/{work}/review"))
    assert [page.get(f"/work/{work}/{name}").text for name in ("release.sh", "release.py")] == before


def test_exports_quote_what_a_shell_or_python_would_run():
    name, dataset = "a b; rm -rf ~ '\".csv", 'x"); import os #'
    places = {"table": Path(name), "schema": Path("schema.json"), "out": Path("release")}
    order = replace(PRIVATE, **places, dataset=dataset, rows=7, parquet=True, confirm_large_epsilon=True)
    line = ["sh", "-c", f"printf '%s\\n' {command_line(order)}"]
    words_of_shell = subprocess.run(line, capture_output=True, text=True, check=True).stdout.splitlines()
    assert words_of_shell[:3] == ["covey", "release", name]
    assert words_of_shell[words_of_shell.index("--dataset") + 1] == dataset
    space = {}
    exec(script(order).replace("__main__", "nobody"), space)
    assert space["order"] == order
    assert (order.table.name, order.dataset, order.rows) == (name, dataset, 7)


def test_a_worker_that_dies_over_the_report_leaves_its_data_and_another_finishes_it(page, monkeypatch):
    """The first process is killed when the data are written; what was paid for is there, and the job ends well."""
    begin, started = subprocess.Popen, []
    dies = "import os, covey.release.bundle as b; b.add_words = lambda *_: os.kill(os.getpid(), 9)"

    def popen(command, **options):
        started.append(command)
        if len(started) == 1:
            command = [sys.executable, "-c", f"{dies}\nfrom covey.desk.web.jobs import main\nmain({command[-1]!r})"]
        return begin(command, **options)

    monkeypatch.setattr(jobs.subprocess, "Popen", popen)
    work = page.ready_work(size=120)
    job = released(page, work)
    assert len(started) == 2
    assert job.state == "done", job.message
    assert verify_bundle(job.bundle).finished
    assert job.result["rows"] == 120
    assert [event.kind for event in page.workspace.ledger.history("visits")] == ["open", "charge", "release"]
    assert page.get(f"/work/{work}/bundle/report").status_code == 200


EXPECTED = {"checking": 2.0, "reading": 1.0, "charging": 0.0, "measuring": 10.0, "writing": 7.0}


def estimated(started=0.0, stage="", share=0.0):
    return Job({"epsilon": "1"}, Path(), expected=EXPECTED, started=started, stage=stage, share=share)


def test_what_is_left_follows_the_machine_and_not_the_wish():
    """Half of the measuring is done after 32 s where 8 were expected: the other 12 will take 48. A plain countdown says none."""
    half = estimated(100.0, "measuring", 0.5)
    assert half.done == pytest.approx(0.4)
    assert half.left(132.0) == pytest.approx(48.0)
    assert half.left(104.0) == pytest.approx(6.0)


def test_every_stage_moves_the_bar_and_writing_has_an_end():
    shares = [estimated(0.0, stage, share).done for stage in EXPECTED for share in (0.0, 0.9)]
    assert shares == sorted(shares)
    assert estimated(0.0, "writing").done < estimated(0.0, "writing", 0.5).done < 1
    assert estimated().left(0.0) == 20.0  # before anything is known, what was expected
    assert estimated(0.0, "checking").left(1.0) == 19.0
    assert estimated(0.0, "checking").left(6.0) == 54.0  # three times slower than expected: so will the rest be


def test_a_plan_counts_start_and_writing_too():
    """Of a table of 20,000 rows with eight numbers and eight categories the fit is less than half of the time."""
    plan = predict([20] * 8 + [3, 8, 16, 40, 2, 2, 2, 2], 20_000, make_budget(1.0, 0))
    assert plan.seconds == pytest.approx(sum(plan.stages.values()))
    assert plan.stages["measuring"] < plan.seconds / 2
    assert tuple(plan.stages) == STAGES  # none of them sends the bar back
    assert plan.as_dict()["seconds_by_stage"]["writing"] > 1
    assert sum(anonymous_seconds(10**6).values()) > 5


def test_durations_are_said_no_finer_than_they_are_known():
    said = ["a few seconds", "about 15 seconds", "about a minute", "about 3 minutes", "about 2.0 hours"]
    assert [duration_words(s) for s in (1, 13, 70, 200, 7200)] == said
