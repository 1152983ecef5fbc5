"""The functions that the headers of hunks name."""

from __future__ import annotations

from pathlib import Path

from kteardown.coverage.by_headers import functions_by_headers

PATCH = """\
diff --git a/kernel/power/process.c b/kernel/power/process.c
--- a/kernel/power/process.c
+++ b/kernel/power/process.c
@@ -51,7 +51,7 @@ static int try_to_freeze_tasks(bool user_only)
 \t\ttodo = 0;
-\t\tfreeze(p);
+\t\tthaw(p);
 \t}
@@ -90,3 +90,4 @@ static int before(void)
 }
 
 int freeze_processes(void)
 {
+\tint error;
@@ -190,2 +191,3 @@ int freeze_processes(void)
 #define A 1
+#define B 1
diff --git a/fs/read_write.c b/fs/read_write.c
--- a/fs/read_write.c
+++ b/fs/read_write.c
@@ -7 +7,2 @@ SYSCALL_DEFINE3(read, unsigned int, fd, char __user *, buf, size_t, cou
+\tcheck();
diff --git a/Documentation/a.rst b/Documentation/a.rst
--- a/Documentation/a.rst
+++ b/Documentation/a.rst
@@ -1 +1,2 @@ some words (and more)
+text
"""


def test_a_hunk_is_in_the_function_of_its_header_or_of_its_context(tmp_path: Path) -> None:
    patch = tmp_path / "1.patch"
    patch.write_text(PATCH)
    assert list(map(str, functions_by_headers([patch, patch]))) == [
        "kernel/power/process.c:try_to_freeze_tasks",
        "kernel/power/process.c:freeze_processes",
        "fs/read_write.c:__do_sys_read",
    ]
