"""Starting and ending the app."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.desk.web.conftest import Page, words


def test_it_tells_its_address_and_cleans_up_on_an_interrupt(started, tmp_path):
    server = started("--no-browser")
    address = re.search(r"http://127.0.0.1:\d+/\?token=\S{40,}", server.stdout.readline())[0]
    assert httpx.get(address, trust_env=False).status_code == 200  # listening before the address is told
    assert len(list((tmp_path / "workspace").iterdir())) == 2
    port = address.split(":")[2].split("/")[0]
    second = started("--no-browser", "--port", port)
    assert second.wait(600) == 2
    assert "--port" in second.stderr.read()
    server.send_signal(signal.SIGINT)
    assert server.wait(600) == 0
    assert server.stderr.read() == ""
    assert list((tmp_path / "workspace").iterdir()) == []


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_no_row_stays_behind_however_impatiently_it_is_ended(started, tmp_path, second):
    """At a second Ctrl+C uvicorn gives up its own cleaning: without ours the folder of true rows would stay."""
    server = started("--no-browser")
    server.stdout.readline()
    assert len(list((tmp_path / "workspace").iterdir())) == 2
    server.send_signal(signal.SIGTERM)
    time.sleep(0.03)  # while it shuts down, if the machine is quick; a signal that comes too late does nothing
    server.send_signal(second)
    server.wait(600)
    assert list((tmp_path / "workspace").iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are listed in /proc")
def test_a_table_lies_in_the_private_folder_alone_while_it_comes_in(started, tmp_path):
    server = started("--no-browser", "--json", TMPDIR=str(tmp_path))  # where temporary files would lie otherwise
    page = Page(json.loads(server.stdout.readline())["address"])
    page.enter()
    work, held = page.new_work(), set()

    def table():
        head = '--b\r\nContent-Disposition: form-data; name="{}"{}\r\n\r\n'.format
        yield f"{head('csrf', '')}{page.csrf}\r\n{head('table', '; filename=t.csv')}x,y\n".encode()
        yield b"12345,67890\n" * 320_000
        end = time.monotonic() + 60
        while not held and time.monotonic() < end:  # nameless files: the rows, as far as they have come
            for handle in Path(f"/proc/{server.pid}/fd").iterdir():
                with suppress(OSError):  # closed meanwhile
                    place = os.readlink(handle)
                    held.update([Path(place).parent] if place.endswith("(deleted)") else [])
            time.sleep(0.05)
        yield b"\r\n--b--\r\n"

    answer = page.client.post(
        f"/work/{work}/table", content=table(), headers={"content-type": "multipart/form-data; boundary=b"}
    )
    assert answer.status_code == 303, words(answer)
    [folder] = [place for place in (tmp_path / "workspace").iterdir() if place.is_dir()]
    assert held == {folder}
    page.client.close()


def test_the_browser_is_opened_through_a_private_file(started, tmp_path):
    """The address must not stand among the arguments of a process, where every account could read it."""
    script, seen = tmp_path / "browser", tmp_path / "seen"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {seen}.new && mv {seen}.new {seen}\n')
    script.chmod(0o755)
    server = started("--json", BROWSER=f"{script} %s", DISPLAY=":0")
    address = json.loads(server.stdout.readline())["address"]
    end = time.monotonic() + 600
    while not seen.exists() and time.monotonic() < end:
        time.sleep(0.05)
    [door] = seen.read_text().split()
    assert door.startswith("file://")
    assert "token" not in door
    path = Path(door.removeprefix("file://"))
    assert address in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_without_its_extra_it_names_the_line_that_installs_it():
    code = "import sys; sys.modules['fastapi'] = None; from covey.desk.cli import main; main(['serve'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install 'covey[web]'" in done.stderr
