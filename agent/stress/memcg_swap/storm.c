// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "memcg_swap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/tasks.h"
#include "lib/zram.h"

#define STORM_PAGES 64L
#define MAX_CHURNERS 16
/* Swap is turned off this often. */
#define SWAPOFF_MS 100

static void churn_once(struct prng *p, int number, const char *cgroup, const char *below)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), FILES "/storm%d", number);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || cgroup_enter(below) || write_pages(fd, STORM_PAGES))
		_exit(EXIT_FAILURE);
	/* Without swap, and where another task is faster, pages stay in memory. */
	swap_out_pages(fd, 0, 1 + prng_below(p, STORM_PAGES));
	if (cgroup_enter(AWAY) || cgroup_remove(below, PATIENCE_MS))
		_exit(EXIT_FAILURE);
	swap_out_pages(fd, 0, 1 + prng_below(p, STORM_PAGES));
	if (cgroup_remove(cgroup, PATIENCE_MS))
		_exit(EXIT_FAILURE);
	swap_out_pages(fd, 0, STORM_PAGES);
	if (ftruncate(fd, prng_below(p, STORM_PAGES) * PAGE))
		_exit(EXIT_FAILURE);
	close(fd);
}

static void churn(uint64_t seed, int number, int64_t end)
{
	struct prng p = {.state = seed * MAX_CHURNERS + number};
	char cgroup[64], below[80], control[96];

	snprintf(cgroup, sizeof(cgroup), TOP "/storm%d", number);
	snprintf(below, sizeof(below), "%s/below", cgroup);
	snprintf(control, sizeof(control), "%s/cgroup.subtree_control", cgroup);
	while (now_ns() < end) {
		if (cgroup_make(cgroup) ||
		    (!memcg_in_version_1 && write_file(control, "+memory")) || cgroup_make(below))
			_exit(EXIT_FAILURE);
		churn_once(&p, number, cgroup, below);
	}
	_exit(EXIT_SUCCESS);
}

static int end_storm(struct trial *t, const pid_t *pids, int churners)
{
	char path[64];

	for (int i = 0; i < churners; i++) {
		if (pids[i] < 0 || task_reap(pids[i], PATIENCE_MS))
			return wl_fail(t, "process %d of the storm failed", i);
		snprintf(path, sizeof(path), FILES "/storm%d", i);
		if (unlink(path) && errno != ENOENT)
			return wl_fail(t, "cannot remove %s: %m", path);
	}
	return 0;
}

int swap_storm(struct trial *t)
{
	int64_t end = now_ns() + wl_param_int(t, "storm_ms") * 1000000;
	int churners = (int)wl_param_int(t, "churners"), turns = 0;
	pid_t pids[MAX_CHURNERS];

	for (int i = 0; i < churners; i++) {
		pids[i] = fork();
		if (!pids[i])
			churn(wl_param_int(t, "seed"), i, end);
	}
	for (; now_ns() < end; turns++) {
		sleep_ms(SWAPOFF_MS);
		/* What cannot be reclaimed at the moment (-EAGAIN) is not an error. */
		if (memcg_in_version_1)
			write_file(TOP "/memory.force_empty", "0");
		else
			write_file(TOP "/memory.reclaim", "4M");
		if (step_failed(t, "cannot turn swap off", zram_swapoff()) ||
		    step_failed(t, "cannot swap to " ZRAM_DEVICE, zram_swapon()))
			return -1;
	}
	wl_sample(t, "swapoffs_count", turns);
	if (end_storm(t, pids, churners) || step_failed(t, "cannot turn swap off", zram_swapoff()))
		return -1;
	check_swap("swap was turned off after the storm", 0, PAGES);
	if (step_failed(t, "cannot swap to " ZRAM_DEVICE, zram_swapon()) ||
	    step_failed(t, "cannot swap out the ballast", swap_out_file(BALLAST_FILE, PAGES)))
		return -1;
	check_swap("after the storm", PAGES, 0);
	judge_swap(ALL_GONE, "after the storm", still_dying(t, 0), 0);
	return 0;
}
