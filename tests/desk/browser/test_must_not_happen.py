"""What once happened to a steward who writes no code, and must not: publishing by accident, and losing what was typed."""

import pytest

from tests.desk.browser.conftest import Server, Steward


@pytest.fixture
def people(tmp_path):
    """A table with names, numbers that run, and an age whose extremes belong to somebody."""
    path = tmp_path / "people.csv"
    rows = [f"{1000 + i},Person Number {i},{17 + i % 80},{'AB'[i % 2]}" for i in range(120)]
    path.write_text("\n".join(["id,name,age,ward", *rows]) + "\n")
    return path


def test_confirming_the_rest_takes_what_was_typed_and_shows_what_becomes_public(steward, server):
    page = steward.page
    steward.to_columns()
    age = page.locator("#column-0")
    drafted = age.get_by_label("Largest value").input_value()
    age.get_by_label("Smallest value").fill("0")
    age.get_by_label("Largest value").fill("120")
    ward = page.locator("#column-1").get_by_label("Categories, one per line")
    ward.fill("geriatrics\nmaternity\nmedicine\nsurgery\nneurology")
    steward.press("Confirm the other")  # at once: nothing waits until it has been kept
    page.wait_for_url("**/columns/confirm")
    steward.look()
    shown = page.get_by_role("main").inner_text()
    assert "0 to 120" in shown
    assert f"to {drafted};" not in shown
    assert "neurology" in shown
    # Limits that come from the data stand apart and first, each with a tick of its own.
    apart = page.locator("form", has=page.get_by_role("heading", name="Check these 3 one by one"))
    assert apart.get_by_role("checkbox").count() == 3
    others = page.get_by_role("heading", name="4 columns without a warning")
    assert apart.bounding_box()["y"] < others.bounding_box()["y"]
    # Nothing is public without the word, and nothing is lost by looking.
    for button in ("Confirm these 4", "Confirm what is ticked"):
        steward.press(button)
        page.get_by_role("alert").get_by_text("Tick the box first").wait_for()
    page.get_by_role("link", name="Back to the columns").click()
    assert page.locator("#column-0").get_by_label("Largest value").input_value() == "120"
    steward.confirm_rest(4, "age")
    page.get_by_text("5 of 7 columns confirmed").wait_for()
    assert "0 to 120" in page.locator("#column-0").inner_text()


def test_what_is_typed_is_kept_as_it_is_typed(steward):
    page = steward.page
    steward.to_columns()
    largest = page.locator("#column-0").get_by_label("Largest value")
    largest.fill("")
    largest.press_sequentially("130")
    page.locator("#column-0").get_by_text("Saved as you typed it").wait_for()
    assert largest.evaluate("field => field === document.activeElement")  # typing goes on undisturbed
    page.reload()
    assert page.locator("#column-0").get_by_label("Largest value").input_value() == "130"


def test_enter_in_a_limit_keeps_the_column(steward):
    page = steward.page
    steward.to_columns()
    page.locator("#column-0").get_by_label("Largest value").fill("120")
    with page.expect_response(lambda answer: answer.request.method == "POST" and "typed" not in answer.url):
        page.locator("#column-0").get_by_label("Largest value").press("Enter")
    page.get_by_text("0 of 7 columns confirmed").wait_for()  # neither left out nor confirmed
    assert page.locator("#column-0.out").count() == 0
    assert page.locator("#column-0").get_by_label("Largest value").input_value() == "120"


def test_a_refused_edit_stays_as_it_was_typed(steward):
    page = steward.page
    steward.to_columns()
    age = page.locator("#column-0")
    age.get_by_label("Smallest value").fill("130")
    age.get_by_label("Largest value").fill("one hundred")
    age.get_by_label("This is public knowledge").check()
    steward.press("Confirm age")
    age.get_by_role("alert").wait_for()
    assert age.get_by_label("Smallest value").input_value() == "130"
    assert age.get_by_label("Largest value").input_value() == "one hundred"
    # The rest cannot be confirmed over it.
    steward.press("Confirm the other")
    page.get_by_role("alert").get_by_text("age:").wait_for()
    assert page.locator("#column-0").get_by_label("Largest value").input_value() == "one hundred"
    steward.look()


def test_many_columns_fit_a_screen_or_two_and_are_left_out_together(steward, tmp_path):
    """A page of all cards, open or not, would be tens of thousands of pixels tall."""
    page = steward.page
    names = [f"{'lab' if j % 3 else 'code'}{j}" for j in range(120)]
    rows = "\n".join(",".join(str((i * j) % 2) for j in range(120)) for i in range(1, 60))
    (tmp_path / "wide.csv").write_text(",".join(names) + f"\n{rows}\n")
    steward.upload(tmp_path / "wide.csv")
    assert page.evaluate("document.documentElement.scrollHeight") < 3 * 860
    page.locator("#filter").fill("code")
    steward.press("Leave out these 40")
    page.get_by_text("of 80 columns confirmed").wait_for()
    assert page.locator(".column.out").count() == 40
    # One choice for those that are ticked, by the keyboard as well.
    page.get_by_label("Choose lab1", exact=True).focus()
    page.keyboard.press("Space")
    page.get_by_label("Choose lab2", exact=True).check()
    steward.press("Leave out the 2 ticked")
    page.get_by_text("of 78 columns confirmed").wait_for()
    left = page.locator("section", has=page.get_by_role("heading", name="Left out"))
    left.get_by_label("Select all").check()
    left.get_by_label("Choose lab2", exact=True).uncheck()
    steward.look()
    left.get_by_role("button", name="Take the 41 ticked back in").click()
    page.get_by_text("of 119 columns confirmed").wait_for()
    assert [column.get_attribute("data-name") for column in page.locator(".column.out").all()] == ["lab2"]


def test_another_kind_and_back_keeps_limits_and_categories(steward):
    page = steward.page
    steward.to_columns()
    age = page.locator("#column-0")
    age.get_by_label("Largest value").fill("115")
    age.get_by_label("Kind").select_option("string")
    age.get_by_label("Categories, one per line").fill("young\nold")
    age.get_by_label("Kind").select_option("integer")
    age.get_by_label("Largest value").wait_for()
    assert age.get_by_label("Largest value").input_value() == "115"
    age.get_by_label("Kind").select_option("string")
    age.get_by_label("Categories, one per line").wait_for()
    assert age.get_by_label("Categories, one per line").input_value() == "young\nold"


def test_a_forgotten_tick_costs_no_typing_and_no_dataset_is_chosen_for_you(steward, server):
    page = steward.page
    steward.to_privacy()
    page.locator("#epsilon").fill("0.7")
    if not page.locator("#new-name").is_visible():
        page.get_by_text("Open a new dataset").click()
    page.locator("#new-name").fill("cohort 2026")
    page.locator("#new-budget").fill("7")
    page.locator("#new-delta").fill("1e-7")
    steward.press("Open this dataset")
    page.get_by_role("alert").get_by_text("Tick the box first").wait_for()
    typed = [page.locator(f"#{name}").input_value() for name in ("new-name", "new-budget", "new-delta", "epsilon")]
    assert typed == ["cohort 2026", "7", "1e-7", "0.7"]
    steward.look()
    page.locator("#final").check()
    steward.press("Open this dataset")
    page.locator("#dataset-name option[value='cohort 2026']").wait_for(state="attached")
    # Another table, of other people: its steward says which budget pays.
    steward.to_privacy()
    assert page.locator("#dataset-name").input_value() == ""
    page.locator("#epsilon").fill("many")
    steward.press("Review the release")
    page.get_by_role("alert").get_by_text("must be a number").wait_for()
    assert page.locator("#epsilon").input_value() == "many"


def test_cells_that_do_not_fit_are_seen_before_anything_is_spent(steward, server, people):
    page = steward.page
    steward.upload(people)
    page.locator("#column-0").get_by_label("Smallest value").fill("0")
    page.locator("#column-0").get_by_label("Largest value").fill("50")
    page.locator("#column-1").get_by_label("Categories, one per line").fill("A\nC")
    steward.confirm_rest(2)
    page.get_by_role("link", name="Go on without rules").click()
    steward.open_dataset("misfits")
    steward.press("Review the release")
    page.wait_for_url("**/review")
    shown = page.get_by_role("region", name="How your table fits").inner_text()
    beyond = sum(17 + i % 80 > 50 for i in range(120))
    assert f"age: {beyond} of 120 cells are beyond a limit" in shown
    assert "ward: 60 of 120 cells are in no category" in shown
    steward.look()
    steward.press("Release, and spend ε = 1")
    page.get_by_role("alert").get_by_text("Check the cells that do not fit").wait_for()
    assert server.charges("misfits") == []
    page.get_by_label("I have seen this and accept it").check()
    steward.press("Release, and spend ε = 1")
    steward.wait_for("done")
    assert len(server.charges("misfits")) == 1
    page.go_back()  # to the review, not to the refusal, which the browser would have to send once more
    page.get_by_text("it has been released").wait_for()


def test_back_a_reload_and_a_second_tab_show_the_release_that_is_under_way(steward, server):
    page = steward.page
    steward.to_review("tabs")
    review = page.url
    other = page.context.new_page()
    other.goto(review)  # opened before the release begins, and left alone
    with server.busy_ledger():
        steward.press("Release, and spend ε = 1")
        steward.wait_for("running")
        other.wait_for_url("**/release")
        page.go_back()
        steward.wait_for("running")
        assert page.url.endswith("/release")
        page.reload()
        steward.wait_for("running")
        third = page.context.new_page()
        for step in ("review", "privacy", "columns", "table"):
            third.goto(review.replace("review", step))
            assert third.url.endswith("/release")
            assert "spent so far" not in third.get_by_role("main").inner_text()
    steward.wait_for("done")
    page.goto(review)
    page.get_by_text("it has been released").wait_for()
    steward.look()
    assert len(server.charges("tabs")) == 1


@pytest.fixture
def mortal(tmp_path):
    """An app of a test's own, which may be killed."""
    server = Server(tmp_path)
    yield server
    server.process.kill()
    server.process.wait()
    server.process.stdout.close()


@pytest.fixture
def guest(browser, mortal, axe, screen):
    context = browser.new_context(**screen)
    yield Steward(context.new_page(), mortal, axe)
    context.close()


def test_a_killed_app_is_noticed_on_any_page_and_costs_no_column_work(guest, mortal):
    page = guest.page
    guest.to_columns()
    age = page.locator("#column-0")
    age.get_by_label("Largest value").fill("119")
    age.get_by_text("Saved as you typed it").wait_for()
    guest.press("Leave it out: cost")
    page.get_by_text("0 of 6 columns confirmed").wait_for()
    mortal.process.kill()
    mortal.process.wait()
    gone = page.get_by_role("alert").get_by_text("covey does not answer")
    gone.wait_for(timeout=20_000)  # asked for every two seconds
    guest.look()
    mortal.process.stdout.close()
    mortal.start()
    guest.enter()
    page.get_by_role("link", name="visits.csv").click()
    page.get_by_text("Your work on visits.csv is kept").wait_for()
    guest.look()
    guest.press("Use the example table")
    page.wait_for_url("**/columns")
    page.get_by_text("0 of 6 columns confirmed").wait_for()
    assert page.locator("#column-0").get_by_label("Largest value").input_value() == "119"
    assert page.locator("#column-3.out").count() == 1
