from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kteardown.errors import BuildError, InputError
from kteardown.model.arch import Arch, host_arch
from kteardown.progress import SilentReporter
from kteardown.script.compile_static import HEADERS, compile_static
from kteardown.script.elf import MACHINES, read_elf

HOST: Arch = "arm64" if host_arch() == "arm64" else "x86_64"


def compiled(path: Path, text: str, *beside: Path) -> tuple[bytes, tuple[str, ...]]:
    path.write_text(text)
    return compile_static(path, HOST, SilentReporter(), beside)


def output(program: bytes, folder: Path) -> str:
    (folder / "program").write_bytes(program)
    (folder / "program").chmod(0o755)
    done = subprocess.run([folder / "program"], capture_output=True, text=True, check=True)
    return done.stdout


def test_a_program_needs_no_libraries_and_runs(tmp_path: Path) -> None:
    text = (
        "#include <stdio.h>\n"
        "#include <math.h>\n"
        'int main(int c, char **v) { printf("%.0f", sqrt(c)); }\n'
    )
    program, added = compiled(tmp_path / "x.c", text)
    elf = read_elf(program, "x")
    assert (elf.interpreter, elf.needed, added) == ("", (), ())
    assert output(program, tmp_path) == "1"


def test_missing_headers_are_added_and_named(tmp_path: Path) -> None:
    text = (
        "#include <unistd.h>\n"
        'int main(void) { FILE *f = stdout; fprintf(f, "%d", strlen("abc")); }\n'
    )
    program, added = compiled(tmp_path / "x.c", text)
    assert added == tuple(name for name in HEADERS if name != "unistd.h")
    assert output(program, tmp_path) == "3"


def test_a_pointer_is_whole_without_its_header(tmp_path: Path) -> None:
    text = (
        'int main(void) { wait(0); printf("%s", strchr(getenv("HOME"), \'/\')); fflush(0); '
        "_exit(0); }\n"
    )
    program, added = compiled(tmp_path / "x.c", text)
    assert added == HEADERS
    assert output(program, tmp_path).startswith("/")


def test_a_header_beside_the_file_may_be_included(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text("#define STATUS 0\n")
    text = '#include "own.h"\nint main(void) { return STATUS; }\n'
    with pytest.raises(BuildError, match=r"own\.h"):
        compiled(tmp_path / "x.c", text)
    assert compiled(tmp_path / "x.c", text, tmp_path / "own.h")[0]


def test_an_error_has_the_lines_of_the_compiler(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"x\.c did not compile:\n(.*\n)*.*error: .*wrong"):
        compiled(tmp_path / "x.c", "int main(void) { return wrong; }\n")
    with pytest.raises(InputError, match="cannot read"):
        compile_static(tmp_path / "none.c", "x86_64", SilentReporter())


def test_the_compiler_sees_no_other_file_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("int secret;\n")
    with pytest.raises(BuildError, match="secret"):
        compiled(
            tmp_path / "x.c", f'#include "{tmp_path}/secret"\nint main(void) {{ return secret; }}\n'
        )


@pytest.mark.skipif(
    shutil.which("aarch64-linux-gnu-gcc") is None, reason="no cross compiler is installed"
)
def test_a_program_for_another_architecture_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text("int main(void) { return 0; }\n")
    program, _ = compile_static(tmp_path / "x.c", "arm64", SilentReporter())
    assert read_elf(program, "x").machine == MACHINES["arm64"]
