/* SPDX-License-Identifier: GPL-2.0 */
/* Namespaces, each of which a descriptor or a process keeps. */
#ifndef KTEARDOWN_HUNT_NAMESPACES_H
#define KTEARDOWN_HUNT_NAMESPACES_H

#include "hunt/kind.h"

#include <sched.h>

static pid_t *namespace_pids;

/* For prepare(): an ordinary user makes the namespaces in a user namespace in which it is root. */
static inline void namespaces_prepare(void)
{
	new_namespaces(0);
	namespace_pids = array(sizeof(*namespace_pids));
}

/* A new namespace of the owner itself, which it leaves for the next one. */
static inline int namespace_open(int flag, const char *name)
{
	char path[64];

	MUST(unshare(flag));
	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	return MUST(open(path, O_RDONLY | O_CLOEXEC));
}

/* A process that is in new namespaces. */
static inline void namespace_add(int64_t i, int flags)
{
	namespace_pids[i] = child(flags, true);
	if (!namespace_pids[i])
		wait_to_be_killed();
}

/* For remove() */
static inline void namespace_remove(int64_t i)
{
	MUST(kill(namespace_pids[i], SIGKILL));
	MUST(waitpid(namespace_pids[i], NULL, 0));
}

/* A descriptor of the namespace of a child, which is ended. */
static inline int namespace_open_of_child(int flag, const char *name)
{
	char path[64];
	int fd;

	namespace_add(0, flag);
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", namespace_pids[0], name);
	fd = MUST(open(path, O_RDONLY | O_CLOEXEC));
	namespace_remove(0);
	return fd;
}

/* For release(): kills all processes, the youngest of which is waited for first. */
static inline void namespaces_release(void)
{
	int64_t i;

	for (i = 0; i < nr_objects; i++)
		MUST(kill(namespace_pids[i], SIGKILL));
	for (i = nr_objects - 1; i >= 0; i--)
		MUST(waitpid(namespace_pids[i], NULL, 0));
}

#endif
