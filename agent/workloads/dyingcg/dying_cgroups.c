// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "dying_cgroups.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/latency.h"

#define ALIVE_MS 5000
#define SHELL "/bin/busybox"
#define REMOVE_MS 1000

/* What the maker reports, in memory that is charged before the maker starts. */
struct progress {
	int64_t made, failed_errno;
	char failed_at[32];
	int64_t elapsed_ns;
	int64_t ns[]; /* the time of each mkdir, then of each rmdir */
};

/* -- in the maker -- */

static bool failed(struct progress *progress, const char *where, int error)
{
	if (error) {
		progress->failed_errno = -error;
		snprintf(progress->failed_at, sizeof(progress->failed_at), "%s", where);
	}
	return error;
}

static int write_new_file(int64_t number)
{
	static const char zeros[DYING_FILE_BYTES];
	char path[64];
	int fd, error;

	snprintf(path, sizeof(path), DYING_FILES "/%lld", (long long)number);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	error = write_all(fd, zeros, sizeof(zeros));
	close(fd);
	return error;
}

static bool make_one(struct progress *progress, int64_t number, int64_t *mkdir_ns,
		     int64_t *rmdir_ns)
{
	char path[64];
	int64_t start;
	int error;

	snprintf(path, sizeof(path), DYING_PARENT "/%lld", (long long)number);
	start = now_ns();
	error = cgroup_make(path);
	*mkdir_ns = now_ns() - start;
	if (failed(progress, "mkdir", error) ||
	    failed(progress, "moving into it", cgroup_enter(path)) ||
	    failed(progress, "writing the file", write_new_file(number)) ||
	    failed(progress, "moving out of it", cgroup_enter(CGROUP_ROOT)))
		return false;
	start = now_ns();
	error = cgroup_remove(path, REMOVE_MS);
	*rmdir_ns = now_ns() - start;
	return !failed(progress, "rmdir", error);
}

static void make_all(struct progress *progress, int64_t count)
{
	int64_t start = now_ns();

	while (progress->made < count) {
		int64_t i = progress->made;

		if (!make_one(progress, i, &progress->ns[i], &progress->ns[count + i]))
			return;
		progress->made++;
	}
	progress->elapsed_ns = now_ns() - start;
}

/* The steps of the posting, unchanged except for the paths. */
static const char steps[] = "i=0\n"
			    "while [ $i -lt $1 ]; do\n"
			    "	mkdir $2/$i || exit 10\n"
			    "	echo $$ >$2/$i/cgroup.procs || exit 11\n"
			    "	dd if=/dev/zero of=$3/$i bs=$4 count=1 2>/dev/null || exit 12\n"
			    "	echo $$ >$5/cgroup.procs || exit 13\n"
			    "	rmdir $2/$i || exit 14\n"
			    "	i=$((i + 1))\n"
			    "done\n";

static void run_script(int64_t count)
{
	char number[32], bytes[32];

	snprintf(number, sizeof(number), "%lld", (long long)count);
	snprintf(bytes, sizeof(bytes), "%d", DYING_FILE_BYTES);
	execl(SHELL, "sh", "-c", steps, "sh", number, DYING_PARENT, DYING_FILES, bytes, CGROUP_ROOT,
	      NULL);
	_exit(127);
}

/* -- in the agent -- */

/* Returns the maker's wait status, or -1. */
static int wait_for(struct trial *t, pid_t pid, const struct progress *progress, int64_t count)
{
	int fd = syscall(SYS_pidfd_open, pid, 0), status;
	struct pollfd end = {.fd = fd, .events = POLLIN};

	while (fd >= 0 && poll(&end, 1, ALIVE_MS) == 0)
		wl_alive(t, "%lld of %lld cgroups made", (long long)progress->made,
			 (long long)count);
	if (fd >= 0)
		close(fd);
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

static int make(struct trial *t, struct progress *progress, int64_t count, bool script)
{
	int64_t start = now_ns();
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return wl_fail(t, "cannot fork: %m");
	if (!pid) {
		if (script)
			run_script(count);
		make_all(progress, count);
		_exit(progress->failed_errno ? EXIT_FAILURE : EXIT_SUCCESS);
	}
	status = wait_for(t, pid, progress, count);
	if (script)
		progress->elapsed_ns = now_ns() - start;
	if (!status)
		return 0;
	if (script)
		return wl_fail(
			t, "the script exited with status %d; 127 means that " SHELL " is missing",
			WEXITSTATUS(status));
	return wl_fail(t, "cgroup %lld: %s: %s", (long long)progress->made, progress->failed_at,
		       strerror(progress->failed_errno));
}

int dying_make(struct trial *t, int64_t count, bool script, struct dying_times *times)
{
	size_t bytes = sizeof(struct progress) + 2 * count * sizeof(int64_t);
	struct progress *progress = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	int status;

	if (progress == MAP_FAILED)
		return wl_fail(t, "cannot mmap memory: %m");
	status = make(t, progress, count, script);
	*times = (struct dying_times){progress->elapsed_ns / (count ? count : 1), -1, -1};
	if (!status && !script && count) {
		times->create_ns = latency_median(progress->ns, count);
		times->rmdir_ns = latency_median(progress->ns + count, count);
	}
	munmap(progress, bytes);
	return status;
}
