"""Describe a script, a C file or a command as a workload: ``workloads/NAME.toml`` beside its file.

``kteardown compare ./x.sh`` writes such a folder into the cache, and ``kteardown new workload NAME
--from ./x.sh`` into the current folder. From then on it is a workload like any other that is not
shipped.
"""

import hashlib
import os
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tomli_w

from kteardown.errors import InputError, LabError, failing
from kteardown.inputs.load import workload_names
from kteardown.inputs.options import Scripted, parse_seconds
from kteardown.inputs.toml_files import read_text
from kteardown.kernels import cache_folder
from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import Metric, Parameter, Script, Workload
from kteardown.paths import key_of, shipped_table
from kteardown.script.beside import beside, read_file
from kteardown.script.extract import metric_of
from kteardown.script.presets import preset_of

MEMORY_MB = 512
_LIMIT_S = 600.0
_MOST_S = 86400.0
ENDINGS = (".sh", ".bash", ".c", ".py", ".pl")
_POSITIONAL = re.compile(r"\$[1-9@*]|\$\{[1-9@*]|\bargv\b|\bARGV\b")
_NUMBER = re.compile(r"(?<![\w.])[1-9][0-9]{1,8}(?![\w.])")
_REMARK = re.compile(r"\s*(?:#(?!\s*define)|//|/?\*)")
_IN_PLACE = {".c": 'atoi(getenv("{0}"))', ".py": 'int(os.environ["{0}"])', ".pl": "$ENV{{{0}}}"}
"""How a file with this ending reads a parameter; all others as a shell does, with its default."""
_SHOWN = 3


@dataclass(frozen=True)
class Described:
    """A workload with the files that belong to it, by their names beside its TOML file."""

    workload: Workload
    files: Mapping[str, Path]
    preset: str = ""
    """The program of a known benchmark whose output is read; empty: none."""

    def called(self, name: str) -> "Described":
        """Return this under another name."""
        return replace(self, workload=self.workload.model_copy(update={"name": name}))

    def with_metrics(self, metrics: Mapping[str, Metric]) -> "Described":
        """Return this with ``metrics`` in place of its own."""
        return replace(self, workload=self.workload.model_copy(update={"metrics": dict(metrics)}))


STANDARD = {key: Metric(**fields) for key, fields in shipped_table("script/standard").items()}
"""What the agent measures of every script."""


def is_script(word: str) -> bool:
    """Return whether ``word`` is a file or a command line, and not the name of a workload."""
    return "/" in word or word.endswith(ENDINGS) or bool(re.search(r"\s", word.strip()))


def describe(word: str, options: Scripted, params: Mapping[str, Sequence[ParamValue]]) -> Described:
    """Return the workload of ``word``, a file or a command line, with the parameters ``params``.

    Raises InputError if a file cannot be read, an option is not valid, or the text does not use a
    parameter.
    """
    path, arguments = _file_of(word)
    # With a root, its own program may be meant.
    if path is None and not options.root and is_script(word) and not re.search(r"\s", word):
        raise InputError(
            f"{word}: there is no such file", hint="give the path of a script, not of a folder."
        )
    text = _text_of(path, word)
    for name in params:
        _check_used(name, word, text, path.suffix if path else None)
    name = _name_of(path.stem if path else Path(word.split(maxsplit=1)[0]).name)
    files = _files(path, options.file or ())
    root = Path(options.root).expanduser().absolute() if options.root else None
    if root and not root.exists():
        raise InputError(
            f"--root {options.root}: there is no such folder or file", hint="check the path."
        )
    script = Script(
        file=path.name if path else "",
        command="" if path else word.strip(),
        arguments=arguments,
        programs=tuple(
            program for entry in options.programs or () for program in entry.split(",") if program
        ),
        files=tuple(further.name for further in options.file or ()),
        root=str(root) if root else "",
        allow=tuple(_allowed(way) for way in options.allow or ()),
        limit_s=_limit(options.limit) if options.limit else _LIMIT_S,
    )
    metrics = dict(metric_of(*named(entry)) for entry in options.metric or ())
    laws = [name for name, values in params.items() if len(set(values)) > 1 and _numbers(values)]
    workload = Workload(
        name=name,
        summary=(f"the script {path.name}" if path else f"the command {word.strip()}")[:200],
        config=("userland",),
        # The silent guest of the instruction clock is given half of this, in its own time.
        silence_s=2 * script.limit_s + 60,
        memory_mb=MEMORY_MB,
        law=laws[0] if laws else "",
        script=script,
        parameters={name: _parameter(values) for name, values in params.items()},
        metrics=_behind(metrics),
        invariants={"ended": "the script ended with exit status 0, or as `allow` permits"},
    )
    return Described(workload, files, preset_of(text))


def _text_of(path: Path | None, command: str) -> str:
    """Return the text of a script, or the command itself. Raises InputError."""
    if path is not None:
        with failing(f"cannot read {path}", hint="name a text file that you may read."):
            text = _text(path)
    else:
        text = command
        if text.strip() and not text.isprintable():
            raise InputError(
                f"{command!r}: a command may not contain control characters",
                hint="put the command into a script.",
            )
    if not text.strip():
        raise InputError(
            f"{path or 'the command'} is empty", hint="name a script, or write a command line."
        )
    return text


def _files(script: Path | None, further: Sequence[Path]) -> dict[str, Path]:
    """Return the files of a workload by their names in the guest. Raises InputError."""
    files: dict[str, Path] = {}
    for option, path in [("", script), *(("--file ", file) for file in further)]:
        if path is None:
            continue
        if not os.path.isfile(path):
            raise InputError(f"{option}{path}: there is no such file", hint="check the path.")
        if path.name in files:
            raise InputError(
                f"{option}{path}: two files have this name", hint="rename one of them."
            )
        if not path.name.isprintable():
            raise InputError(
                f"{path.name!r} cannot be a name in the guest", hint="rename the file."
            )
        files[path.name] = path
    return files


def _behind(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """Return ``metrics`` as headlines before the standard ones, which are headlines only by
    themselves."""
    standard = {
        key: spec.model_copy(update={"headline": spec.headline and not metrics})
        for key, spec in STANDARD.items()
    }
    return {**metrics, **{key: spec for key, spec in standard.items() if key not in metrics}}


def with_files(workload: Workload, folder: Path) -> Described:
    """Return what is described in ``folder``/workloads already.

    Raises InputError if a file is not in that folder, where a stranger's description could say so.
    """
    script = workload.script or Script()
    place = folder / "workloads"
    files = {name: beside(place, name) for name in (script.file, *script.files) if name}
    if script.root:
        moved = script.model_copy(update={"root": os.path.abspath(place / script.root)})
        workload = workload.model_copy(update={"script": moved})
    text = (
        read_file(files[script.file])[0].decode(errors="replace") if script.file else script.command
    )
    return Described(workload, files, preset_of(text))


def with_headlines(
    described: Described, metrics: Mapping[str, Metric], *, asked: bool = False
) -> Described:
    """Return ``described`` with ``metrics`` as its headlines: ``asked`` for, or found in a
    rehearsal.

    Counters that were found by their growth say nothing of the time, so the standard ones stay
    headlines.
    """
    if not asked and all(spec.read.startswith("delta ") for spec in metrics.values()):
        return described.with_metrics({**STANDARD, **metrics})
    return described.with_metrics(_behind(metrics))


def write(described: Described, folder: Path) -> Path:
    """Write the description and its files into ``folder``/workloads, and return the TOML file.

    Raises InputError if a file cannot be read, LabError if one cannot be written.
    """
    place = folder / "workloads"
    toml = f"{described.workload.name}.toml"
    if toml in described.files:
        raise InputError(
            f"{toml} is the name of the description of the script", hint="rename the file."
        )
    contents = {name: read_file(path) for name, path in described.files.items()}
    hint = "free some disk space, or name another folder."
    with failing(f"{place}: cannot be written", hint=hint, kind=LabError):
        place.mkdir(parents=True, exist_ok=True)
        for name, (content, mode) in contents.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content)
            (place / name).chmod(mode | 0o400)
        (place / toml).write_text(as_toml(described.workload), encoding="utf-8")
    return place / toml


def keep(described: Described, cache: Path) -> Path:
    """Write ``described`` into the cache, under a name that follows from its contents; return the
    folder.

    Raises as ``write`` does.
    """
    folder = cache / "scripts" / content_id(described)
    if not folder.is_dir():
        with failing(f"{folder}: cannot be written", hint="free some disk space.", kind=LabError):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".making-", dir=folder.parent) as work:
                write(described, Path(work))
                if not folder.is_dir():
                    Path(work).rename(folder)
    return cache_folder.hold(folder)


def content_id(described: Described) -> str:
    """Return what identifies the description with the contents of its files. Raises InputError."""
    parts = [as_toml(described.workload)]
    for name, path in described.files.items():
        content, mode = read_file(path)
        parts.append(f"{name} {mode:o} {hashlib.sha256(content).hexdigest()}")
    return key_of("\n".join(parts).encode())


def as_toml(workload: Workload) -> str:
    """Return the text of ``workloads/NAME.toml``, without what has its default value.

    Raises InputError if a text in it is not UTF-8.
    """
    text = tomli_w.dumps(workload.model_dump(mode="python", exclude_defaults=True))
    try:
        text.encode()
    except UnicodeEncodeError as error:
        wrong = error.object[error.start - 10 : error.end]
        raise InputError(
            f"{wrong!r} is not UTF-8", hint="rename the file, or correct the option."
        ) from None
    return text


def _file_of(word: str) -> tuple[Path | None, tuple[str, ...]]:
    """Return the file that ``word`` is, or that is its first word, and the further words."""
    # Path.is_file() raises for a line that is too long for a name.
    if os.path.isfile(path := os.path.expanduser(word)):
        return Path(path), ()
    try:
        first, *arguments = shlex.split(word)
    except ValueError:  # It is a command line, of which the shell of the guest says what is wrong.
        return None, ()
    path = os.path.expanduser(first)
    is_file = os.path.isfile(path) and path.endswith(ENDINGS)
    return (Path(path), tuple(arguments)) if is_file else (None, ())


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except UnicodeDecodeError:
        raise InputError(
            f"{path} is not a text file",
            hint="name a script or a C file; to run a program, give a command: "
            f"kteardown compare '/files/{path.name} ARGUMENTS' --file {path}",
        ) from None


def _check_used(name: str, word: str, text: str, ending: str | None) -> None:
    """Raise InputError unless ``text`` uses the parameter. ``ending``: of its file; None: it is a
    command."""
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise InputError(
            f"--set {name}: a parameter becomes an environment variable, and {name!r} is not a "
            "valid name of a variable",
            hint=(
                "write --set N=...: the script gets the value as $N and, in the order of --set, as "
                "$1, $2"
            )
            + (f"; so {places}." if (places := _places("N", text, ending, name)) else "."),
        )
    if re.search(rf"\b{re.escape(name)}\b", text) or (
        ending is not None and _POSITIONAL.search(text)
    ):
        return
    raise InputError(
        f"--set {name}: {word} does not use this parameter: its text contains neither ${name} nor "
        "$1",
        hint=(
            _places(name, text, ending) or f"write ${name} where the value belongs, or remove --set"
        )
        + ".",
    )


def _places(name: str, text: str, ending: str | None, number: str = "") -> str:
    """Return where ``text`` has numbers, or ``number``, that a parameter could replace; empty
    without any."""
    if ending is None:  # The user's shell would replace a variable in double quotes.
        used = _NUMBER.sub(f"${name}", text, count=1)
        return f"write the command with ${name}, in single quotes: '{used}'" if used != text else ""
    lines = [
        (n, line.strip()) for n, line in enumerate(text.splitlines(), 1) if not _REMARK.match(line)
    ]
    places = [
        (n, line, digits)
        for n, line in lines
        for digits in _NUMBER.findall(line)
        if number in ("", digits)
    ]
    form = _IN_PLACE.get(ending, "${{{0}:-{1}}}")
    proposals = [
        f"{form.format(name, digits)} in place of {digits} in line {n}: {line[:60]}"
        for n, line, digits in places
    ]
    return f"write {'; or '.join(proposals[:_SHOWN])}" if proposals else ""


def _name_of(stem: str) -> str:
    name = re.sub(r"[^a-z0-9_]+", "_", stem.lower()).strip("_")
    name = name if name[:1].isalpha() else f"script_{name}".rstrip("_")
    return f"{name}_script" if name in workload_names() else name[:40]


def _allowed(way: str) -> str:
    match = re.fullmatch(r"(?:(exit|signal)[ =])?([0-9]{1,3})", way.strip())
    if not match:
        raise InputError(
            f"--allow {way}: expected an exit status or a signal",
            hint="write --allow 'exit 3' or --allow 'signal 2'.",
        )
    return f"{match[1] or 'exit'} {match[2]}"


def _limit(text: str) -> float:
    seconds = parse_seconds(text, "--limit")
    if seconds > _MOST_S:
        raise InputError(
            f"--limit {text} is more than a day",
            hint="give at most 24h, and let the script do less.",
        )
    return seconds


def named(spec: str) -> tuple[str, str]:
    """Return name and place of a metric that is written ``NAME=WHERE``. Raises InputError."""
    name, equals, where = spec.partition("=")
    if not equals or not name.strip():
        raise InputError(
            f"--metric {spec}: expected NAME=WHERE",
            hint=(
                "write --metric 'time=/Time: ([0-9.]+) s/', or an interval: 'freeze=/FROM/../TO/'."
            ),
        )
    return name.strip(), where.strip()


def _numbers(values: Sequence[ParamValue]) -> bool:
    return all(isinstance(value, int) for value in values)


def _parameter(values: Sequence[ParamValue]) -> Parameter:
    words = tuple(dict.fromkeys(map(str, values))) if not _numbers(values) else ()
    least = min([0, *(value for value in values if isinstance(value, int))])
    allowed: tuple[int | str, ...] = words or tuple(values)
    return Parameter(
        help="given with --set", default=allowed[0], min=least, choices=words, values=allowed
    )
