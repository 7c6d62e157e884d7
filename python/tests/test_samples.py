"""Samples as Arrow columns, in the libraries that take them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import perfconv
import pytest
from conftest import Command, fixture, recordings

FILE = fixture("6.1-x86_64-file-g.data")


@pytest.mark.parametrize("path", recordings(), ids=lambda path: path.name)
def test_samples_are_those_of_export(path: Path, command: Command, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    exported = tmp_path / "samples.arrows"
    done = command("export", path, "--to=arrow", "--no-symbols", "-o", exported)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", perfconv.DamageWarning)
        try:
            table = pa.table(perfconv.open(path).samples())
        except (perfconv.Error, pa.ArrowException, OSError) as error:
            assert done.returncode != 0, error
            return
    if b"contains no samples" in done.stderr:
        assert table.num_rows == 0
        return
    assert done.returncode == 0, done.stderr
    with pa.ipc.open_stream(exported) as stream:
        expected = stream.read_all()
    assert table.schema.equals(expected.schema, check_metadata=True)
    assert table.to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("path", recordings(), ids=lambda path: path.name)
def test_rows_are_those_of_the_columns(path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", perfconv.DamageWarning)
        try:
            rows = list(perfconv.open(path).samples(batch_size=50))
        except (perfconv.Error, OSError):
            with pytest.raises(Exception):  # noqa: B017
                pa.table(perfconv.open(path).samples())
            return
        table = pa.table(perfconv.open(path).samples())
    assert [row._asdict() for row in rows] == table.to_pylist()


def test_samples_one_by_one() -> None:
    samples = perfconv.open(FILE).samples("comm,time,frames", symbols=True)
    first = next(iter(samples))
    assert first._fields == ("comm", "time", "frames")
    comm, time, frames = first
    assert (comm, time, frames) == (first.comm, first.time, first.frames)
    assert isinstance(comm, str) and isinstance(time, int) and isinstance(frames, list)
    # Each iterator starts at the first sample, and ends once.
    rows = iter(samples)
    assert next(rows) == first
    assert len(list(rows)) == 99
    assert list(rows) == []
    assert len(list(samples)) == 100
    recording = perfconv.open(FILE)
    rows = iter(recording.samples(batch_size=1))
    next(rows)
    recording.close()
    with pytest.raises(ValueError, match="closed"):
        next(rows)
    assert list(rows) == []


def test_rows_end_with_the_error_of_the_recording() -> None:
    data = bytearray(Path(FILE).read_bytes())
    records = list(perfconv.open(bytes(data)).records("SAMPLE"))
    # A record without a size.
    data[records[50].offset + 6 : records[50].offset + 8] = b"\0\0"
    rows = iter(perfconv.open(data).samples(batch_size=10))
    with pytest.raises(perfconv.Error, match="the records are corrupt here"):
        list(rows)
    assert list(rows) == []


def test_options_without_effect_are_refused(tmp_path: Path) -> None:
    recording = perfconv.open(FILE)
    without: list[dict[str, Any]] = [
        {"force": True},
        {"append_to": tmp_path},
        {"quiet": True},
        {"verbose": True},
        {"no_sync": True},
        {"recording_label": {"a": "b"}},
        {"sideband": True},
    ]
    for options in without:
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            recording.samples(**options)
    of_formats: list[tuple[dict[str, Any], str]] = [
        ({"count": "samples"}, "folded stacks"),
        ({"root": "pid"}, "folded stacks"),
        ({"mark": "jit"}, "folded stacks"),
        ({"label": "pid"}, "a profile with labels"),
        ({"fields": "ip"}, "perf script"),
        ({"ns": True}, "perf script"),
        ({"like": "6.1"}, "perf script"),
        ({"binary": "x"}, "compilers"),
        ({"diff": FILE}, "a flame graph"),
        ({"jobs": 2}, "--append-to"),
        ({"recorded_at": "2026-01-01"}, "--append-to"),
    ]
    for options, what in of_formats:
        with pytest.raises(ValueError, match=what):
            recording.samples(**options)
    names: list[dict[str, Any]] = [
        {"inlines": True},
        {"lines": True},
        {"sysroot": tmp_path},
        {"debug_dir": tmp_path},
    ]
    for options in names:
        with pytest.raises(ValueError, match="needs symbols=True"):
            recording.samples(**options)


def test_columns_and_batches() -> None:
    pa = pytest.importorskip("pyarrow")
    recording = perfconv.open(FILE)
    samples = recording.samples(columns=["time", "comm"], batch_size=30)
    assert samples.columns == ["time", "comm"]
    reader = pa.RecordBatchReader.from_stream(samples)
    batches = list(reader)
    assert [batch.num_rows for batch in batches] == [30, 30, 30, 10]
    assert batches[0].schema.names == ["time", "comm"]
    schema = pa.schema(samples)
    assert schema == reader.schema.remove_metadata()
    assert reader.schema.metadata[b"perfconv.schema"] == b"1"
    assert recording.samples("time,comm").columns == ["time", "comm"]
    assert "stack" not in recording.samples("-stack").columns
    assert "stack" in recording.samples().columns
    for columns, error in [("nothing", "not a column"), ([], "not a column")]:
        with pytest.raises(ValueError, match=error):
            recording.samples(columns)
    with pytest.raises(ValueError, match="at least 1"):
        recording.samples(batch_size=0)
    with pytest.raises(OverflowError):
        recording.samples(batch_size=-1)


def test_options_are_those_of_export(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    recording = perfconv.open(FILE)
    table = pa.table(recording.samples("comm", comm="wk-*"))
    assert set(table["comm"].to_pylist()) == {"wk-1"}
    with pytest.raises(perfconv.Error, match="no sample"):
        pa.table(recording.samples("comm", comm="nobody"))
    with pytest.raises(TypeError, match="samples.. got an unexpected keyword argument 'com'"):
        recording.samples(com="x")
    with pytest.raises(TypeError, match="'to'"):
        recording.samples(to="parquet")
    named = pa.table(recording.samples("frames", symbols=True, sysroot=tmp_path))
    frames = named["frames"].to_pylist()
    assert all(name is not None for names in frames for name in names)
    with pytest.raises(FileNotFoundError):
        pa.table(recording.samples(symbols=True, sysroot=tmp_path / "nothing"))


def test_each_stream_is_new() -> None:
    pa = pytest.importorskip("pyarrow")
    samples = perfconv.open(FILE).samples()
    first = pa.RecordBatchReader.from_stream(samples)
    assert pa.table(samples).num_rows == 100
    assert first.read_all().num_rows == 100


def test_a_stream_outlives_its_objects_but_not_close() -> None:
    pa = pytest.importorskip("pyarrow")
    recording = perfconv.open(Path(FILE).read_bytes())
    reader = pa.RecordBatchReader.from_stream(recording.samples(batch_size=10))
    reader.read_next_batch()
    recording.close()
    with pytest.raises(Exception, match="the recording is closed"):
        reader.read_next_batch()
    reader = pa.RecordBatchReader.from_stream(perfconv.open(Path(FILE).read_bytes()).samples())
    assert reader.read_all().num_rows == 100


def test_capsules_are_released() -> None:
    samples = perfconv.open(FILE).samples()
    for _ in range(100):
        assert "arrow_array_stream" in repr(samples.__arrow_c_stream__())
        assert "arrow_schema" in repr(samples.__arrow_c_schema__())


def test_damage_is_a_warning() -> None:
    pa = pytest.importorskip("pyarrow")
    data = Path(fixture("6.1-x86_64-pipe-default.data")).read_bytes()[:-4]
    samples = perfconv.open(data).samples()
    with pytest.warns(perfconv.DamageWarning, match="the samples do not contain them"):
        table = pa.table(samples)
    assert table.num_rows > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", perfconv.DamageWarning)
        with pytest.raises(Exception, match="do not contain them"):
            pa.table(samples)


def test_a_stream_has_one_pass() -> None:
    pa = pytest.importorskip("pyarrow")
    import io

    class Stream(io.RawIOBase):
        def __init__(self, data: bytes) -> None:
            self.data = io.BytesIO(data)

        def read(self, size: int = -1) -> bytes:
            return self.data.read(size)

    data = Path(fixture("6.1-x86_64-pipe-default.data")).read_bytes()
    samples = perfconv.open(Stream(data)).samples("time")
    assert pa.table(samples) == pa.table(perfconv.open(data).samples("time"))
    with pytest.raises(perfconv.Error, match="already read"):
        pa.table(samples)


def rows() -> list[tuple[int | None, int]]:
    """Return the expected rows, read by records."""
    recording = perfconv.open(FILE)
    return sorted((record.time, record.tid.pid) for record in recording.records("SAMPLE"))


def test_polars() -> None:
    pl = pytest.importorskip("polars")
    samples = perfconv.open(FILE).samples(["time", "pid"])
    assert sorted(pl.DataFrame(samples).rows()) == rows()


def test_pandas() -> None:
    pd = pytest.importorskip("pandas", minversion="3")
    samples = perfconv.open(FILE).samples(["time", "pid"])
    frame = pd.DataFrame.from_arrow(samples)
    assert sorted(frame.itertuples(index=False, name=None)) == rows()


def test_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    samples = perfconv.open(FILE).samples(["time", "pid"])
    found = duckdb.sql("SELECT time, pid FROM samples ORDER BY ALL").fetchall()
    assert found == rows()


def test_datafusion() -> None:
    datafusion = pytest.importorskip("datafusion")
    samples = perfconv.open(FILE).samples(["time", "pid"])
    frame = datafusion.SessionContext().from_arrow(samples)
    found = frame.to_pydict()
    assert sorted(zip(found["time"], found["pid"])) == rows()
