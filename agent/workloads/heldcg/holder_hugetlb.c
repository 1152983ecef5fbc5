// SPDX-License-Identifier: GPL-2.0
/*
 * Huge pages of files on hugetlbfs: one that is used, which counts as memory of the cgroup with the
 * mount option memory_hugetlb_accounting, and one that is only reserved, which the controller
 * hugetlb counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holders.h"
#include "lib/cgroup.h"
#include "lib/meminfo.h"

#define PLACE "/tmp/held-huge"
#define POOL "/proc/sys/vm/nr_hugepages"
#define HUGE_PAGE (2 << 20)
/* What a CPU keeps charged in advance, and the processes. */
#define CURRENT_SLACK (2 << 20)

static int64_t field(const char *name)
{
	char text[4096];

	return read_file("/proc/meminfo", text, sizeof(text)) < 0 ? -1 : meminfo_field(text, name);
}

/* Without the option, cgroup2 has none: so it was mounted. */
static int account(const char *option)
{
	return mount("none", CGROUP_ROOT, "cgroup2", MS_REMOUNT, option) ? -errno : 0;
}

static int prepare_pool(struct trial *t, int64_t count)
{
	int error = write_file(POOL, "%lld", (long long)count);

	if (error)
		return wl_fail(t, "cannot make huge pages: %s; the kernel needs HUGETLBFS",
			       strerror(-error));
	if (field("Hugepagesize") != HUGE_PAGE / 1024 || field("HugePages_Total") != count)
		return wl_fail(t, "%lld huge pages of %lld kB instead of %lld of %d kB",
			       (long long)field("HugePages_Total"),
			       (long long)field("Hugepagesize"), (long long)count,
			       HUGE_PAGE / 1024);
	if (mkdir(PLACE, 0755) && errno != EEXIST)
		return wl_fail(t, "cannot make " PLACE ": %m");
	if (mount("none", PLACE, "hugetlbfs", 0, NULL))
		return wl_fail(t, "cannot mount hugetlbfs: %m");
	return 0;
}

static int prepare_used(struct trial *t, int64_t count)
{
	int error = account("memory_hugetlb_accounting");

	if (error)
		return wl_fail(t, "cannot mount cgroup2 with memory_hugetlb_accounting: %s",
			       strerror(-error));
	return prepare_pool(t, count);
}

static char *map_page(int64_t number, int flags, struct made *made)
{
	int fd = held_make_file(PLACE, number, made);
	char *page;

	if (ftruncate(fd, HUGE_PAGE))
		made_check(made, "setting the size of a file", -errno);
	page = mmap(NULL, HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);
	if (page == MAP_FAILED)
		made_check(made, "mapping a huge page", -errno);
	close(fd);
	return page;
}

static void make_used(int64_t number, struct made *made)
{
	map_page(number, MAP_NORESERVE, made)[0] = 1;
}

/* A reservation for a shared mapping is the file's, and remains when the process exits. */
static void make_reserved(int64_t number, struct made *made)
{
	map_page(number, 0, made);
}

static int64_t count_used(const int64_t *kept, int64_t count, bool outside)
{
	(void)kept;
	(void)count;
	(void)outside;
	return field("HugePages_Total") - field("HugePages_Free");
}

static int64_t count_reserved(const int64_t *kept, int64_t count, bool outside)
{
	(void)kept;
	(void)count;
	(void)outside;
	return field("HugePages_Rsvd");
}

static int delete_file(int64_t number, int64_t kept)
{
	char path[HELD_PATH_SIZE];

	(void)kept;
	held_path(path, PLACE, number);
	return unlink(path) ? -errno : 0;
}

static void tidy_pool(void)
{
	umount(PLACE);
	rmdir(PLACE);
	write_file(POOL, "0");
}

static void tidy_used(void)
{
	tidy_pool();
	account("");
}

const struct holder holder_hugetlb = {
	.name = "hugetlb",
	.charge = {"memory.current", NULL, .bytes = HUGE_PAGE, .slack_bytes = CURRENT_SLACK},
	.prepare = prepare_used,
	.make = make_used,
	.count = count_used,
	.release = delete_file,
	.tidy = tidy_used,
};

const struct holder holder_hugetlb_reserved = {
	.name = "hugetlb-reserved",
	.controller = "hugetlb",
	.charge = {"hugetlb.2MB.rsvd.current", NULL, .bytes = HUGE_PAGE},
	.prepare = prepare_pool,
	.make = make_reserved,
	.count = count_reserved,
	.release = delete_file,
	.tidy = tidy_pool,
};
