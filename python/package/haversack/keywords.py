"""Keywords as TOML, which the commands read."""

from __future__ import annotations

import json
import os
from typing import Any, Mapping

from .errors import InputError


def toml(given: Mapping[str, Any]) -> str:
    """The keys as TOML, one a line, in their order; one whose value is None is left out.

    Raises InputError for a value that TOML cannot express.
    """
    lines = (f"{_quoted(str(key))} = {_literal(value, str(key))}\n" for key, value in given.items() if value is not None)
    return "".join(lines)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _literal(value: Any, key: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, os.PathLike)):
        return _quoted(os.fsdecode(value) if isinstance(value, os.PathLike) else value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_quoted(str(name))} = {_literal(of, f'{key}.{name}')}" for name, of in value.items()) + " }"
    # Numbers and arrays of other libraries count, too.
    if hasattr(value, "__index__"):
        return str(value.__index__())
    if hasattr(value, "__iter__"):
        return "[" + ", ".join(_literal(item, key) for item in value) + "]"
    if hasattr(value, "__float__"):
        return repr(float(value))
    expected = "text, a path, a number, True or False, a list or a dictionary"
    raise InputError(f"{key}: expected {expected}, found a {type(value).__qualname__}")
