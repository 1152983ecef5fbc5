// SPDX-License-Identifier: GPL-2.0
/*
 * Version 1 of memory cgroups has local counters, which do not include the cgroups below. A
 * child is removed while pages are charged to it, and the pages are freed later. The local
 * counters of its parent may take over what the child has counted, or not, but what the parent
 * itself holds (the ballast) must never be missing.
 */
#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/kmsg.h"
#include "lib/tasks.h"
#include "workload.h"

#define HIERARCHY "/memcg_local"
#define PARENT HIERARCHY "/parent"
#define CHILD PARENT "/child"
#define PAGE 4096L
/*
 * Of each file. Reading memory.stat flushes only if more than MEMCG_CHARGE_BATCH updates for
 * each CPU are not flushed yet: every step below changes more than that.
 */
#define PAGES 2048L
#define WATCH_MS 2000
#define CHECK_MS 10
#define PATIENCE_MS 20000

static int ballast = -1, orphan = -1, log_fd = -1;
/* The first value that was wrong of each invariant. */
static struct result {
	const char *name;
	bool failed;
	char detail[96];
} results[] = {{.name = "local_kept"}, {.name = "total_exact"}, {.name = "events_exact"}};
enum { LOCAL_KEPT, TOTAL_EXACT, EVENTS_EXACT };

static void judge(int which, const char *when, int64_t seen, int64_t low, int64_t high)
{
	struct result *r = &results[which];

	if (r->failed || (low <= seen && seen <= high))
		return;
	r->failed = true;
	snprintf(r->detail, sizeof(r->detail), "%s: %lld; expected %lld to %lld", when,
		 (long long)seen, (long long)low, (long long)high);
}

/* The child holds this many pages, and some of them may be in the parent's local counters. */
static void check(const char *when, int64_t child_pages)
{
	int64_t local = cgroup_value(PARENT, "memory.stat", "cache") / PAGE;
	int64_t total = cgroup_value(PARENT, "memory.stat", "total_cache") / PAGE;
	int64_t in = cgroup_value(PARENT, "memory.stat", "pgpgin");
	int64_t out = cgroup_value(PARENT, "memory.stat", "pgpgout");

	judge(LOCAL_KEPT, when, local, PAGES, PAGES + child_pages);
	judge(TOTAL_EXACT, when, total, PAGES + child_pages, PAGES + child_pages);
	judge(EVENTS_EXACT, when, in - out, PAGES, PAGES + child_pages);
}

static int write_pages(const char *cgroup, int file)
{
	static const char page[PAGE];
	int error = cgroup_enter(cgroup);

	for (int64_t i = 0; i < PAGES && !error; i++)
		error = write_all(file, page, sizeof(page));
	return error;
}

/* The writer exits: only the pages of the file stay charged to the cgroup. */
static int fill(struct trial *t, const char *cgroup, int file)
{
	pid_t pid;

	if (ftruncate(file, 0) || lseek(file, 0, SEEK_SET))
		return wl_fail(t, "cannot truncate a file: %m");
	pid = fork();
	if (!pid)
		_exit(write_pages(cgroup, file) ? EXIT_FAILURE : EXIT_SUCCESS);
	if (pid < 0 || task_reap(pid, PATIENCE_MS))
		return wl_fail(t, "cannot write a file in %s", cgroup);
	return 0;
}

static int shrink(struct trial *t, int64_t pages)
{
	return ftruncate(orphan, pages * PAGE) ? wl_fail(t, "cannot truncate a file: %m") : 0;
}

static int one_round(struct trial *t)
{
	int error = cgroup_make(CHILD);

	if (error)
		return wl_fail(t, "cannot make " CHILD ": %s", strerror(-error));
	if (fill(t, PARENT, ballast) || fill(t, CHILD, orphan))
		return -1;
	check("filled", PAGES);
	error = cgroup_remove(CHILD, PATIENCE_MS);
	if (error)
		return wl_fail(t, "cannot remove " CHILD ": %s", strerror(-error));
	for (int64_t ms = 0; ms < WATCH_MS; ms += CHECK_MS) {
		check("removed", PAGES);
		sleep_ms(CHECK_MS);
	}
	if (shrink(t, PAGES / 2))
		return -1;
	check("after half of it was freed", PAGES / 2);
	if (shrink(t, 0))
		return -1;
	check("after all of it was freed", 0);
	return 0;
}

static int run(struct trial *t)
{
	struct kmsg m;
	int got;

	for (size_t i = 0; i < ARRAY_SIZE(results); i++)
		results[i].failed = false;
	if (one_round(t))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(results); i++)
		wl_check(t, results[i].name, !results[i].failed, "%s", results[i].detail);
	got = kmsg_problem(log_fd, &m);
	wl_check(t, "log_clean", !got, "%s", got > 0 ? m.text : strerror(-got));
	wl_sample(t, "local_count", cgroup_value(PARENT, "memory.stat", "cache") / PAGE);
	return 0;
}

static int setup(struct trial *t)
{
	int error;

	ballast = memfd_create("ballast", MFD_CLOEXEC);
	orphan = memfd_create("orphan", MFD_CLOEXEC);
	log_fd = kmsg_open();
	if (ballast < 0 || orphan < 0 || log_fd < 0)
		return wl_fail(t, "cannot open files: %m");
	if (mkdir(HIERARCHY, 0755) && errno != EEXIST)
		return wl_fail(t, "cannot make " HIERARCHY ": %m");
	if (mount("cgroup", HIERARCHY, "cgroup", 0, "memory"))
		return wl_fail(t, "cannot mount the memory controller's version 1: %m; the kernel "
				  "needs MEMCG_V1");
	error = cgroup_make(PARENT);
	return error ? wl_fail(t, "cannot make " PARENT ": %s", strerror(-error)) : 0;
}

static void cleanup(struct trial *t)
{
	int *const files[] = {&ballast, &orphan, &log_fd};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		if (*files[i] >= 0)
			close(*files[i]);
		*files[i] = -1;
	}
	if (cgroup_remove_tree(PARENT, PATIENCE_MS) == -EBUSY)
		wl_fail(t, "cannot remove " PARENT ": still busy");
	umount2(HIERARCHY, MNT_DETACH);
}

static const char *const params[] = {NULL};
static const struct workload memcg_local = {
	.name = "memcg_local",
	.summary = "remove a version 1 memory cgroup, and compare its parent's local counters with "
		   "what is there",
	.params = params,
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(memcg_local);
