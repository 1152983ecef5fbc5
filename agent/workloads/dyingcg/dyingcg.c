// SPDX-License-Identifier: GPL-2.0
/*
 * Dying memory cgroups: removed, but not freed because a page is still charged to them.
 * How much of the kernel's own memory does each hold, how long does it take to make and
 * remove one, and is all of the memory freed again?
 *
 * A repetition makes them, has all CPUs add their new pages to the LRU lists, waits until the
 * memory is no longer decreasing, reads Slab and Percpu, deletes the files, and waits until
 * the cgroups are gone.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "dying_cgroups.h"
#include "footprint.h"
#include "lib/cgroup.h"

#define SETTLE_MS 50
/* The kernel sums up statistics every 2 s; late releases wait for grace periods and workers. */
#define RELEASE_MS 3000
#define GONE_MS 60000
#define REMOVE_MS 10000
/* kB of a pinned page, an inode and a dentry, for the size of the file system. */
#define FILE_KB 8

static int64_t count_dying(void)
{
	return cgroup_value(DYING_PARENT, "cgroup.stat", "nr_dying_descendants");
}

static int setup(struct trial *t)
{
	int64_t count = wl_param_int(t, "cgroups");
	int error = write_file(CGROUP_ROOT "cgroup.subtree_control", "+memory");
	char size[64];

	if (error)
		return wl_fail(t,
			       "cannot write " CGROUP_ROOT
			       "cgroup.subtree_control: %s; the kernel needs MEMCG",
			       strerror(-error));
	error = cgroup_make(DYING_PARENT);
	if (!error)
		error = write_file(DYING_PARENT "/cgroup.subtree_control", "+memory");
	if (error)
		return wl_fail(t, "cannot make " DYING_PARENT ": %s", strerror(-error));
	snprintf(size, sizeof(size), "size=%lldk,nr_inodes=0", (long long)(count + 16) * FILE_KB);
	if (mkdir(DYING_FILES, 0755) && errno != EEXIST)
		return wl_fail(t, "cannot make " DYING_FILES ": %m");
	if (mount("tmpfs", DYING_FILES, "tmpfs", 0, size))
		return wl_fail(t, "cannot mount a tmpfs on " DYING_FILES ": %m");
	return 0;
}

/* -- one repetition -- */

/* The size of the files' pages in bytes, according to the file system. */
static int64_t used_bytes(void)
{
	struct statfs s;

	return statfs(DYING_FILES, &s) ? -errno : (int64_t)(s.f_blocks - s.f_bfree) * s.f_bsize;
}

/* The figures are valid only if all cgroups are pinned or none is. */
static void check_made(struct trial *t, int64_t count, int64_t dead)
{
	int64_t living = cgroup_value(DYING_PARENT, "cgroup.stat", "nr_descendants");
	int64_t charged = cgroup_value(DYING_PARENT, "memory.stat", "file"), used = used_bytes();

	wl_check(t, "removed", living == 0, "%lld cgroups are left", (long long)living);
	wl_check(t, "all_or_none_pinned", dead == count || dead == 0, "%lld of %lld are dying",
		 (long long)dead, (long long)count);
	wl_check(t, "nothing_lost", charged == used, "memory.stat: %lld, file system: %lld",
		 (long long)charged, (long long)used);
}

static void sample_times(struct trial *t, const struct dying_times *times)
{
	wl_sample(t, "cycle_ns", times->cycle_ns);
	if (times->rmdir_ns < 0)
		return;
	wl_sample(t, "create_ns", times->create_ns);
	wl_sample(t, "rmdir_ns", times->rmdir_ns);
}

static int settle(struct trial *t, struct footprint *f)
{
	int error = footprint_settle(f, RELEASE_MS);

	return error ? wl_fail(t, "Slab and Percpu are still changing: %s", strerror(-error)) : 0;
}

/*
 * A page that is still in a CPU's batch of pages for the LRU lists has a reference for that:
 * it would pin its cgroup after the file is deleted, until that CPU adds more pages, which an
 * idle CPU never does. Compaction adds the batches of all CPUs first (lru_add_drain_all());
 * what it does then moves pages of the files, and neither slab nor per-CPU memory.
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

static int make(struct trial *t, int64_t count)
{
	bool script = !strcmp(wl_param_str(t, "how"), "script");
	struct dying_times times;
	struct footprint held;
	int64_t dead;

	wl_profile_begin(t);
	if (dying_make(t, count, script, &times))
		return -1;
	wl_profile_end(t);
	if (drain_batches(t) || settle(t, &held))
		return -1;
	dead = count_dying();
	check_made(t, count, dead);
	wl_sample(t, "footprint_kb", footprint_kb(&held));
	wl_sample(t, "slab_kb", held.slab);
	wl_sample(t, "percpu_kb", held.percpu);
	wl_sample(t, "dying_count", dead);
	if (count)
		sample_times(t, &times);
	return 0;
}

static int delete_files(struct trial *t, int64_t count)
{
	char path[64];

	for (int64_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), DYING_FILES "/%lld", (long long)i);
		if (unlink(path))
			return wl_fail(t, "cannot remove %s: %m", path);
	}
	return 0;
}

static int delete_and_wait(struct trial *t, int64_t count, const struct footprint *before)
{
	int64_t start = now_ns(), gone_ns, end = start + GONE_MS * 1000000LL;
	struct footprint after;

	if (delete_files(t, count))
		return -1;
	while (count_dying() > 0 && now_ns() < end)
		sleep_ms(1);
	gone_ns = now_ns() - start;
	if (settle(t, &after))
		return -1;
	wl_check(t, "none_left", count_dying() == 0, "%lld are still dying",
		 (long long)count_dying());
	wl_sample(t, "gone_ns", gone_ns);
	wl_sample(t, "left_kb", footprint_kb(&after) - footprint_kb(before));
	return 0;
}

static int run(struct trial *t)
{
	int64_t count = wl_param_int(t, "cgroups");
	struct footprint before;

	if (settle(t, &before))
		return -1;
	wl_settle(t, SETTLE_MS);
	return make(t, count) || delete_and_wait(t, count, &before) ? -1 : 0;
}

static void cleanup(struct trial *t)
{
	if (umount(DYING_FILES) && errno != EINVAL && errno != ENOENT)
		wl_fail(t, "cannot unmount " DYING_FILES ": %m");
	rmdir(DYING_FILES);
	if (cgroup_remove(DYING_PARENT, REMOVE_MS) == -EBUSY)
		wl_fail(t, "cannot remove " DYING_PARENT ": still busy");
	write_file(CGROUP_ROOT "cgroup.subtree_control", "-memory");
}

static const char *const params[] = {"cgroups", "how", NULL};
static const struct workload dyingcg = {
	.name = "dyingcg",
	.summary = "remove memory cgroups to which a page of a file is still charged",
	.params = params,
	.stretch = "making the cgroups and removing them",
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(dyingcg);
