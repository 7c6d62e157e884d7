"""What all tests share: the recordings of the repository, and the command."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"


def recordings() -> list[Path]:
    """Return all recordings, also the directories."""
    return sorted(path for path in FIXTURES.iterdir() if path.suffix == ".data" or path.is_dir())


def fixture(name: str) -> str:
    """Return the path of a recording."""
    path = FIXTURES / name
    assert path.exists(), name
    return str(path)


Command = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(scope="session")
def command() -> Command:
    """Return a function that runs the command `perfconv`."""
    named = os.environ.get("PERFCONV")
    built = ROOT / "target" / "debug" / "perfconv"
    program = named or (str(built) if built.exists() else shutil.which("perfconv"))
    if program is None:
        pytest.skip("there is no command perfconv to compare with: PERFCONV names it")

    def run(*words: str | Path) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([program, *words], capture_output=True, check=False)

    return run
