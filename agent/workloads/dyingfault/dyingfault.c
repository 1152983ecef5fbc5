// SPDX-License-Identifier: GPL-2.0
/*
 * What it costs to use the pages of a file whose memory cgroup was removed, as with a shared
 * library that a container read first: processes outside the cgroup map, touch and unmap the
 * pages. Each of these changes a counter of the cgroup that owns the pages.
 */
#define _GNU_SOURCE /* MAP_FIXED_NOREPLACE, MAP_POPULATE, memfd_create */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/parallel.h"
#include "lib/tasks.h"

#define PARENT CGROUP_ROOT "dyingfault"
#define REMOVE_MS 10000
/* A kernel that releases anything of a removed cgroup has done so after this time. */
#define RELEASE_MS 1000
#define SETTLE_MS 50
#define WRITE_MS 60000
#define PAGE 4096L
/* Inside one page table of the last level: every round needs the same number of page tables. */
#define WHERE ((void *)0x200000000000)

/* What the processes of parallel_run() use; set before they are forked. */
static int64_t pages;
static int file = -1;

/* -- in the processes -- */

static char *map(int flags)
{
	return mmap(WHERE, pages * PAGE, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED_NOREPLACE | flags, file, 0);
}

/* A fault for each page, since the page is written. */
static bool touch(int64_t rounds)
{
	while (rounds-- > 0) {
		char *memory = map(0);

		if (memory == MAP_FAILED)
			return false;
		for (int64_t i = 0; i < pages; i++)
			memory[i * PAGE] = 1;
		if (munmap(memory, pages * PAGE))
			return false;
	}
	return true;
}

static bool populate(int64_t rounds)
{
	while (rounds-- > 0) {
		char *memory = map(MAP_POPULATE);

		if (memory == MAP_FAILED || munmap(memory, pages * PAGE))
			return false;
	}
	return true;
}

static int write_pages(const char *owner)
{
	static const char page[PAGE];
	int error = cgroup_enter(owner);

	for (int64_t i = 0; i < pages && !error; i++)
		error = write_all(file, page, sizeof(page));
	return error;
}

/* -- in the agent -- */

/* The cgroup of this level: PARENT, PARENT/1, PARENT/1/2, ... */
static void level_path(char *path, size_t size, int64_t level)
{
	size_t len = snprintf(path, size, PARENT);

	for (int64_t i = 1; i <= level && len < size; i++)
		len += snprintf(path + len, size - len, "/%lld", (long long)i);
}

static int make_levels(int64_t levels)
{
	char path[256], control[300];
	int error = write_file(CGROUP_ROOT "cgroup.subtree_control", "+memory");

	for (int64_t i = 0; i <= levels && !error; i++) {
		level_path(path, sizeof(path), i);
		snprintf(control, sizeof(control), "%s/cgroup.subtree_control", path);
		error = cgroup_make(path);
		if (!error && i < levels)
			error = write_file(control, "+memory");
	}
	return error;
}

static int remove_levels(int64_t levels)
{
	char path[256];
	int error = 0;

	for (int64_t i = levels; i > 0 && !error; i--) {
		level_path(path, sizeof(path), i);
		error = cgroup_remove(path, REMOVE_MS);
	}
	return error;
}

/* The writer exits: only the pages of the file stay charged to the cgroup. */
static int fill(struct trial *t, int64_t levels)
{
	char owner[256];
	pid_t pid;

	level_path(owner, sizeof(owner), levels);
	pid = fork();
	if (!pid)
		_exit(write_pages(owner) ? EXIT_FAILURE : EXIT_SUCCESS);
	if (pid < 0 || task_reap(pid, WRITE_MS))
		return wl_fail(t, "cannot write the file in %s", owner);
	return 0;
}

static int setup(struct trial *t)
{
	static const char *const owners[] = {"living", "dying", NULL};
	int64_t levels = wl_param_int(t, "levels");
	int error;

	pages = wl_param_int(t, "pages");
	file = memfd_create("dyingfault", MFD_CLOEXEC);
	if (file < 0)
		return wl_fail(t, "cannot make a file: %m");
	error = make_levels(levels);
	if (error)
		return wl_fail(t,
			       "cannot make the cgroups in " PARENT ": %s; the kernel needs MEMCG",
			       strerror(-error));
	if (fill(t, levels))
		return -1;
	if (!wl_param_choice(t, "owner", owners))
		return 0;
	error = remove_levels(levels);
	sleep_ms(RELEASE_MS);
	return error ? wl_fail(t, "cannot remove the cgroups: %s", strerror(-error)) : 0;
}

/* Reading cpu.stat flushes the counters of all controllers. */
static int64_t counted(const char *key)
{
	cgroup_value(PARENT, "cpu.stat", "usage_usec");
	return cgroup_value(PARENT, "memory.stat", key);
}

static int measure(struct trial *t, const char *metric, parallel_work *work)
{
	int64_t rounds = wl_param_int(t, "rounds"), elapsed_ns;

	wl_settle(t, SETTLE_MS);
	if (parallel_run(t, sysconf(_SC_NPROCESSORS_ONLN), rounds, work, &elapsed_ns))
		return -1;
	wl_sample(t, metric, elapsed_ns / (rounds * pages));
	return 0;
}

static int run(struct trial *t)
{
	int64_t bytes = pages * PAGE, charged, mapped;

	if (measure(t, "fault_ns", touch) || measure(t, "map_ns", populate))
		return -1;
	wl_sample(t, "dying_count", cgroup_value(PARENT, "cgroup.stat", "nr_dying_descendants"));
	charged = counted("file");
	mapped = counted("file_mapped");
	wl_check(t, "charged", charged == bytes, "file: %lld; expected %lld", (long long)charged,
		 (long long)bytes);
	wl_check(t, "unmapped", mapped == 0, "file_mapped: %lld", (long long)mapped);
	return 0;
}

static void cleanup(struct trial *t)
{
	if (file >= 0)
		close(file);
	file = -1;
	if (cgroup_remove_tree(PARENT, REMOVE_MS) == -EBUSY)
		wl_fail(t, "cannot remove " PARENT ": still busy");
	write_file(CGROUP_ROOT "cgroup.subtree_control", "-memory");
}

static const char *const params[] = {"owner", "levels", "pages", "rounds", NULL};
static const struct workload dyingfault = {
	.name = "dyingfault",
	.summary = "map, touch and unmap pages of a file whose memory cgroup was removed",
	.params = params,
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(dyingfault);
