// SPDX-License-Identifier: GPL-2.0
/*
 * What a memory cgroup costs the tasks in it while it exists: pages are charged and freed again
 * and again, and its memory.stat is read after each such round. No cgroup is removed.
 */
#define _GNU_SOURCE /* MAP_FIXED_NOREPLACE, MAP_ANONYMOUS */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/latency.h"
#include "lib/parallel.h"

#define GROUP CGROUP_ROOT "living"
#define REMOVE_MS 10000
#define PAGE 4096L
/*
 * Inside one page table of the last level, so that every round needs the same number of
 * page tables.
 */
#define WHERE ((void *)0x200000000000)
#define MAX_READS 100000

/* What the processes of parallel_run() do; set before they are forked. */
static int64_t pages;
static int flags;
/* How long each reading of memory.stat took, written by the only process. */
static int64_t *read_ns;

static bool round_of_charges(void)
{
	char *memory = mmap(WHERE, pages * PAGE, PROT_READ | PROT_WRITE,
			    flags | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (memory == MAP_FAILED)
		return false;
	for (int64_t i = 0; i < pages; i++)
		memory[i * PAGE] = 1;
	return !munmap(memory, pages * PAGE);
}

static bool charge(int64_t rounds)
{
	if (cgroup_enter(GROUP))
		return false;
	while (rounds-- > 0)
		if (!round_of_charges())
			return false;
	return true;
}

static bool charge_and_read(int64_t reads)
{
	int fd = open(GROUP "/memory.stat", O_RDONLY | O_CLOEXEC);
	char text[8192];

	if (fd < 0 || cgroup_enter(GROUP))
		return false;
	for (int64_t i = 0; i < reads; i++) {
		int64_t start;

		if (!round_of_charges())
			return false;
		start = now_ns();
		if (pread(fd, text, sizeof(text), 0) <= 0)
			return false;
		read_ns[i] = now_ns() - start;
	}
	return true;
}

static int setup(struct trial *t)
{
	int error = write_file(CGROUP_ROOT "cgroup.subtree_control", "+memory");

	read_ns = NULL;
	if (error)
		return wl_fail(t,
			       "cannot write " CGROUP_ROOT
			       "cgroup.subtree_control: %s; the kernel needs MEMCG",
			       strerror(-error));
	error = cgroup_make(GROUP);
	if (error)
		return wl_fail(t, "cannot make " GROUP ": %s", strerror(-error));
	read_ns = mmap(NULL, MAX_READS * sizeof(*read_ns), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return read_ns == MAP_FAILED ? wl_fail(t, "cannot mmap memory: %m") : 0;
}

static int run(struct trial *t)
{
	int64_t rounds = wl_param_int(t, "rounds"), reads = wl_param_int(t, "reads");
	int64_t elapsed_ns, left;

	pages = wl_param_int(t, "pages");
	flags = strcmp(wl_param_str(t, "kind"), "shared") ? MAP_PRIVATE : MAP_SHARED;
	if (parallel_run(t, 1, rounds, charge, &elapsed_ns))
		return -1;
	wl_sample(t, "fault_ns", elapsed_ns / (rounds * pages));
	if (parallel_run(t, 1, reads, charge_and_read, &elapsed_ns))
		return -1;
	wl_sample(t, "stat_ns", latency_median(read_ns, reads));
	left = cgroup_value(GROUP, "cgroup.events", "populated");
	wl_check(t, "empty", left == 0, "populated: %lld", (long long)left);
	return 0;
}

static void cleanup(struct trial *t)
{
	if (read_ns && read_ns != MAP_FAILED)
		munmap(read_ns, MAX_READS * sizeof(*read_ns));
	if (cgroup_remove(GROUP, REMOVE_MS) == -EBUSY)
		wl_fail(t, "cannot remove " GROUP ": still busy");
	write_file(CGROUP_ROOT "cgroup.subtree_control", "-memory");
}

static const char *const params[] = {"pages", "kind", "rounds", "reads", NULL};
static const struct workload chargeloop = {
	.name = "chargeloop",
	.summary = "map, touch and unmap pages in a memory cgroup, and read its memory.stat",
	.params = params,
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(chargeloop);
