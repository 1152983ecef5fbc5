// SPDX-License-Identifier: GPL-2.0
/*
 * Memory cgroups that are removed while memory of theirs is swapped out: are the swap counters
 * of what is above them exact, and zero when the swap is freed?
 *
 * A kernel that gives the swap of a removed cgroup to its parent charges that when a page is
 * read again. Other kernels charge the reader, which is in a cgroup of its own (AWAY). So both are
 * added up. A counter that became negative is shown as 0: some swap of a cgroup that is
 * not removed (BALLAST) makes that visible.
 *
 * Version 1 has no counter of swap alone: it is what memsw (memory and swap) has more than
 * memory. Its hierarchy is mounted over that of version 2, so all paths are the same.
 */
#include "memcg_swap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/kmsg.h"
#include "lib/tasks.h"
#include "lib/zram.h"

#define UPPER TOP "/upper"
#define CHILD UPPER "/child"
#define BALLAST TOP "/ballast"
#define DRAINED TOP "/drained"
#define FILE_OF_CHILD FILES "/child"
#define ZRAM_BYTES (32L << 20)

static int log_fd = -1;

/* -- processes that enter a cgroup, do something and exit -- */

static int turn_swap_off(const char *path)
{
	(void)path;
	return zram_swapoff();
}

static int in_cgroup(struct trial *t, const char *cgroup, int (*act)(const char *),
		     const char *path)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		int error = cgroup_enter(cgroup);

		_exit(error ? -error : -act(path));
	}
	status = pid < 0 ? -1 : task_reap(pid, PATIENCE_MS);
	return status ? wl_fail(t, "a process in %s failed (%d)", cgroup, status) : 0;
}

/* -- one round: a removed cgroup in a removed cgroup -- */

static int make_cgroup(struct trial *t, const char *cgroup, bool memory_below)
{
	char control[128];
	int error = cgroup_make(cgroup);

	snprintf(control, sizeof(control), "%s/cgroup.subtree_control", cgroup);
	if (!error && memory_below && !memcg_in_version_1)
		error = write_file(control, "+memory");
	return error ? wl_fail(t, "cannot make %s: %s; the kernel needs MEMCG", cgroup,
			       strerror(-error))
		     : 0;
}

static int remove_cgroup(struct trial *t, const char *cgroup)
{
	int error = cgroup_remove(cgroup, PATIENCE_MS);

	return error ? wl_fail(t, "cannot remove %s: %s", cgroup, strerror(-error)) : 0;
}

static int use_a_page(const char *cpu)
{
	static char pages[2 * PAGE];
	volatile char *at = pages + PAGE;
	int error = stay_on_cpu(atoi(cpu));

	*at = 1;
	return error;
}

/*
 * Each CPU has stocks of pages that were charged in advance, each of which holds its cgroup.
 * The removal of a cgroup drains all stocks of a CPU if one is of that cgroup and has pages.
 * On 7.2 an empty one is kept and not drained, and would hold a cgroup here by chance.
 */
static int drain_stocks(struct trial *t)
{
	int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	char cpu[16];

	for (int i = 0; i < cpus; i++) {
		snprintf(cpu, sizeof(cpu), "%d", i);
		if (make_cgroup(t, DRAINED, false) || in_cgroup(t, DRAINED, use_a_page, cpu) ||
		    remove_cgroup(t, DRAINED))
			return -1;
	}
	return 0;
}

int64_t still_dying(struct trial *t, int64_t expected)
{
	int64_t end = now_ns() + PATIENCE_MS / 2 * 1000000LL;

	if (drain_stocks(t))
		return -1;
	while (cgroups_dying() != expected && now_ns() < end)
		sleep_ms(10);
	return cgroups_dying();
}

int step_failed(struct trial *t, const char *what, int error)
{
	return error ? wl_fail(t, "%s: %s", what, strerror(-error)) : 0;
}

/*
 * Returns how many pages of the child's file are then in memory; -1 is an error of the trial. It is
 * half of them, unless a huge page was swapped out as a whole: that is read as a whole.
 */
static int64_t remove_both(struct trial *t)
{
	int64_t present;

	if (make_cgroup(t, UPPER, true) || make_cgroup(t, CHILD, false) ||
	    in_cgroup(t, CHILD, make_swapped_file, FILE_OF_CHILD))
		return -1;
	check_swap("swapped out", 2 * PAGES, 0);
	if (remove_cgroup(t, CHILD))
		return -1;
	wl_sample(t, "dying_count", still_dying(t, 0));
	judge_swap(UPPER_EXACT, "the child was removed", pages_swapped(UPPER), PAGES);
	check_swap("the child was removed", 2 * PAGES, 0);
	if (in_cgroup(t, AWAY, read_half_of_file, FILE_OF_CHILD))
		return -1;
	present = file_pages_in_memory(FILE_OF_CHILD);
	if (present < PAGES / 2)
		return wl_fail(t, "of the half that was read %lld pages are in memory",
			       (long long)present);
	judge_swap(UPPER_EXACT, "half was read", pages_swapped(UPPER), PAGES - present);
	check_swap("half was read", 2 * PAGES - present, present);
	wl_sample(t, "elsewhere_count", pages_resident(AWAY));
	if (remove_cgroup(t, UPPER))
		return -1;
	wl_sample(t, "dying_nested_count", still_dying(t, 0));
	check_swap("both were removed", 2 * PAGES - present, present);
	return present;
}

static int free_all(struct trial *t, int64_t present)
{
	int64_t kept = PAGES * 3 / 4;

	if (truncate(FILE_OF_CHILD, kept * PAGE))
		return wl_fail(t, "cannot truncate " FILE_OF_CHILD ": %m");
	present = present < kept ? present : kept;
	check_swap("a quarter was freed", PAGES + kept - present, present);
	if (in_cgroup(t, AWAY, turn_swap_off, NULL))
		return -1;
	check_swap("swap was turned off", 0, PAGES + kept);
	if (step_failed(t, "cannot swap to " ZRAM_DEVICE, zram_swapon()) ||
	    step_failed(t, "cannot swap out again", swap_out_file(FILE_OF_CHILD, kept)) ||
	    step_failed(t, "cannot swap out again", swap_out_file(BALLAST_FILE, PAGES)))
		return -1;
	check_swap("swapped out again", PAGES + kept, 0);
	if (unlink(FILE_OF_CHILD))
		return wl_fail(t, "cannot remove " FILE_OF_CHILD ": %m");
	check_swap("the file was removed", PAGES, 0);
	judge_swap(ALL_GONE, "after a round", still_dying(t, 0), 0);
	return 0;
}

/* -- the whole workload -- */

static int run(struct trial *t)
{
	int64_t present;
	struct kmsg m;
	int got;

	swap_checks_clear();
	check_swap("before", PAGES, 0);
	present = remove_both(t);
	if (present < 0 || free_all(t, present))
		return -1;
	wl_alive(t, "storm");
	if (swap_storm(t))
		return -1;
	report_swap_checks(t);
	got = kmsg_problem(log_fd, &m);
	wl_check(t, "log_clean", !got, "%s", got > 0 ? m.text : strerror(-got));
	return 0;
}

/* A controller leaves version 2 when its last group there is freed. */
static int mount_version_1(struct trial *t)
{
	int64_t end = now_ns() + PATIENCE_MS * 1000000LL;

	while (mount("cgroup", CGROUP_ROOT, "cgroup", 0, "memory")) {
		if (errno != EBUSY || now_ns() > end)
			return wl_fail(t, "cannot mount the memory controller's version 1: %m; the "
					  "kernel needs MEMCG_V1");
		sleep_ms(10);
	}
	memcg_in_version_1 = true;
	return 0;
}

static int find_controller(struct trial *t)
{
	if (wl_param_int(t, "version") == 1)
		return mount_version_1(t);
	if (write_file(CGROUP_ROOT "cgroup.subtree_control", "+memory"))
		return wl_fail(t, "the kernel needs MEMCG");
	return 0;
}

static int setup(struct trial *t)
{
	log_fd = kmsg_open();
	if (log_fd < 0)
		return step_failed(t, "cannot read /dev/kmsg", log_fd);
	if (find_controller(t))
		return -1;
	if (make_cgroup(t, TOP, true) || make_cgroup(t, BALLAST, false) ||
	    make_cgroup(t, AWAY, false))
		return -1;
	if (step_failed(t, "cannot set up " ZRAM_DEVICE, zram_open("lzo-rle", ZRAM_BYTES)) ||
	    step_failed(t, "cannot swap to " ZRAM_DEVICE, zram_swapon()))
		return -1;
	if (mkdir(FILES, 0755) && errno != EEXIST)
		return wl_fail(t, "cannot make " FILES ": %m");
	/* Large folios are charged several pages at a time; not every kernel has them. */
	if (mount("tmpfs", FILES, "tmpfs", 0, "huge=always") &&
	    mount("tmpfs", FILES, "tmpfs", 0, NULL))
		return wl_fail(t, "cannot mount a tmpfs on " FILES ": %m");
	return in_cgroup(t, BALLAST, make_swapped_file, BALLAST_FILE);
}

static void cleanup(struct trial *t)
{
	(void)t;
	kill_and_reap_all(0);
	umount2(FILES, MNT_DETACH);
	rmdir(FILES);
	zram_close();
	cgroup_remove_tree(TOP, PATIENCE_MS);
	cgroup_remove_tree(AWAY, PATIENCE_MS);
	if (memcg_in_version_1)
		umount2(CGROUP_ROOT, MNT_DETACH);
	else
		write_file(CGROUP_ROOT "cgroup.subtree_control", "-memory");
	memcg_in_version_1 = false;
	if (log_fd >= 0)
		close(log_fd);
	log_fd = -1;
}

static const char *const params[] = {"churners", "storm_ms", "seed", "version", NULL};
static const struct workload memcg_swap = {
	.name = "memcg_swap",
	.summary = "remove memory cgroups whose memory is swapped out, and compare the swap "
		   "counters above them with what is there",
	.params = params,
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(memcg_swap);
