"""The app as a person at a statistics office uses it."""

import json
import re
import zipfile

import pytest

from covey.release.verify import verify_bundle
from tests.clinic import GOOD, as_csv, clinic
from tests.synthesizers.test_proposals import related

PHONE = {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True}


def test_the_whole_way_from_a_table_to_a_bundle(steward, server, screen, tmp_path):
    page, dataset = steward.page, "visits"
    steward.enter()
    steward.look()
    steward.press("Start with a table")
    steward.look()
    steward.press("Use the example table")
    page.wait_for_url("**/columns")
    steward.look()
    # A column is confirmed by a word of one's own, and not before.
    age = page.locator("#column-0")
    steward.press("Confirm age")
    age.get_by_text("Tick the box first").wait_for()
    steward.look()
    # One limit of one's own does not confirm the other, which comes from the data.
    age.get_by_label("Largest value").fill("120")
    age.get_by_text("its smallest value is still the one from your data").wait_for()
    age.get_by_label("type the name of the column").fill("age")
    age.get_by_label("This is public knowledge").check()
    steward.press("Confirm age")
    page.get_by_text("1 of 7 columns confirmed").wait_for()
    assert "0 to 120" in page.locator("#column-0").inner_text()
    steward.press("Leave it out: cost")
    page.get_by_text("1 of 6 columns confirmed").wait_for()
    # Another kind of column asks for other things.
    page.locator("#column-6").get_by_label("Kind").select_option("string")
    page.locator("#column-6").get_by_label("Categories, one per line").wait_for()
    page.locator("#column-6").get_by_label("Kind").select_option("date")
    page.locator("#column-6").get_by_label("Smallest value").fill("2023-01-01")
    page.locator("#column-6").get_by_label("Largest value").fill("2025-12-31")
    page.locator("#column-6").get_by_label("This is public knowledge").check()
    steward.press("Confirm admitted")
    page.get_by_text("2 of 6 columns confirmed").wait_for()
    steward.look()
    steward.confirm_rest(4)
    page.wait_for_url("**/rules")
    steward.look()
    page.locator("#field0").select_option("age")
    page.locator("#values0").fill("up to 15")
    page.locator("#field1").select_option("ward")
    page.locator("#values1").fill("geriatrics")
    page.locator("form", has=page.locator("#field0")).get_by_role("button", name="Add").click()
    page.get_by_text("Never together: age is at most 15; ward is geriatrics.", exact=True).wait_for()
    page.get_by_role("link", name="Go on to privacy").click()
    page.wait_for_url("**/privacy")
    steward.look()
    steward.open_dataset(dataset)
    # The slider moves the number, and the panel follows from public sizes.
    said = page.locator("#panel .big").inner_text()
    page.locator("#epsilon-slider").focus()
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
    assert page.locator("#epsilon").input_value() == "0.5"
    page.wait_for_function("before => document.querySelector('#panel .big').innerText !== before", arg=said)
    page.locator("#approximate").check()
    page.locator("#delta").fill("1e-8")
    steward.look()
    steward.press("Review the release")
    page.wait_for_url("**/review")
    page.locator("summary", has_text="Python script").click()
    page.locator("summary", has_text="Command line").click()
    assert f"--epsilon 0.5 --delta 1e-8 --dataset {dataset}" in page.locator("#command").inner_text()
    steward.look()
    with server.busy_ledger():
        page.get_by_role("button", name="Release, and spend ε = 0.5").dblclick()  # which charges once
        steward.wait_for("running")  # and not for an address: the second click may break off the first's way there
        assert page.url.endswith("/release")
        steward.look()
        page.reload()  # the job is the server's, not the page's
        steward.wait_for("running")
        assert page.get_by_role("button", name="Cancel").is_visible()
    steward.wait_for("done")
    page.get_by_role("heading", name="Released").wait_for()
    steward.look()
    page.get_by_role("link", name="See the bundle").click()
    page.get_by_role("heading", name="Your bundle is ready").wait_for()
    page.frame_locator("iframe.report").get_by_text("How accurate it is").first.wait_for()
    steward.look()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as zip").click()
    download.value.save_as(tmp_path / "bundle.zip")
    with zipfile.ZipFile(tmp_path / "bundle.zip") as archive:
        archive.extractall(tmp_path / "bundle")
    [folder] = (tmp_path / "bundle").iterdir()
    found = verify_bundle(folder)
    assert (found.rows, found.facts["epsilon"], found.facts["delta"]) == (5000, "1/2", "1/100000000")
    assert len(server.charges(dataset)) == 1
    ready = page.url
    page.goto("about:blank")  # out of the app, whose policy forbids the page's own style
    page.set_content((folder / "report.html").read_text())  # as a file: it needs nothing but itself
    steward.look()
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) <= 2  # what a data protection officer prints
    page.goto(ready)
    # The evaluation: a page that runs no script, so a copy of it is judged, on a screen as narrow as a phone's.
    with page.expect_popup() as opened:
        steward.press("Compare with the real table")
    opened.value.get_by_role("heading", name="Real and synthetic").wait_for()
    evaluation = opened.value.content()
    opened.value.close()
    page.goto("about:blank")
    page.set_content(evaluation)
    page.set_viewport_size({"width": 390, "height": 800})
    steward.look()
    page.set_viewport_size(screen["viewport"])
    page.goto(ready)
    page.get_by_role("link", name="Ledger", exact=True).click()
    page.get_by_role("heading", name=dataset).wait_for()
    steward.look()


@pytest.mark.parametrize("screen", [PHONE], ids=["phone"])
def test_anonymous_mode_on_a_phone(steward, screen):
    page = steward.page
    steward.to_privacy()
    steward.look()
    page.locator("#mode-anonymous").check()
    page.locator("#panel").get_by_text("This is not differential privacy").wait_for()
    assert not page.locator("#epsilon").is_visible()
    page.locator("#group-size").fill("25")
    page.get_by_role("checkbox", name="ward").check()
    steward.look()
    steward.press("Review the release")
    page.wait_for_url("**/review")
    steward.look()
    steward.press("Make the anonymous table")
    steward.wait_for("done")
    steward.look()
    page.get_by_role("link", name="See the bundle").click()
    page.get_by_text("groups agree on ward and disclose it").wait_for()
    page.frame_locator("iframe.report").get_by_role("heading", level=1).wait_for()
    steward.look()
    gone = page.url
    steward.press("Finish, and remove the real rows")
    page.get_by_role("button", name="Start with a table").wait_for()
    page.goto(gone)
    page.get_by_text("no longer in the workspace").wait_for()
    steward.look()


@pytest.mark.parametrize("screen", [PHONE])
def test_persons_and_their_events_on_a_phone(steward, screen, tmp_path):
    page = steward.page
    for name, columns in clinic(120).items():
        (tmp_path / f"{name}.csv").write_bytes(as_csv(columns))
    (tmp_path / "package.json").write_text(json.dumps(GOOD))
    steward.enter()
    steward.press("Start with a table")
    page.locator("#table").set_input_files(tmp_path / "patients.csv")
    page.get_by_text("Persons and their events").click()
    page.get_by_label("The table of the events").set_input_files(tmp_path / "visits.csv")
    page.get_by_text("More choices").click()
    page.get_by_label("A schema you made before").set_input_files(tmp_path / "package.json")
    steward.look()
    steward.press("Read this table")
    page.wait_for_url("**/columns")
    page.get_by_label("Events of a person at most").fill("3")
    page.get_by_label("Measure the first events").check()
    steward.press("Keep this")
    page.wait_for_load_state()
    assert page.get_by_label("Events of a person at most").input_value() == "3"
    assert page.get_by_label("Measure the first events").is_checked()
    assert page.locator(".table-name").all_text_contents() == ["patients", "visits"]
    steward.look()
    page.get_by_role("link", name="Go on to the rules").click()
    page.get_by_role("link", name="Go on without rules").click()
    steward.open_dataset("clinic", "9")
    steward.look()
    steward.press("Review the release")
    page.wait_for_url("**/review")
    page.get_by_text("(at_most)").wait_for()
    steward.look()


def test_a_table_that_is_too_large_is_explained_at_once_and_nothing_is_sent(steward, tmp_path):
    page = steward.page
    steward.enter()
    steward.press("Start with a table")
    (tmp_path / "large.csv").write_text("a\n" + "1\n" * 2**20)
    page.locator("#table").set_input_files(tmp_path / "large.csv")
    page.get_by_text("This table is larger than 1 MB").wait_for()
    asked = []
    page.on("request", lambda request: asked.append(request.method))
    steward.press("Read this table")
    page.wait_for_timeout(200)
    assert "POST" not in asked
    steward.look()


def test_whatever_takes_more_than_three_seconds_says_for_how_long(steward):
    page, held = steward.page, []
    page.route("**/picture", lambda route: held.append(route))
    steward.to_columns()
    page.get_by_role("status").get_by_text("seconds so far").wait_for()
    steward.look()
    for route in held:
        route.continue_()
    page.get_by_text("seconds so far").wait_for(state="detached")


def test_a_release_is_cancelled_before_the_charge(steward, server):
    steward.to_review("cancelled")
    with server.busy_ledger():
        steward.press("Release, and spend ε = 1")
        steward.wait_for("running")
        steward.press("Cancel")
        steward.wait_for("cancelled")
    steward.page.get_by_text("Nothing was charged and nothing was written").wait_for()
    steward.look()
    assert server.charges("cancelled") == []


def test_the_address_opens_from_another_page_too(steward, server):
    """A strict cookie is not sent on a redirect that began elsewhere; a link in a mail must work all the same."""
    page = steward.page
    page.goto(f'data:text/html,<a href="{server.address}">covey</a>')
    page.get_by_role("link", name="covey").click()
    page.get_by_role("button", name="Start with a table").wait_for()
    assert "token" not in page.url
    page.goto(f'data:text/html,<a href="{server.home}">covey</a>')
    page.get_by_role("link", name="covey").click()
    page.get_by_text("Open the address that covey printed").wait_for()


def test_a_hundred_columns_are_a_table_to_walk_and_to_filter(steward, tmp_path):
    page, path = steward.page, tmp_path / "wide.csv"
    header = ",".join(f"value_{j:03}" for j in range(100))
    rows = [",".join(str((i * (j + 3)) % 97 + 0.5) for j in range(100)) for i in range(60)]
    path.write_text("\n".join([header, *rows]) + "\n")
    steward.upload(path)
    assert page.evaluate("document.documentElement.scrollHeight") < 100 * 60 + 1000
    page.locator("#filter").fill("value_02")
    page.get_by_text("10 of 100 columns").wait_for()
    first = page.locator("#column-20 summary")
    first.focus()
    page.keyboard.press("ArrowDown")
    assert page.locator("#column-21 summary").evaluate("row => row === document.activeElement")
    page.keyboard.press("Enter")
    steward.look()
    card = page.locator("#column-21")
    picture = card.locator(".sight svg")
    picture.wait_for()
    before = float(card.get_by_label("Largest value").input_value())
    # Not beneath the foot of the page.
    picture.evaluate("picture => picture.scrollIntoView({ block: 'center', behavior: 'instant' })")
    box = picture.bounding_box()
    # Drawing from the right end to the middle moves the upper limit, and shades what lies beyond.
    page.mouse.move(box["x"] + 0.98 * box["width"], box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 20, steps=4)
    page.mouse.up()
    drawn = float(card.get_by_label("Largest value").input_value())
    assert 40 <= drawn <= 60 < before
    shaded = picture.locator(".beyond[data-side=maximum]").get_attribute("width")
    assert float(shaded) == pytest.approx(60, abs=10)  # half of thirty bars of four
    card.get_by_text("Saved as you typed it").wait_for()


def test_a_relation_seen_in_the_table_becomes_a_rule_by_one_click(steward, tmp_path):
    related(1000).write_csv(tmp_path / "t.csv")
    steward.upload(tmp_path / "t.csv")
    steward.confirm_rest(2, "net", "tax", "total", "copy", "start", "end", "height", "weight")
    page = steward.page
    page.wait_for_url("**/rules")
    page.get_by_role("heading", name="Relations seen in your table").wait_for()
    steward.look()
    steward.press("Add the rule: copy equals net")
    page.get_by_text("copy is computed from net.", exact=True).wait_for()
    steward.press("Add the rule: start is never above end")
    page.get_by_text("start is never above end.", exact=True).wait_for()
    page.get_by_role("button", name="Add the rule: total is net plus tax").wait_for()
    assert page.get_by_role("button", name="Add the rule: copy equals net").count() == 0
    steward.look()
