"""Kill covey with signal 9 at many points of its work, and look at what is left: `python -m trust.faults --kills 500`.

Four victims: `covey release` (every other one replaces an older bundle), `covey anonymize`, the app's worker, and the app
itself. Half of the kills come after a random time; half come just before a random file operation, counted by Python's
audit events, where a wrong order would show. Every victim is forked from a process that has imported covey already, so
that the points are spread over the work and not over the imports.

After each kill another process checks that

- the output is absent, or a whole bundle with true checksums, or one whose data are whole and whose report is missing, and
  which `covey resume` finishes; one that was to be replaced is there, old or new;
- the ledger verifies, and holds a charge for every private bundle there is;
- no file outside the input holds a true value, but for the app's private folder: mode 0700, its files 0600, and the next
  start of the app removes it;
- the next release beside the output tidies away what the dead one left.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import stat
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import httpx

import covey.desk.cli
import covey.desk.web.app
import covey.desk.web.jobs
import covey.synthesizers
from covey.desk.demo import example_visits
from covey.desk.web.workspace import Workspace
from covey.ledger import Ledger
from covey.release.places import SUMS, tidy
from covey.release.verify import verify_bundle
from covey.tables.schema import Schema
from covey.tables.sources import read_table
from covey.workflow import resume

MARK = "Zanzibar-7731"  # in every true row, and in nothing that may leave
ROWS = 120
SHARES = {"release": 0.36, "anonymize": 0.3, "worker": 0.24, "serve": 0.1}
FILE_EVENTS = ("open", "os.", "sqlite3.", "shutil.", "fcntl.", "tempfile.", "pathlib.")


def forked(action, *arguments, aim=None, quiet=True):
    """Run an action in a child; its process id. `aim` arms the child's own killer. Nothing of the parent runs in it."""
    process = os.fork()
    if process:
        return process
    status = 70
    try:
        if quiet:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1)
            os.dup2(null, 2)
        if aim is not None:
            aim()
        action(*arguments)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def after(seconds):
    """Die after a time."""

    def aim():
        def die():
            time.sleep(seconds)
            os.kill(os.getpid(), signal.SIGKILL)

        threading.Thread(target=die, daemon=True).start()

    return aim


def before_event(number, tell=None):
    """Die just before the nth file operation; with `tell`, count them into that file and live."""

    def aim():
        seen = 0

        def hook(event, _):
            nonlocal seen
            if event.startswith(FILE_EVENTS):
                seen += 1
                if seen == number:
                    os.kill(os.getpid(), signal.SIGKILL)
                if tell is not None:
                    os.pwrite(tell, b"%8d" % seen, 0)

        sys.addaudithook(hook)

    return aim


@dataclass(frozen=True)
class Place:
    """A folder with everything a victim can touch: the input, the ledger, outputs, and a bundle to be replaced."""

    root: Path

    @property
    def table(self):
        return self.root / "in" / "visits.csv"

    @property
    def schema(self):
        return self.root / "in" / "schema.json"

    @property
    def ledger(self):
        return self.root / "books" / "ledger.sqlite"

    @property
    def out(self):
        return self.root / "out"

    @property
    def older(self):
        return self.root / "older"


def furnish(place):
    """The table with its marks, its schema, a ledger with room for every run, and a bundle to be replaced."""
    for folder in ("in", "out", "tmp", "work"):
        (place.root / folder).mkdir()
    example_visits(place.table, ROWS)
    head, *lines = place.table.read_text().splitlines()
    place.table.write_text(f"{head},name\n" + "".join(f"{line},{MARK} {i}\n" for i, line in enumerate(lines)))
    schema = Schema.draft(read_table(place.table))
    kept = tuple(field for field in schema.fields if field.name != "name")
    schema = Schema(kept, schema.missing_values, schema.rules)
    schema.confirm([field.name for field in kept]).save(place.schema)
    # A value that the schema does not know: read, encoded as unknown, never written.
    place.table.write_text(place.table.read_text().replace("surgery", MARK))
    Ledger(place.ledger).open_dataset("visits", Fraction(1000))
    covey.desk.cli.main(command(place, "release", place.older), standalone_mode=False)


def command(place, kind, out, *more):
    """Arguments of the command line."""
    words = [kind, str(place.table), "--schema", str(place.schema), "--out", str(out), *more]
    if kind == "anonymize":
        return [*words, "--group-size", "10"]
    words += ["--accept-misfits", "1"]  # the tables are made of strange rows
    return [*words, "--epsilon", "0.01", "--dataset", "visits", "--ledger", str(place.ledger)]


def act(place, kind, replacing):
    """What a victim does."""
    os.environ["TMPDIR"] = tempfile.tempdir = str(place.root / "tmp")
    os.chdir(place.root / "work")
    if kind != "worker":
        more = ["--force"] if replacing else []
        covey.desk.cli.main(command(place, kind, place.out / "bundle", *more), standalone_mode=False)
        return
    order = {"table": place.table, "schema": place.schema, "out": place.out / "bundle", "ledger": place.ledger}
    order = {key: str(value) for key, value in order.items()}
    order |= {"epsilon": "1/100", "delta": "0", "dataset": "visits", "purpose": "worker", "accept_misfits": 1.0}
    (place.root / "work" / "order.json").write_text(
        json.dumps({"order": order, "gate": str(place.root / "work" / "gate")})
    )
    covey.desk.web.jobs.main(str(place.root / "work" / "order.json"))


def serve_app(place, told):
    """The app, which writes its address into a pipe."""
    os.environ["TMPDIR"] = tempfile.tempdir = str(place.root / "tmp")
    os.chdir(place.root / "work")

    def tell(address):
        os.write(told, address.encode() + b"\n")

    covey.desk.web.app.serve(0, place.ledger, place.out, 2**24, False, tell)


def visit(address, place):
    """Go from the first page of the app to a release that is done."""
    base = address.split("/?")[0]
    with httpx.Client(base_url=base, headers={"origin": base}, timeout=60, trust_env=False) as client:
        client.get(address)
        csrf = re.search(r'name="csrf" value="([^"]+)"', client.get("/").text)[1]
        work = client.post("/work", data={"csrf": csrf}).headers["location"].rpartition("/")[0]
        files = {"csrf": (None, csrf)}
        files |= {
            name: (path.name, path.read_bytes()) for name, path in (("table", place.table), ("schema", place.schema))
        }
        client.post(f"{work}/table", files=files)
        client.post(f"{work}/privacy", data={"csrf": csrf, "mode": "private", "epsilon": "0.01", "dataset": "visits"})
        key = re.search(r'name="review" value="(\w+)"', client.get(f"{work}/review").text)[1]
        client.post(f"{work}/release", data={"csrf": csrf, "review": key})
        while "Done" not in client.get(f"{work}/job").text:
            time.sleep(0.05)


def run_app(place, aim):
    """Start the app, visit it until it dies or is done, and wait for a worker that was paid; how it ended."""
    read, write = os.pipe()
    process = forked(serve_app, place, write, aim=aim)
    os.close(write)
    with os.fdopen(read) as told:
        address = told.readline().strip()
    with suppress(httpx.HTTPError, TypeError, KeyError):  # what a server that has just died does not answer
        if address:
            visit(address, place)
            os.kill(process, signal.SIGTERM)
    ended = finished(process)
    while any(str(place.root) in words for words in workers()):
        time.sleep(0.05)
    return "done" if ended == f"signal {signal.SIGTERM}" else ended  # uvicorn raises again what stopped it


def workers():
    """Command lines of workers."""
    for found in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = found.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if "covey.desk.web.jobs" in words:
                yield words


def finished(process):
    """Wait for a child: "killed", "done" or what else became of it."""
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        return "killed" if os.WTERMSIG(status) == signal.SIGKILL else f"signal {os.WTERMSIG(status)}"
    return "done" if os.WEXITSTATUS(status) == 0 else f"exit {os.WEXITSTATUS(status)}"


def charges_of(place):
    """How many charges the ledger holds, each of a hundredth."""
    ledger = Ledger(place.ledger)
    ledger.verify()
    charges = sum(event.kind == "charge" for event in ledger.history("visits"))
    assert ledger.datasets()[0].spent.epsilon == charges * Fraction(1, 100), "the ledger's sum is wrong"
    return charges


def prepare(place, replacing):
    """Everything as it is before a run; the number of charges so far."""
    for folder in (place.out, place.root / "tmp", place.root / "work"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    if replacing:
        shutil.copytree(place.older, place.out / "bundle")
    return charges_of(place)


def judge(place, kind, replacing, before, answer):
    """Check every promise, and write down what is left or which promise is broken."""
    try:
        os.pwrite(answer, json.dumps({"left": look(place, kind, replacing, before)}).encode(), 0)
    except Exception as error:
        os.pwrite(answer, json.dumps({"wrong": f"{kind}: {type(error).__name__}: {error}"}).encode(), 0)


def look(place, kind, replacing, before):
    """What is left after a kill; an AssertionError names the promise that is broken."""
    left, workspace = [], place.root / "books" / "workspace"
    for path in place.root.rglob("*"):
        if path == place.table or not path.is_file():
            continue
        if workspace in path.parents:
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, f"{path} can be read by others"
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700, f"{path.parent} can be entered by others"
        else:
            assert MARK.encode() not in path.read_bytes(), f"there are true rows in {path}"
    assert not any((place.root / "tmp").iterdir()), "something is left in the temporary folder"
    for hidden in place.out.glob(".*"):
        left.append("hidden folder")
        assert stat.S_IMODE(hidden.stat().st_mode) == 0o700, f"{hidden} can be entered by others"
    tidy(place.out)
    assert not list(place.out.glob(".*")), "what a dead writer left was not tidied away"
    charged = charges_of(place) - before
    older = (place.older / SUMS).read_bytes()
    bundles = list(place.out.iterdir())
    fresh = [b for b in bundles if verify_bundle(b).facts["private"] and (b / SUMS).read_bytes() != older]
    for bundle in bundles:
        if not verify_bundle(bundle).finished:
            left.append("bundle without a report")
            resume(bundle)
            assert verify_bundle(bundle).finished, "a bundle without a report could not be finished"
    assert len(bundles) <= 1, "one run made several bundles"
    assert len(bundles) >= replacing, "the bundle that was to be replaced is gone"
    assert charged >= len(fresh), "there is a release without its charge"
    left += ["bundle"] * len(bundles) + ["charge"] * charged
    if kind == "serve":
        left += ["rows in the workspace"] * any(
            MARK.encode() in p.read_bytes() for p in workspace.rglob("*") if p.is_file()
        )
        Workspace(Ledger(place.ledger), place.out, 1).close()
        assert not list(workspace.iterdir()), "the next start of the app did not clear the workspace"
    return left


def run(place, kind, replacing, aim):
    """One run of a victim: how it ended."""
    return run_app(place, aim) if kind == "serve" else finished(forked(act, place, kind, replacing, aim=aim))


def trial(place, kind, aim, replacing):
    """One run with a kill somewhere: how it ended, and what the judge says."""
    before = prepare(place, replacing)
    begin = time.monotonic()
    ended = run(place, kind, replacing, aim)
    seconds = time.monotonic() - begin
    with tempfile.TemporaryFile() as answer:
        finished(forked(judge, place, kind, replacing, before, answer.fileno()))
        said = json.loads(answer.read() or '{"wrong": "the judge died"}')
    if ended not in ("killed", "done"):
        said.setdefault("wrong", f"{kind} ended with {ended}")
    return ended, said, seconds


def measure(place, kind):
    """Seconds and file operations of a run that is left alone."""
    with tempfile.TemporaryFile() as count:
        aim = None if kind == "serve" else before_event(0, count.fileno())
        ended, said, seconds = trial(place, kind, aim, False)
        if ended != "done" or "bundle" not in said.get("left", ()):
            raise RuntimeError(f"{kind} does not even work when it is left alone: {ended}, {said}")
        return seconds, int(count.read() or 0)


def main(arguments=None):
    """Kill as often as asked, print what was seen, and fail if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m trust.faults", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--victims", nargs="+", choices=list(SHARES), default=list(SHARES))
    parser.add_argument("--after", type=float, default=0, metavar="SHARE", help="kill only past this share of a run")
    parser.add_argument("--until-broken", action="store_true", help="stop at the first promise that is broken")
    options = parser.parse_args(arguments)
    stream, wrong, total = random.Random(options.seed), [], 0
    with tempfile.TemporaryDirectory(prefix="covey-faults-") as root:
        place = Place(Path(root))
        assert finished(forked(furnish, place, quiet=False)) == "done", "nothing to work on"
        shares = {kind: SHARES[kind] for kind in options.victims}
        for kind, share in shares.items():
            seconds, events = measure(place, kind)
            wanted = max(1, round(options.kills * share / sum(shares.values())))
            kills, runs, seen = 0, 0, Counter()
            while kills < wanted and not (wrong and (options.until_broken or runs > wanted)):
                replacing = kind == "release" and stream.random() < 0.5
                timed = kind == "serve" or stream.random() < 0.5
                point = stream.uniform(options.after, 1)
                aim = after(point * seconds) if timed else before_event(max(1, round(point * events)))
                ended, said, _ = trial(place, kind, aim, replacing)
                runs += 1
                if ended == "killed":
                    kills += 1
                    seen["at file operations"] += not timed
                    seen.update(set(said.get("left", ())))
                if "wrong" in said:
                    wrong.append(said["wrong"])
                    print("BROKEN", said["wrong"], flush=True)
            total += kills
            where = f"{seen.pop('at file operations', 0)} at one of {events} file operations"
            found = ", ".join(f"{name} {count}" for name, count in sorted(seen.items()))
            print(f"{kind}: {kills} kills in {runs} runs, {where}; found afterwards: {found}", flush=True)
    print(f"{total} kills, {len(wrong)} broken promises", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
