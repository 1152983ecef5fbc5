"""What bisections of this host found, from their folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.flows.bisection.records import FoundChange, FoundChanges
from kteardown_history.site.bisections import found_commits

ANSWER = FoundChanges(
    compared="freezing user space",
    unit="instructions",
    good='a ("good")',
    bad='b ("bad")',
    changes=(
        FoundChange(
            commits=('c ("cause")',),
            before=21,
            after=68,
            share=1,
            holds=True,
            confirmation="confirmed",
        ),
    ),
)


INFINITE = ANSWER.model_dump_json().replace("68.0", "Infinity")


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path))
    return tmp_path


def test_a_commit_has_a_sentence(runs: Path) -> None:
    (runs / "bisect-1").mkdir()
    (runs / "bisect-1/answer.json").write_text(ANSWER.model_dump_json())
    (runs / "bisect-unfinished").mkdir()
    answers, unread = found_commits()
    assert unread == []
    ((title, (sentence,)),) = answers
    assert title == 'freezing user space, from a ("good") to b ("bad")'
    assert sentence.startswith('c ("cause"): 21.00 -> 68.00 instructions, 100%')


@pytest.mark.parametrize("text", ["", "{", "[]", '{"changes": 1}', "[" * 100_000, INFINITE])
def test_a_damaged_answer_is_named(text: str, runs: Path) -> None:
    (runs / "bisect-1").mkdir()
    (runs / "bisect-1/answer.json").write_text(text)
    answers, unread = found_commits()
    assert (answers, len(unread)) == ([], 1)


def test_a_link_of_a_stranger_is_not_followed(runs: Path, tmp_path: Path) -> None:
    (runs / "bisect-1").mkdir()
    secret = tmp_path / "secret"
    secret.write_text(ANSWER.model_dump_json())
    (runs / "bisect-1/answer.json").symlink_to(secret)
    answers, unread = found_commits()
    assert (answers, len(unread)) == ([], 1)


def test_without_runs_there_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "nowhere"))
    assert found_commits() == ([], [])
