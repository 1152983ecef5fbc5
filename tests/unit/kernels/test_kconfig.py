from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown import paths
from kteardown.errors import BuildError, InputError
from kteardown.kernels.cache import key
from kteardown.kernels.kconfig import (
    WantedSymbol,
    _symbols,
    check_config,
    conditions_of,
    digest,
    parse_config,
    parse_fragment,
    refusal_reasons,
    refused,
    selectors_of,
    wanted_symbols,
)

KCONFIG = """
menu "Power"
	depends on HAVE_POWER

config PM
	bool "Power management"
	help
		depends on NOTHING_THIS_IS_HELP

if PM
config PM_DEEP
	bool "Deep" \\
		if EXPERT
	depends on SLEEPY && \\
		!AWAKE
endif

config PM_HIDDEN
	bool
	depends on PM
endmenu

config PM_FREE
	bool "Free"
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "Kconfig").write_text(KCONFIG)
    foreign = tmp_path / "arch" / "arm64" / "Kconfig"
    foreign.parent.mkdir(parents=True)
    foreign.write_text('config ONLY_ARM\n\tbool "Arm"\n\tdepends on ARMS\n')
    return tmp_path


def symbols(text: str) -> dict[str, tuple[str, bool, int]]:
    return {w.symbol: (w.value, w.optional, w.line) for w in parse_fragment(text, "f.config")}


def test_a_fragment_is_parsed_into_symbols_values_and_lines() -> None:
    text = '# about A\nCONFIG_A=y\n\n# CONFIG_B is not set\nCONFIG_C=n\nCONFIG_D="a b"\n'
    assert symbols(text) == {
        "A": ("y", False, 2),
        "B": ("n", False, 4),
        "C": ("n", False, 5),
        "D": ('"a b"', False, 6),
    }


def test_optional_applies_to_the_symbols_directly_below_it() -> None:
    text = (
        "# optional: gone in 7.2\n# or renamed\nCONFIG_A=y\nCONFIG_B=y\n"
        "# needed\nCONFIG_C=y\n# Optional\nCONFIG_D=y\n\nCONFIG_E=y\n"
    )
    assert [name for name, (_, optional, _) in symbols(text).items() if optional] == ["A", "B", "D"]


def test_optional_must_begin_the_comment() -> None:
    assert not symbols("# this is\n# optional, it says\nCONFIG_A=y\n")["A"][1]


@pytest.mark.parametrize("line", ["A=y", "CONFIG_A", "CONFIG_A=", "config_a=y", "CONFIG_A =y"])
def test_an_error_for_any_other_line_names_file_and_line(line: str) -> None:
    with pytest.raises(InputError, match=r"f\.config:2:"):
        parse_fragment(f"CONFIG_B=y\n{line}\n", "f.config")


def test_a_symbol_set_twice_is_an_error() -> None:
    with pytest.raises(InputError, match="CONFIG_A is set twice"):
        parse_fragment("CONFIG_A=y\nCONFIG_A=n\n", "f.config")


names = st.from_regex(r"[A-Z][A-Z0-9_]{0,12}", fullmatch=True)
values = st.one_of(st.sampled_from(["y", "n", "64", "0x1000", '"text with = and # in it"']))


@given(st.dictionaries(names, values, max_size=20))
def test_symbols_survive_writing_and_parsing(wanted: dict[str, str]) -> None:
    text = "\n".join(WantedSymbol(s, v, False, "", 0).text() for s, v in wanted.items())
    assert {s: v for s, (v, _, _) in symbols(text).items()} == wanted


@given(st.dictionaries(names, values, max_size=20))
def test_a_config_with_all_symbols_refuses_nothing(wanted: dict[str, str]) -> None:
    wants = [WantedSymbol(s, v, False, "f", 1) for s, v in wanted.items()]
    config = parse_config("\n".join(want.text() for want in wants))
    assert refused(wants, config) == []
    lost = {s: v for s, v in wanted.items() if v != "n"}
    assert {w.symbol for w in refused(wants, {})} == set(lost)


def test_the_digest_depends_only_on_the_symbols_that_are_set() -> None:
    text = "# Linux 6.12\nCONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=64\n"
    assert digest(text) == digest("CONFIG_C=64\nCONFIG_RUSTC_VERSION=109500\nCONFIG_A=y\n")
    assert digest(text) != digest(text.replace("64", "32"))


def test_a_symbol_that_is_absent_has_the_value_n() -> None:
    want = [WantedSymbol("A", "n", False, "f", 1)]
    assert refused(want, {}) == []
    assert refused(want, {"A": "y"}) == want


def test_the_value_m_does_not_satisfy_y() -> None:
    want = [WantedSymbol("A", "y", False, "f", 1)]
    assert refused(want, {"A": "m"}) == want


def folder_with(tmp_path: Path, **fragments: str) -> Path:
    (tmp_path / "fragments").mkdir()
    (tmp_path / "base.config").write_text("CONFIG_A=y\nCONFIG_B=n\n")
    (tmp_path / "x86_64.config").write_text("CONFIG_B=y\n")
    for name, text in fragments.items():
        (tmp_path / "fragments" / f"{name}.config").write_text(text)
    return tmp_path


def test_the_architecture_and_the_fragments_override_the_base(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, one="CONFIG_A=n\n")
    assert {w.symbol: w.value for w in wanted_symbols(folder, "x86_64", ["one"])} == {
        "A": "n",
        "B": "y",
    }
    assert {w.symbol: w.value for w in wanted_symbols(folder, "x86_64", [])} == {"A": "y", "B": "y"}


def test_a_fragment_may_be_one_symbol_which_may_be_optional(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, one="CONFIG_A=y\n")
    found = {
        w.symbol: w for w in wanted_symbols(folder, "x86_64", ["one", "CONFIG_X=y", "CONFIG_Y=m?"])
    }
    assert (found["X"].value, found["X"].optional) == ("y", False)
    assert (found["Y"].value, found["Y"].optional) == ("m", True)
    with pytest.raises(InputError, match="sets it to n"):
        wanted_symbols(folder, "x86_64", ["one", "CONFIG_A=n"])


def test_fragments_that_contradict_each_other_are_both_named(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, one="CONFIG_X=y\n", two="\nCONFIG_X=n\n")
    with pytest.raises(
        InputError, match=r"two\.config:2 sets CONFIG_X=n.*one\.config:1 sets it to y"
    ):
        wanted_symbols(folder, "x86_64", ["one", "two"])


def test_a_symbol_is_optional_only_if_it_is_in_every_fragment_that_sets_it(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, one="# optional\nCONFIG_X=y\n", two="CONFIG_X=y\n")
    for order in (["one", "two"], ["two", "one"]):
        assert [w.optional for w in wanted_symbols(folder, "x86_64", order) if w.symbol == "X"] == [
            False
        ]


def test_an_unknown_fragment_suggests_a_known_one(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        wanted_symbols(folder_with(tmp_path, suspend=""), "x86_64", ["suspnd"])
    assert "suspend" in caught.value.hint


def test_a_fragment_of_the_current_folder_is_part_of_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, mine = (
        folder_with(tmp_path, suspend="CONFIG_X=y\n"),
        tmp_path / "mine" / "kernels" / "fragments",
    )
    mine.mkdir(parents=True)
    (mine / "suspend.config").write_text("CONFIG_X=n\n")
    monkeypatch.chdir(tmp_path / "mine")
    keys = []
    for value in ("y", "m"):
        (mine / "own.config").write_text(
            f"# A comment changes nothing: {value}.\nCONFIG_OWN={value}\n"
        )
        for name in ("own", str(mine / "own.config")):
            wanted = wanted_symbols(folder, "x86_64", ["suspend", name])
            assert {w.symbol: w.value for w in wanted if w.symbol in ("X", "OWN")} == {
                "X": "y",
                "OWN": value,
            }
            assert [(w.file, w.line) for w in wanted if w.symbol == "OWN"] == [
                (str(mine / "own.config"), 2)
            ]
            keys.append(key("debian:6.12", (), wanted, "x86_64", "gcc"))
    assert keys[0] == keys[1] != keys[2] == keys[3]


def test_a_damaged_fragment_names_its_file(tmp_path: Path) -> None:
    file = tmp_path / "own.config"
    for content, problem in (
        (b"\xff\xfe", "cannot be read"),
        (b"\nNET=y\n", ":2: 'NET=y' is neither"),
    ):
        file.write_bytes(content)
        with pytest.raises(InputError, match=problem) as damaged:
            wanted_symbols(paths.data_dir("kernels"), "x86_64", [str(file)])
        assert damaged.value.message.startswith(str(file)) and damaged.value.hint


@pytest.mark.parametrize("arch", ["x86_64", "arm64"])
def test_the_shipped_fragments_parse_and_do_not_contradict_each_other(arch: str) -> None:
    folder = paths.data_dir("kernels")
    fragments = [path.stem for path in (folder / "fragments").glob("*.config")]
    assert {"debug", "kasan", "lockstat", "preempt_rt", "vng"} <= set(fragments)
    wanted = wanted_symbols(folder, "x86_64" if arch == "x86_64" else "arm64", fragments)
    assert {"SMP", "VIRTIO_CONSOLE", "SUSPEND", "PROVE_LOCKING", "9P_FS"} <= {
        w.symbol for w in wanted
    }


def test_the_reasons_name_the_dependencies_and_their_values(tree: Path) -> None:
    reasons = refusal_reasons(tree, "x86_64", "PM_DEEP", {"PM": "y"})
    text = "\n".join(reasons)
    assert re.search(r"Kconfig:11: depends on SLEEPY &&\s+!AWAKE \(SLEEPY=n, AWAKE=n\)", text)
    assert "depends on PM (PM=y)" in text
    assert "depends on HAVE_POWER (HAVE_POWER=n)" in text
    assert "no prompt" not in text


def test_help_texts_are_not_parsed(tree: Path) -> None:
    assert "NOTHING_THIS_IS_HELP" not in "\n".join(refusal_reasons(tree, "x86_64", "PM", {}))


def test_a_symbol_without_a_prompt_is_a_reason(tree: Path) -> None:
    assert any(
        "has no prompt" in reason for reason in refusal_reasons(tree, "x86_64", "PM_HIDDEN", {})
    )


def test_a_symbol_without_dependencies_is_reported(tree: Path) -> None:
    assert "has no dependencies" in refusal_reasons(tree, "x86_64", "PM_FREE", {})[0]


def test_a_symbol_that_does_not_exist_is_reported(tree: Path) -> None:
    assert refusal_reasons(tree, "x86_64", "PM_DEP", {}) == [
        "no such symbol in this tree; similar: PM_DEEP, PM_HIDDEN"
    ]


def test_kconfig_files_of_other_architectures_are_ignored(tree: Path) -> None:
    assert "no such symbol" in refusal_reasons(tree, "x86_64", "ONLY_ARM", {})[0]
    assert "ARMS=n" in refusal_reasons(tree, "arm64", "ONLY_ARM", {})[0]


def test_conditions_of_the_files_that_include_a_file_count(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    top = (
        "if OUTER\n"
        'menu "m"\n'
        "\tdepends on MENU # as a comment says\n"
        'source "deep/Kconfig"\n'
        "endmenu\n"
        "endif\n"
    )
    (tmp_path / "Kconfig").write_text(top)
    deep = (
        "endif\nconfig DEEP\n\tbool 'quoted so'\n\tdepends on OWN\n\tselect OTHER\nsource "
        '"deep/Kconfig"\n'
    )
    (tmp_path / "deep" / "Kconfig").write_text(deep)
    assert conditions_of([tmp_path], "x86_64", "DEEP") == (True, ["OWN", "OUTER", "MENU"], [])
    # What selects it depends on symbols that no file of this architecture has.
    assert selectors_of([tmp_path], "x86_64", "OTHER") == []
    (tmp_path / "Kconfig.own").write_text("config OWN\nconfig OUTER\nconfig MENU\n")
    _symbols.cache_clear()
    assert selectors_of([tmp_path], "x86_64", "OTHER") == ["DEEP"]


def test_files_that_include_each_other_without_end_are_read(tmp_path: Path) -> None:
    (tmp_path / "Kconfig").write_text('source "Kconfig0"\n')
    for number in range(2000):
        (tmp_path / f"Kconfig{number}").write_text(
            f'if A{number}\nsource "Kconfig{number + 1}"\nconfig B{number}\n'
        )
    _, conditions, _ = conditions_of([tmp_path], "x86_64", "B1500")
    assert "A1500" in conditions


def test_check_names_symbol_file_line_wanted_and_got(tree: Path) -> None:
    wants = [
        WantedSymbol("PM_DEEP", "y", False, "fragments/x.config", 7),
        WantedSymbol("GONE", "y", True, "f", 1),
    ]
    with pytest.raises(BuildError) as caught:
        check_config(wants, {}, tree, "x86_64", "debian:6.12")
    assert "fragments/x.config:7: CONFIG_PM_DEEP: wanted y, got n" in caught.value.message
    assert "GONE" not in caught.value.message
    check_config(wants, {"PM_DEEP": "y"}, tree, "x86_64", "debian:6.12")
