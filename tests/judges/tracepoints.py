"""Runs the programs in docs/fleets.md that read the table of a tracepoint, and compares their rows.

    python3 tracepoints.py FLEETS.md EXPECTED TABLE COLUMN...
    python3 tracepoints.py

The working directory contains fleet/. EXPECTED is a file with the rows, TABLE and COLUMN are the
arguments of the programs. Prints a line `not installed: NAME` for each engine that is missing.
Without arguments, nothing is run. Exit status 77: there is no engine.
"""

import pathlib
import sys

import documented

if len(sys.argv) == 1:
    engines = ["duckdb", "polars", "pyarrow", "pandas", "datafusion", "dask", "pyspark"]
    sys.exit(0 if documented.has_any(engines) else 77)
document, expected, *arguments = sys.argv[1:]
expected = pathlib.Path(expected).read_text()
for engine, rows, _ in documented.run(document, "tracepoint", 6, arguments):
    if rows != expected:
        sys.exit(f"{engine}:\n{rows}\nexpected:\n{expected}")
    print(f"{engine}: {len(expected.splitlines())} rows")
