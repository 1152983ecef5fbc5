// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* nftw() */
#include "memcg_swap.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/tasks.h"

bool memcg_in_version_1;

/* The first value that was wrong of each invariant. */
static struct result {
	const char *name;
	bool failed;
	char detail[112];
} results[] = {{.name = "swap_exact"},
	       {.name = "upper_exact"},
	       {.name = "shmem_exact"},
	       {.name = "swap_stat_exact"},
	       {.name = "all_gone"}};

void judge_swap(enum swap_invariant which, const char *when, int64_t seen, int64_t expected)
{
	struct result *r = &results[which];

	if (r->failed || seen == expected)
		return;
	r->failed = true;
	snprintf(r->detail, sizeof(r->detail), "%s: %lld; expected %lld", when, (long long)seen,
		 (long long)expected);
}

static int64_t pages_in(const char *cgroup, const char *file)
{
	char path[96], text[32];
	int error;

	snprintf(path, sizeof(path), "%s/%s", cgroup, file);
	error = read_file(path, text, sizeof(text));
	return error < 0 ? error : strtoll(text, NULL, 10) / PAGE;
}

int64_t pages_swapped(const char *cgroup)
{
	if (memcg_in_version_1)
		return pages_in(cgroup, "memory.memsw.usage_in_bytes") -
		       pages_in(cgroup, "memory.usage_in_bytes");
	return pages_in(cgroup, "memory.swap.current");
}

int64_t pages_resident(const char *cgroup)
{
	return cgroup_value(cgroup, "memory.stat", memcg_in_version_1 ? "total_shmem" : "shmem") /
	       PAGE;
}

/* Version 2 has no such line. */
static int64_t swapped_stat(const char *cgroup)
{
	return cgroup_value(cgroup, "memory.stat", "total_swap") / PAGE;
}

static int64_t folders;

static int count_folder(const char *path, const struct stat *info, int type, struct FTW *place)
{
	(void)path;
	(void)info;
	(void)place;
	folders += type == FTW_D;
	return 0;
}

/* Version 1 says only how many cgroups there are, with those that are dying. */
int64_t cgroups_dying(void)
{
	long long cgroups;
	char text[4096];
	int error;

	if (!memcg_in_version_1)
		return cgroup_value(TOP, "cgroup.stat", "nr_dying_descendants");
	error = read_file("/proc/cgroups", text, sizeof(text));
	if (error < 0)
		return error;
	folders = 0;
	if (nftw(CGROUP_ROOT, count_folder, 8, FTW_PHYS))
		return -errno;
	if (!strstr(text, "\nmemory\t") ||
	    sscanf(strstr(text, "\nmemory\t"), " memory %*d %lld", &cgroups) != 1)
		return -ENOENT;
	return cgroups - folders;
}

/* The kernel may keep up to 2 s what memory.stat has not summed up yet. */
static int64_t wait_for(int64_t (*pages)(const char *), int64_t expected)
{
	int64_t end = now_ns() + PATIENCE_MS * 1000000LL, seen;

	do
		seen = pages(TOP) + pages(AWAY);
	while (seen != expected && now_ns() < end && (sleep_ms(10), true));
	return seen;
}

void check_swap(const char *when, int64_t swap, int64_t shmem)
{
	judge_swap(SWAP_EXACT, when, pages_swapped(TOP) + pages_swapped(AWAY), swap);
	judge_swap(SHMEM_EXACT, when, wait_for(pages_resident, shmem), shmem);
	if (memcg_in_version_1)
		judge_swap(SWAP_STAT_EXACT, when, wait_for(swapped_stat, swap), swap);
}

void swap_checks_clear(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(results); i++)
		results[i].failed = false;
}

void report_swap_checks(struct trial *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(results); i++)
		wl_check(t, results[i].name, !results[i].failed, "%s", results[i].detail);
}
