"""Read a TOML file into a model; errors name the file and each wrong key."""

import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from kteardown.errors import InputError, did_you_mean

_MOST_BYTES = 10_000_000
_EXAMPLE = "correct these keys; `kteardown new` writes a file with valid keys as an example."
_Model = TypeVar("_Model", bound=BaseModel)


def read_text(path: Path) -> str:
    """Return the text of an input file. Raises InputError if it is a device, a pipe or too large,
    OSError."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode) or about.st_size > _MOST_BYTES:
        raise InputError(
            f"{path}: cannot be read: it is "
            f"{'too large' if stat.S_ISREG(about.st_mode) else 'not a file'}",
            hint=f"name a file of at most {_MOST_BYTES:,} bytes.",
        )
    return path.read_text(encoding="utf-8")


def read_toml(path: Path) -> dict[str, Any]:
    """Return the keys of a TOML file. Raises InputError."""
    try:
        return tomllib.loads(read_text(path))
    except FileNotFoundError:
        raise InputError(
            f"{path}: there is no such file",
            hint="check the path; `kteardown list` shows the names that you can use instead.",
        ) from None
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}", hint="name a file that you can read."
        ) from error
    except RecursionError:
        raise InputError(
            f"{path}: is nested too deeply", hint="write flat tables and lists."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: not valid TOML: {error}", hint="correct the file at this position."
        ) from error


def validated(
    model: type[_Model], fields: Mapping[str, Any], path: Path, hint: str = _EXAMPLE
) -> _Model:
    """Return the model of a file. Raises InputError that names the file and each wrong key."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        lines = [_explain(model, dict(detail)) for detail in error.errors()]
        raise InputError("\n".join(f"{path}: {line}" for line in lines), hint=hint) from error


def _explain(model: type[BaseModel], detail: Mapping[str, Any]) -> str:
    loc = [str(part) for part in detail["loc"]]
    key = ".".join(loc)
    if detail["type"] == "extra_forbidden":
        keys = _fields_at(model, loc[:-1])
        return f"{key}: unknown key{did_you_mean(loc[-1], keys)} (known keys: {', '.join(keys)})"
    if detail["type"] == "missing":
        return f"{key}: missing"
    message = detail["msg"].removeprefix("Value error, ").replace("tuple", "list")
    if not key:
        return str(message)  # Of the whole file, which is not repeated.
    return f"{key}: {message[:1].lower()}{message[1:]}, got {detail['input']!r}"


def _fields_at(model: type[BaseModel], loc: list[str]) -> list[str]:
    current: type[BaseModel] = model
    for part in loc:
        field = current.model_fields.get(part)
        if field is not None:
            current = _model_inside(field.annotation) or current
    return list(current.model_fields)


def _model_inside(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_inside, getattr(annotation, "__args__", ()))), None)
