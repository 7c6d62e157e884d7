"""The type stubs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import perfconv
import pytest

PROGRAM = """
import perfconv

with perfconv.open("perf.data") as recording:
    name: str = recording.events[0].name
    for record in recording.records(types=["SAMPLE"]):
        time: int | None = record.time
        address: int = record.ip
    columns: list[str] = recording.samples(columns=["time"], symbols=True, comm="a").columns
result: perfconv.Result = perfconv.convert("a", "b", sort=True, drop=["CPUID"], compress=3)
"""

WRONG = """
import perfconv

perfconv.open(5)
perfconv.open("x").records(types=5.0)
perfconv.convert("a")
perfconv.convert("a", "b", sort=object())
perfconv.open("x").events = []
"""


def mypy(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mypy")
    program = [sys.executable, "-m", *words]
    return subprocess.run(program, capture_output=True, text=True, cwd=cwd, check=False)


def test_programs_are_checked(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(WRONG)
    done = mypy("mypy", "--strict", "right.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    done = mypy("mypy", "--strict", "wrong.py", cwd=tmp_path)
    assert done.stdout.count("error:") == 5, done.stdout


def test_the_package_is_typed(tmp_path: Path) -> None:
    done = mypy("mypy", "--strict", "-p", "perfconv", cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def test_the_tests_are_typed(tmp_path: Path) -> None:
    tests = Path(__file__).parent
    words = ["mypy", "--strict", "--ignore-missing-imports", "--cache-dir", str(tmp_path), "."]
    done = mypy(*words, cwd=tests)
    assert done.returncode == 0, done.stdout


def test_stubs_are_those_of_the_module(tmp_path: Path) -> None:
    # It is there, but types of C have it under another name.
    (tmp_path / "allowed").write_text(r"perfconv\._perfconv\.Record\.__getattr__")
    done = mypy("mypy.stubtest", "perfconv", "--allowlist", "allowed", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert perfconv.__doc__
