from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.inputs.load import load_workload, own_sources
from kteardown.inputs.options import Scripted
from kteardown.model.workload import Metric, Parameter, Script
from kteardown.script.describe import (
    Described,
    as_toml,
    describe,
    is_script,
    keep,
    with_files,
    with_headlines,
    write,
)

TEXT = "#!/bin/bash\nfor i in $(seq 1 $N); do mkdir /sys/fs/cgroup/$i; done\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "Make-cgroups.sh"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize("word", ["./x", "x.sh", "/usr/bin/x", "x.c", "perf bench mem", "a\tb"])
def test_words_that_are_scripts(word: str) -> None:
    assert is_script(word)


@pytest.mark.parametrize("word", ["zombies", "zombies_cgroup", "", " zombies "])
def test_words_that_are_names(word: str) -> None:
    assert not is_script(word)


def test_a_script_is_described(script: Path) -> None:
    workload = describe(str(script), Scripted(), {"N": (1000, 2000)}).workload
    assert (
        workload.name == "make_cgroups" and workload.law == "N" and workload.config == ("userland",)
    )
    assert workload.parameters["N"].default == 1000
    assert [key for key, metric in workload.metrics.items() if metric.headline] == [
        "whole_ns",
        "cpu_us",
    ]
    assert workload.script is not None and workload.script.file == "Make-cgroups.sh"


def test_what_is_written_is_loaded_again(script: Path, tmp_path: Path) -> None:
    further = tmp_path / "helper.c"
    further.write_text("int main(void) { return 0; }\n")
    asked = Scripted(
        metric=[r'time=/a "b" \\ ([0-9.]+) s/'], file=[further], allow=["signal 2", "3"], limit="2m"
    )
    found = describe(str(script), asked, {"N": (1, 2), "mkdir": ("x", "y")})
    write(found, tmp_path / "own")
    loaded = load_workload("make_cgroups", str(tmp_path / "own"))
    assert loaded == found.workload
    assert (tmp_path / "own/workloads/helper.c").read_text() == further.read_text()
    assert [path.name for path in own_sources({"make_cgroups": loaded}, str(tmp_path / "own"))] == [
        "script",
        "waits",
    ]
    assert loaded.script is not None and loaded.script.allow == ("signal 2", "exit 3")
    assert loaded.script.limit_s == 120


def test_metrics_that_are_found_are_the_headlines(script: Path) -> None:
    described = describe(str(script), Scripted(), {})

    def headlines(found: Described) -> list[str]:
        assert {"whole_ns", "cpu_us", "all_gone_ns"} < found.workload.metrics.keys()
        return [key for key, one in found.workload.metrics.items() if one.headline]

    slab = {"slab_kb": Metric(help="slab", unit="kb", headline=True, read="delta meminfo Slab")}
    assert headlines(with_headlines(described, slab)) == ["whole_ns", "cpu_us", "slab_kb"]
    assert headlines(with_headlines(described, slab, asked=True)) == ["slab_kb"]
    mark = {"freeze_ns": Metric(help="freeze", headline=True, read="mark freeze")}
    assert headlines(with_headlines(described, mark)) == ["freeze_ns"]
    assert (
        with_headlines(describe(str(script), Scripted(), {}), {})
        .workload.metrics["whole_ns"]
        .headline
    )


def test_the_folder_in_the_cache_follows_from_the_contents(script: Path, tmp_path: Path) -> None:
    first = keep(describe(str(script), Scripted(), {"N": (1,)}), tmp_path / "cache")
    assert keep(describe(str(script), Scripted(), {"N": (1,)}), tmp_path / "cache") == first
    script.write_text(TEXT + "# another\n")
    assert keep(describe(str(script), Scripted(), {"N": (1,)}), tmp_path / "cache") != first


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        (
            "x.sh",
            "#!/bin/sh\n# of 4000 files\nfor i in $(seq 1 1000); do :; done\n",
            "write ${N:-1000} in place of 1000 in line 3: for i in $(seq 1 1000); do :; done.",
        ),
        (
            "x.c",
            "#include <x.h>\n/* 40 */\n#define SIZE 500\n",
            'write atoi(getenv("N")) in place of 500 in line 3: #define SIZE 500.',
        ),
        (
            "x.pl",
            "f(20, 30)",
            "write $ENV{N} in place of 20 in line 1: f(20, 30); or $ENV{N} in place of 30",
        ),
        ("x.sh", "echo 1\n", "write $N where the value belongs, or remove --set."),
    ],
)
def test_a_parameter_that_the_text_does_not_use(
    name: str, text: str, hint: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=r"--set N: .* neither \$N nor \$1") as caught:
        describe(str(path), Scripted(), {"N": (1,)})
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("1", ""),
        ("N-1", ""),
        ("N!", ""),
        ("40", "; so write ${N:-40} in place of 40 in line 2: head -40."),
    ],
)
def test_a_parameter_is_a_variable(name: str, place: str, tmp_path: Path) -> None:
    path = tmp_path / "x.sh"
    path.write_text('seq "$1" 50\nhead -40\n')
    with pytest.raises(
        InputError, match=f"--set {name}: a parameter becomes an environment variable"
    ) as caught:
        describe(str(path), Scripted(), {name: (6, 8)})
    assert "--set N=" in caught.value.hint
    assert caught.value.hint.endswith(place or "$2.")


def test_an_argument_is_a_use(tmp_path: Path) -> None:
    path = tmp_path / "x.c"
    path.write_text("int main(int argc, char **argv) { return argc; }\n")
    assert describe(str(path), Scripted(), {"N": (1, 2)}).workload.law == "N"


def test_a_command_has_no_file() -> None:
    found = describe("stress-ng --mmap $N", Scripted(), {"N": (1, 2)})
    assert found.workload.name == "stress_ng" and not found.files
    with pytest.raises(InputError, match="--set M"):
        describe("stress-ng --mmap $1", Scripted(), {"M": (1,)})
    with pytest.raises(InputError, match="--set M") as caught:
        describe("seq 20 30", Scripted(), {"M": (1,)})
    assert caught.value.hint == "write the command with $M, in single quotes: 'seq $M 30'."


def test_a_name_of_a_shipped_workload_is_left_to_it(tmp_path: Path) -> None:
    path = tmp_path / "zombies.sh"
    path.write_text("true\n")
    assert describe(str(path), Scripted(), {}).workload.name == "zombies_script"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (Scripted(allow=["sometimes"]), "--allow sometimes"),
        (Scripted(limit="10"), "--limit 10"),
        (Scripted(metric=["time"]), "--metric time: expected NAME=WHERE"),
        (Scripted(metric=["time=Time"]), "is not a form of a metric"),
        (Scripted(file=[Path("absent")]), "--file absent"),
        (Scripted(root="absent"), "--root absent"),
    ],
)
def test_options_that_are_wrong(script: Path, asked: Scripted, says: str) -> None:
    with pytest.raises(InputError, match=says):
        describe(str(script), asked, {})


def test_a_program_is_no_script(tmp_path: Path) -> None:
    path = tmp_path / "x.sh"
    path.write_bytes(b"\x7fELF\xff\xfe")
    with pytest.raises(InputError, match="not a text file"):
        describe(str(path), Scripted(), {})
    with pytest.raises(InputError, match="no such file"):
        describe(str(tmp_path / "absent.sh"), Scripted(), {})


def test_a_name_of_a_script_is_no_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="there is no such file"):
        describe("absent.sh", Scripted(), {})
    script = describe("/opt/bench.sh", Scripted(root=str(tmp_path)), {}).workload.script
    assert script is not None and script.command == "/opt/bench.sh"


def test_control_characters_are_refused() -> None:
    with pytest.raises(InputError, match="control"):
        describe("echo \x07 \x7f", Scripted(), {})


def test_defaults_are_left_out_of_the_file(script: Path) -> None:
    text = as_toml(describe(str(script), Scripted(), {}).workload)
    assert "percentiles" not in text and "limit_s" not in text


@pytest.mark.parametrize("text", ["echo \U0001f600 'a\"b\\'", "echo \u00e9 ]"])
def test_any_text_of_a_command_is_written_as_toml(text: str, tmp_path: Path) -> None:
    root = tmp_path / "a\x7fb\n[script]"
    root.mkdir()
    found = describe(text, Scripted(root=str(root)), {})
    write(found, tmp_path / "own")
    assert load_workload("echo", str(tmp_path / "own")) == found.workload


def test_keys_that_toml_quotes(script: Path, tmp_path: Path) -> None:
    parameter = Parameter(
        help="x", default="a.b", choices=("a.b",), programs={'a.b"]\nname = "x': ("p",)}
    )
    found = describe(str(script), Scripted(), {}).workload.model_copy(
        update={"parameters": {"N": parameter}}
    )
    assert tomllib.loads(as_toml(found))["parameters"]["N"]["programs"] == {
        'a.b"]\nname = "x': ["p"]
    }


def test_text_that_is_not_utf_8(script: Path) -> None:
    with pytest.raises(InputError, match="is not UTF-8"):
        as_toml(describe(str(script), Scripted(programs=["x\udcff"]), {}).workload)


@pytest.mark.parametrize("word", ["", "  ", "\t"])
def test_an_empty_command(word: str) -> None:
    with pytest.raises(InputError, match="the command is empty"):
        describe(word, Scripted(), {})


def test_an_empty_script(tmp_path: Path) -> None:
    (tmp_path / "x.sh").write_text("\n")
    with pytest.raises(InputError, match=r"x\.sh is empty"):
        describe(str(tmp_path / "x.sh"), Scripted(), {})


def test_a_command_too_long_for_a_name_of_a_file() -> None:
    text = "echo " + "x" * 5000
    assert describe(text, Scripted(), {}).workload.script == Script(command=text)


def test_a_user_that_does_not_exist() -> None:
    with pytest.raises(InputError, match="no such file"):
        describe("~absent-user/x.sh", Scripted(), {})


@pytest.mark.parametrize("name", ["1N", "A-B", "a b", "N\n"])
def test_names_that_no_variable_has(script: Path, name: str) -> None:
    with pytest.raises(InputError, match="is not a valid name of a variable"):
        describe(str(script), Scripted(), {name: (1,)})


def test_a_file_may_not_replace_the_description(script: Path, tmp_path: Path) -> None:
    further = tmp_path / "make_cgroups.toml"
    further.write_text("x")
    with pytest.raises(InputError, match="is the name of the description"):
        write(describe(str(script), Scripted(file=[further]), {}), tmp_path / "own")


def test_a_name_with_a_line_break(script: Path, tmp_path: Path) -> None:
    (tmp_path / "a\nb").write_text("x")
    with pytest.raises(InputError, match="cannot be a name in the guest"):
        describe(str(script), Scripted(file=[tmp_path / "a\nb"]), {})


def test_a_limit_of_more_than_a_day(script: Path) -> None:
    with pytest.raises(InputError, match="more than a day"):
        describe(str(script), Scripted(limit="25h"), {})


@pytest.mark.parametrize("file", ["../outside", "/etc/hostname", "sub/../../outside", "link"])
def test_a_description_cannot_name_files_elsewhere(tmp_path: Path, file: str) -> None:
    own = tmp_path / "workloads"
    (own / "sub").mkdir(parents=True)
    (tmp_path / "outside").write_text("secret")
    (own / "link").symlink_to("../outside")
    workload = describe("true x", Scripted(), {}).workload.model_copy(
        update={"script": Script(file=file)}
    )
    with pytest.raises(InputError, match="is not a file beside the description"):
        with_files(workload, tmp_path)


def test_a_known_description_is_kept_with_its_files_and_root(tmp_path: Path) -> None:
    own = tmp_path / "workloads"
    (own / "sub").mkdir(parents=True)
    (own / "sub/x.sh").write_text("true\n")
    script = Script(file="sub/x.sh", root="../root")
    workload = describe("true x", Scripted(), {}).workload.model_copy(update={"script": script})
    folder = keep(with_files(workload, tmp_path), tmp_path / "cache")
    assert (folder / "workloads/sub/x.sh").read_text() == "true\n"
    loaded = load_workload("true", str(folder)).script
    assert loaded is not None and loaded.root == str(tmp_path / "root")


def test_a_pipe_is_not_read(script: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.sh")
    with pytest.raises(InputError, match="no such file"):
        describe(str(tmp_path / "pipe.sh"), Scripted(), {})
    found = describe(str(script), Scripted(), {})
    script.unlink()
    os.mkfifo(script)
    with pytest.raises(InputError, match="is not a file of at most"):
        keep(found, tmp_path / "cache")


def test_the_permissions_of_a_file_are_a_part_of_it(script: Path, tmp_path: Path) -> None:
    further = tmp_path / "helper"
    further.write_text("#!/bin/sh\n")
    found = describe(str(script), Scripted(file=[further]), {})
    first = keep(found, tmp_path / "cache")
    further.chmod(0o755)
    second = keep(found, tmp_path / "cache")
    assert first != second and os.access(second / "workloads/helper", os.X_OK)


def test_a_script_that_is_kept_runs_a_known_program_as_before(tmp_path: Path) -> None:
    (tmp_path / "bench.sh").write_text("#!/bin/sh\nschbench -t $N\n")
    described = describe(str(tmp_path / "bench.sh"), Scripted(), {"N": (1, 2)})
    write(described, tmp_path / "own")
    kept = with_files(load_workload("bench", str(tmp_path / "own")), tmp_path / "own")
    assert kept.preset == described.preset == "schbench"


def test_what_a_script_prints_and_the_log_s_times_are_not_the_agent_s(script: Path) -> None:
    asked = Scripted(
        metric=[
            "freeze=/Freezing user space$/../completed/",
            "half=last mark half",
            "took=/Time: ([0-9.]+) s/",
            "took2=printed took ns",
            "slab=delta meminfo Slab",
            "rate=/([0-9.]+) ops\\/s/ ops/s",
        ]
    )
    metrics = describe(str(script), asked, {}).workload.metrics
    assert {key: (spec.reporter, spec.whole) for key, spec in metrics.items()} == {
        "freeze_ns": ("kernel", "whole_ns"),
        "half_ns": ("kernel", "whole_ns"),
        "took_ns": ("script", "whole_ns"),
        "took2_ns": ("script", "whole_ns"),
        "slab_kb": ("kernel", ""),
        "rate_per_s": ("script", ""),
        "whole_ns": ("agent", ""),
        "cpu_us": ("kernel", "whole_ns"),
        "all_gone_ns": ("agent", ""),
    }
