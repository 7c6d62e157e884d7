"""The commands as functions."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import perfconv
import pytest
from conftest import Command, fixture

FILE = fixture("6.1-x86_64-file-g.data")
TRACED = fixture("6.1-x86_64-file-tp.data")


def test_functions_write_what_the_command_writes(command: Command, tmp_path: Path) -> None:
    def check(name: str, words: list[str]) -> None:
        expected = tmp_path / f"{name}.expected"
        done = command(*words, "-o", expected)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / name).read_bytes() == expected.read_bytes(), name

    perfconv.convert(FILE, tmp_path / "copy")
    check("copy", ["convert", FILE])
    perfconv.convert(Path(FILE), str(tmp_path / "big"), endian="big", compress=5, to="pipe")
    check("big", ["convert", FILE, "--endian=big", "--compress=5", "--to=pipe"])
    changes = {"HOSTNAME": "web1", "ARCH": "x86"}
    perfconv.convert(FILE, tmp_path / "set", set=changes, drop=["CPUID", "CACHE"])
    check("set", ["convert", FILE, "--set=HOSTNAME=web1", "--set=ARCH=x86", "--drop=CPUID,CACHE"])
    perfconv.slice(FILE, tmp_path / "slice", comm=["wk-1", "child 1"], sort=True)
    check("slice", ["convert", FILE, "--comm=wk-1,child 1", "--sort"])
    perfconv.merge([FILE, FILE], tmp_path / "merge", sort=True)
    check("merge", ["merge", FILE, FILE, "--sort"])
    key = tmp_path / "key"
    key.write_bytes(b"k" * 64)
    perfconv.sanitize(FILE, tmp_path / "clean", "vendor", keep=["comms", "host"], key=key)
    check("clean", ["convert", FILE, "--sanitize=vendor", "--keep=comms,host", "--key", str(key)])
    perfconv.inject(TRACED, tmp_path / "sched", sched_stat=True)
    check("sched", ["inject", "-i", TRACED, "--sched-stat"])
    perfconv.recover(FILE, tmp_path / "recovered")
    check("recovered", ["recover", FILE])
    perfconv.export(FILE, tmp_path / "x.folded", no_symbols=True, count="samples")
    check("x.folded", ["export", FILE, "--to=folded", "--no-symbols", "--count=samples"])
    perfconv.export(FILE, tmp_path / "x", to="perf-script", no_symbols=True, fields=["comm,time"])
    check("x", ["export", FILE, "--to=perf-script", "--no-symbols", "--fields=comm,time"])


def test_recordings_in_memory(tmp_path: Path) -> None:
    data = Path(FILE).read_bytes()
    sources: list[bytes | bytearray | memoryview] = [data, bytearray(data), memoryview(data)]
    for number, source in enumerate(sources):
        perfconv.convert(source, tmp_path / str(number))
        assert (tmp_path / str(number)).read_bytes() == data
    perfconv.merge([data, FILE], tmp_path / "merge")
    assert len(list(perfconv.open(tmp_path / "merge").records("SAMPLE"))) == 200
    with pytest.raises(perfconv.FormatError):
        perfconv.convert(data[:10], tmp_path / "nothing")


def test_paths_may_be_bytes(tmp_path: Path) -> None:
    perfconv.export(FILE, os.fsencode(tmp_path / "a.folded"), sysroot=os.fsencode(tmp_path))
    perfconv.export(FILE, tmp_path / "b.folded", sysroot=tmp_path)
    assert (tmp_path / "a.folded").read_bytes() == (tmp_path / "b.folded").read_bytes()


def test_the_package_contains_the_command(command: Command, tmp_path: Path) -> None:
    script = Path(sys.executable).parent / "perfconv"
    for program in [[sys.executable, "-m", "perfconv"], [str(script)]]:
        if not Path(program[0]).exists():
            pytest.skip("the package is not installed with its scripts")
        for words in [["info", FILE], ["--version"], ["convert", FILE, "-o", str(tmp_path)], ["x"]]:
            expected = command(*words)
            # In another folder: `python -m` imports the package from the present one.
            done = subprocess.run(
                [*program, *words], capture_output=True, check=False, cwd=tmp_path
            )
            assert done.returncode == expected.returncode, words
            assert done.stdout == expected.stdout
            assert done.stderr == expected.stderr
        # A pipe whose reader ends early.
        words = [*program, "dump", FILE]
        with subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
        ) as child:
            assert child.stdout is not None and child.stderr is not None
            child.stdout.read(10)
            child.stdout.close()
            assert child.stderr.read() == b""
            assert child.wait(timeout=60) == 0


def test_the_version_is_that_of_the_command(command: Command) -> None:
    assert command("--version").stdout.decode().split()[1] == perfconv.__version__


def test_directories_are_written(tmp_path: Path) -> None:
    perfconv.split(FILE, tmp_path / "parts", by="pid")
    assert (tmp_path / "parts" / "index.json").exists()
    added = perfconv.export([FILE, TRACED], append_to=tmp_path / "fleet", no_symbols=True)
    assert added.summary.startswith("2 recordings added")
    assert list((tmp_path / "fleet" / "samples").rglob("*.parquet"))


def test_results_say_what_was_done(tmp_path: Path) -> None:
    result = perfconv.convert(FILE, tmp_path / "out", verbose=True)
    assert "135 records" in result.summary and "converted a" in result.summary
    assert result.notes == result.warnings == []
    assert str(result) == result.summary
    result = perfconv.recover(FILE, tmp_path / "recovered", quiet=False)
    assert result.notes == ["the recording is undamaged and was copied"]
    assert str(result).startswith("note: the recording is undamaged")
    cut = tmp_path / "cut"
    cut.write_bytes(Path(fixture("6.1-x86_64-pipe-default.data")).read_bytes()[:-5])
    result = perfconv.convert(cut, tmp_path / "out", force=True)
    assert result.warnings
    assert perfconv.convert(FILE, tmp_path / "out", force=True, quiet=True).summary == ""


def test_nothing_is_written_to_the_terminal(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    perfconv.convert(FILE, tmp_path / "out")
    with pytest.raises(FileExistsError):
        perfconv.convert(FILE, tmp_path / "out")
    assert capfd.readouterr() == ("", "")


def test_wrong_options(tmp_path: Path) -> None:
    out = tmp_path / "out"
    wrong: list[tuple[dict[str, perfconv._commands.Option], str]] = [
        ({"compres": True}, "unexpected keyword argument 'compres'; did you mean 'compress'"),
        ({"input": "x"}, "multiple values"),
        ({"no_pager": True}, "unexpected keyword argument 'no_pager'"),
        ({"help": True}, "unexpected keyword argument 'help'"),
        ({"endian": True}, "argument 'endian': it needs a value"),
        ({"sort": "yes"}, "argument 'sort': it has no value"),
        ({"drop": [True]}, "must not contain True"),
        ({"drop": object()}, "must be text, a number, a path"),  # type: ignore[dict-item]
    ]
    for options, message in wrong:
        with pytest.raises(TypeError, match=message):
            perfconv.convert(FILE, out, **options)
    values: list[tuple[dict[str, perfconv._commands.Option], str]] = [
        ({"endian": "x"}, "possible values: little, big, native"),
        ({"swap_endian": True, "endian": "big"}, "cannot be used with"),
        ({"known_build_ids": "x"}, "requires --build-ids"),
    ]
    for options, message in values:
        with pytest.raises(ValueError, match=message):
            perfconv.convert(FILE, out, **options)
    with pytest.raises(TypeError, match="needs an option that selects samples: time"):
        perfconv.slice(FILE, out, sort=True)
    with pytest.raises(TypeError, match="needs an output"):
        perfconv.export(FILE)
    with pytest.raises(ValueError, match="needs a recording"):
        perfconv.merge([], out)
    perfconv.convert(FILE, out, sort=False, endian=None)
    assert out.read_bytes() == Path(FILE).read_bytes()


def test_failures_leave_no_output(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(FileNotFoundError) as caught:
        perfconv.convert(tmp_path / "nothing", out)
    assert caught.value.filename == str(tmp_path / "nothing")
    with pytest.raises(OSError, match="not a directory"):
        perfconv.convert(FILE, Path(FILE) / "out")
    broken = tmp_path / "broken"
    broken.write_bytes(b"no recording")
    with pytest.raises(perfconv.FormatError) as format_error:
        perfconv.convert(broken, out)
    assert format_error.value.offset == 0
    with pytest.raises(perfconv.Error, match="no sample"):
        perfconv.slice(FILE, out, comm="nobody")
    with pytest.raises(perfconv.Error) as several:
        perfconv.export([broken, FILE], append_to=tmp_path / "fleet", no_symbols=True)
    assert str(broken) in str(several.value)
    assert {path.name for path in tmp_path.iterdir()} == {"broken", "fleet"}


def test_an_existing_output_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        perfconv.convert(FILE, out)
    assert out.read_bytes() == b"mine"


def test_names_that_look_like_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("--sort").write_bytes(Path(FILE).read_bytes())
    perfconv.convert("--sort", "-x=y")
    assert Path("-x=y").read_bytes() == Path(FILE).read_bytes()


def test_functions_run_in_parallel(tmp_path: Path) -> None:
    results: dict[int, str] = {}

    def work(number: int) -> None:
        source = fixture("6.1-x86_64-file-tp.data") if number % 2 else FILE
        results[number] = perfconv.convert(source, tmp_path / str(number)).summary

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = {number: summary.split(",")[0] for number, summary in results.items()}
    assert len(counts) == 8
    assert len({counts[number] for number in range(0, 8, 2)}) == 1
    assert len({counts[number] for number in range(1, 8, 2)}) == 1
    assert counts[0] != counts[1]


def test_ctrl_c_ends_a_conversion(tmp_path: Path) -> None:
    # The stream never ends by itself.
    data = Path(fixture("6.1-x86_64-pipe-default.data")).read_bytes()
    fifo, out = tmp_path / "fifo", tmp_path / "out"
    os.mkfifo(fifo)
    program = (
        "import perfconv, signal, sys\n"
        # Whatever started the tests may ignore the signal.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "try:\n"
        "    perfconv.convert(sys.argv[1], sys.argv[2])\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    words = [sys.executable, "-c", program, str(fifo), str(out)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, cwd=tmp_path) as child:
        # Opening waits until the conversion reads.
        with open(fifo, "wb", buffering=0) as stream:
            stream.write(data)
            child.send_signal(signal.SIGINT)
            time.sleep(0.5)
            with contextlib.suppress(BrokenPipeError):
                stream.write(b"\0" * 8)
            said, _ = child.communicate(timeout=600)
    assert said == b"interrupted\n"
    assert child.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["fifo"]


def test_options_are_listed() -> None:
    options = perfconv.options("export")
    assert options["no_symbols"] == "Do not search the names of functions"
    assert not {"input", "output", "help"} & set(options)
    with pytest.raises(ValueError):
        perfconv.options("nothing")
