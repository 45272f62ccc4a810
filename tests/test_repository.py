"""What the repository tracks: sources, small pictures and tables, never a build."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LARGEST = 1_000_000  # bytes; what is larger was built or downloaded, and everybody who clones it carries it


def tracked():
    """The files that git tracks; none where this is no clone."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def too_large(files, largest=LARGEST):
    return [path.name for path in files if path.is_file() and path.stat().st_size > largest]


def test_no_tracked_file_is_large():
    files = tracked()
    if not files:
        pytest.skip("not a clone: an unpacked distribution has no list of tracked files")
    assert too_large(files) == []


def test_a_large_file_is_noticed(tmp_path):
    (tmp_path / "tool.whl").write_bytes(bytes(11))
    assert too_large([tmp_path / "tool.whl"], largest=10) == ["tool.whl"]
