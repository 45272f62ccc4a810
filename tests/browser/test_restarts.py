"""A steward's pages while a release runs, when the app is killed, and after it was started again."""

import pytest

from tests.browser.conftest import Server, Steward


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
        page.wait_for_url("**/release")
        steward.wait_for("running")
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
