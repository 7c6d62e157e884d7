"""Runs the programs and queries in docs/fleets.md on a fleet, and compares the rows of programs.

    python3 fleets.py FLEETS.md BEFORE AFTER FUNCTION
    python3 fleets.py

The working directory contains fleet/ and recordings/. BEFORE, AFTER and FUNCTION are the arguments
of the programs. Prints a line `not installed: NAME` for each engine that is missing. Without
arguments, nothing is run. Exit status 77: there is no engine.
"""

import importlib.util
import pathlib
import re
import sys

import documented

if len(sys.argv) == 1:
    engines = ["duckdb", "polars", "datafusion", "dask", "ray", "pyspark"]
    sys.exit(0 if documented.has_any(engines) else 77)
document, *arguments = sys.argv[1:]
text = pathlib.Path(document).read_text()
results = {}
for engine, printed, seconds in documented.run(document, "engine", 7, arguments):
    print(f"{engine}: {seconds:.2f} s")
    # Ray prints messages among the rows.
    rows = re.findall(r"^(?:top|difference|callers|comm)\t.*\n", printed, re.M)
    results[engine] = "".join(rows)
# Each query has rows.
if importlib.util.find_spec("duckdb") is not None:
    import duckdb

    for block in re.findall(r"```sql\n(.*?)```", text, re.S):
        for query in filter(str.strip, block.split(";")):
            if not duckdb.sql(query).fetchall():
                sys.exit(f"no rows: {query}")
compared = {engine: rows for engine, rows in results.items() if "perfconv" not in engine}
if not compared:
    sys.exit(77)
first = next(iter(compared))
for question in ["top", "difference", "callers"]:
    if not re.search(rf"^{question}\t", compared[first], re.M):
        sys.exit(f"{first}: no rows for {question}:\n{compared[first]}")
for engine, rows in compared.items():
    if rows != compared[first]:
        sys.exit(f"{engine}:\n{rows}\nbut {first}:\n{compared[first]}")
for engine, rows in results.items():
    if "perfconv" in engine and not re.search(r"^comm\t\S+\t\d+$", rows, re.M):
        sys.exit(f"{engine}: {rows}")
