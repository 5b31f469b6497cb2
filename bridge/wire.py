"""Values as bytes and back: everything that crosses between processes or rests in the state store (docs/wire.md).

JSON with a version. Unknown fields are dropped; a field has a default only where `bridge.model` gives it one, and there
only harmless ones do (house style 27): who did something, and to what, is never guessed. What cannot be explained is a
`BadMessageError` whose text repeats nothing that a person or a model said.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from bridge.commands import NAMES, Command
from bridge.errors import BadMessageError
from bridge.model import Inbound, News, Posted, RunRecord, Settled

VERSION = 1
"""Written into every message; the only one that is read so far (rulings R11)."""

INBOUNDS: dict[str, type[Inbound]] = {cls.__name__.lower(): cls for cls in get_args(Inbound)}
"""Name on the wire -> class. Derived, so that it cannot lag behind the union."""

T = TypeVar("T")
Read = Callable[[Any], Any]


def encode_news(news: News) -> bytes:
    """Return the bytes of one piece of news."""
    return _dump(plain(news))


def decode_news(raw: bytes) -> News:
    """Read news.

    Raises:
        BadMessageError: not news of a version that we speak.
    """
    news = read_as(News, _load(raw))
    if news.seq < 1 or news.fence < 0 or not news.kind:
        raise BadMessageError(f"not news: seq {news.seq}, fence {news.fence}, kind {news.kind!r}")
    return news


def encode_command(command: Command) -> bytes:
    """Return the bytes of one command."""
    return _dump({"do": type(command).__name__.lower(), **plain(command)})


def decode_command(raw: bytes) -> Command:
    """Read a command.

    Raises:
        BadMessageError: unknown version or command, or a field is missing that says who or what.
    """
    return cast(Command, _read_one_of(NAMES, "do", raw))


def encode_inbound(inbound: Inbound) -> bytes:
    """Return the bytes of what a person did."""
    return _dump({"is": type(inbound).__name__.lower(), **plain(inbound)})


def decode_inbound(raw: bytes) -> Inbound:
    """Read what a person did.

    Raises:
        BadMessageError: unknown version or form, or a field is missing that says who or where.
    """
    return cast(Inbound, _read_one_of(INBOUNDS, "is", raw))


def encode_record(record: RunRecord) -> bytes:
    """Return the bytes of a run's record."""
    return _dump(plain(record))


def decode_record(raw: bytes) -> RunRecord:
    """Read a run's record.

    Raises:
        BadMessageError: it cannot be explained; the run is then nobody's to steer.
    """
    return read_as(RunRecord, _load(raw))


def encode_posted(posted: Posted) -> bytes:
    """Return the bytes of what is known of a slot."""
    return _dump(plain(posted))


def decode_posted(raw: bytes) -> Posted:
    """Read what is known of a slot.

    Raises:
        BadMessageError: it cannot be explained.
    """
    return read_as(Posted, _load(raw))


def encode_settled(settled: Settled) -> bytes:
    """Return the bytes of a settlement."""
    return _dump(plain(settled))


def decode_settled(raw: bytes) -> Settled:
    """Read a settlement.

    Raises:
        BadMessageError: it cannot be explained.
    """
    return read_as(Settled, _load(raw))


# -- bytes and JSON ---------------------------------------------------------------------------------------------


def _dump(body: Mapping[str, Any]) -> bytes:
    message = {"v": VERSION, **body}
    try:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:  # a figure that is none, deep in a payload: no reader but Python's would take it
        text = json.dumps(_finite(message), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, as models and file names sometimes have them
        return json.dumps(json.loads(text), separators=(",", ":")).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value


def _load(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError) as err:
        raise BadMessageError(f"not JSON ({len(raw)} bytes)") from err
    if not isinstance(body, dict):
        raise BadMessageError(f"not an object but {type(body).__name__}")
    version = body.get("v")
    if isinstance(version, bool) or version != VERSION:
        raise BadMessageError(f"wire version {str(version)[:20]!r}, we speak {VERSION}")
    return body


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def plain(value: Any) -> Any:
    """Turn our dataclasses into dicts and lists; payloads and options are JSON already and go as they are."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    return dict(value) if isinstance(value, Mapping) else value


# -- JSON and values --------------------------------------------------------------------------------------------


def _read_one_of(names: Mapping[str, type[Any]], key: str, raw: bytes) -> Any:
    body = _load(raw)
    name = body.get(key)
    cls = names.get(name) if isinstance(name, str) else None
    if cls is None:
        raise BadMessageError(f"{key} {str(name)[:20]!r} is unknown")
    return read_as(cls, body)


def read_as(cls: type[T], body: dict[str, Any]) -> T:
    """Make a dataclass of ours out of what `plain` made; passes over fields that it does not know.

    Raises:
        BadMessageError: a field is missing that has no default, or is of another type.
    """
    try:
        return cast(T, _record_reader(cast(Any, cls))(body))
    except (TypeError, ValueError, OverflowError) as err:
        raise BadMessageError(f"not a {cls.__name__}: {err}") from err


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    read: Read
    required: bool


@cache
def _record_reader(cls: type[Any]) -> Read:
    hints = get_type_hints(cls)
    known = tuple(
        _Field(
            name=each.name,
            read=_reader(hints[each.name]),
            required=each.default is MISSING and each.default_factory is MISSING,
        )
        for each in fields(cls)
    )

    def read(body: Any) -> Any:
        if not isinstance(body, dict):
            raise TypeError(f"{cls.__name__} is not an object")
        values: dict[str, Any] = {}
        for each in known:
            if each.name not in body:
                if each.required:
                    raise ValueError(f"{each.name} is missing")
                continue
            try:
                values[each.name] = each.read(body[each.name])
            except (TypeError, ValueError) as err:
                raise ValueError(f"{each.name}: {err}") from err
        return cls(**values)

    return read


def _reader(hint: Any) -> Read:
    """Choose the function that checks and reads values of a type hint."""
    hint = getattr(hint, "__supertype__", hint)
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        (inner,) = (each for each in get_args(hint) if each is not NoneType)
        read = _reader(inner)
        return lambda value: None if value is None else read(value)
    if origin is Literal:
        return lambda value: _one_of(value, get_args(hint))
    if origin is tuple:
        return _tuple_reader(get_args(hint))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping
    if is_dataclass(hint) and isinstance(hint, type):
        return _record_reader(hint)
    return _SIMPLE[hint]


def _tuple_reader(hints: tuple[Any, ...]) -> Read:
    if len(hints) == 2 and hints[1] is Ellipsis:
        read = _reader(hints[0])
        return lambda value: tuple(read(each) for each in _items(value))
    reads = tuple(_reader(each) for each in hints)
    return lambda value: tuple(read(each) for read, each in zip(reads, _items(value), strict=True))


def _items(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, found {type(value).__name__}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {type(value).__name__}")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, found {type(value).__name__}")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"expected a whole number, found {type(value).__name__}")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"expected a number, found {type(value).__name__}")
    return float(value)


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, found {type(value).__name__}")
    return value


def _one_of(value: Any, allowed: tuple[Any, ...]) -> Any:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"expected one of {', '.join(allowed)}")
    return value


_SIMPLE: dict[Any, Read] = {str: _text, int: _whole, float: _number, bool: _flag}
