import io

from covey import progress
from covey.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(stream):
    with Progress((("measuring", 1.0), ("certifying", 1.0)), stream) as bar:
        bar.next()
        bar.tick(0.5)
        bar.next()
        bar.tick(1.0)


def test_a_terminal_sees_progress_and_is_left_clean(monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 0.0)
    stream = Terminal()
    run(stream)
    shown = stream.getvalue()
    assert " 25%  measuring" in shown
    assert "100%  certifying" in shown
    assert shown.endswith("\r")


def test_a_file_or_pipe_sees_nothing(monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.delitem(progress.sys.modules, "ipykernel", raising=False)
    stream = io.StringIO()
    run(stream)
    assert stream.getvalue() == ""


def test_quick_work_shows_nothing():
    stream = Terminal()
    run(stream)
    assert stream.getvalue() == ""


def test_a_listener_hears_every_stage_and_then_no_more():
    heard = []
    with progress.listening(lambda done, stage: heard.append((done, stage))):
        run(io.StringIO())
    run(io.StringIO())
    assert heard == [(0.0, "measuring"), (0.25, "measuring"), (0.5, "certifying"), (1.0, "certifying")]


def test_a_notebook_sees_progress_though_its_output_is_no_terminal(monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setitem(progress.sys.modules, "ipykernel", progress)
    stream = io.StringIO()
    run(stream)
    assert " 25%  measuring" in stream.getvalue()
