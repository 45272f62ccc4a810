"""What tests of several folders need: a real PostgreSQL server, for as long as the tests run, and one worker for Spark."""

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, settings

from tests.few import few_steps as take_few_steps

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")  # tests do not time things, and a machine may be busy


@pytest.fixture
def few_steps(monkeypatch):
    """Fits that take a few steps."""
    take_few_steps(monkeypatch.setattr)


@pytest.fixture
def at_home(tmp_path, monkeypatch):
    """A folder to work in, with a ledger of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COVEY_LEDGER", str(tmp_path / "ledger.sqlite"))
    return tmp_path


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """A folder with an example table, visits.csv, and its confirmed schema, schema.json."""
    from covey.desk.demo import example_visits
    from covey.tables.schema import Schema

    folder = tmp_path_factory.mktemp("visits")
    example_visits(folder / "visits.csv", 150)
    schema = Schema.draft(folder / "visits.csv")
    schema.confirm(schema.names).save(folder / "schema.json")
    return folder


@pytest.fixture(scope="module")
def quick_persons():
    """Fits of persons with events that are small, likewise."""
    import covey.engine.fit.events as fit
    from covey.engine.models.persons import method

    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"CENTRES": 20, "KINDS": 6, "STARTS": 1, "STEPS": 10}.items():
            patch.setattr(fit, name, value)
        patch.setattr(method, "COMPARED", (300, 300))
        yield


@pytest.hookimpl(optionalhook=True)  # without xdist (-p no:xdist) nobody asks
def pytest_xdist_make_scheduler(config, log):
    """Tests go to whichever worker is free, but all of Spark's to one, and all of the browser's: each is started once.

    A file of the rooms below goes to one worker too: its tests share releases, which several would make again and again.
    """
    from xdist.scheduler import LoadScopeScheduling

    rooms = ("answers/", "methods/", "release/", "table/", "test_charging", "test_faults", "test_workflow")

    class OneOfEach(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            if any(f"tests/{room}" in nodeid for room in rooms):
                nodeid = nodeid.partition("::")[0]
            return next((slow for slow in ("spark", "tests/desk/browser") if slow in nodeid.lower()), nodeid)

    return OneOfEach(config, log)


@dataclass(frozen=True)
class Server:
    """A PostgreSQL server on loopback that asks for a password."""

    binaries: Path
    port: int
    password: str = field(repr=False)
    user: str = "steward"

    def url(self, database="postgres", password=True):
        login = f"{self.user}:{quote(self.password, safe='')}" if password else self.user
        return f"postgresql://{login}@127.0.0.1:{self.port}/{database}"

    def connect(self, database="postgres"):
        from adbc_driver_postgresql import dbapi

        return dbapi.connect(self.url(database), autocommit=True)

    def run(self, *statements, database="postgres"):
        """Execute statements; the rows of the last one."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall() if cursor.description else None

    def load(self, frame):
        """A new table with the rows of a frame; its name."""
        name = f"Table {secrets.token_hex(8)}"
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.adbc_ingest(name, frame.to_arrow(), mode="create")
        return name

    def export(self, select, database="postgres"):
        """What psql writes as CSV, in UTC."""
        command = [self.binaries / "psql", self.url(database), "-c", f"COPY ({select}) TO STDOUT (FORMAT csv, HEADER)"]
        return subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PGTZ": "UTC"}).stdout


def _binaries():
    """Where PostgreSQL's programs are; Debian keeps the server's out of the path."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name), reverse=True)
    on_path = shutil.which("postgres")
    found = [place for place in [*places, *([Path(on_path).parent] if on_path else [])] if (place / "initdb").exists()]
    return found[0] if found else None


def _account():
    """PostgreSQL refuses to run as root: then another account does."""
    if os.geteuid():
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    return None


@pytest.fixture(scope="session")
def postgresql():
    """One server per process that needs it, in a temporary folder."""
    binaries, account = _binaries(), _account()
    if binaries is None or account is None:
        said = "PostgreSQL is not installed (on Debian: apt-get install postgresql)"
        if os.environ.get("COVEY_REQUIRE_POSTGRES") == "1":
            pytest.fail(said)
        pytest.skip(said)
    folder = Path(tempfile.mkdtemp(prefix="covey-postgresql-"))
    password = f"p@ss:w/rd?%{secrets.token_hex(8)}"
    (folder / "password").write_text(password)
    if account:
        for path in (folder, folder / "password"):
            os.chown(path, account["user"], account["group"])
    try:
        quiet = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder, **account}
        command = [binaries / "initdb", "--no-sync", "-D", folder / "data", "-U", "steward", "-E", "UTF8", "--locale=C"]
        subprocess.run([*command, "--pwfile", folder / "password", "--auth=scram-sha-256"], **quiet)
        control = [binaries / "pg_ctl", "-D", folder / "data", "-w"]
        for again in reversed(range(5)):  # another program may take the port that was free a moment ago
            with closing(socket.socket()) as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            # Little memory, so that a table of a few megabytes is a large one.
            options = f"-h 127.0.0.1 -p {port} -k {folder} -F -c shared_buffers=4MB"
            try:
                subprocess.run([*control, "-l", folder / "log", "-o", options, "start"], **quiet)
                break
            except subprocess.CalledProcessError:
                if not again:
                    pytest.fail(f"PostgreSQL does not start: {(folder / 'log').read_text()[-500:]}")
        try:
            yield Server(binaries, port, password)
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **quiet)  # nothing in it is worth saving
    finally:
        shutil.rmtree(folder, ignore_errors=True)
