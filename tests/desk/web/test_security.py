"""Only the steward's own browser gets in, and only our own pages change anything."""

import re
import socket
from itertools import product
from pathlib import Path

from fastapi.routing import APIRoute

import covey.desk.web
from covey.desk.web import app as app_module
from covey.desk.web.pages import ROUTERS
from covey.desk.web.security import Secrets
from tests.desk.web.conftest import LIMIT, words

HERE = Path(covey.desk.web.__file__).parent
ROUTES = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
POSTS = [route.path for route in ROUTES if "POST" in route.methods]
GETS = [route.path for route in ROUTES if "GET" in route.methods]


def fill(path, work):
    return path.replace("{work_id}", work).replace("{place}", "0")


def test_nobody_gets_in_without_the_token(visitor):
    for path in GETS:
        answer = visitor.get(fill(path, "x"))
        assert answer.status_code == 403
        assert "address that covey printed" in words(answer)
    assert visitor.get("/?token=guess").status_code == 403
    assert not visitor.client.cookies
    assert visitor.get("/", headers={"cookie": f"covey-{visitor.port}=guess"}).status_code == 403


def test_the_token_becomes_a_strict_cookie_for_this_port(visitor):
    cookie = visitor.enter().headers["set-cookie"]
    assert cookie.startswith(f"covey-{visitor.port}=")
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    assert visitor.token not in cookie
    assert visitor.get("/").status_code == 200


def test_this_machine_has_two_names_and_pages_of_others_cannot_even_read(page):
    cookie = {"cookie": "; ".join(f"{k}={v}" for k, v in page.client.cookies.items())}
    for host in ("evil.example", f"evil.example:{page.port}", "127.0.0.1:1", "127.0.0.1"):
        for path in ("/", f"/?token={page.token}"):
            assert page.get(path, headers={"host": host}).status_code == 421, host
    assert page.get("/", headers={"host": f"localhost:{page.port}"} | cookie).status_code == 200
    for site in ("cross-site", "same-site"):
        assert page.get("/", headers={"sec-fetch-site": site}).status_code == 403


def test_a_form_of_another_page_changes_nothing(page):
    del page.client.headers["origin"]
    assert page.post("/work").status_code == 403
    for origin in ("null", "http://evil.example", "http://127.0.0.1:9", f"http://localhost:{page.port}"):
        assert page.post("/work", headers={"origin": origin}).status_code == 403, origin
    assert page.workspace.works() == []


def test_every_form_needs_its_token(page):
    work = page.new_work()
    assert len(POSTS) >= 12
    assert "/work/{work_id}/release" in POSTS
    for data, path in product(({}, {"csrf": "guess"}), POSTS):
        if path.endswith("/table"):
            files = {**{k: (None, v) for k, v in data.items()}, "table": ("a.csv", b"a\n1\n", "text/csv")}
            answer = page.client.post(fill(path, work), files=files)
        else:
            answer = page.client.post(fill(path, work), data={**data, "name": "d", "budget": "1", "final": "on"})
        assert answer.status_code == 403, path
    late = [("table", ("a.csv", b"a\n1\n", "text/csv")), ("csrf", (None, page.csrf))]  # after the file it is too late
    assert page.client.post(f"/work/{work}/table", files=late).status_code == 403
    assert [one.id for one in page.workspace.works()] == [work]
    assert list(page.workspace.work(work).folder.iterdir()) == []
    assert [d.name for d in page.workspace.ledger.datasets()] == ["visits"]


def test_every_answer_carries_the_policy(page):
    for answer in (*map(page.get, ("/", "/nowhere", "/static/app.js")), page.get("/", headers={"host": "x"})):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


def test_pages_hold_no_inline_script_or_style_and_nothing_from_elsewhere():
    for path in [*HERE.glob("templates/*.html"), HERE / "security.py"]:
        text = path.read_text()
        assert not re.search(r"\sstyle=|<style|\son\w+=|javascript:", text), path.name
        assert not re.search(r"<script(?! src=\"/static/)", text), path.name
    for path in [*HERE.glob("templates/*.html"), *HERE.glob("static/*.css"), HERE / "static/app.js"]:
        assert not re.search(r"https?://", path.read_text()), path.name
    assert "Zero-Clause BSD" in (HERE / "static/htmx.LICENSE.txt").read_text()
    assert "Zero-Clause BSD" in (HERE / "static/htmx.min.js").read_text()[:200]


def test_a_table_beyond_the_limit_is_refused_before_it_is_read(page):
    work = page.new_work()
    read = 0

    def endless():
        nonlocal read
        head = f'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{page.csrf}\r\n--b\r\n'
        yield (head + 'Content-Disposition: form-data; name="table"; filename="a.csv"\r\n\r\n').encode()
        while read < 50 * LIMIT:
            read += 2**16
            yield b"1" * 2**16

    kind = {"content-type": "multipart/form-data; boundary=b"}
    cookie = "; ".join(f"{k}={v}" for k, v in page.client.cookies.items())
    lines = [f"POST /work/{work}/table HTTP/1.1", f"Host: 127.0.0.1:{page.port}", f"Origin: {page.home}"]
    lines += [f"Cookie: {cookie}", "Content-Type: multipart/form-data; boundary=b", f"Content-Length: {10**12}"]
    with socket.create_connection(("127.0.0.1", page.port)) as raw:
        raw.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        said = b""
        while b"</html>" not in said and (more := raw.recv(2**16)):
            said += more
    assert said.startswith(b"HTTP/1.1 413")
    assert b"larger than 1 MB" in said
    # Without a declared length it is cut off while it comes in, and nothing of it stays.
    answer = page.client.post(f"/work/{work}/table", content=endless(), headers=kind)
    assert answer.status_code == 413
    assert list(page.workspace.work(work).folder.iterdir()) == []
    form = {"content-type": "application/x-www-form-urlencoded"}
    big = page.client.post("/work", content=b"a=" + b"1" * (5 * 2**20), headers=form)
    assert big.status_code == 413


def test_a_broken_or_boundless_upload_is_refused(page):
    work = page.new_work()
    part = b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n'
    long = b'--b\r\nContent-Disposition: form-data; name="' + b"x" * 10_000
    bodies = {b"": (400, 403), b"--b": (400, 403), b"--b\r\nContent-Disposition: form-data\r\n\r\n": (400, 403)}
    bodies |= {b"nonsense": (400, 403), part * 30: (400,), long: (400, 403), part.replace(b"1", b"1" * 10_000): (400,)}
    for body, codes in bodies.items():
        kinds = {"multipart/form-data; boundary=b": codes, "text/csv": (415,)}
        for kind, wanted in kinds.items():
            answer = page.client.post(f"/work/{work}/table", content=body, headers={"content-type": kind})
            assert answer.status_code in wanted, (body[:50], kind)


def test_a_fault_of_ours_shows_neither_traceback_nor_values(page, monkeypatch, capfd):
    def broken(*_):
        raise RuntimeError("Anna Example, diabetes")

    monkeypatch.setattr(app_module.Workspace, "works", broken)
    answer = page.get("/")
    assert answer.status_code == 500
    assert "ledger shows" in words(answer)
    page.get("/static/app.js")  # the line in the terminal is written after the answer
    said = answer.text + "".join(capfd.readouterr())
    assert "RuntimeError in broken" in said
    assert "Anna" not in said
    assert "Traceback" not in said


def test_secrets_are_long_and_never_printed():
    one, two = Secrets(), Secrets()
    values = {one.token, one.cookie, one.form, two.token, two.cookie, two.form}
    assert len(values) == 6
    assert min(map(len, values)) >= 40
    assert not any(value in repr(one) for value in values)
