"""Runs the programs in docs/fleets.md that read the table of a tracepoint, and compares their rows.

    python3 tracepoints.py FLEETS.md EXPECTED TABLE COLUMN...
    python3 tracepoints.py

The working directory contains fleet/. EXPECTED is a file with the rows, TABLE and COLUMN are the
arguments of the programs. Prints a line `not installed: NAME` for each engine that is missing.
Without arguments, nothing is run. Exit status 77: there is no engine.
"""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

if len(sys.argv) == 1:
    engines = ["duckdb", "polars", "pyarrow", "pandas", "datafusion", "dask", "pyspark"]
    sys.exit(0 if any(map(importlib.util.find_spec, engines)) else 77)
document, expected, *arguments = sys.argv[1:]
expected = pathlib.Path(expected).read_text()
text = pathlib.Path(document).read_text()
programs = re.findall(r"```python\n# tracepoint: ([^\n]*)\n(.*?)```", text, re.S)
if len(programs) < 6:
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
    command = [sys.executable, "-c", program, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    if run.returncode != 0:
        sys.exit(f"{engine}: {run.stderr}")
    if run.stdout != expected:
        sys.exit(f"{engine}:\n{run.stdout}\nexpected:\n{expected}")
    print(f"{engine}: {len(expected.splitlines())} rows")
