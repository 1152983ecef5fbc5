"""Programs of kinds, which are made to be given to others."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown_hunt.tables import program


@pytest.mark.parametrize("name", ["{folder}/secret", "../secret", "nowhere.h"])
def test_a_program_has_no_file_of_the_host_but_kinds(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("secret_of_the_user\n")
    (tmp_path / "kinds").mkdir()
    kind, shared = tmp_path / "kinds/mine.c", tmp_path / "kinds/mine.h"
    include = name.format(folder=tmp_path)
    kind.write_text(
        f'#include "hunt/kind.h"\n#include "mine.h"\n#if 0\n#include "{include}"\n#endif\n'
    )
    shared.write_text("enum { SHARED };\n")
    text = program("mine", [kind, shared])
    assert "secret_of_the_user" not in text
    assert "SHARED" in text and f'#include "{include}"' in text
