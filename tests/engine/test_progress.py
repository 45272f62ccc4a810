import io

import pytest

from covey.engine import progress as progress
from covey.engine.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(stream):
    with Progress((("measuring", 1.0), ("certifying", 1.0)), stream) as bar:
        bar.next()
        bar.tick(0.5)
        bar.next()
        bar.tick(1.0)


@pytest.mark.parametrize("notebook", [False, True])
@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("delay", [0.0, 60.0])
def test_terminals_and_notebooks_see_progress_of_slow_work_and_are_left_clean(monkeypatch, delay, terminal, notebook):
    monkeypatch.setattr(progress, "DELAY", delay)
    monkeypatch.delitem(progress.sys.modules, "ipykernel", raising=False)
    if notebook:  # whose output is no terminal
        monkeypatch.setitem(progress.sys.modules, "ipykernel", progress)
    stream = Terminal() if terminal else io.StringIO()
    run(stream)
    shown = stream.getvalue()
    if delay or not (terminal or notebook):  # quick work, a file or a pipe
        assert shown == ""
    else:
        assert " 25%  measuring" in shown
        assert "100%  certifying" in shown
        assert shown.endswith("\r")


def test_a_listener_hears_every_stage_and_then_no_more():
    heard = []
    with progress.listening(lambda done, stage: heard.append((done, stage))):
        run(io.StringIO())
    run(io.StringIO())
    assert heard == [(0.0, "measuring"), (0.25, "measuring"), (0.5, "certifying"), (1.0, "certifying")]
