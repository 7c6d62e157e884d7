"""Parts of a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    """An event of a recording."""

    #: Position among the events, from 0.
    index: int
    #: Name, as in perf script.
    name: str
    #: ``struct perf_event_attr``, with the names of the kernel: ``attr.sample_period``.
    attr: Any
    #: IDs of the event, one for each CPU or thread.
    ids: list[int]


class Features(Mapping[str, Any]):
    """The feature sections of a recording by name.

    A section is decoded when it is requested. A corrupt one raises `FormatError`.
    """

    def __init__(self, names: list[str], decode: Callable[[str], Any]) -> None:
        self._names = names
        self._decode = decode

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return self._decode(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<perfconv.Features: {', '.join(self._names)}>"
