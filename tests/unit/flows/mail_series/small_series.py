"""A small kernel tree in git with scripts like those of Linux, and a series for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from kteardown.kernels.series import Selection, resolve

CHECKPATCH = r"""#!/usr/bin/env perl
# Like that of Linux, as far as its options and its output matter: it does not like FIXME.
my %given = map { $_ => 1 } grep { /^-/ } @ARGV;
my ($file) = grep { !/^-/ } @ARGV;
my $text = do { local $/; my $in = \*STDIN; open($in, '<', $file) if $file; <$in> };
my @found;
push @found, "WARNING:FIXME: a FIXME is added" if $text =~ /^\+.*FIXME/m;
push @found, "ERROR:MISSING_SIGN_OFF: Missing Signed-off-by: line(s)"
    if $text !~ /^Signed-off-by: /m && !$given{'--no-signoff'};
if ($given{'--terse'}) {
    print "-:1: $_\n" for @found;
} else {
    print "$_\n#3: FILE: kernel/exit.c:4:\n+\tFIXME\n\n" for @found;
    print "total: 0 errors, ${\ scalar @found} warnings, 0 checks, 9 lines checked\n";
}
exit(@found ? 1 : 0);
"""
GET_MAINTAINER = r"""#!/usr/bin/env perl
# Like that of Linux: people without --nom, lists without --nol.
my %given = map { $_ => 1 } @ARGV;
print qq("Roe, Rick" <rick\@example.org>\n) unless $given{'--nom'};
print qq(Jörg Muster <joerg\@example.org>\n) unless $given{'--nom'};
print "linux-kernel\@vger.kernel.org\n" unless $given{'--nol'};
"""
EXIT_C = "".join(f"int line_{number};\n" for number in range(1, 21))
LETTER = """SPDX-License-Identifier: GPL-2.0
Subject: [RFC PATCH 0/2] exit: two lines are slow

Two lines are slow, says Jörg.

Figures
-------

|        | base | series |
| ------ | ---: | -----: |
| line 3 |  100 |      1 |

Suggested-by: Sue Ggest <sue@example.org>

base: v6.12.1 (Debian linux-source-6.12)
"""
PATCH = """From: kteardown developers <kteardown@localhost>
Subject: [RFC PATCH {number}/2] exit: make line {line} fast

Line {line} is slow since commit 0123456789ab ("exit: add lines").

Link: https://example.org/{line}
Signed-off-by: kteardown developers <kteardown@localhost>
---
SPDX-License-Identifier: GPL-2.0
Origin: written for this lab

 kernel/exit.c | 2 +-
 1 file changed, 1 insertion(+), 1 deletion(-)

diff --git a/kernel/exit.c b/kernel/exit.c
--- a/kernel/exit.c
+++ b/kernel/exit.c
@@ -{line},3 +{line},3 @@
 int line_{line};
-int line_{second};
+int fast_{second};
 int line_{third};
"""


def git(tree: Path, *argv: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
    command = ["git", "-C", str(tree), *identity, *argv]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def make_tree(
    folder: Path, checkpatch: str = CHECKPATCH, maintainers: str = GET_MAINTAINER
) -> Path:
    """Return a git tree with one commit."""
    tree = folder / "linux"
    (tree / "kernel").mkdir(parents=True)
    (tree / "scripts").mkdir()
    for name in ("Kconfig", "Kbuild"):
        (tree / name).write_text("one\n")
    (tree / "kernel/exit.c").write_text(EXIT_C)
    (tree / "scripts/checkpatch.pl").write_text(checkpatch)
    (tree / "scripts/get_maintainer.pl").write_text(maintainers)
    git(tree, "init", "-q", "-b", "main")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "base")
    return tree


def patch(number: int, line: int) -> str:
    return PATCH.format(number=number, line=line, second=line + 1, third=line + 2)


def make_series(folder: Path, letter: str = LETTER, patches: tuple[str, ...] = ()) -> Selection:
    """Return a series of two patches, or of ``patches``, in a new folder."""
    series = folder / "my-series"
    series.mkdir()
    (series / "0000-cover-letter.md").write_text(letter)
    for number, text in enumerate(patches or (patch(1, 3), patch(2, 12)), 1):
        (series / f"{number:04}-exit.patch").write_text(text)
    return resolve(str(series))
