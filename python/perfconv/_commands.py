"""The commands of perfconv as functions.

The options are those of the command line: `perfconv` parses them. So there is no list of them here;
`options` returns it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Union

from . import _perfconv

if TYPE_CHECKING:
    from typing import TypeAlias

# Python 3.9 evaluates no other form of these.
Path: TypeAlias = Union[str, bytes, os.PathLike[str]]
#: A path, or the bytes of a recording.
Source: TypeAlias = Union[str, os.PathLike[str], bytes, bytearray, memoryview]
Value: TypeAlias = Union[str, bytes, int, float, os.PathLike[str]]
Option: TypeAlias = Union[Value, bool, None, Sequence[Value], Mapping[str, Value]]


@dataclass(frozen=True)
class Result:
    """What a command did."""

    #: What was read and written.
    summary: str
    #: Notes about the output.
    notes: list[str] = field(default_factory=list)
    #: Problems, such as parts of the recording that cannot be read.
    warnings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        warnings = [f"warning: {warning}" for warning in self.warnings]
        notes = [f"note: {note}" for note in self.notes]
        return "\n".join([*warnings, *notes, self.summary])


def _run(
    function: str,
    command: str,
    inputs: Source | Iterable[Source],
    output: Path | None,
    options: dict[str, Option],
    before: Sequence[str] = (),
) -> Result:
    is_one = isinstance(inputs, (str, os.PathLike, bytes, bytearray, memoryview))
    sources: list[Source] = [inputs] if is_one else list(inputs)  # type: ignore[list-item, arg-type]
    if not sources:
        raise ValueError(f"{function}() needs a recording")
    path = None if output is None else os.fsdecode(output)
    with _paths_of(sources) as paths:
        said = _perfconv.run(function, command, paths, path, options, list(before))
    summary, notes, warnings = said
    return Result("\n".join(summary), notes, warnings)


@contextmanager
def _paths_of(sources: list[Source]) -> Iterator[list[str | os.PathLike[str]]]:
    """Return a path for each source: recordings in memory are written to temporary files."""
    with tempfile.TemporaryDirectory(prefix="perfconv-") as folder:
        paths: list[str | os.PathLike[str]] = []
        for number, source in enumerate(sources):
            if isinstance(source, (bytes, bytearray, memoryview)):
                path = os.path.join(folder, f"bytes-{number}")
                with open(path, "wb") as file:
                    file.write(source)
                paths.append(path)
            else:
                paths.append(source)
        yield paths


def convert(input: Source, output: Path, **options: Option) -> Result:
    """Convert a recording; without options, copy it exactly. As ``perfconv convert``.

    `input` is a path or the bytes of a recording, as for `open`. `output` is a path.

    Each option of the command is a keyword argument. ``True`` is an option without a value, a list
    is a repeated option or one with values between commas, and a dictionary is ``NAME=VALUE``.

    >>> import os, perfconv, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     output = os.path.join(folder, "big.data")
    ...     result = perfconv.convert(fixture("6.1-x86_64-file-g.data"), output, endian="big")
    ...     print(perfconv.open(output).byte_order)
    big

    Raises `Error` if the recording cannot be converted, `FormatError` if it is corrupt, `OSError`
    if it cannot be read or the output cannot be written (`FileExistsError` if it exists, unless
    ``force=True``), and `TypeError` or `ValueError` if an option is wrong. No output remains.
    Ctrl-C ends it.
    """
    return _run("convert", "convert", input, output, options)


def inject(input: Source, output: Path, **options: Option) -> Result:
    """Add build IDs, generated code and callchains. As ``perfconv inject``.

    >>> import os, perfconv, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     output = os.path.join(folder, "out.data")
    ...     result = perfconv.inject(
    ...         fixture("6.1-x86_64-file-g.data"), output, build_ids=True, sysroot=folder
    ...     )
    ...     print("BUILD_ID" in perfconv.open(output).features)
    True
    """
    return _run("inject", "inject", input, output, options)


def slice(input: Source, output: Path, **options: Option) -> Result:
    """Keep some samples, and what perf needs to show them. As ``perfconv convert``.

    At least one option must select samples; all options of `convert` are permitted.

    >>> import os, perfconv, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     output = os.path.join(folder, "out.data")
    ...     result = perfconv.slice(fixture("6.1-x86_64-file-g.data"), output, time="0%-10%")
    ...     print(len(list(perfconv.open(output).records("SAMPLE"))))
    10
    """
    selecting = _perfconv.selecting_options()
    if not any(options.get(name) for name in selecting):
        raise TypeError(f"slice() needs an option that selects samples: {', '.join(selecting)}")
    return _run("slice", "convert", input, output, options)


def merge(inputs: Iterable[Source], output: Path, **options: Option) -> Result:
    """Merge several recordings into one, by time. As ``perfconv merge``."""
    return _run("merge", "merge", inputs, output, options)


def split(input: Source, output: Path, **options: Option) -> Result:
    """Split a recording into several ones in the directory `output`. As ``perfconv split``."""
    return _run("split", "split", input, output, options)


def sanitize(input: Source, output: Path, audience: str = "public", **options: Option) -> Result:
    """Replace names, IDs and addresses, so that others may have the recording.

    As ``perfconv convert --sanitize``. `audience` is ``"public"`` or ``"vendor"``; all options of
    `convert` are permitted.
    """
    return _run("sanitize", "convert", input, output, options, [f"--sanitize={audience}"])


def recover(input: Source, output: Path, **options: Option) -> Result:
    """Repair a truncated, unfinished or corrupt recording. As ``perfconv recover``."""
    return _run("recover", "recover", input, output, options)


def export(
    inputs: Source | Iterable[Source], output: Path | None = None, **options: Option
) -> Result:
    """Export samples for other profilers and for databases. As ``perfconv export``.

    The format follows from the name of `output`, or from ``to=``. With ``append_to=DIR`` there is
    no output, and there may be several inputs.

    >>> import os, perfconv, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     output = os.path.join(folder, "out.folded")
    ...     result = perfconv.export(
    ...         fixture("6.1-x86_64-file-g.data"), output, no_symbols=True
    ...     )
    ...     print(result.summary)
    100 samples, 1244 frames, 1244 without a name
    """
    if output is None and not options.get("append_to"):
        raise TypeError("export() needs an output, or append_to")
    return _run("export", "export", inputs, output, options)


def options(command: str) -> dict[str, str]:
    """Return the options of a command with their help.

    >>> import perfconv
    >>> perfconv.options("convert")["sort"]
    'Put the records in the order of time'
    """
    return dict(_perfconv.option_names(command))
