"""The commits that bisections of this host found, from the answers in their folders."""

from pydantic import ValidationError

from kteardown.door import LARGE, Entry
from kteardown.errors import InputError
from kteardown.flows.bisection.records import ANSWER_FILE, FoundChange, FoundChanges
from kteardown.paths import runs_dir
from kteardown.report.formatting import number


def found_commits() -> tuple[list[tuple[str, list[str]]], list[str]]:
    """Return what each bisection compared, with a sentence for each commit that it found; and what
    cannot be read."""
    answers: list[tuple[str, list[str]]] = []
    unread: list[str] = []
    root = runs_dir()
    folders = sorted(root.glob("bisect-*")) if root.is_dir() else []
    for folder in folders:
        file = Entry(folder) / ANSWER_FILE
        try:
            answer = FoundChanges.model_validate_json(file.content(LARGE))
            sentences = [_sentence(answer, change) for change in answer.changes]
        except FileNotFoundError:
            # It is not finished.
            continue
        except (OSError, InputError, OverflowError, ValidationError):
            unread.append(f"{folder.name}/{ANSWER_FILE} cannot be read")
            continue
        title = f"{answer.compared}, from {answer.good} to {answer.bad}"
        answers.append((title, sentences))
    return answers, unread


def _sentence(answer: FoundChanges, change: FoundChange) -> str:
    step = f"{number(change.before)} -> {number(change.after)} {answer.unit}".rstrip()
    names = " or ".join(change.commits)
    return f"{names}: {step}, {change.share:.0%} of the difference; {change.confirmation}"
