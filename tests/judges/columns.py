"""Reads what `perfconv export` wrote with several engines, and compares the values.

    python3 columns.py FOLDER SAMPLES PERIOD

FOLDER contains samples.parquet, samples.arrows, tables/ (all tables of the same recording) and
fleet/ (the same recording by --append-to). SAMPLES and PERIOD are the expected number of samples and
the sum of their periods. Exit status 77: an engine is not installed.
"""

import sys

try:
    import duckdb
    import pandas
    import polars
    import pyarrow
    import pyarrow.dataset
    import pyarrow.ipc
    import pyarrow.parquet
except ImportError as error:
    print(error)
    sys.exit(77)

folder, samples, period = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
file = f"{folder}/samples.parquet"


def same(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: {str(found)[:2000]}\nexpected: {str(expected)[:2000]}")


def plain(value):
    """Returns a value without the types of an engine."""
    if value is None or value is pandas.NA or value is pandas.NaT:
        return None
    if isinstance(value, float) and value != value:
        return None
    if hasattr(value, "tolist") and not hasattr(value, "isoformat"):
        value = value.tolist()
    if isinstance(value, polars.Series):
        value = value.to_list()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "timestamp"):
        return round(value.timestamp() * 1_000_000)
    if isinstance(value, float) and value == int(value):
        return int(value)
    return value


def rows(columns):
    """Returns rows of plain values from lists of values by column."""
    names = list(columns)
    return names, [[plain(value) for value in row] for row in zip(*columns.values())]


table = pyarrow.parquet.read_table(file)
metadata = pyarrow.parquet.ParquetFile(file).metadata.metadata
same("schema", metadata.get(b"perfconv.schema"), b"1")
names, expected = rows(table.to_pydict())
same("samples", len(expected), samples)
same("period", sum(row[names.index("period")] for row in expected), period)

# All engines read the same values of all rows.
frame = polars.read_parquet(file)
same("polars", rows(frame.to_dict(as_series=False)), (names, expected))
relation = duckdb.sql(f"SELECT * FROM '{file}'")
found = [[plain(value) for value in row] for row in relation.fetchall()]
same("duckdb", (relation.columns, found), (names, expected))
# Numbers with nulls become floats in pandas by default, which have not enough digits.
frame = pandas.read_parquet(file, dtype_backend="numpy_nullable")
same("pandas", rows({name: list(frame[name]) for name in frame.columns}), (names, expected))

# The Arrow stream has the same rows.
with open(f"{folder}/samples.arrows", "rb") as stream:
    streamed = pyarrow.ipc.open_stream(stream).read_all()
same("Arrow stream", rows(streamed.to_pydict()), (names, expected))
frame = polars.read_ipc_stream(f"{folder}/samples.arrows")
same("polars, Arrow stream", rows(frame.to_dict(as_series=False)), (names, expected))
found = duckdb.sql("SELECT count(*), sum(period)::BIGINT FROM streamed").fetchall()[0]
same("duckdb, Arrow stream", found, (samples, period))

# All tables can be read, and agree.
one = f"{folder}/tables"
count, total = duckdb.sql(f"SELECT sum(samples), sum(period) FROM '{one}/events.parquet'").fetchall()[0]
same("events", (count, total), (samples, period))
recording = pyarrow.parquet.read_table(f"{one}/recordings.parquet").to_pylist()
same("recordings", [row["samples"] for row in recording], [samples])
for name in ["features", "mappings", "modules", "threads", "lost", "switches"]:
    path = f"{one}/{name}.parquet"
    count = pyarrow.parquet.read_table(path).num_rows
    same(name, duckdb.sql(f"SELECT count(*) FROM '{path}'").fetchall()[0][0], count)
    same(name, polars.read_parquet(path).height, count)
    same(name, len(pandas.read_parquet(path)), count)

# The partitioned files, with the values in their paths.
pattern = f"{folder}/fleet/samples/**/*.parquet"
host = recording[0]["host"]
query = "SELECT count(*), sum(period)::BIGINT, min(host), max(host), count(DISTINCT date)"
found = duckdb.sql(f"{query} FROM read_parquet('{pattern}', hive_partitioning = true)").fetchall()[0]
same("duckdb, partitions", found, (samples, period, host, host, 1))
frame = polars.scan_parquet(pattern, hive_partitioning=True)
frame = frame.select(polars.len(), polars.col("period").sum(), polars.col("host").first())
same("polars, partitions", frame.collect().row(0), (samples, period, host))
dataset = pyarrow.dataset.dataset(f"{folder}/fleet/samples", partitioning="hive")
found = dataset.to_table(columns=["period", "host"])
same("pyarrow, partitions", (found.num_rows, set(found["host"].to_pylist())), (samples, {host}))
frame = pandas.read_parquet(f"{folder}/fleet/samples")
same("pandas, partitions", (len(frame), frame["period"].sum()), (samples, period))

# Queries of docs/parquet.md.
duckdb.sql(f"CREATE VIEW s AS FROM read_parquet('{pattern}', hive_partitioning = true)")
total = duckdb.sql("SELECT sum(ns) FROM (SELECT frames[1], sum(period) AS ns FROM s GROUP BY ALL)")
same("self time", total.fetchall()[0][0], period)
folded = """
    SELECT sum(ns) FROM (
        SELECT comm || ';' || array_to_string(list_reverse(frames), ';') AS stack, sum(period) AS ns
        FROM s GROUP BY ALL)
"""
same("folded stacks", duckdb.sql(folded).fetchall()[0][0], period)
inclusive = """
    SELECT max(ns) FROM (
        SELECT function, sum(period) AS ns
        FROM (SELECT period, unnest(list_distinct(frames)) AS function FROM s) GROUP BY ALL)
"""
if duckdb.sql(inclusive).fetchall()[0][0] > period:
    sys.exit("inclusive time is more than all time")
print(f"{samples} samples: pyarrow, polars, duckdb and pandas agree")
