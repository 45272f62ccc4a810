"""The app on a real port, without a browser: a client that behaves like one of our own pages."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import httpx
import pytest
import uvicorn

from covey.desk.demo import example_visits
from covey.desk.web.app import make_app
from covey.desk.web.security import Secrets
from covey.desk.web.workspace import Workspace
from covey.ledger import Ledger

LIMIT = 2**20

# What anyone could know about the example's numbers and dates, as the page's script sends it.
LIMITS = {
    0: {"type": "integer", "minimum": "0", "maximum": "120", "missing": "on"},
    3: {"type": "number", "minimum": "0", "maximum": "60000", "bins": "9", "decimals": "2", "missing": "on"},
    6: {"type": "date", "minimum": "2023-01-01", "maximum": "2025-12-31", "missing": "on"},
}
PUBLIC_LIMITS = json.dumps({place: list(form.items()) for place, form in LIMITS.items()})


class Page:
    """A steward's browser, as far as the server can tell."""

    def __init__(self, address, workspace=None):
        self.address, self.workspace = address, workspace
        self.home, _, self.token = address.partition("/?token=")
        self.port = int(self.home.rpartition(":")[2])
        self.client = httpx.Client(base_url=self.home, headers={"origin": self.home}, timeout=600, trust_env=False)

    def enter(self):
        answer = self.client.get(self.address)
        assert answer.status_code == 200
        self.csrf = re.search(r'name="csrf" value="([^"]+)"', self.get("/").text)[1]
        return answer

    def get(self, path, **options):
        return self.client.get(path, **options)

    def post(self, path, data=None, **options):
        return self.client.post(path, data={"csrf": self.csrf, **(data or {})}, **options)

    def charges(self, dataset="visits"):
        return [event for event in self.workspace.ledger.history(dataset) if event.kind == "charge"]

    def sent(self, path, form=None):
        """A form that is sent and taken."""
        answer = self.post(path, form)
        assert answer.status_code == 303, words(answer)
        return answer

    def refused(self, path, form, *said, code=422):
        """A form that is sent and refused in these words."""
        answer = self.post(path, form)
        assert answer.status_code == code, words(answer)
        assert [one for one in said if one not in words(answer)] == []
        return answer

    def upload(self, work, content, name="visits.csv", others=None, **fields):
        """A table, other files by the name of their field, and words."""
        files = {
            "csrf": (None, self.csrf),
            **{k: (None, v) for k, v in fields.items()},
            "table": (name, content, "text/csv"),
            **{field: (*file, "text/plain") for field, file in (others or {}).items()},
        }
        return self.client.post(f"/work/{work}/table", files=files)

    def new_work(self):
        return self.post("/work").headers["location"].split("/")[2]

    def given(self, content, name="visits.csv", others=None, **fields):
        """The state of a table that was uploaded."""
        work = self.new_work()
        answer = self.upload(work, content, name, others, **fields)
        assert answer.status_code == 303, words(answer)
        return self.workspace.work(work)

    def confirm_rest(self, work, **form):
        """Confirm what is left, as the page shows it: one by one what carries a warning, then the others."""
        shown = self.get(f"/work/{work}/columns/confirm").text
        if own := re.findall(r'name="own" value="([^"]+)"', shown):
            ticked = {"what": "ticked", "own": own, "key": re.search(r'name="key" value="(\w+)"', shown)[1]}
            assert self.post(f"/work/{work}/columns/confirm", ticked).status_code == 303
            shown = self.get(f"/work/{work}/columns/confirm").text
        key = re.search(r'name="key" value="(\w+)"', shown)[1]
        return self.post(f"/work/{work}/columns/confirm", {"public": "on", "key": key, **form})

    def ready_work(self, size=400, limits=PUBLIC_LIMITS, **choices):
        """A work whose columns are confirmed and whose choices are made."""
        work = self.new_work()
        with TemporaryDirectory() as folder:
            path = Path(folder) / "visits.csv"
            example_visits(path, size)
            assert self.upload(work, path.read_bytes().replace(b",", b";").replace(b".", b",")).status_code == 303
        assert self.post(f"/work/{work}/columns", {"typed": limits}).status_code == 303
        assert self.confirm_rest(work).status_code == 303
        answer = self.post(f"/work/{work}/privacy", {"mode": "private", "epsilon": "1", "dataset": "visits", **choices})
        assert answer.status_code == 303, words(answer)
        return work

    def review(self, work):
        return re.search(r'name="review" value="(\w+)"', self.get(f"/work/{work}/review").text)[1]

    def finished(self, work):
        return self.followed(self.workspace.work(work).job)

    def followed(self, job, seconds=600):  # a deadline for what hangs, not for what is slow
        end = time.monotonic() + seconds
        while not job.over and time.monotonic() < end:
            time.sleep(0.05)
        return job


def words(answer):
    """What a page says, without markup."""
    return " ".join(re.sub(r"<[^>]+>", " ", answer.text).split())


@contextmanager
def opened_workspace(folder: Path, limit=LIMIT):
    workspace = Workspace(Ledger(folder / "ledger.sqlite"), folder / "out", limit)
    try:
        yield workspace
    finally:
        workspace.close()


@contextmanager
def served(workspace):
    """A visitor who knows the address and has not entered yet."""
    listener, keys = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP), Secrets()
    listener.bind(("127.0.0.1", 0))
    listener.listen()  # whoever comes before the app is ready waits
    port = listener.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(make_app(workspace, keys, port), log_level="error", lifespan="on"))
    thread = Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    visitor = Page(f"http://127.0.0.1:{port}/?token={keys.token}", workspace)
    try:
        yield visitor
    finally:
        visitor.client.close()
        server.should_exit = True
        thread.join()
        listener.close()


@pytest.fixture
def workspace(tmp_path):
    with opened_workspace(tmp_path) as workspace:
        workspace.ledger.open_dataset("visits", Fraction(2))
        yield workspace


@pytest.fixture
def visitor(workspace):
    with served(workspace) as visitor:
        yield visitor


@pytest.fixture
def page(visitor):
    visitor.enter()
    return visitor


@pytest.fixture
def started(tmp_path):
    """Starts the app, and ends what a test leaves running."""
    running = []

    def start(*options, **environment):
        server = subprocess.Popen(
            [sys.executable, "-m", "covey.desk.cli", "serve", "--ledger", str(tmp_path / "ledger.sqlite"), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, **environment},
        )
        running.append(server)
        return server

    yield start
    for server in running:
        server.kill()
        server.communicate()
