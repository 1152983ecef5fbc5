// SPDX-License-Identifier: GPL-2.0
/*
 * What still holds memory after a memory cgroup was removed, how much, and is all of it freed
 * when the holder is gone?
 *
 * A repetition makes the cgroups, has a process in each make the object that may hold it,
 * removes them, has all CPUs add their new pages to the LRU lists, waits until the memory is no
 * longer decreasing, reads Slab and Percpu, releases the objects, and waits until no cgroup is
 * dying. With holder=file-outside and so on, the same objects are made in a cgroup that is not
 * removed: that is the memory of the objects themselves.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "held_cgroups.h"
#include "leftovers.h"
#include "lib/cgroup.h"
#include "lib/meminfo.h"
#include "lib/zram.h"
#include "workloads/dyingcg/footprint.h"

#define SETTLE_MS 50
/* The kernel sums up statistics every 2 s; late releases wait for grace periods and workers. */
#define RELEASE_MS 3000
#define SHRINK_MS 100
#define GONE_MS 60000
#define REMOVE_MS 10000
/* kB of a page, an inode and a dentry, for the sizes of the file system and the swap device. */
#define FILE_KB 8

static struct held held;
/* charged_percpu(), and what the objects are charged for, before the first cgroup was made. */
static int64_t percpu_before;
static struct charged charged_before;

static int64_t count_dying(void)
{
	return cgroup_value(HELD_PARENT, "cgroup.stat", "nr_dying_descendants");
}

/* Free slabs are returned when the objects in them are no longer waiting for a grace period. */
static int settle(struct trial *t, struct footprint *f)
{
	int error = footprint_settle(f, RELEASE_MS);

	if (error)
		return wl_fail(t, "Slab and Percpu are still changing: %s", strerror(-error));
	error = leftovers_shrink_slabs();
	if (error)
		return wl_fail(t, "cannot return free slabs: %s", strerror(-error));
	error = footprint_settle(f, SHRINK_MS);
	return error ? wl_fail(t, "Slab and Percpu are still changing: %s", strerror(-error)) : 0;
}

/* Gives the cgroups in this one what the objects need. */
static int enable_controllers(const char *subtree_control)
{
	const char *controller = held.holder->controller;
	int error = write_file(subtree_control, "+memory");

	return error || !controller ? error : write_file(subtree_control, "+%s", controller);
}

static void disable_controllers(void)
{
	write_file(CGROUP_ROOT "cgroup.subtree_control", "-memory");
	if (held.holder->controller)
		write_file(CGROUP_ROOT "cgroup.subtree_control", "-%s", held.holder->controller);
}

static int make_cgroups(void)
{
	int error = enable_controllers(CGROUP_ROOT "cgroup.subtree_control");

	if (!error)
		error = leftovers_fill();
	if (!error)
		error = cgroup_make(HELD_PARENT);
	if (!error)
		error = enable_controllers(HELD_PARENT "/cgroup.subtree_control");
	return error ? error : cgroup_make(HELD_OUTSIDE);
}

static int setup(struct trial *t)
{
	bool outside;
	const struct holder *holder =
		holder_of(wl_param_choice(t, "holder", holder_choices()), &outside);
	struct footprint f;
	char size[64];
	int64_t kb;
	int error;

	held = (struct held){
		.holder = holder,
		.outside = outside,
		.count = wl_param_int(t, "cgroups"),
	};
	kb = (held.count + 16) * FILE_KB;
	error = raise_limits();
	if (error)
		return wl_fail(t, "cannot raise the limits on tasks: %s", strerror(-error));
	/* The cgroups of the trial before are freed first: otherwise they are leftovers later. */
	if (settle(t, &f))
		return -1;
	error = make_cgroups();
	if (error)
		return wl_fail(t,
			       "cannot make the cgroups in " CGROUP_ROOT
			       ": %s; the kernel needs MEMCG, and for %s the controller %s",
			       strerror(-error), holder->name,
			       holder->controller ? holder->controller : "memory");
	error = zram_open("lzo-rle", kb * 1024);
	if (error)
		return wl_fail(t, "cannot set up " ZRAM_DEVICE ": %s", strerror(-error));
	snprintf(size, sizeof(size), "size=%lldk,nr_inodes=0", (long long)kb);
	if (mkdir(HELD_FILES, 0755) && errno != EEXIST)
		return wl_fail(t, "cannot make " HELD_FILES ": %m");
	if (mount("tmpfs", HELD_FILES, "tmpfs", 0, size))
		return wl_fail(t, "cannot mount a tmpfs on " HELD_FILES ": %m");
	return holder->prepare ? holder->prepare(t, held.count) : 0;
}

/* -- one repetition -- */

static int64_t swapped_bytes(void)
{
	char text[32];
	int len = read_file(HELD_PARENT "/memory.swap.current", text, sizeof(text));

	return len < 0 ? len : strtoll(text, NULL, 10);
}

/*
 * Bytes of per-CPU memory that are charged to the parent: the statistics of the memory cgroups
 * in it. What a cgroup has beside those is not charged.
 */
static int64_t charged_percpu(void)
{
	return cgroup_value(HELD_PARENT, "memory.stat", "percpu");
}

static void check_objects(struct trial *t)
{
	int64_t objects = held_objects(&held);
	struct charged charged;
	int error = held_charged(&held, &charged);

	wl_check(t, "objects_exist", objects == held.count, "%lld objects for %lld cgroups",
		 (long long)objects, (long long)held.count);
	wl_check(t, "charged_where_made",
		 !error && held_charges_right(&held, &charged_before, &charged),
		 "error %d; from %lld to %lld bytes in the cgroups and their parent, from %lld to "
		 "%lld outside",
		 error, (long long)charged_before.inside, (long long)charged.inside,
		 (long long)charged_before.outside, (long long)charged.outside);
}

/* The figures are valid only if the objects exist as they were meant to. */
static void check_made(struct trial *t, int64_t dying)
{
	int64_t descendants = cgroup_value(HELD_PARENT, "cgroup.stat", "nr_descendants");
	int64_t file = cgroup_value(HELD_PARENT, "memory.stat", "file"), swapped = swapped_bytes();
	int64_t zombies = held_zombies(&held), removed = held_removed(&held);
	bool may_hold = held.holder->make || held.holder->zombie;

	/* The one that is left is HELD_OUTSIDE. */
	wl_check(t, "removed", descendants == 1, "%lld cgroups are left",
		 (long long)descendants - 1);
	wl_check(t, "all_or_none_held",
		 dying == 0 || (may_hold && !held.outside && dying == removed),
		 "%lld of %lld are dying", (long long)dying, (long long)removed);
	wl_check(t, "files_charged", file == held_file_bytes(&held),
		 "%lld bytes of files in memory; expected %lld", (long long)file,
		 (long long)held_file_bytes(&held));
	wl_check(t, "swapped_out", swapped == held_swapped_bytes(&held),
		 "%lld bytes are swapped out; expected %lld", (long long)swapped,
		 (long long)held_swapped_bytes(&held));
	wl_check(t, "all_zombies", zombies == (held.holder->zombie ? held.count : 0),
		 "%lld zombies for %lld cgroups", (long long)zombies, (long long)held.count);
	check_objects(t);
}

/*
 * A page that is still in a CPU's batch of pages for the LRU lists holds its cgroup for that
 * (as in dyingcg.c). Compaction adds the batches of all CPUs first.
 */
static int drain_batches(struct trial *t)
{
	int error = write_file("/proc/sys/vm/compact_memory", "1");

	return error ? wl_fail(t,
			       "cannot write /proc/sys/vm/compact_memory: %s; the kernel needs "
			       "COMPACTION",
			       strerror(-error))
		     : 0;
}

/* A removed cgroup can be held without what it has for memory. Kernels before 6.12 do not count. */
static void sample_dying_memory(struct trial *t)
{
	int64_t dying = cgroup_value(HELD_PARENT, "cgroup.stat", "nr_dying_subsys_memory");

	if (dying >= 0)
		wl_sample(t, "dying_memory_count", dying);
}

static int make(struct trial *t, const struct footprint *before)
{
	struct footprint after;
	struct meminfo memory;
	int64_t dying;
	int error;

	wl_profile_begin(t);
	if (held_make(t, &held))
		return -1;
	wl_profile_end(t);
	if (drain_batches(t) || settle(t, &after))
		return -1;
	error = meminfo_read(&memory);
	if (error)
		return wl_fail(t, "cannot read /proc/meminfo: %s", strerror(-error));
	dying = count_dying();
	check_made(t, dying);
	wl_sample(t, "footprint_kb", footprint_kb(&after));
	wl_sample(t, "slab_kb", after.slab);
	wl_sample(t, "percpu_kb", after.percpu);
	wl_sample(t, "stacks_kb", memory.stacks);
	wl_sample(t, "held_kb", footprint_kb(&after) - footprint_kb(before));
	wl_sample(t, "held_percpu_kb", after.percpu - before->percpu);
	wl_sample(t, "held_stats_kb", (charged_percpu() - percpu_before) / 1024);
	wl_sample(t, "dying_count", dying);
	sample_dying_memory(t);
	return 0;
}

/* A limit that the parent exceeds has all CPUs return what they keep of the cgroups in it. */
static int drain_stocks(struct trial *t)
{
	int error = write_file(HELD_PARENT "/memory.high", "0");

	if (!error)
		error = write_file(HELD_PARENT "/memory.high", "max");
	return error ? wl_fail(t, "cannot write memory.high: %s", strerror(-error)) : 0;
}

/* Counts the cgroups that only the stocks of the CPUs still hold, and has these drained. */
static int sample_stocked(struct trial *t)
{
	struct footprint f;
	int64_t dying;

	if (!held.holder->stocked) {
		wl_sample(t, "stocked_count", 0);
		return 0;
	}
	if (settle(t, &f))
		return -1;
	dying = count_dying();
	wl_sample(t, "stocked_count", dying);
	return dying > 0 ? drain_stocks(t) : 0;
}

static int release_and_wait(struct trial *t, const struct footprint *before)
{
	int64_t end = now_ns() + GONE_MS * 1000000LL;
	struct footprint after;
	int error;

	if (held_release(t, &held))
		return -1;
	/* Freed swap slots, with what they hold, are kept for their next user on 6.12. */
	error = zram_swapoff();
	if (error)
		return wl_fail(t, "cannot turn swap off: %s", strerror(-error));
	if (sample_stocked(t))
		return -1;
	while (count_dying() > 0 && now_ns() < end)
		sleep_ms(1);
	if (settle(t, &after))
		return -1;
	wl_check(t, "none_left", count_dying() == 0, "%lld are still dying",
		 (long long)count_dying());
	wl_sample(t, "left_kb", footprint_kb(&after) - footprint_kb(before));
	return 0;
}

static int run(struct trial *t)
{
	struct footprint before;
	int error = zram_swapon();

	if (error)
		return wl_fail(t, "cannot swap to " ZRAM_DEVICE ": %s", strerror(-error));
	if (settle(t, &before))
		return -1;
	percpu_before = charged_percpu();
	error = held_charged(&held, &charged_before);
	if (error)
		return wl_fail(t, "cannot read what is charged: %s", strerror(-error));
	wl_settle(t, SETTLE_MS);
	return make(t, &before) || release_and_wait(t, &before) ? -1 : 0;
}

static void cleanup(struct trial *t)
{
	/* Objects are left after a run() that failed. */
	if (held.kept) {
		held_abandon(&held);
		kill_and_reap_all(0);
	}
	if (held.holder->tidy)
		held.holder->tidy();
	if (umount(HELD_FILES) && errno != EINVAL && errno != ENOENT)
		wl_fail(t, "cannot unmount " HELD_FILES ": %m");
	rmdir(HELD_FILES);
	zram_close();
	if (cgroup_remove_tree(HELD_PARENT, REMOVE_MS) == -EBUSY || leftovers_empty() == -EBUSY)
		wl_fail(t, "cannot remove the cgroups in " CGROUP_ROOT ": still busy");
	disable_controllers();
}

static const char *const params[] = {"cgroups", "holder", NULL};
static const struct workload heldcg = {
	.name = "heldcg",
	.summary = "remove memory cgroups in which a process made something that may hold them",
	.params = params,
	.stretch = "making the cgroups and the objects, and removing the cgroups",
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(heldcg);
