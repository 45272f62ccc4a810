"""One writer for one output, and nothing left of those that died."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from covey.errors import ParameterError
from covey.release import places as module
from covey.release.places import claimed, tidy

HOLD = """
import sys, time
from pathlib import Path
from covey.release.places import claimed
with claimed(Path(sys.argv[1])) as place:
    (place / "new").mkdir()
    print(place, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that writes to the same output."""
    line = [sys.executable, "-c", HOLD, str(tmp_path / "bundle")]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_a_claim_is_private_and_goes_at_its_end(tmp_path):
    with claimed(tmp_path / "deep" / "bundle") as place:
        assert place.parent == tmp_path / "deep"
        assert place.stat().st_mode & 0o777 == 0o700
        (place / "new").mkdir()
    assert list((tmp_path / "deep").iterdir()) == []
    with pytest.raises(ParameterError, match="/proc/bundle cannot be made"), claimed(Path("/proc/bundle")):
        pass


def test_the_living_keep_their_claim_and_the_dead_are_tidied_away(tmp_path, holder, monkeypatch):
    process, place = holder
    monkeypatch.setattr(module, "_TRIES", 3)
    with pytest.raises(ParameterError, match="another release is writing to"), claimed(tmp_path / "bundle"):
        pass
    with claimed(tmp_path / "another"):  # tidies, but not what lives
        assert place.exists()
    process.kill()
    process.wait()
    assert place.exists()
    with claimed(tmp_path / "another"):
        assert not place.exists()
    with claimed(tmp_path / "bundle"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_tidying_leaves_alone_what_is_not_ours(tmp_path):
    names = [".covey-notes", ".covey-0123456789abcdef", ".covey-0123456789ABCDEF", ".covey-0123456789abcdef.bak"]
    for name in names:
        (tmp_path / name).mkdir(mode=0o755)  # ours cannot be entered by others
        (tmp_path / name / "thesis.txt").write_text("years of work")
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / ".covey-aaaaaaaaaaaaaaaa").symlink_to(tmp_path / "real")
    (tmp_path / ".covey-bbbbbbbbbbbbbbbb").touch(mode=0o700)
    before = sorted(tmp_path.rglob("*"))
    tidy(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("replaced", [False, True])
def test_a_death_between_the_two_renames_gives_the_old_bundle_back(tmp_path, replaced):
    place = tmp_path / ".covey-0123456789abcdef"
    (place / "old" / "bundle").mkdir(parents=True)
    place.chmod(0o700)
    (place / "old" / "bundle" / "which").write_text("old")
    if replaced:
        (tmp_path / "bundle").mkdir()
        (tmp_path / "bundle" / "which").write_text("new")
    tidy(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]
    assert (tmp_path / "bundle" / "which").read_text() == ("new" if replaced else "old")


def test_without_locks_making_the_folder_is_the_claim(tmp_path, monkeypatch):
    def unsupported(_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(module, "_hold", unsupported)
    monkeypatch.setattr(module, "_TRIES", 2)
    with claimed(tmp_path / "bundle") as place:
        with pytest.raises(ParameterError, match=f"remove {place}"), claimed(tmp_path / "bundle"):
            pass
        assert place.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_claim_taken_for_abandoned_is_made_again(tmp_path, monkeypatch):
    """Between making the folder and locking it another writer may tidy it away."""
    hold, calls = module._hold, []

    def late(place):
        calls.append(place)
        if len(calls) == 1:
            os.rmdir(place)
        return hold(place)

    monkeypatch.setattr(module, "_hold", late)
    with claimed(tmp_path / "bundle") as place:
        assert place.is_dir()
    assert len(calls) == 2
