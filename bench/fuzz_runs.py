"""Damage a good run directory at random, and read it with every verb: no answer but a good one or
an error.

Usage: python bench/fuzz_runs.py RUN [--seconds 600] [--seed 1]

A verb has to end with an answer or an error of ``kteardown.errors``; a verb about all runs with an
answer, in which the good run is beside the damaged one.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from typer.main import get_command

from kteardown.cli import app
from kteardown.errors import KteardownError

_HOSTILE = (
    *(
        "null",
        "true",
        "-1",
        "0",
        str(2**62),
        str(-(2**63)),
        str(2**64),
        "9" * 400,
        "9" * 5000,
        "0.0",
        "-7.5",
    ),
    *(
        "1e308",
        "1e999",
        "1e-320",
        "NaN",
        "Infinity",
        '""',
        '"x"',
        r'"\u001b[31m[/bold]"',
        r'"\ud800"',
    ),
    *('"../../etc"', '"9999-12-31"', "[]", "{}", "[[]]", '{"": {}}', "[" * 20_000),
)
_VERBS = (
    "report damaged",
    "report damaged --format html -o x.html",
    "report damaged --format markdown",
    "report damaged --format csv",
    "report damaged --format comment",
    "show damaged",
    "list runs",
    "history",
    "diff good damaged",
    "query FROM comparisons",
    "query FROM samples",
    "query FROM boots",
    "query FROM runs",
    "query FROM trials",
    "query FROM laws",
    "export --to exported",
    "analyse damaged",
)
_PLACE = "\0place\0"


def damaged_value(line: bytes, rng: random.Random) -> bytes:
    """Return a JSON text with one value at a random place replaced or removed."""
    root = at = {"": json.loads(line)}
    key: Any = ""
    while isinstance(at[key], dict | list) and at[key] and rng.random() < 0.85:
        at = at[key]
        key = rng.choice(list(at)) if isinstance(at, dict) else rng.randrange(len(at))
    if rng.random() < 0.2 and at is not root:
        del at[key]
    else:
        at[key] = _PLACE
    text = json.dumps(root[""], separators=(",", ":"))
    return text.replace(json.dumps(_PLACE), rng.choice(_HOSTILE)).encode()


def damaged_bytes(content: bytes, rng: random.Random) -> bytes:
    """Return ``content`` with a byte changed, or a part removed, doubled or cut off."""
    at, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    changed = content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
    return rng.choice(
        (changed, content[:at] + content[end:], content[:end] + content[at:], content[:at])
    )


def damage(file: Path, rng: random.Random) -> None:
    """Damage a file: its bytes, a value, or the same value in all records of a type."""
    content = file.read_bytes()
    if rng.random() < 0.2:
        file.write_bytes(damaged_bytes(content, rng))
        return
    lines = content.splitlines() if file.suffix == ".ndjson" else [content]
    chosen, state = rng.randrange(len(lines)), rng.randrange(2**32)
    kind = next((word for word in lines[chosen].split(b",") if word.startswith(b'"type":')), b"?")
    everywhere = len(lines) > 1 and rng.random() < 0.5
    for number, line in enumerate(lines):
        if number == chosen or (everywhere and kind in line):
            lines[number] = damaged_value(line, random.Random(state))
    file.write_bytes(b"\n".join(lines) + b"\n")


def fault_of(verb: str) -> str:
    """Return what is wrong with the end of a verb; empty if nothing is."""
    out, of_all = io.StringIO(), "damaged" not in verb
    arguments = verb.split(" ", 1) if verb.startswith("query") else verb.split()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            get_command(app)(arguments, standalone_mode=False)
    except KteardownError as error:
        return f"it ends for all runs: {error}" if of_all else ""
    except BaseException:
        return traceback.format_exc(limit=-4)
    text = out.getvalue()
    return (
        f"the good run is missing: {text[:300]}" if "query" in verb and "good" not in text else ""
    )


def main() -> None:
    """Damage and read for so many seconds."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    source, number, places = arguments.run.resolve(), arguments.seed, set[str]()
    until = time.monotonic() + arguments.seconds
    names = [*sorted(file.name for file in source.glob("*.json")), *3 * ("records.ndjson",)]
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"KTEARDOWN_RUNS": f"{folder}/runs", "KTEARDOWN_CACHE": f"{folder}/cache"}
        os.chdir(folder)
        while time.monotonic() < until:
            rng = random.Random(number)
            shutil.rmtree("runs", ignore_errors=True)
            shutil.copytree(source, "runs/good")
            shutil.copytree(source, "runs/damaged")
            chosen = rng.choice(names)
            damage(Path("runs/damaged") / chosen, rng)
            if rng.random() < 0.6:
                Path("runs/damaged/result.json").unlink(missing_ok=True)
            for verb in rng.sample(_VERBS, 6):
                fault = fault_of(verb)
                place = "\n".join(fault.strip().splitlines()[-3:-1]) or fault[:60]
                if fault and place not in places:
                    places.add(place)
                    print(f"seed {number}, {chosen}: {verb}\n{fault}", flush=True)
            number += 1
    print(f"{number - arguments.seed} damages, {len(places)} different faults")
    sys.exit(bool(places))


if __name__ == "__main__":
    main()
