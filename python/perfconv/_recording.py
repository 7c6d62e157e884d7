"""Opens recordings."""

from __future__ import annotations

import os
from typing import Protocol

from ._perfconv import Recording


class BinaryFile(Protocol):
    """A binary file object."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; none at the end."""


def open(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryFile,
) -> Recording:
    """Open a recording.

    `source` is a path, the bytes of a recording, or a binary file object. A path is a file, a
    directory of ``perf record --threads`` or ``--kcore``, or a stream such as a FIFO; ``-`` is
    standard input.

    A stream in pipe mode is read while records or samples are requested, so it can be read only
    once. One in file mode is stored in a temporary file.

    >>> import io, pathlib, perfconv
    >>> path = fixture("6.1-x86_64-pipe-default.data")
    >>> data = pathlib.Path(path).read_bytes()
    >>> [perfconv.open(source).container for source in (path, data, io.BytesIO(data))]
    ['pipe', 'pipe', 'pipe']

    Raises `FormatError` if it is not a recording or its metadata is corrupt, and `OSError` if it
    cannot be read.
    """
    return Recording(source)
