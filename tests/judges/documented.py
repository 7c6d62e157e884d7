"""The programs of a document, for the judges of this folder."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time


def has_any(engines):
    """Returns whether one of the engines is installed."""
    return any(map(importlib.util.find_spec, engines))


def run(document, word, least, arguments):
    """Runs the programs that begin with a comment `# WORD: MODULES`, of which there are at least
    `least`. Yields the modules, what the program printed, and the seconds that it took. Prints a line
    for each module that is missing, and ends if a program fails.
    """
    text = pathlib.Path(document).read_text()
    programs = re.findall(rf"```python\n# {word}: ([^\n]*)\n(.*?)```", text, re.S)
    if len(programs) < least:
        sys.exit(f"{document}: {len(programs)} programs")
    # Spark starts another Python for its workers.
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    for engine, program in programs:
        modules = engine.split(", ")
        missing = [name for name in modules if importlib.util.find_spec(name) is None]
        if "pyspark" in modules and shutil.which("java") is None:
            missing.append("java")
        for name in missing:
            print(f"not installed: {name}")
        if missing:
            continue
        start = time.monotonic()
        command = [sys.executable, "-c", program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            sys.exit(f"{engine}: {done.stderr}")
        yield engine, done.stdout, time.monotonic() - start
