// SPDX-License-Identifier: GPL-2.0
#include "tenants.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/cgroup.h"

#define ORDER_MS 60000

/* -- files and memory -- */

static void file_name(char *name, size_t size, const struct tenant *me, int which)
{
	snprintf(name, size, "%s/%d.%d", me->folder, me->number, which);
}

int tenant_write(const char *name, int pages)
{
	char page[ACCOUNTING_PAGE];
	int error = 0, fd = open(name, O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0600);

	memset(page, 'k', sizeof(page));
	if (fd < 0)
		return -errno;
	for (; pages && !error; pages--)
		error = write_all(fd, page, sizeof(page));
	close(fd);
	return error;
}

char *tenant_map(const char *name, size_t bytes)
{
	int fd = open(name, O_RDWR | O_CLOEXEC);
	char *map = MAP_FAILED;

	if (fd >= 0)
		map = mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (fd >= 0)
		close(fd);
	return map;
}

void tenant_remap(char *map, size_t bytes)
{
	madvise(map, bytes, MADV_DONTNEED);
	for (size_t i = 0; i < bytes; i += ACCOUNTING_PAGE)
		(void)*(volatile char *)(map + i);
}

/* -- a tenant -- */

static char *anon, *mapped, *huge;

static char *map_anon(size_t bytes, int flags)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1,
		    0);
}

/* If the kernel has no huge pages, madvise() fails and small ones are used. */
static int touch_memory(void)
{
	anon = map_anon(TENANT_ANON_PAGES * ACCOUNTING_PAGE, MAP_POPULATE);
	huge = map_anon(TENANT_HUGE_BYTES, 0);
	if (anon == MAP_FAILED || huge == MAP_FAILED)
		return -errno;
	madvise(huge, TENANT_HUGE_BYTES, MADV_HUGEPAGE);
	memset(huge, 1, TENANT_HUGE_BYTES);
	return 0;
}

static int fill(const struct tenant *me)
{
	char name[128];
	int error = cgroup_enter(me->cgroup);

	for (int i = 0; i < TENANT_FILES + TENANT_EMPTY_FILES && !error; i++) {
		file_name(name, sizeof(name), me, i);
		error = tenant_write(name, i < TENANT_FILES ? TENANT_FILE_PAGES : 0);
	}
	if (!error)
		error = touch_memory();
	file_name(name, sizeof(name), me, 0);
	mapped = tenant_map(name, TENANT_MAPPED_PAGES * ACCOUNTING_PAGE);
	if (mapped == MAP_FAILED)
		return -errno;
	return error ? error : cgroup_enter(me->away);
}

static int halve(const struct tenant *me)
{
	char name[128];

	for (int i = 1; i < TENANT_FILES; i += 2) {
		file_name(name, sizeof(name), me, i);
		if (unlink(name))
			return -errno;
	}
	munmap(huge, TENANT_HUGE_BYTES);
	munmap(anon, TENANT_ANON_PAGES / 2 * ACCOUNTING_PAGE);
	return 0;
}

static int empty(const struct tenant *me)
{
	char name[128];

	munmap(mapped, TENANT_MAPPED_PAGES * ACCOUNTING_PAGE);
	munmap(anon + TENANT_ANON_PAGES / 2 * ACCOUNTING_PAGE,
	       TENANT_ANON_PAGES / 2 * ACCOUNTING_PAGE);
	for (int i = 0; i < TENANT_FILES + TENANT_EMPTY_FILES; i++) {
		file_name(name, sizeof(name), me, i);
		if (unlink(name) && !(i < TENANT_FILES && i % 2))
			return -errno;
	}
	return 0;
}

static int carry_out(struct tenant *me, int order)
{
	switch (order) {
	case ORDER_FILL:
		return fill(me);
	case ORDER_HALVE:
		return halve(me);
	case ORDER_EMPTY:
		return empty(me);
	case ORDER_END:
		_exit(0);
	default:
		return 0;
	}
}

static void run_tenant(struct tenant *me)
{
	for (int last = ORDER_NONE;;) {
		int order = me->order;

		if (order == ORDER_REMAP)
			tenant_remap(mapped, TENANT_MAPPED_PAGES * ACCOUNTING_PAGE);
		else if (order == last)
			sleep_ms(1);
		if (order == last)
			continue;
		me->failed = -carry_out(me, order);
		last = order;
		me->done = order;
	}
}

pid_t tenant_start(struct tenant *tenant)
{
	pid_t pid;

	tenant->order = tenant->done = ORDER_NONE;
	pid = fork();
	if (!pid)
		run_tenant(tenant);
	return pid;
}

int tenant_order(struct tenant *tenant, enum order order)
{
	int64_t end = now_ns() + ORDER_MS * 1000000LL;

	tenant->order = order;
	while (order != ORDER_END && tenant->done != (int)order) {
		if (now_ns() > end)
			return -ETIMEDOUT;
		sleep_ms(1);
	}
	return -tenant->failed;
}
