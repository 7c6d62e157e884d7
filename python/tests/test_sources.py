"""What recordings are read from, and what happens after they are closed."""

from __future__ import annotations

import gzip
import io
import os
import threading
from pathlib import Path
from typing import Any

import perfconv
import pytest
from conftest import fixture

FILE = "6.1-x86_64-file-g.data"
PIPE = "6.1-x86_64-pipe-default.data"
COMPRESSED = "6.1-x86_64-file-z.data"
BIG = "6.1-s390x-file-g.data"


def lines(recording: perfconv.Recording) -> list[str]:
    return [record.to_json() for record in recording.records()]


class Slow(io.RawIOBase):
    """A stream that returns a few bytes at a time, and cannot seek."""

    def __init__(self, data: bytes) -> None:
        self.rest = data

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        part, self.rest = self.rest[:1000], self.rest[1000:]
        return part


@pytest.mark.parametrize("name", [FILE, PIPE, COMPRESSED, BIG])
def test_all_sources_are_the_same(name: str, tmp_path: Path) -> None:
    path = Path(fixture(name))
    data = path.read_bytes()
    expected = lines(perfconv.open(path))
    assert expected
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(data))
    with open(path, "rb") as file, gzip.open(packed) as unpacked:
        sources: list[Any] = [str(path), data, bytearray(data), memoryview(data)]
        sources += [io.BytesIO(data)]
        sources += [file, unpacked, Slow(data)]
        for source in sources:
            assert lines(perfconv.open(source)) == expected, source
    assert perfconv.open(data).id == perfconv.open(path).id


def test_a_file_object_is_read_from_its_position() -> None:
    data = Path(fixture(PIPE)).read_bytes()
    source = io.BytesIO(b"before" + data)
    source.seek(6)
    assert lines(perfconv.open(source)) == lines(perfconv.open(data))


def test_a_file_object_may_be_closed() -> None:
    with open(fixture(FILE), "rb") as file:
        recording = perfconv.open(file)
        assert file.tell() == 0
    assert lines(recording) == lines(perfconv.open(fixture(FILE)))


def test_a_stream_is_read_once() -> None:
    data = Path(fixture(PIPE)).read_bytes()
    recording = perfconv.open(Slow(data))
    assert recording.id is None
    assert recording.events
    assert lines(recording) == lines(perfconv.open(data))
    with pytest.raises(perfconv.Error, match="already read"):
        recording.records()


def test_a_pipe_is_read_while_it_is_written() -> None:
    data = Path(fixture(PIPE)).read_bytes()
    end, start = os.pipe()
    go_on = threading.Event()

    def write() -> None:
        with open(start, "wb") as file:
            file.write(data[: len(data) // 2])
            file.flush()
            go_on.wait(10)
            file.write(data[len(data) // 2 :])

    writer = threading.Thread(target=write)
    writer.start()
    with open(end, "rb") as file:
        records = perfconv.open(file).records()
        first = next(records)
        go_on.set()
        rest = list(records)
    writer.join()
    all_lines = [record.to_json() for record in (first, *rest)]
    assert all_lines == lines(perfconv.open(data))


def test_a_fifo_is_a_stream(tmp_path: Path) -> None:
    data = Path(fixture(PIPE)).read_bytes()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(data,))
    writer.start()
    recording = perfconv.open(fifo)
    assert lines(recording) == lines(perfconv.open(data))
    writer.join()


def test_exceptions_of_file_objects_pass() -> None:
    class Broken:
        def read(self, size: int, /) -> bytes:
            raise LookupError("broken")

    with pytest.raises(LookupError, match="broken"):
        perfconv.open(Broken())

    class Text:
        def read(self, size: int, /) -> str:
            return "PERFILE2"

    with pytest.raises(TypeError):
        perfconv.open(Text())  # type: ignore[arg-type]


def test_wrong_sources() -> None:
    with pytest.raises(TypeError, match="expected a path, bytes or a binary file object, not int"):
        perfconv.open(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be binary"):
        perfconv.open(io.StringIO("PERFILE2"))  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError) as caught:
        perfconv.open("/nowhere/perf.data")
    assert caught.value.filename == "/nowhere/perf.data"
    assert caught.value.errno == 2


def test_corrupt_recordings() -> None:
    with pytest.raises(perfconv.FormatError) as caught:
        perfconv.open(b"nothing of this kind")
    error = caught.value
    assert isinstance(error, perfconv.Error)
    assert (error.offset, error.structure, error.field) == (0, "header", "magic")
    assert error.found == '"nothing "'
    assert error.expected is not None and error.expected.startswith("PERFILE2")
    with pytest.raises(perfconv.FormatError) as caught:
        perfconv.open(b"")
    assert (caught.value.offset, caught.value.found) == (0, "0 bytes")
    data = bytearray(Path(fixture(FILE)).read_bytes())
    data[16:24] = b"\xff" * 8
    with pytest.raises(perfconv.FormatError) as caught:
        perfconv.open(data)
    assert caught.value.offset is not None


def test_exceptions_can_be_sent_to_other_processes() -> None:
    import pickle

    with pytest.raises(perfconv.FormatError) as caught:
        perfconv.open(b"nothing")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is perfconv.FormatError
    assert (str(copy), copy.offset) == (str(caught.value), caught.value.offset)


def test_damage_is_a_warning() -> None:
    data = Path(fixture(FILE)).read_bytes()
    with perfconv.open(data) as recording:
        header = recording.header
        whole = lines(recording)
    end = header.data.offset + header.data.size
    # The size of the last record is 0.
    last = next(reversed([record.offset for record in perfconv.open(data)]))
    broken = data[: last + 6] + b"\0\0" + data[last + 8 :]
    assert end <= len(data)
    with pytest.warns(perfconv.DamageWarning, match=f"{last:#x}"):
        assert lines(perfconv.open(broken)) == whole[:-1]


def test_closed_recordings() -> None:
    recording = perfconv.open(fixture(FILE))
    records = recording.records()
    samples = recording.samples()
    stream = samples.__arrow_c_stream__()
    first = next(records)
    recording.close()
    recording.close()
    assert recording.closed
    assert first.type and first.fields
    assert recording.events and recording.features["ARCH"]
    for use in (
        recording.records,
        recording.samples,
        recording.info,
        recording.__enter__,
        samples.__arrow_c_stream__,
        lambda: next(records),
    ):
        with pytest.raises(ValueError, match="closed"):
            use()
    del stream
    assert "closed" in repr(recording)


def test_threads_read_at_the_same_time() -> None:
    recording = perfconv.open(fixture(COMPRESSED))
    expected = lines(recording)
    results: list[list[str]] = []
    work = lambda: results.append(lines(recording))  # noqa: E731
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8


def test_threads_share_an_iterator() -> None:
    expected = lines(perfconv.open(fixture(FILE)))
    records = perfconv.open(fixture(FILE)).records()
    seen: list[str] = []

    def work() -> None:
        while True:
            try:
                seen.append(next(records).to_json())
            except StopIteration:
                return
            except RuntimeError as error:
                assert "another thread" in str(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == sorted(expected)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_processes_read_on() -> None:
    recording = perfconv.open(fixture(COMPRESSED))
    records = recording.records()
    next(records)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if len(list(records)) + 1 == len(lines(recording)) else 2
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert len(list(records)) + 1 == len(lines(recording))
