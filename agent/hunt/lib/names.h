/* SPDX-License-Identifier: GPL-2.0 */
/* Files whose names are numbers. */
#ifndef KTEARDOWN_HUNT_NAMES_H
#define KTEARDOWN_HUNT_NAMES_H

#include "hunt/kind.h"

/* The name of file i, until the next call. */
static inline const char *name_of(int64_t i)
{
	static char name[24];

	snprintf(name, sizeof(name), "%lld", (long long)i);
	return name;
}

static inline int make_file(const char *name)
{
	return MUST(open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
}

static inline void make_closed_file(const char *name)
{
	close(make_file(name));
}

/* Opens a descriptor once more: the new one has an open file of its own. */
static inline int open_again(int fd, int flags)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return MUST(open(path, flags));
}

#endif
