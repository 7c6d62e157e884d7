"""Records, header, features and events."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import perfconv
import pytest
from conftest import Command, fixture, recordings


@pytest.mark.parametrize("path", recordings(), ids=lambda path: path.name)
def test_records_are_those_of_dump(path: Path, command: Command) -> None:
    dumped = command("dump", "--json", path)
    expected = dumped.stdout.decode().splitlines()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with perfconv.open(path) as recording:
                records = list(recording.records())
        except perfconv.Error as error:
            assert dumped.returncode != 0, error
            return
    assert dumped.returncode == 0
    assert [record.to_json() for record in records] == expected
    # The warnings are those of the command.
    told = dumped.stderr.decode().count("warning:")
    assert len([one for one in caught if one.category is perfconv.DamageWarning]) == told
    for record, line in zip(records, expected):
        value = json.loads(line)
        assert record.to_dict() == value
        assert record.type == str(value["type"])
        assert record.offset == value["offset"]
        assert record.inner == value.get("inner")
        assert record.size == value["size"] == len(record.data)
        assert record.misc == value["misc"]
        if "fields" in value:
            assert same(vars(record_fields(record)), value["fields"]), line
            assert record.error is None
        else:
            assert isinstance(record.error, perfconv.FormatError)
            assert str(record.error) == value["error"]
            with pytest.raises(perfconv.FormatError):
                record.fields
        trailer = record.sample_id
        assert (trailer is None) == ("sample_id" not in value)
        if trailer is not None:
            assert same(vars(trailer), value["sample_id"])
        assert repr(record).startswith(f"<perfconv.Record {record.offset:#x}")


def record_fields(record: perfconv.Record) -> Any:
    """Return the fields as attributes."""

    class Fields:
        pass

    fields = Fields()
    for name, value in record.fields.items():
        if name not in type(record).__dict__:
            assert getattr(record, name) is value
        setattr(fields, name, value)
    return fields


def same(fields: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Return whether fields are those in JSON, which has other types."""
    # JSON adds the markers of callchains.
    names = [name for name in expected if not name.endswith("_contexts")]
    return list(fields) == names and all(
        is_value(fields[name], expected[name]) for name in names
    )


def is_value(value: Any, expected: Any) -> bool:
    if isinstance(value, bytes):
        return bool(value.hex() == expected)
    if isinstance(value, list):
        pairs = zip(value, expected)
        return len(value) == len(expected) and all(is_value(*pair) for pair in pairs)
    if isinstance(value, dict):
        return list(value) == list(expected) and all(
            is_value(value[name], expected[name]) for name in value
        )
    if isinstance(value, int) and isinstance(expected, str):
        return hex(value) == expected
    if isinstance(value, str):
        raw = value.encode("utf-8", "surrogateescape")
        return raw == raw_bytes(expected)
    if isinstance(value, (int, float)):
        return bool(value == expected or str(value) == str(expected))
    return same(vars(value), expected)


def raw_bytes(text: str) -> bytes:
    """Return the bytes of a text in JSON, as docs/json.md describes."""
    import re

    return re.sub(
        b"\xef\xbf\xbd(..)", lambda match: bytes.fromhex(match[1].decode()), text.encode()
    )


@pytest.mark.parametrize(
    "name", ["6.1-x86_64-file-g.data", "6.1-i386-file-dwarf.data", "7.2-x86_64-file-z.data"]
)
def test_each_field_is_made_once(name: str) -> None:
    """Fields that are requested one at a time are those that all records have."""
    for record, other in zip(perfconv.open(fixture(name)), perfconv.open(fixture(name))):
        names = [field for field in other.fields if field not in type(record).__dict__]
        values = [getattr(record, field) for field in reversed(names)]
        assert all(getattr(record, field) is value for field, value in zip(reversed(names), values))
        assert list(record.fields) == list(other.fields)
        assert repr(record.fields) == repr(other.fields)
        for field, value in zip(reversed(names), values):
            assert record.fields[field] is getattr(record, field) is value
        with pytest.raises(AttributeError):
            record.nothing


def test_types_are_selected() -> None:
    recording = perfconv.open(fixture("6.1-x86_64-file-g.data"))
    kinds = {record.type for record in recording}
    assert {"SAMPLE", "MMAP2", "COMM"} <= kinds
    choices: list[str | list[str | int]] = [["MMAP2", "comm"], "MMAP2,COMM", [10, "COMM"]]
    for types in choices:
        assert {record.type for record in recording.records(types)} == {"MMAP2", "COMM"}
    assert list(recording.records([])) == []
    with pytest.raises(ValueError, match="did you mean MMAP"):
        recording.records(["MMAP3"])


def test_records_match_patterns() -> None:
    recording = perfconv.open(fixture("6.1-x86_64-file-g.data"))
    record = next(recording.records("SAMPLE"))
    assert perfconv.Record.__match_args__ == ("type",)
    assert record.time == record.fields["time"] == 18779956126
    assert record.ip == 0xFFFFFFFF88804650
    assert record.tid.pid == 175
    assert record.event == "cpu-clock"
    assert {"ip", "tid", "time", "to_dict"} <= set(dir(record))
    with pytest.raises(AttributeError, match="no field 'filename'; its fields: ip, tid"):
        record.filename


def test_info_is_that_of_the_command(command: Command) -> None:
    for name in ("6.1-x86_64-file-g.data", "6.1-s390x-pipe-stat.data"):
        expected = json.loads(command("info", "--json", fixture(name)).stdout)
        del expected["file"]
        recording = perfconv.open(fixture(name))
        info = recording.info()
        assert expected.pop("summary")["by_event"] == info.pop("summary")["by_event"]
        assert info == expected
        assert recording.container == expected["container"]
        assert f"{recording.byte_order}-endian" == expected["byte_order"]
        for event, other in zip(recording.events, expected["events"]):
            assert event.name == other["name"]
            assert event.ids == other["ids"]
            assert same(vars(event.attr), other["attr"])
        if "header" in expected:
            assert same(vars(recording.header), expected["header"])
            features = {feature["name"]: feature["value"] for feature in expected["features"]}
            assert list(recording.features) == list(features)
            for feature, value in recording.features.items():
                assert is_value(value, features[feature]), feature


def test_features_are_a_mapping() -> None:
    features = perfconv.open(fixture("6.1-x86_64-file-g.data")).features
    assert "HOSTNAME" in features and "NOTHING" not in features
    assert features["HOSTNAME"] == "recorder"
    assert features.get("NOTHING") is None
    assert len(features) == len(list(features))
    with pytest.raises(KeyError):
        features["NOTHING"]
