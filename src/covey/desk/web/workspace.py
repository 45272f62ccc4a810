"""What the app remembers while it runs: tables in the workspace, and a private folder for their rows.

The folder lies beside the ledger, is closed to other people, and its rows go when the app ends. If the app is killed, the next
start finds the folder without its lock and removes them. What was said about columns stays for that start: `covey.desk.web.work`.
"""

from __future__ import annotations

import json
import secrets
import shutil
import time
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from threading import Lock, Semaphore, Thread

from covey.desk.web.folders import DRAFT, close_folder, private_folder
from covey.desk.web.jobs import Job
from covey.desk.web.security import Refused
from covey.desk.web.work import Work, load, save
from covey.errors import CoveyError
from covey.ledger import Ledger
from covey.release.places import private_file
from covey.workflow import PrivateOrder, as_words

MOST_WORKS = 200  # a steward has a few; more are a script gone wrong, and each may hold a table
IDLE_SECONDS = 4 * 3600  # longer than a lunch, shorter than a night: true rows should not lie about
AT_ONCE = 1  # releases: one may want the memory of the whole machine


class Workspace:
    """Everything in the workspace, and the private folder under it."""

    def __init__(self, ledger: Ledger, out: Path, upload_limit: int) -> None:
        self.ledger, self.out, self.upload_limit = ledger, out, upload_limit
        self.slots = Semaphore(AT_ONCE)
        self._running: list[tuple[Job, Thread]] = []
        self._works: dict[str, Work] = {}
        self._lock = Lock()
        self.folder, self._hold = private_folder(ledger.path.parent / "workspace")
        for place in sorted(self.folder.glob(f"*/{DRAFT}"), key=lambda draft: draft.stat().st_mtime):
            if (words := load(place)) is not None:
                self._works[place.parent.name] = Work(place.parent, words)

    def works(self) -> list[Work]:
        """Every table, the newest first."""
        with self._lock:
            return list(reversed(self._works.values()))

    def new_work(self) -> Work:
        """Make room for another table."""
        self.sweep()
        with self._lock:
            if len(self._works) >= MOST_WORKS:
                raise Refused(409, "There are too many tables in the workspace. Close some first.")
            folder = self.folder / secrets.token_hex(8)
            folder.mkdir(mode=0o700)
            return self._works.setdefault(folder.name, Work(folder))

    def work(self, name: str) -> Work:
        """A table by its key."""
        with self._lock:
            found = self._works.get(name)
        if found is None:
            raise Refused(404, "This table is no longer in the workspace. Start again from the first page.")
        found.touched = time.monotonic()
        return found

    def close_work(self, work: Work) -> None:
        """Take a table from the workspace and remove its rows; a release that is charged finishes first."""
        with work.lock:
            if work.job is None or not work.job.cancel():
                work.require_idle()
            with self._lock:
                self._works.pop(work.id, None)
        shutil.rmtree(work.folder, ignore_errors=True)

    def sweep(self) -> None:
        """Tables that nobody has touched for hours go, and their rows with them."""
        for work in self.works():
            if time.monotonic() - work.touched > IDLE_SECONDS and not work.releasing:
                self.close_work(work)

    def order(self, work: Work, misfits_seen: bool = False) -> Job:
        """Write down what was chosen, as the worker and the command line understand it."""
        described = work.described()
        described.require_confirmed()  # also in anonymous mode: the schema goes out with the bundle
        parts = zip(described.given, work.tables, strict=True)
        placed = (replace(part, path=table.path.name) for part, table in parts)
        described = replace(described, tables=(*described.tables[: described.alone], *placed))
        key = secrets.token_hex(4)
        schema = work.folder / f"schema-{key}.json"
        with private_file(schema) as file:
            json.dump(described.to_dict(), file, indent=2, ensure_ascii=False)
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        order = work.placed_order(schema, self.out / f"release-{stamp}-{key}")
        if isinstance(order, PrivateOrder):
            seen, purpose = Fraction(int(misfits_seen)), f"release (app, {key})"
            order = replace(order, accept_misfits=seen, ledger=self.ledger.path, purpose=purpose)
        names = {str(table.path): table.name for table in work.tables} | {str(schema): "the schema"}
        return Job(as_words(order), work.folder, names, expected=work.seconds())

    def release(self, work: Work, key: str, misfits_seen: bool = False) -> Job:
        """Start the release of a review; the same review again gives the same job, so it is charged once.

        Without the steward's word that misfits were seen, a table of which any cell does not fit is refused.
        """
        with work.lock:
            if key in work.jobs:
                return work.jobs[key]
            if key != work.review:
                raise Refused(409, "Something changed after this review was made. Check it again.")
            work.require_idle()
            work.jobs[key] = job = self.order(work, misfits_seen)
            save(work)
        return self.start(job)

    def start(self, job: Job) -> Job:
        """Run a job as soon as there is room."""
        thread = Thread(target=job.follow, args=(self.slots,), name=f"job {job.id}", daemon=True)
        self._running.append((job, thread))
        thread.start()
        return job

    def aftermath(self, work: Work) -> str:
        """What became of a release that an earlier start began, as the ledger has it."""
        if not work.begun or not work.begun["purpose"] or work.jobs:
            return ""
        try:
            events = self.ledger.history(work.begun["dataset"])
        except CoveyError as error:
            return str(error)
        began = "A release of this table had begun before covey was restarted."
        paid = next((event for event in events if event.purpose == work.begun["purpose"]), None)
        if paid is None:
            return f"{began} Nothing was charged for it."
        done = any(event.charge == paid.sequence for event in events)
        end = "complete" if done else "not complete; a release that was charged goes on by itself"
        return f"{began} It was charged, and its bundle is {end}. See the ledger."

    def close(self) -> None:
        """End all jobs that can be ended, wait for the others, and remove every row."""
        waited_for = [thread for job, thread in self._running if not job.cancel()]
        for thread in waited_for:
            thread.join()
        close_folder(self.folder, self._hold)
