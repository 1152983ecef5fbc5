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
#define _GNU_SOURCE /* MADV_PAGEOUT, nftw() */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
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
#include "lib/zram.h"
#include "workload.h"

#define TOP CGROUP_ROOT "memcg_swap"
#define UPPER TOP "/upper"
#define CHILD UPPER "/child"
#define BALLAST TOP "/ballast"
#define DRAINED TOP "/drained"
#define AWAY CGROUP_ROOT "memcg_swap_away"
#define FILES "/memcg_swap"
#define BALLAST_FILE FILES "/ballast"
#define FILE_OF_CHILD FILES "/child"

#define PAGE 4096L
#define PAGES 512L
#define STORM_PAGES 64L
#define ZRAM_BYTES (32L << 20)
#define MAX_CHURNERS 16
/* A page that another task is using at the moment is not swapped out; a later pass takes it. */
#define PASSES 20
#define PATIENCE_MS 20000
/* In the storm: swap is turned off this often. */
#define SWAPOFF_MS 100

static int log_fd = -1;
static bool version_1;
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
enum { SWAP_EXACT, UPPER_EXACT, SHMEM_EXACT, SWAP_STAT_EXACT, ALL_GONE };

static void judge(int which, const char *when, int64_t seen, int64_t expected)
{
	struct result *r = &results[which];

	if (r->failed || seen == expected)
		return;
	r->failed = true;
	snprintf(r->detail, sizeof(r->detail), "%s: %lld; expected %lld", when, (long long)seen,
		 (long long)expected);
}

/* -- the counters, in pages -- */

static int64_t pages_in(const char *cgroup, const char *file)
{
	char path[96], text[32];
	int error;

	snprintf(path, sizeof(path), "%s/%s", cgroup, file);
	error = read_file(path, text, sizeof(text));
	return error < 0 ? error : strtoll(text, NULL, 10) / PAGE;
}

static int64_t swapped(const char *cgroup)
{
	if (version_1)
		return pages_in(cgroup, "memory.memsw.usage_in_bytes") -
		       pages_in(cgroup, "memory.usage_in_bytes");
	return pages_in(cgroup, "memory.swap.current");
}

static int64_t resident(const char *cgroup)
{
	return cgroup_value(cgroup, "memory.stat", version_1 ? "total_shmem" : "shmem") / PAGE;
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
static int64_t dying(void)
{
	long long cgroups;
	char text[4096];
	int error;

	if (!version_1)
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

static void check(const char *when, int64_t swap, int64_t shmem)
{
	judge(SWAP_EXACT, when, swapped(TOP) + swapped(AWAY), swap);
	judge(SHMEM_EXACT, when, wait_for(resident, shmem), shmem);
	if (version_1)
		judge(SWAP_STAT_EXACT, when, wait_for(swapped_stat, swap), swap);
}

/* -- files -- */

/*
 * A page that was just read from swap waits in a batch of the CPU that read it, and is not
 * swapped out while it is there. MADV_PAGEOUT empties the batches of its own CPU alone;
 * before page cache is dropped, those of all CPUs are emptied. Files of tmpfs stay.
 */
static int empty_batches(void)
{
	return write_file("/proc/sys/vm/drop_caches", "1");
}

/* Swaps a range of a file out, as far as no other task uses its pages. */
static int swap_out(int fd, int64_t from, int64_t pages)
{
	volatile char *at = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, fd, from * PAGE);
	unsigned char in_memory[PAGES];
	int64_t left = pages;
	int error = 0;

	if (at == MAP_FAILED)
		return -errno;
	for (int pass = 0; pass < PASSES && left && !error; pass++) {
		left = 0;
		for (int64_t i = 0; i < pages; i++)
			(void)at[i * PAGE]; /* only a mapped page can be swapped out */
		if (pass)
			error = empty_batches();
		if (error)
			break;
		if (madvise((void *)at, pages * PAGE, MADV_PAGEOUT) ||
		    mincore((void *)at, pages * PAGE, in_memory))
			error = -errno;
		for (int64_t i = 0; i < pages && !error; i++)
			left += in_memory[i] & 1;
	}
	munmap((void *)at, pages * PAGE);
	return error ? error : left ? -EBUSY : 0;
}

static int write_pages(int fd, int64_t pages)
{
	static char data[PAGES * PAGE];

	for (size_t i = 0; i < sizeof(data); i += sizeof(uint64_t))
		data[i] = (char)(i / sizeof(uint64_t) + 1);
	return write_all(fd, data, pages * PAGE);
}

static int swap_out_file(const char *path, int64_t pages)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), error = fd < 0 ? -errno : 0;

	if (!error)
		error = swap_out(fd, 0, pages);
	if (fd >= 0)
		close(fd);
	return error;
}

/* -- processes that enter a cgroup, do something and exit -- */

static int make_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int error = fd < 0 ? -errno : write_pages(fd, PAGES);

	if (fd >= 0)
		close(fd);
	return error ? error : swap_out_file(path, PAGES);
}

/* How many pages of the child's file are in memory. */
static int64_t in_memory(void)
{
	int fd = open(FILE_OF_CHILD, O_RDONLY | O_CLOEXEC);
	unsigned char is_there[PAGES];
	int64_t count = 0;
	void *at;

	if (fd < 0)
		return -errno;
	at = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return -errno;
	if (mincore(at, PAGES * PAGE, is_there))
		count = -errno;
	for (int64_t i = 0; i < PAGES && count >= 0; i++)
		count += is_there[i] & 1;
	munmap(at, PAGES * PAGE);
	return count;
}

static int read_half(const char *path)
{
	static char data[PAGES / 2 * PAGE];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int error = fd < 0 ? -errno : read_all(fd, data, sizeof(data));

	if (fd >= 0)
		close(fd);
	return error;
}

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
	if (!error && memory_below && !version_1)
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

/*
 * How many removed cgroups are left if what is freed late was; -1 is an error of the trial. A busy
 * host needs seconds for the grace periods of a kernel with KASAN.
 */
static int64_t still_dying(struct trial *t, int64_t expected)
{
	int64_t end = now_ns() + PATIENCE_MS / 2 * 1000000LL;

	if (drain_stocks(t))
		return -1;
	while (dying() != expected && now_ns() < end)
		sleep_ms(10);
	return dying();
}

static int fail(struct trial *t, const char *what, int error)
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
	    in_cgroup(t, CHILD, make_file, FILE_OF_CHILD))
		return -1;
	check("swapped out", 2 * PAGES, 0);
	if (remove_cgroup(t, CHILD))
		return -1;
	wl_sample(t, "dying_count", still_dying(t, 0));
	judge(UPPER_EXACT, "the child was removed", swapped(UPPER), PAGES);
	check("the child was removed", 2 * PAGES, 0);
	if (in_cgroup(t, AWAY, read_half, FILE_OF_CHILD))
		return -1;
	present = in_memory();
	if (present < PAGES / 2)
		return wl_fail(t, "of the half that was read %lld pages are in memory",
			       (long long)present);
	judge(UPPER_EXACT, "half was read", swapped(UPPER), PAGES - present);
	check("half was read", 2 * PAGES - present, present);
	wl_sample(t, "elsewhere_count", resident(AWAY));
	if (remove_cgroup(t, UPPER))
		return -1;
	wl_sample(t, "dying_nested_count", still_dying(t, 0));
	check("both were removed", 2 * PAGES - present, present);
	return present;
}

static int free_all(struct trial *t, int64_t present)
{
	int64_t kept = PAGES * 3 / 4;

	if (truncate(FILE_OF_CHILD, kept * PAGE))
		return wl_fail(t, "cannot truncate " FILE_OF_CHILD ": %m");
	present = present < kept ? present : kept;
	check("a quarter was freed", PAGES + kept - present, present);
	if (in_cgroup(t, AWAY, turn_swap_off, NULL))
		return -1;
	check("swap was turned off", 0, PAGES + kept);
	if (fail(t, "cannot swap to " ZRAM_DEVICE, zram_swapon()) ||
	    fail(t, "cannot swap out again", swap_out_file(FILE_OF_CHILD, kept)) ||
	    fail(t, "cannot swap out again", swap_out_file(BALLAST_FILE, PAGES)))
		return -1;
	check("swapped out again", PAGES + kept, 0);
	if (unlink(FILE_OF_CHILD))
		return wl_fail(t, "cannot remove " FILE_OF_CHILD ": %m");
	check("the file was removed", PAGES, 0);
	judge(ALL_GONE, "after a round", still_dying(t, 0), 0);
	return 0;
}

/* -- the storm: cgroups are removed while their memory is swapped out, in and freed -- */

static void churn_once(struct prng *p, int number, const char *cgroup, const char *below)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), FILES "/storm%d", number);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || cgroup_enter(below) || write_pages(fd, STORM_PAGES))
		_exit(EXIT_FAILURE);
	/* Without swap, and where another task is faster, pages stay in memory. */
	swap_out(fd, 0, 1 + prng_below(p, STORM_PAGES));
	if (cgroup_enter(AWAY) || cgroup_remove(below, PATIENCE_MS))
		_exit(EXIT_FAILURE);
	swap_out(fd, 0, 1 + prng_below(p, STORM_PAGES));
	if (cgroup_remove(cgroup, PATIENCE_MS))
		_exit(EXIT_FAILURE);
	swap_out(fd, 0, STORM_PAGES);
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
		if (cgroup_make(cgroup) || (!version_1 && write_file(control, "+memory")) ||
		    cgroup_make(below))
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

static int storm(struct trial *t)
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
		if (version_1)
			write_file(TOP "/memory.force_empty", "0");
		else
			write_file(TOP "/memory.reclaim", "4M");
		if (fail(t, "cannot turn swap off", zram_swapoff()) ||
		    fail(t, "cannot swap to " ZRAM_DEVICE, zram_swapon()))
			return -1;
	}
	wl_sample(t, "swapoffs_count", turns);
	if (end_storm(t, pids, churners) || fail(t, "cannot turn swap off", zram_swapoff()))
		return -1;
	check("swap was turned off after the storm", 0, PAGES);
	if (fail(t, "cannot swap to " ZRAM_DEVICE, zram_swapon()) ||
	    fail(t, "cannot swap out the ballast", swap_out_file(BALLAST_FILE, PAGES)))
		return -1;
	check("after the storm", PAGES, 0);
	judge(ALL_GONE, "after the storm", still_dying(t, 0), 0);
	return 0;
}

/* -- the whole workload -- */

static int run(struct trial *t)
{
	int64_t present;
	struct kmsg m;
	int got;

	for (size_t i = 0; i < ARRAY_SIZE(results); i++)
		results[i].failed = false;
	check("before", PAGES, 0);
	present = remove_both(t);
	if (present < 0 || free_all(t, present))
		return -1;
	wl_alive(t, "storm");
	if (storm(t))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(results); i++)
		wl_check(t, results[i].name, !results[i].failed, "%s", results[i].detail);
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
	version_1 = true;
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
		return fail(t, "cannot read /dev/kmsg", log_fd);
	if (find_controller(t))
		return -1;
	if (make_cgroup(t, TOP, true) || make_cgroup(t, BALLAST, false) ||
	    make_cgroup(t, AWAY, false))
		return -1;
	if (fail(t, "cannot set up " ZRAM_DEVICE, zram_open("lzo-rle", ZRAM_BYTES)) ||
	    fail(t, "cannot swap to " ZRAM_DEVICE, zram_swapon()))
		return -1;
	if (mkdir(FILES, 0755) && errno != EEXIST)
		return wl_fail(t, "cannot make " FILES ": %m");
	/* Large folios are charged several pages at a time; not every kernel has them. */
	if (mount("tmpfs", FILES, "tmpfs", 0, "huge=always") &&
	    mount("tmpfs", FILES, "tmpfs", 0, NULL))
		return wl_fail(t, "cannot mount a tmpfs on " FILES ": %m");
	return in_cgroup(t, BALLAST, make_file, BALLAST_FILE);
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
	if (version_1)
		umount2(CGROUP_ROOT, MNT_DETACH);
	else
		write_file(CGROUP_ROOT "cgroup.subtree_control", "-memory");
	version_1 = false;
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
