"""What a script or a command names: the program that runs it, and the programs that it may run.

Nothing is executed. A script can make the name of a program at any time, so all that can be found
is each word that may be one; whether this host has a program of that name decides.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from kteardown.errors import InputError

_KEYWORDS = (
    "! [ [[ ]] { } . : alias bg bind break builtin caller case cd command compgen complete "
    "continue coproc declare dirs disown do done echo elif else enable esac eval exec exit export "
    "false fc fg fi for function getopts hash history if in jobs let local logout mapfile popd "
    "print printf pushd pwd read readarray readonly return select set shift shopt source suspend "
    "test then time times trap true type typeset ulimit umask unalias unset until wait while"
)
BUILTINS = frozenset(_KEYWORDS.split())
"""Words that a shell knows itself."""

_SHELLS = frozenset(("sh", "bash", "dash", "ash", "ksh", "zsh"))
_WORD = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
# Not the end of another word, of a path, an option or a variable; not the name of an assignment.
_NAME = re.compile(rf"(?<![\w.+/$%-])(?<!\$\{{)(/(?:{_WORD}/)*)?({_WORD}|\[)(?![\w.+/=-])")
# What may come before a command: the start of a line, a separator, or a word after which one
# begins.
_BEFORE = r"(?:then|do|else|if|while|until|elif|sudo|exec|time)\s"
_COMMAND = re.compile(
    rf"(?:^|[;|&(`]|\{{[ \t]|\b{_BEFORE})(?:[ \t!]|{_BEFORE})*"
    rf"(?:\w+=(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s;|&()`$\"'])*[ \t]+)*"
    rf"((?:/{_WORD})+|{_WORD})(?=[\s;|&)`]|$)",
    re.MULTILINE,
)
# Commands whose arguments are a command.
_WRAPPED = re.compile(
    r"\b(?:timeout|nice|ionice|taskset|chrt|numactl|nohup|setsid|stdbuf|env|strace|perf|unshare|nsenter|xargs"
    r"|time|exec)\s[^\n;|&]*"
)
_FUNCTION = re.compile(
    rf"(?:^|[;{{}}])[ \t]*(?:function[ \t]+({_WORD})|({_WORD})[ \t]*\([ \t]*\))", re.MULTILINE
)
_LITERAL = re.compile(rf"[\"'`]((?:/{_WORD})+|{_WORD})(?=[\s\"'`;|&])")
# Text in quotes, or a comment, which begins at a word.
_COMMENT = re.compile(r"""(\\.|'[^']*'?|"(?:\\.|[^"\\])*"?)|(?<![^ \t;|&(])#.*""")
_PRINTED = re.compile(r"\b(?:echo|printf)\s[^\n;|&<>]*")
_LOOP = re.compile(rf"\b(?:for|select|case)\s+{_WORD}")
_ARITHMETIC = re.compile(r"\(\([^\n]{0,400}?\)\)")
_SPECIAL = frozenset("$|&;<>(){}*?[]~`\\\n#!")
_SHEBANG_BYTES = 256


@dataclass(frozen=True)
class Shebang:
    """What the first line of a script says: the program's name or path, and its arguments."""

    program: str
    arguments: tuple[str, ...] = ()

    @property
    def is_shell(self) -> bool:
        return PurePosixPath(self.program).name in _SHELLS


def candidates(text: str, *, shell: bool = True) -> dict[str, bool]:
    """Return the names and absolute paths of programs that ``text`` may run, in their order.

    True: a command, or an argument of a command such as ``timeout``. Other words may be data. Of a
    text that is not for a shell, only strings count. Comments, builtins, options, variables, the
    arguments of ``echo`` and the words of ``case`` are left out.
    """
    if not shell:
        return {match[1]: True for match in _LITERAL.finditer(text)}
    text = "\n".join(_COMMENT.sub(lambda match: match[1] or "", line) for line in text.splitlines())
    skipped = {
        *BUILTINS,
        *(keyword_form or plain_form for keyword_form, plain_form in _FUNCTION.findall(text)),
    }
    text = _ARITHMETIC.sub(lambda match: _substitutions(match[0][1:]), text)
    text = _PRINTED.sub(lambda match: _substitutions(match[0]), _LOOP.sub(" ", text))
    likely = {match[1] for match in _COMMAND.finditer(text)}
    likely.update(word for match in _WRAPPED.finditer(text) for word in _names(match[0]))
    return {
        word: word in likely for word in _names(text) if word not in skipped and not word.isdigit()
    }


def _names(text: str) -> Iterator[str]:
    return ((match[1] or "") + match[2] for match in _NAME.finditer(text))


def _substitutions(printed: str) -> str:
    """Return of what is printed only what is run for it."""
    return ";".join(["", *re.findall(r"\$\(.*|`[^`]*`", printed)])


def shebang(data: bytes, name: str) -> Shebang | None:
    """Return what runs the script ``data``, as the kernel reads its first line; None if that has no
    ``#!``.

    ``env`` is replaced by what it finds. Raises InputError if the line cannot work; ``name`` is for
    errors.
    """
    line = data[:_SHEBANG_BYTES].partition(b"\n")[0].decode(errors="replace")
    if line.endswith("\r"):
        raise InputError(
            f"the lines of {name} end with a carriage return, which a shell takes as part of "
            "the last word",
            hint=f"convert the file: sed -i 's/\\r$//' {shlex.quote(name)}",
        )
    if not line.startswith("#!"):
        return None
    program, _, arguments = line[2:].strip(" \t").replace("\t", " ").partition(" ")
    arguments = arguments.strip(" ")
    if not program.strip():
        raise InputError(
            f"the first line of {name} names no program", hint="write `#!/bin/sh`, for example."
        )
    if PurePosixPath(program).name != "env":
        # The kernel passes the rest as one argument.
        return Shebang(program, (arguments,) if arguments else ())
    words = [arguments] if arguments else []
    if arguments.startswith("-S"):
        try:
            words = shlex.split(arguments[2:])
        except ValueError as error:
            raise InputError(
                f"the first line of {name} has an unclosed quote", hint="close the quote."
            ) from error
    if not words or words[0].startswith("-") or "=" in words[0] or " " in words[0]:
        raise InputError(
            f"the first line of {name} gives env arguments that the guest cannot use: "
            f"{arguments!r}",
            hint="write `#!/usr/bin/env -S PROGRAM ARGUMENTS`, or the path of the program.",
        )
    return Shebang(words[0], tuple(words[1:]))


def direct(command: str) -> tuple[str, ...] | None:
    """Return the words of a command line that needs no shell; None if it needs one."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if not words or _SPECIAL & set(command) or "=" in words[0] or words[0] in BUILTINS:
        return None
    return tuple(words)
