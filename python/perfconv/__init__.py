"""Read, convert and export recordings of Linux perf (``perf.data``).

>>> import perfconv
>>> with perfconv.open(fixture("6.1-x86_64-file-g.data")) as recording:
...     print(recording.events[0].name, recording.features["ARCH"])
...     for record in recording.records(types=["SAMPLE"]):
...         print(hex(record.ip), record.tid.pid, record.period)
...         break
cpu-clock x86_64
0xffffffff88804650 175 5025125

`Recording.samples` returns the samples as Arrow columns, for pyarrow, Polars, pandas, DuckDB and
others, or one by one. `convert`, `inject`, `slice`, `merge`, `split`, `sanitize`, `recover` and
`export` are the commands of ``perfconv``, with their options as keyword arguments.
"""

from ._commands import (
    Result,
    convert,
    export,
    inject,
    merge,
    options,
    recover,
    sanitize,
    slice,
    split,
)
from ._errors import DamageWarning, Error, FormatError
from ._model import Event, Features
from ._perfconv import Record, Recording, Records, Samples, __version__
from ._recording import open

__all__ = [
    "DamageWarning",
    "Error",
    "Event",
    "Features",
    "FormatError",
    "Record",
    "Recording",
    "Records",
    "Result",
    "Samples",
    "__version__",
    "convert",
    "export",
    "inject",
    "merge",
    "open",
    "options",
    "recover",
    "sanitize",
    "slice",
    "split",
]
