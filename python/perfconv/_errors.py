"""Exceptions and warnings."""

from __future__ import annotations


class Error(Exception):
    """A recording cannot be read, or an operation is not possible.

    Errors of the operating system are `OSError`; wrong arguments are `TypeError` or `ValueError`.
    """

    #: Absolute offset in the recording in bytes, if it is known.
    offset: int | None
    #: Name of the structure, such as a record or a feature section.
    structure: str | None
    #: Name of the field.
    field: str | None
    #: What the recording contains.
    found: str | None
    #: What the format permits.
    expected: str | None

    def __init__(
        self,
        message: str = "",
        *,
        offset: int | None = None,
        structure: str | None = None,
        field: str | None = None,
        found: str | None = None,
        expected: str | None = None,
    ) -> None:
        super().__init__(message)
        self.offset = offset
        self.structure = structure
        self.field = field
        self.found = found
        self.expected = expected


class FormatError(Error):
    """A recording is corrupt, exceeds a limit, or is not a recording.

    >>> import perfconv
    >>> try:
    ...     perfconv.open(b"PERFILE2 and so on")
    ... except perfconv.FormatError as error:
    ...     print(error, error.offset, error.field, sep="; ")
    at offset 0x8: header, field size: found another number, expected 16 for a pipe, 104 or 72 for a file; 8; size
    """


class DamageWarning(UserWarning):
    """A part of a recording cannot be read. What is readable was returned.

    ``warnings.simplefilter("error", perfconv.DamageWarning)`` makes it an exception.
    """


for _class in (Error, FormatError, DamageWarning):
    _class.__module__ = "perfconv"
