// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* MADV_PAGEOUT */
#include "held_cgroups.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/swap_data.h"
#include "lib/tasks.h"

#define REMOVE_MS 10000
#define EXIT_MS 10000
/* A page that another task is using at the moment is not swapped out; a later pass takes it. */
#define PASSES 5
/*
 * After this many cgroups, what the kernel frees after grace periods is waited for. Otherwise
 * the data of all of them exist at the same time, also of those that are not held, and slabs
 * and per-CPU areas stay larger than needed afterwards.
 */
#define BATCH 5
#define BATCH_MS 100

/* The step of a process that failed, in memory that all of them share. */
struct failure {
	int error; /* -errno; 0: none */
	char step[32];
};

int64_t held_file_bytes(const struct held *h)
{
	return h->holder == HOLDER_FILE ? h->count * sysconf(_SC_PAGESIZE) : 0;
}

int64_t held_swapped_bytes(const struct held *h)
{
	bool swapped = h->holder == HOLDER_SWAPPED || h->holder == HOLDER_CHILD;

	return swapped ? h->count * sysconf(_SC_PAGESIZE) : 0;
}

int64_t held_removed(const struct held *h)
{
	return h->holder == HOLDER_CHILD ? 2 * h->count : h->count;
}

static bool has_file(const struct held *h)
{
	return held_file_bytes(h) || held_swapped_bytes(h);
}

static void file_path(char *path, size_t size, int64_t number)
{
	snprintf(path, size, HELD_FILES "/%lld", (long long)number);
}

/* -- in the processes -- */

static void check(struct failure *failure, const char *step, int error)
{
	if (!error)
		return;
	failure->error = error;
	snprintf(failure->step, sizeof(failure->step), "%s", step);
	_exit(EXIT_FAILURE);
}

static int write_page(int fd, int64_t number)
{
	struct swap_data_spec spec = {.one_size = true};
	size_t page_size = sysconf(_SC_PAGESIZE);
	char page[page_size];

	swap_data_fill(&spec, number, 0, page, page_size);
	return write_all(fd, page, page_size);
}

/* Swaps the page out that the file consists of. */
static int swap_out(int fd)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	volatile char *page = mmap(NULL, page_size, PROT_READ, MAP_SHARED, fd, 0);
	unsigned char resident = 1;
	int error = 0;

	if (page == MAP_FAILED)
		return -errno;
	for (int i = 0; i < PASSES && (resident & 1) && !error; i++) {
		(void)page[0]; /* only a mapped page can be swapped out */
		if (madvise((void *)page, page_size, MADV_PAGEOUT) ||
		    mincore((void *)page, page_size, &resident))
			error = -errno;
	}
	munmap((void *)page, page_size);
	return error ? error : resident & 1 ? -EBUSY : 0;
}

static void make_object(const struct held *h, int64_t number, struct failure *failure)
{
	char path[64];
	int fd;

	if (!has_file(h))
		return;
	file_path(path, sizeof(path), number);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	check(failure, "making a file", fd < 0 ? -errno : 0);
	check(failure, "writing a file", write_page(fd, number));
	if (held_swapped_bytes(h))
		check(failure, "swapping a file out", swap_out(fd));
	close(fd);
}

/* -- in the agent -- */

/*
 * A process enters the cgroup, makes the object if it is to, and exits. *pid: the process, if
 * it is left as a zombie; otherwise 0.
 */
static int run_process(struct trial *t, const struct held *h, const char *cgroup, int64_t number,
		       bool object, struct failure *failure, pid_t *pid)
{
	bool keep = object && h->holder == HOLDER_ZOMBIE;
	siginfo_t info;
	int status = 0;

	*pid = fork();
	if (*pid < 0) {
		*pid = 0;
		return wl_fail(t, "cannot fork: %m");
	}
	if (!*pid) {
		check(failure, "entering the cgroup", cgroup_enter(cgroup));
		if (object)
			make_object(h, number, failure);
		_exit(EXIT_SUCCESS);
	}
	if (waitid(P_PID, *pid, &info, WEXITED | WNOWAIT) || info.si_code != CLD_EXITED)
		status = -1;
	if (!keep) {
		waitpid(*pid, NULL, 0);
		*pid = 0;
	}
	if (failure->error)
		return wl_fail(t, "cgroup %lld: %s: %s", (long long)number, failure->step,
			       strerror(-failure->error));
	return status ? wl_fail(t, "cgroup %lld: its process was killed", (long long)number) : 0;
}

/* Makes the cgroup, and with HOLDER_CHILD one in it. innermost: the one to be entered. */
static int make_cgroup(const struct held *h, const char *path, char *innermost, size_t size)
{
	char control[128];
	int error = cgroup_make(path);

	snprintf(innermost, size, "%s", path);
	if (error || h->holder != HOLDER_CHILD)
		return error;
	snprintf(control, sizeof(control), "%s/cgroup.subtree_control", path);
	error = write_file(control, "+memory");
	snprintf(innermost, size, "%s/child", path);
	return error ? error : cgroup_make(innermost);
}

static int make_one(struct trial *t, struct held *h, int64_t number, struct failure *failure)
{
	char path[64], innermost[96];
	pid_t *pid = &h->processes[number];
	int error;

	snprintf(path, sizeof(path), HELD_PARENT "/%lld", (long long)number);
	error = make_cgroup(h, path, innermost, sizeof(innermost));
	if (error)
		return wl_fail(t, "cannot make %s: %s", path, strerror(-error));
	if (run_process(t, h, innermost, number, !h->outside, failure, pid))
		return -1;
	if (h->outside && run_process(t, h, HELD_OUTSIDE, number, true, failure, pid))
		return -1;
	error = h->holder == HOLDER_CHILD ? cgroup_remove(innermost, REMOVE_MS) : 0;
	if (!error)
		error = cgroup_remove(path, REMOVE_MS);
	return error ? wl_fail(t, "cannot remove %s: %s", path, strerror(-error)) : 0;
}

int held_make(struct trial *t, struct held *h)
{
	struct failure *failure = mmap(NULL, sizeof(*failure), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	int status = 0;

	if (failure == MAP_FAILED)
		return wl_fail(t, "cannot mmap memory: %m");
	h->processes = calloc(h->count + 1, sizeof(*h->processes));
	if (!h->processes)
		status = wl_fail(t, "cannot allocate memory: %m");
	for (int64_t i = 0; i < h->count && !status; i++) {
		status = make_one(t, h, i, failure);
		if (i % BATCH == BATCH - 1) {
			sleep_ms(BATCH_MS);
			wl_alive(t, "%lld of %lld cgroups made", (long long)i + 1,
				 (long long)h->count);
		}
	}
	munmap(failure, sizeof(*failure));
	return status;
}

int64_t held_zombies(const struct held *h)
{
	int64_t zombies = 0;

	for (int64_t i = 0; i < h->count; i++)
		zombies += h->processes[i] && task_state(h->processes[i]) == 'Z';
	return zombies;
}

int held_release(struct trial *t, struct held *h)
{
	char path[64];

	for (int64_t i = 0; i < h->count; i++) {
		file_path(path, sizeof(path), i);
		if (has_file(h) && unlink(path))
			return wl_fail(t, "cannot remove %s: %m", path);
		if (!h->processes[i])
			continue;
		if (task_reap(h->processes[i], EXIT_MS) < 0)
			return wl_fail(t, "cannot reap process %d", (int)h->processes[i]);
		h->processes[i] = 0;
	}
	free(h->processes);
	h->processes = NULL;
	return 0;
}
