"""Samples as Arrow columns, in the libraries that take them."""

from __future__ import annotations

import warnings
from pathlib import Path

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
