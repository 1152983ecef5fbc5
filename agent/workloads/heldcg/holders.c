// SPDX-License-Identifier: GPL-2.0
#include "holders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/swap_data.h"
#include "lib/tasks.h"

#define EXIT_MS 10000
#define NAME_SIZE 48

static const struct holder *const holders[] = {
	&holder_none,
	&holder_file,
	&holder_swapped,
	&holder_zombie,
	&holder_child,
	&holder_mlocked,
	&holder_inode,
	&holder_inotify,
	&holder_socket,
	&holder_hugetlb,
	&holder_hugetlb_reserved,
	&holder_dirty,
	&holder_written,
	&holder_written_late,
};

const char *const *holder_choices(void)
{
	static char outside[ARRAY_SIZE(holders)][NAME_SIZE];
	static const char *choices[2 * ARRAY_SIZE(holders) + 1];
	size_t found = 0, i;

	for (i = 0; i < ARRAY_SIZE(holders); i++)
		choices[found++] = holders[i]->name;
	for (i = 0; i < ARRAY_SIZE(holders); i++) {
		if (holders[i]->only_inside)
			continue;
		snprintf(outside[i], NAME_SIZE, "%s-outside", holders[i]->name);
		choices[found++] = outside[i];
	}
	choices[found] = NULL;
	return choices;
}

const struct holder *holder_of(int choice, bool *outside)
{
	int left = choice - (int)ARRAY_SIZE(holders);

	*outside = left >= 0;
	if (!*outside)
		return holders[choice];
	for (size_t i = 0; i < ARRAY_SIZE(holders); i++) {
		if (!holders[i]->only_inside && left-- == 0)
			return holders[i];
	}
	return NULL;
}

void made_check(struct made *made, const char *step, int error)
{
	if (!error)
		return;
	made->error = error;
	snprintf(made->step, sizeof(made->step), "%s", step);
	_exit(EXIT_FAILURE);
}

void held_path(char path[HELD_PATH_SIZE], const char *folder, int64_t number)
{
	snprintf(path, HELD_PATH_SIZE, "%s/%lld", folder, (long long)number);
}

int held_make_file(const char *folder, int64_t number, struct made *made)
{
	char path[HELD_PATH_SIZE];
	int fd;

	held_path(path, folder, number);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	made_check(made, "making a file", fd < 0 ? -errno : 0);
	return fd;
}

int held_write_page(int fd, int64_t number)
{
	struct swap_data_spec spec = {.one_size = true};
	size_t page_size = sysconf(_SC_PAGESIZE);
	char page[page_size];

	swap_data_fill(&spec, number, 0, page, page_size);
	return write_all(fd, page, page_size);
}

int held_delete_file(int64_t number, int64_t kept)
{
	char path[HELD_PATH_SIZE];

	(void)kept;
	held_path(path, HELD_FILES, number);
	return unlink(path) ? -errno : 0;
}

/* The process only enters the cgroup. */
const struct holder holder_none = {
	.name = "none",
	.only_inside = true,
};

static int64_t count_zombies(const int64_t *kept, int64_t count, bool outside)
{
	int64_t zombies = 0;

	(void)outside;
	for (int64_t i = 0; i < count; i++)
		zombies += kept[i] && task_state(kept[i]) == 'Z';
	return zombies;
}

static int reap(int64_t number, int64_t kept)
{
	(void)number;
	return kept && task_reap(kept, EXIT_MS) < 0 ? -ETIMEDOUT : 0;
}

/* The process itself, which is not reaped. */
const struct holder holder_zombie = {
	.name = "zombie",
	.zombie = true,
	.count = count_zombies,
	.release = reap,
};
