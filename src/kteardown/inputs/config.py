"""The user's configuration, ``kteardown/config.toml`` in ``$XDG_CONFIG_HOME`` or ``~/.config``.

Each section is of an optional package, which has the model of it.
"""

from pathlib import Path
from typing import Any, TypeVar

import platformdirs
from pydantic import BaseModel, create_model

from kteardown.errors import InputError
from kteardown.extensions import extensions
from kteardown.inputs.toml_files import read_toml, validated
from kteardown.model.workload import StrictModel

_Model = TypeVar("_Model", bound=BaseModel)


def config_file() -> Path:
    """Return where the configuration is, whether it exists or not."""
    return Path(platformdirs.user_config_dir("kteardown")) / "config.toml"


def section(name: str, model: type[_Model], file: Path | None = None) -> _Model:
    """Return the section ``name``; every setting has a default. Raises InputError that names the
    setting."""
    fields: dict[str, Any] = {name: (model, model())}
    settings: _Model = getattr(_validated(name, model, fields, file or config_file()), name)
    return settings


def sections(name: str, model: type[_Model], file: Path | None = None) -> dict[str, _Model]:
    """Return the sections ``[NAME.KEY]`` by key. Raises InputError that names the setting."""
    file = file or config_file()
    keys: dict[str, Any] = {key: (model, ...) for key in _whole(file).get(name, {})}
    inner = create_model(f"{name}Sections", __base__=StrictModel, **keys)
    settings = getattr(_validated(name, model, {name: (inner, ...)}, file), name) if keys else None
    return {key: getattr(settings, key) for key in keys}


def _whole(file: Path) -> dict[str, Any]:
    return read_toml(file) if file.exists() else {}


def _validated(name: str, model: type[BaseModel], fields: dict[str, Any], file: Path) -> BaseModel:
    """Return a model with the section alone, so that an error names it, too."""
    whole = _whole(file)
    section_names = {
        name,
        *(section for extension in extensions() for section in extension.sections),
    }
    if unknown := [key for key in whole if key not in section_names]:
        what = f"{file}: no installed package of kteardown has a section [{unknown[0]}]"
        raise InputError.unknown(what, unknown[0], sorted(section_names))
    form = create_model(f"{name}Section", __base__=StrictModel, **fields)
    hint = f"correct these keys; the settings of {name} are {', '.join(model.model_fields)}."
    return validated(form, {name: whole.get(name, {})}, file, hint)
