/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of memcg_swap share. Counters are in pages. */
#ifndef KTEARDOWN_MEMCG_SWAP_H
#define KTEARDOWN_MEMCG_SWAP_H

#include "lib/cgroup.h"
#include "workload.h"

#define TOP CGROUP_ROOT "memcg_swap"
#define AWAY CGROUP_ROOT "memcg_swap_away"
#define FILES "/memcg_swap"
#define BALLAST_FILE FILES "/ballast"

#define PAGE 4096L
#define PAGES 512L
#define PATIENCE_MS 20000

/* The memory controller is in cgroup version 1. */
extern bool memcg_in_version_1;

/* -- counters.c -- */

enum swap_invariant { SWAP_EXACT, UPPER_EXACT, SHMEM_EXACT, SWAP_STAT_EXACT, ALL_GONE };

/* What a cgroup has in swap; -errno. */
int64_t pages_swapped(const char *cgroup);
/* What a cgroup has of tmpfs in memory; -errno. */
int64_t pages_resident(const char *cgroup);
/* The cgroups that are removed and not freed; -errno. */
int64_t cgroups_dying(void);

/* Keeps the first value of each invariant that is wrong, until the next swap_checks_clear(). */
void judge_swap(enum swap_invariant which, const char *when, int64_t seen, int64_t expected);
/* What TOP and AWAY must have together, in swap and in memory. */
void check_swap(const char *when, int64_t swap, int64_t shmem);
void swap_checks_clear(void);
/* Calls wl_check() for each invariant. */
void report_swap_checks(struct trial *t);

/* -- files.c: these return 0 or -errno -- */

int write_pages(int fd, int64_t pages);
/* Swaps a range of a file out, as far as no other task uses its pages. -EBUSY: some are left. */
int swap_out_pages(int fd, int64_t from, int64_t pages);
int swap_out_file(const char *path, int64_t pages);
/* Makes a file of PAGES pages that are swapped out. */
int make_swapped_file(const char *path);
int read_half_of_file(const char *path);
/* How many of the PAGES pages of a file are in memory; -errno. */
int64_t file_pages_in_memory(const char *path);

/* -- storm.c -- */

/* Cgroups are removed while their memory is swapped out, in and freed. 0, or wl_fail()'s value. */
int swap_storm(struct trial *t);

/* -- memcg_swap.c -- */

/* 0 if there is no error, or wl_fail()'s value. */
int step_failed(struct trial *t, const char *what, int error);
/*
 * How many removed cgroups are left if what is freed late was; -1 is an error of the trial. A busy
 * host needs seconds for the grace periods of a kernel with KASAN.
 */
int64_t still_dying(struct trial *t, int64_t expected);

#endif
