"""What a person has to do before the mails are sent, and a file that keeps them from being sent."""

import textwrap
from collections.abc import Sequence

from kteardown.flows.mail_series.person import PLACEHOLDER
from kteardown.flows.mail_series.plain_text import WIDTH
from kteardown.flows.mail_series.recipients import Recipients

FILE = "0000-before-sending.patch"
# `git send-email` sends nothing if one of its files, or of a folder's, has this in its subject.
_BRAKE = "*** SUBJECT HERE ***"


def steps(
    *,
    is_draft: bool,
    is_of_git: bool,
    failed: Sequence[str],
    commits: Sequence[str],
    new_files: Sequence[str],
) -> list[str]:
    """Return what is left to do, one sentence or two for each.

    ``failed`` are the names of the checks that found something, ``commits`` those that messages
    name and nobody has looked up, ``new_files`` those that the patches make.
    """
    texts = [
        "Read every patch, and answer for it: your Signed-off-by certifies the Developer's "
        "Certificate of Origin (Documentation/process/submitting-patches.rst).",
        "Add Assisted-by: for code that a tool wrote "
        "(Documentation/process/coding-assistants.rst of 7.3).",
        "Measure on a real machine: figures of the instruction clock are of an emulator.",
        "Edit the cover letter: it may speak of files of this project, and of all bases.",
        "Read To and Cc, and remove who does not need it.",
        f"Remove {FILE}: as long as it is there, git send-email refuses all of this folder. Then: "
        "git send-email --dry-run FOLDER/*.patch",
    ]
    if not is_of_git:
        texts.insert(
            4,
            "Rebase on the tree of the maintainer, and write the mails anew with --base "
            "git:PATH@REV: they then have a base-commit, and are checked by the scripts of that "
            "tree.",
        )
    if new_files:
        texts.insert(
            1, f"See whether MAINTAINERS needs an entry for new files: {', '.join(new_files)}."
        )
    if commits:
        texts.insert(
            1,
            f"Look up the commits that the messages name, which the base does not have or has no "
            f"history of here: {', '.join(commits)}.",
        )
    if is_draft:
        texts.insert(
            0,
            "This is a draft, which nobody has signed off and which goes to nobody. When you have "
            "read it, write the mails anew with --author 'NAME <MAIL>'.",
        )
    if failed:
        texts.insert(0, f"Look at what was found by {', '.join(failed)}.")
    return texts


def as_mail(todo: Sequence[str], recipients: Recipients) -> str:
    """Return the text of the file: the steps, and the recipients."""
    parts = ["Nothing was sent. Before you send these mails:"]
    parts += [
        textwrap.fill(
            text,
            WIDTH,
            initial_indent=f"{number}. ",
            subsequent_indent="   ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for number, text in enumerate(todo, 1)
    ]
    parts += [
        "\n".join([f"{name}:", *(f"  {address}" for address in addresses)])
        for name, addresses in (("To", recipients.to), ("Cc", recipients.cc))
        if addresses
    ]
    head = f"From: {PLACEHOLDER}\nSubject: {_BRAKE} remove this file when it is done"
    return "\n\n".join([head, *parts]) + "\n"
