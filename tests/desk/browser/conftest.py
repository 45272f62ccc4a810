"""A real browser: Debian's Chromium, driven by Playwright, with axe-core to judge accessibility.

Where one of them is missing the tests are skipped with a word; with COVEY_REQUIRE_BROWSER they fail instead.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from covey.ledger import Ledger

ROOT = Path(__file__).parents[3]
OFF = ("gpu", "quic", "background-networking", "component-update", "sync")
FLAGS = ["--no-sandbox", "--no-first-run", *(f"--disable-{what}" for what in OFF)]
WAIT_MS = 60_000


def missing(what):
    if os.environ.get("COVEY_REQUIRE_BROWSER"):
        pytest.fail(f"{what}, and COVEY_REQUIRE_BROWSER is set", pytrace=False)
    pytest.skip(f"{what}: the browser tests need it")


@pytest.fixture(scope="session")
def axe():
    path = Path(os.environ.get("COVEY_AXE", ROOT / "build/axe-core/axe.min.js"))
    if not path.exists():
        missing("axe-core is not there (make build/axe-core/axe.min.js)")
    return path.read_text()


@pytest.fixture(scope="session")
def browser():
    chromium = os.environ.get("COVEY_CHROMIUM") or shutil.which("chromium")
    if not chromium:
        missing("Chromium is not installed (apt-get install chromium)")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("Playwright is not installed (pip install playwright)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


class Server:
    """The app as a steward starts it."""

    def __init__(self, folder):
        self.folder = folder
        self.start()

    def start(self):
        """Start it, once more if need be: its address is another one each time."""
        folder = self.folder
        self.ledger, self.out = Ledger(folder / "ledger.sqlite"), folder / "out"
        line = [sys.executable, "-m", "covey.desk.cli", "serve", "--no-browser", "--json", "--upload-limit", "1"]
        line += ["--out", str(self.out), "--ledger", str(self.ledger.path)]
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=folder)
        self.address = json.loads(self.process.stdout.readline())["address"]
        self.home = self.address.partition("?")[0]

    def charges(self, dataset):
        return [event for event in self.ledger.history(dataset) if event.kind == "charge"]

    @contextmanager
    def busy_ledger(self):
        """Another program writes to the ledger, so that a release waits at its first stage."""
        with closing(sqlite3.connect(self.ledger.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("served"))
    yield server
    server.process.terminate()
    server.process.wait(600)
    server.process.stdout.close()
    left = {path.name for path in (server.ledger.path.parent / "workspace").rglob("*") if path.is_file()}
    assert {name for name in left if not name.endswith(".lock")} <= {"draft.json"}  # no row is left


class Steward:
    """A person at the browser. Whatever a page asks of another host, or complains about, is remembered."""

    def __init__(self, page, server, axe):
        self.page, self.server, self._axe = page, server, axe
        self.foreign, self.complaints = [], []
        page.set_default_timeout(WAIT_MS)
        page.on("request", self._request)
        page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _request(self, request):
        if not request.url.startswith((self.server.home, "data:")):
            self.foreign.append(request.url)

    def look(self):
        """No accessibility problem that is moderate or worse in either colour scheme, and nothing to scroll sideways for."""
        self.page.wait_for_load_state()  # its words may be there before its style
        self.page.evaluate(self._axe)
        self._turn("light")
        self._judge({"resultTypes": ["violations"]})
        self._turn("dark")  # which changes colours and nothing else
        self._judge({"resultTypes": ["violations"], "runOnly": ["color-contrast"]})
        wide, seen = self.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert wide <= seen, f"{self.page.url} is {wide} wide on a screen of {seen}"

    def _turn(self, scheme):
        """To another colour scheme, with all that fades into it at its end: in a page that nobody sees it may never get there."""
        self.page.emulate_media(color_scheme=scheme)
        fading = "document.getAnimations().filter(one => one instanceof CSSTransition)"
        self.page.evaluate(f"{fading}.forEach(one => one.finish())")

    def _judge(self, rules):
        found = self.page.evaluate("rules => axe.run(rules)", rules)["violations"]
        grave = [f for f in found if f["impact"] in ("moderate", "serious", "critical")]
        assert not grave, [(f["id"], [node["html"][:200] for node in f["nodes"]]) for f in grave]

    def enter(self):
        self.page.goto(self.server.address)
        self.page.get_by_role("button", name="Start with a table").wait_for()

    def press(self, name):
        self.page.get_by_role("button", name=name).click()

    def to_columns(self):
        self.enter()
        self.press("Start with a table")
        self.press("Use the example table")
        self.page.wait_for_url("**/columns")

    def public_limits(self):
        """Put limits that anyone could know in the place of those that come from the data."""
        for place, low, high in ((0, "0", "120"), (3, "0", "60000"), (6, "2023-01-01", "2025-12-31")):
            card = self.page.locator(f"#column-{place}")
            card.get_by_label("Smallest value").fill(low)
            card.get_by_label("Largest value").fill(high)
        self.page.locator("#column-3").get_by_label("Steps").fill("9")

    def confirm_rest(self, count, *apart):
        """Confirm what carries no warning, so many columns, and before them those that are named."""
        self.press("Confirm the other")  # their number is the server's, and what was typed goes along
        self.page.wait_for_url("**/columns/confirm")
        for name in apart:
            self.page.get_by_label(f"{name}: ").check()
        if apart:
            self.press("Confirm what is ticked")
            self.page.get_by_role("heading", name=f"{count} column").wait_for()
        self.page.get_by_label("I have looked at all of them").check()
        self.press(f"Confirm these {count}")

    def upload(self, path):
        """A table of one's own, up to its columns."""
        self.enter()
        self.press("Start with a table")
        self.page.locator("#table").set_input_files(path)
        self.press("Read this table")
        self.page.wait_for_url("**/columns")

    def to_privacy(self):
        self.to_columns()
        self.public_limits()
        self.confirm_rest(6, "age")  # whose smallest value, 0, is also the one in the data
        self.page.get_by_role("link", name="Go on without rules").click()
        self.page.wait_for_url("**/privacy")

    def open_dataset(self, name, budget="3"):
        page = self.page
        if not page.locator("#new-name").is_visible():
            page.get_by_text("Open a new dataset").click()
        page.locator("#new-name").fill(name)
        page.locator("#new-budget").fill(budget)
        page.locator("#final").check()
        self.press("Open this dataset")
        page.locator(f"#dataset-name option[value='{name}']").wait_for(state="attached")
        page.wait_for_load_state()

    def to_review(self, dataset, budget="3"):
        self.to_privacy()
        self.open_dataset(dataset, budget)
        self.press("Review the release")
        self.page.wait_for_url("**/review")

    def wait_for(self, state):
        self.page.locator(f"#job[data-state={state}]").wait_for()


@pytest.fixture
def screen():
    """The browser's settings; a test may ask for others."""
    return {"color_scheme": "light", "viewport": {"width": 1280, "height": 860}}


@pytest.fixture
def steward(browser, server, axe, screen):
    context = browser.new_context(**screen)
    steward = Steward(context.new_page(), server, axe)
    yield steward
    context.close()
    assert steward.foreign == []
    # Neither a refusal that a test provoked nor a question that was dropped on leaving is a complaint of the page.
    known = ("status of 4", "htmx:afterRequest", "htmx:sendError", "htmx:sendAbort")
    assert [words for words in steward.complaints if not any(part in words for part in known)] == []
