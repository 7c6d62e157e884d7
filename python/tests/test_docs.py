"""The examples in the documentation, and the docstrings."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import shutil
import sys
from pathlib import Path

import perfconv
import pytest
from conftest import FIXTURES, ROOT, fixture

PAGES = [ROOT / "docs" / "python.md", ROOT / "python" / "README.md"]
FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def blocks(page: Path) -> list[tuple[int, str]]:
    """Return the blocks of Python in a page with their first lines."""
    found: list[tuple[int, str]] = []
    lines: list[str] | None = None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if lines is not None and line == "```":
            found.append((number - len(lines), "\n".join(lines) + "\n"))
            lines = None
        elif lines is not None:
            lines.append(line)
        elif line == "```python":
            lines = []
    return found


@pytest.mark.skipif(sys.version_info < (3, 10), reason="an example has a match statement")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    os.symlink(FIXTURES, tmp_path / "fixtures")
    monkeypatch.chdir(tmp_path)
    sessions = doctest.DocTestRunner(optionflags=FLAGS)
    names: dict[str, object] = {}
    for line, text in blocks(page):
        if text.startswith(">>>"):
            examples = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), line)
            sessions.run(examples, clear_globs=False)
            names.update(examples.globs)
            continue
        for module in ("duckdb", "polars"):
            if f"import {module}" in text:
                pytest.importorskip(module)
        shutil.copy(fixture("6.1-x86_64-file-g.data"), "perf.data")
        text = text.replace('comms="nginx"', 'comms="wk-1"')
        exec(compile(text, f"{page}:{line}", "exec"), {})
    assert sessions.failures == 0, capsys.readouterr().out
    assert blocks(page)


def test_docstrings() -> None:
    tried = 0
    modules = [f"perfconv.{module.name}" for module in pkgutil.iter_modules(perfconv.__path__)]
    for name in ["perfconv", *modules]:
        module = importlib.import_module(name)
        results = doctest.testmod(module, extraglobs={"fixture": fixture}, optionflags=FLAGS)
        assert results.failed == 0, name
        tried += results.attempted
    assert tried > 10


def test_everything_public_has_a_docstring() -> None:
    for name in perfconv.__all__:
        item = getattr(perfconv, name)
        assert item.__doc__, name
        for part, value in vars(item).items() if isinstance(item, type) else []:
            if not part.startswith("_") and (callable(value) or hasattr(value, "__get__")):
                assert value.__doc__, f"{name}.{part}"
