"""Diffs that another program than git wrote, in the form of git."""

import re

# Quilt, diff -urN, --no-prefix and diff.mnemonicPrefix leave other names and fewer lines than git.
# A repeat that another one follows is possessive: it gives nothing back, so that a long line is
# read once.
_HEADER = re.compile(
    rb"^(?:diff --git (?P<old>[^\s\"]++) (?P<new>[^\s\"]++)$"
    rb"|(?:Index: .*+\n=++\n|diff -(?!-).*+\n)?"
    rb"--- (?P<before>[^\s\"]++).*+\n\+\+\+ (?P<after>[^\s\"]++).*+\n"
    rb"(?=@@ -(?P<from>[\d,]++) \+(?P<to>[\d,]++) @@))",
    re.MULTILINE,
)
_WRAPPED = re.compile(rb"^(diff --git a/(\S++))\n(?=b/\2\n)", re.MULTILINE)
_NULL = b"/dev/null"
_FOLDERS = frozenset(
    b"arch block certs crypto Documentation drivers fs include init io_uring ipc kernel lib "
    b"LICENSES mm net "
    b"rust samples scripts security sound tools usr virt".split()
)
"""The top of a kernel tree: a name that begins with one of them has no prefix."""


def in_git_form(text: bytes) -> bytes:
    """Return a diff with ``diff --git a/NAME b/NAME`` before each file, and these prefixes.

    A diff that git wrote with its usual prefixes is returned as it is.
    """
    has_line = False

    def written(header: re.Match[bytes]) -> bytes:
        nonlocal has_line
        if header["old"]:
            has_line = True
            return b"diff --git a/%s b/%s" % _without_prefix(header["old"], header["new"])
        by_git = has_line
        has_line = False
        created = header["before"] == _NULL or header["from"] == b"0,0"
        removed = header["after"] == _NULL or header["to"] == b"0,0"
        before, after = _without_prefix(header["before"], header["after"])
        if by_git:
            lines = []
        else:
            before = after = before if header["after"] == _NULL else after
            lines = [b"diff --git a/%s b/%s" % (before, after)]
            lines += [b"new file mode 100644"] if created else []
            lines += [b"deleted file mode 100644"] if removed else []
        lines.append(b"--- " + (_NULL if created else b"a/" + before))
        lines.append(b"+++ " + (_NULL if removed else b"b/" + after))
        return b"\n".join(lines) + b"\n"

    return _HEADER.sub(written, _WRAPPED.sub(rb"\1 ", text))


def _without_prefix(*names: bytes) -> tuple[bytes, bytes]:
    parts = [name.partition(b"/") for name in names if name != _NULL]
    keep = any(not path for _, _, path in parts) or all(first in _FOLDERS for first, _, _ in parts)
    old, *_, new = (name if keep or name == _NULL else name.partition(b"/")[2] for name in names)
    return old, new
