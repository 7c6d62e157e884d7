"""Reads what `perfconv export` wrote with several engines, and compares the values.

    python3 columns.py PARQUET.md FOLDER
    python3 columns.py

PARQUET.md is docs/parquet.md. FOLDER contains
  fleet/   the tables of many recordings, by --append-to
  dumps/   for each of them FILE.jsonl, by dump --json, and FILE.info, by info --json
  single/  for some of them a folder with samples.parquet, samples.arrows and tables/

Prints a line `not installed: NAME` for each engine that is missing; without arguments, only these.
Exit status 77: without pyarrow, which reads what the engines are compared with, nothing is
compared.
"""

import collections
import importlib.util
import json
import os
import pathlib
import re
import shutil
import sys

# What an engine needs, besides Python.
PROGRAMS = {"pyspark": "java"}
NAMES = ["duckdb", "polars", "datafusion", "pandas", "pyspark"]


def is_installed(name):
    """Returns whether an engine is there, and says so if not."""
    missing = [name] if importlib.util.find_spec(name) is None else []
    if name in PROGRAMS and shutil.which(PROGRAMS[name]) is None:
        missing.append(PROGRAMS[name])
    for missed in missing:
        print(f"not installed: {missed}")
    return not missing


installed = [name for name in NAMES if is_installed(name)]
if not is_installed("pyarrow"):
    sys.exit(77)
if len(sys.argv) == 1:
    sys.exit()

import pyarrow
import pyarrow.dataset
import pyarrow.ipc
import pyarrow.parquet

document = pathlib.Path(sys.argv[1]).read_text()
os.chdir(sys.argv[2])

# The columns that are compared with dump --json.
DUMPED = ["time", "event", "period", "pid", "tid", "cpu", "ip", "addr", "callchain"]
SIDE_TABLES = ["features", "mappings", "modules", "threads", "lost", "switches"]


def same(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: {str(found)[:2000]}\nexpected: {str(expected)[:2000]}")


def same_rows(what, found, expected):
    """Compares rows, in any order."""
    found, expected = collections.Counter(found), collections.Counter(expected)
    if found != expected:
        pairs = [(found, expected), (expected, found)]
        only = [list((rows - others).items())[:5] for rows, others in pairs]
        sys.exit(f"{what}: found only {only[0]}, expected only {only[1]}")


def plain(value):
    """Returns a value without the types of an engine."""
    if value is None or type(value) in (int, str):
        return value
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if hasattr(value, "to_list"):
        value = value.to_list()
    elif hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return tuple(map(plain, value))
    if hasattr(value, "timestamp"):
        return round(value.timestamp() * 1_000_000)
    if isinstance(value, float):
        if value != value:
            return None
        same("a number", value, int(value))
        return int(value)
    return value


def rows_of(columns):
    """Returns rows of plain values from the values of each column."""
    return list(zip(*(map(plain, values) for values in columns)))


# Each engine reads a file or folder: its columns, and all rows. And it answers the queries of
# docs/parquet.md for the samples of `fleet/` with frames, in its own language.
#
# self        time of each function without the functions that it calls
# inclusive   time of each function with them, where recursive calls count once
# callers     number of samples for each function that calls FUNCTION
# folded      time of each stack


class DuckDb:
    def __init__(self):
        import duckdb

        self.db = duckdb.connect()
        self.db.execute("SET TimeZone = 'UTC'")

    def read(self, path, columns=None):
        chosen = ", ".join(columns or ["*"])
        pattern = f"{path}/**/*.parquet" if os.path.isdir(path) else path
        is_hive = str(os.path.isdir(path)).lower()
        query = f"SELECT {chosen} FROM read_parquet('{pattern}', hive_partitioning = {is_hive})"
        relation = self.db.sql(query)
        return relation.columns, [tuple(map(plain, row)) for row in relation.fetchall()]

    def queries(self, function):
        # These are those of the document, as they are there.
        queries = re.findall(r"```sql\n(.*?)```", document, re.S)
        names = ["file", "self", "inclusive", "callers", "folded"]
        same("queries in docs/parquet.md", len(queries), len(names))
        queries = dict(zip(names, queries))
        # The events of all recordings are added here.
        every = queries["self"].replace("WHERE event LIKE 'cpu-clock%'", "WHERE len(frames) > 0")
        view, every = every.replace(" LIMIT 20", "").split(";", 1)
        self.db.execute(view)
        answers = {"self": self.db.sql(every).fetchall()}
        answers["self"] = [row[:2] for row in answers["self"]]
        self.db.execute("ALTER VIEW s RENAME TO all_samples")
        self.db.execute("CREATE VIEW s AS FROM all_samples WHERE len(frames) > 0")
        for name in ["inclusive", "callers", "folded"]:
            query = queries[name].replace("'do_exit'", f"'{function}'")
            answers[name] = self.db.sql(query).fetchall()
        return answers


class Polars:
    def __init__(self):
        import polars

        self.pl = polars

    def read(self, path, columns=None):
        pattern = f"{path}/**/*.parquet" if os.path.isdir(path) else path
        frame = self.pl.scan_parquet(pattern, hive_partitioning=os.path.isdir(path))
        frame = frame.select(columns or self.pl.all()).collect()
        return frame.columns, rows_of(frame.to_dict(as_series=False).values())

    def queries(self, function):
        pl = self.pl
        samples = pl.scan_parquet("fleet/samples/**/*.parquet", hive_partitioning=True)
        samples = samples.filter(pl.col("frames").list.len() > 0).select(
            "period",
            pl.col("comm").cast(pl.String),
            frames=pl.col("frames").cast(pl.List(pl.String)),
        )
        ns = pl.col("period").sum()
        frames = pl.col("frames")
        each = samples.select("period", function=frames.list.unique()).explode("function")
        at = frames.list.eval(pl.element() == function).list.arg_max()
        calling = samples.filter(frames.list.contains(function))
        calling = calling.select(caller=frames.list.get(at + 1, null_on_oob=True))
        stack = pl.concat_str("comm", frames.list.reverse().list.join(";"), separator=";")
        answers = {
            "self": samples.group_by(frames.list.first().alias("function")).agg(ns),
            "inclusive": each.group_by("function").agg(ns),
            "callers": calling.group_by("caller").len(),
            "folded": samples.group_by(stack).agg(ns),
        }
        return {name: answer.collect().rows() for name, answer in answers.items()}


class DataFusion:
    def __init__(self):
        import datafusion

        self.db = datafusion.SessionContext()
        self.tables = 0

    def register(self, path):
        self.tables += 1
        name = f"table{self.tables}"
        partitions = []
        if os.path.isdir(path):
            partitions = [("date", pyarrow.string())]
            path = f"{path}/"
        self.db.register_parquet(name, path, table_partition_cols=partitions)
        return name

    def rows(self, query):
        frame = self.db.sql(query)
        rows = []
        for batch in frame.collect():
            rows += rows_of(column.to_pylist() for column in batch.columns)
        return frame.schema().names, rows

    def read(self, path, columns=None):
        return self.rows(f"SELECT {', '.join(columns or ['*'])} FROM {self.register(path)}")

    def queries(self, function):
        samples = f"(SELECT * FROM {self.register('fleet/samples')} WHERE cardinality(frames) > 0)"
        at = f"CAST(array_position(frames, '{function}') AS BIGINT)"
        answers = {
            "self": f"SELECT frames[1], sum(period) FROM {samples} GROUP BY 1",
            "inclusive": f"""SELECT fn, sum(period)
                FROM (SELECT period, unnest(array_distinct(frames)) AS fn FROM {samples})
                GROUP BY fn""",
            "callers": f"""SELECT frames[{at} + 1], count(*) FROM {samples}
                WHERE array_has(frames, '{function}') GROUP BY 1""",
            "folded": f"""SELECT
                concat_ws(';', comm, array_to_string(array_reverse(frames), ';')), sum(period)
                FROM {samples} GROUP BY 1""",
        }
        return {name: self.rows(query)[1] for name, query in answers.items()}


class Pandas:
    def __init__(self):
        import pandas

        self.pd = pandas

    def read(self, path, columns=None):
        # Numbers with nulls become floats in pandas by default, which have not enough digits.
        frame = self.pd.read_parquet(path, columns=columns, dtype_backend="numpy_nullable")
        return list(frame.columns), rows_of(frame[name] for name in frame.columns)

    def queries(self, function):
        samples = self.pd.read_parquet("fleet/samples", columns=["period", "comm", "frames"])
        samples = samples[samples["frames"].map(len) > 0]
        ns = samples["period"]
        caller = samples["frames"].map(list)
        caller = caller[caller.map(lambda frames: function in frames)]
        caller = caller.map(lambda frames: (frames + [None])[frames.index(function) + 1])
        each = samples.assign(function=samples["frames"].map(set)).explode("function")
        frames = samples["frames"].map(lambda frames: ";".join(frames[::-1]))
        stack = samples["comm"].astype(str) + ";" + frames
        answers = {
            "self": ns.groupby(samples["frames"].map(lambda frames: frames[0])).sum(),
            "inclusive": each.groupby("function")["period"].sum(),
            "callers": caller.value_counts(dropna=False),
            "folded": ns.groupby(stack).sum(),
        }
        return {name: rows_of([answer.index, answer]) for name, answer in answers.items()}


class Spark:
    def __init__(self):
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        settings = {
            "spark.master": "local[2]",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
        }
        self.spark = SparkSession.builder.config(map=settings).getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")

    def read(self, path, columns=None):
        frame = self.spark.read.parquet(path)
        frame = frame.select(*columns) if columns else frame
        return frame.columns, [tuple(map(plain, row)) for row in frame.collect()]

    def queries(self, function):
        samples = self.spark.read.parquet("fleet/samples").filter("size(frames) > 0")
        samples.select("period", "comm", "frames").createOrReplaceTempView("s")
        answers = {
            "self": "SELECT element_at(frames, 1), sum(period) FROM s GROUP BY 1",
            "inclusive": """SELECT fn, sum(period)
                FROM (SELECT period, explode(array_distinct(frames)) AS fn FROM s) GROUP BY fn""",
            "callers": f"""SELECT get(frames, int(array_position(frames, '{function}'))), count(*)
                FROM s WHERE array_contains(frames, '{function}') GROUP BY 1""",
            "folded": "SELECT concat_ws(';', comm, reverse(frames)), sum(period) FROM s GROUP BY 1",
        }
        rows = {name: self.spark.sql(query).collect() for name, query in answers.items()}
        return {name: [tuple(row) for row in found] for name, found in rows.items()}


CLASSES = dict(zip(NAMES, [DuckDb, Polars, DataFusion, Pandas, Spark]))
engines = {name: CLASSES[name]() for name in installed}


# The samples of each recording are those of dump --json.


def signed(value):
    """Returns a number of 64 bits as in a column."""
    if value is None:
        return None
    value = int(value, 16) if isinstance(value, str) else value
    return value - (1 << 64) if value >= 1 << 63 else value


def signed_32(value):
    return None if value is None else value - (1 << 32) if value >= 1 << 31 else value


MOST_MARKERS = (1 << 64) - 4095
DEFERRED = (1 << 64) - 640


def dumped(file):
    """Returns the rows of a recording in DUMPED, and whether its callchains are plain."""
    info = json.loads(pathlib.Path(f"dumps/{file}.info").read_text())
    weights = {event["name"]: event["attr"].get("sample_period", 1) for event in info["events"]}
    # perf takes frames from the branch stack, or from a later record.
    types = [event["attr"].get("branch_sample_type", []) for event in info["events"]]
    is_plain = not any("CALL_STACK" in each for each in types)
    of_id = {id: event for event in info["events"] for id in event["ids"]}
    rows, groups = [], []
    with open(f"dumps/{file}.jsonl") as lines:
        for line in lines:
            record = json.loads(line)
            if record["type"] != "SAMPLE" or "fields" not in record:
                continue
            fields = record["fields"]
            words = [int(word, 16) for word in fields.get("callchain", [])]
            is_plain = is_plain and DEFERRED not in words
            addresses = [signed(word) for word in words if word < MOST_MARKERS]
            tid, ip, event = fields.get("tid") or {}, signed(fields.get("ip")), record.get("event")
            if not addresses and ip is not None:
                addresses = [ip]
            read = fields.get("read")
            counters = read and [(each["id"], each["value"]) for each in read.get("values", [read])]
            row = (
                signed(fields.get("time")),
                event,
                signed(fields.get("period", weights.get(event, 1))),
                signed_32(tid.get("pid")),
                signed_32(tid.get("tid")),
                signed_32((fields.get("cpu") or {}).get("cpu")),
                ip,
                signed(fields.get("addr")),
                tuple(addresses),
            )
            if counters:
                groups.append((fields["time"], counters, tid.get("tid"), row))
            else:
                rows.append(row)
    # A sample with counters is a row for each that increased since the sample before.
    last = {}
    for _, counters, tid, row in sorted(groups, key=lambda group: group[0]):
        for id, value in counters:
            event = of_id[id]
            key = (id, tid if event["attr"]["flags"].get("inherit") else None)
            increase = value - last.get(key, 0)
            last[key] = value
            if increase:
                rows.append((row[0], event["name"], increase, *row[3:]))
    return rows, is_plain


table = pyarrow.dataset.dataset("fleet/samples", partitioning="hive").to_table()
columns = dict(zip(table.column_names, table.columns))
fleet = rows_of(columns[name].to_pylist() for name in ["recording", *DUMPED, "comm", "frames"])
by_recording = collections.defaultdict(list)
for recording, *row in fleet:
    by_recording[recording].append(tuple(row[:len(DUMPED)]))
recordings = pyarrow.parquet.read_table("fleet/recordings").to_pylist()
found = sorted(row["recording"] for row in recordings if row["samples"])
same("recordings with samples", sorted(by_recording), found)
total = 0
for row in recordings:
    found = by_recording[row["recording"]]
    expected, is_plain = dumped(row["file"])
    if not is_plain:
        found, expected = ([row[:-1] for row in rows] for rows in (found, expected))
    same_rows(f"{row['file']}: dump --json", found, expected)
    same(f"{row['file']}: samples", row["samples"], len(expected))
    total += len(expected)

# All engines read the same rows, and the same sums.
period = sum(row[1 + DUMPED.index("period")] for row in fleet)
expected = [row[:-2] for row in fleet]
for name, engine in engines.items():
    _, found = engine.read("fleet/samples", ["recording", *DUMPED])
    same_rows(f"{name}, all recordings", found, expected)
    _, found = engine.read("fleet/samples", ["period", "host"])
    same(f"{name}, periods", sum(row[0] for row in found), period)
    hosts = sorted({row["host"] for row in recordings if row["host"]})
    same(f"{name}, hosts", sorted({row[1] for row in found} - {None}), hosts)

# They give the same answers.
named = [(row[1 + DUMPED.index("period")], row[-2], row[-1]) for row in fleet if row[-1]]
counts = collections.Counter(caller for _, _, frames in named for caller in frames[1:])
FUNCTION = counts.most_common(1)[0][0]
answers = {name: collections.Counter() for name in ["self", "inclusive", "callers", "folded"]}
for weight, comm, frames in named:
    answers["self"][frames[0]] += weight
    for function in set(frames):
        answers["inclusive"][function] += weight
    if FUNCTION in frames:
        answers["callers"][(*frames, None)[frames.index(FUNCTION) + 1]] += 1
    answers["folded"][";".join([comm, *reversed(frames)])] += weight
for name, engine in engines.items():
    found = engine.queries(FUNCTION)
    same(f"{name}: answers", sorted(found), sorted(answers))
    for question, expected in answers.items():
        same_rows(f"{name}, {question}", map(tuple, found[question]), expected.items())

# All columns and tables of some recordings, and the Arrow stream.
for folder in sorted(pathlib.Path("single").iterdir()):
    path = f"{folder}/samples.parquet"
    metadata = pyarrow.parquet.ParquetFile(path).metadata.metadata
    same("schema", metadata.get(b"perfconv.schema"), b"1")
    table = pyarrow.parquet.read_table(path)
    expected = (table.column_names, rows_of(column.to_pylist() for column in table.columns))
    with open(f"{folder}/samples.arrows", "rb") as stream:
        table = pyarrow.ipc.open_stream(stream).read_all()
    found = (table.column_names, rows_of(column.to_pylist() for column in table.columns))
    same("Arrow stream", found, expected)
    for name, engine in engines.items():
        same(f"{name}, {path}", engine.read(path), expected)
    events = pyarrow.parquet.read_table(f"{folder}/tables/events.parquet").to_pydict()
    period = sum(row[expected[0].index("period")] for row in expected[1])
    same("events", (sum(events["samples"]), sum(events["period"])), (len(expected[1]), period))
    for side in SIDE_TABLES:
        path = f"{folder}/tables/{side}.parquet"
        table = pyarrow.parquet.read_table(path)
        rows = rows_of(column.to_pylist() for column in table.columns)
        for name, engine in engines.items():
            names, found = engine.read(path)
            same(f"{name}, {path}", list(names), table.column_names)
            same_rows(f"{name}, {path}", found, rows)
    if "polars" in engines:
        frame = engines["polars"].pl.read_ipc_stream(f"{folder}/samples.arrows")
        found = (frame.columns, rows_of(frame.to_dict(as_series=False).values()))
        same("polars, Arrow stream", found, expected)
print(f"{len(recordings)} recordings, {total} samples: {', '.join(['pyarrow', *engines])} agree")
