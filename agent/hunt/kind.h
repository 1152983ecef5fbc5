/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A kind: a way to make many kernel objects, and to release them. Each is a file kinds/NAME.c,
 * and no other file is edited:
 *
 *	#include "hunt/kind.h"
 *
 *	#include <sys/file.h>
 *
 *	static int open_one(int64_t i)
 *	{
 *		int fd = MUST(open("file", O_RDWR | O_CREAT, 0600));
 *
 *		(void)i;
 *		MUST(flock(fd, LOCK_SH));
 *		return fd;
 *	}
 *
 *	KIND(flocks, "files", "open file of one inode with a shared flock", .shape = ON_ONE,
 *	     .limit = "nofile", .open = open_one);
 *
 * Its functions run in a process of their own, the owner, in an empty folder of its own. Only
 * libc is used here, since a kind is also made into a program of one file. This header comes
 * before those of the system, for _GNU_SOURCE.
 */
#ifndef KTEARDOWN_HUNT_KIND_H
#define KTEARDOWN_HUNT_KIND_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum shape {
	OF_ONE, /* one owner has all objects */
	ON_ONE, /* all objects are attached to one other object */
	OWNERS, /* as many owners as objects */
};

/*
 * The objects are made by open(), by add(), or all at once by make(). They are released in as
 * many ways as the kind has functions for:
 *
 *	exit      the owner is killed: always with open(), otherwise if `exit` is true
 *	oldest, youngest, random
 *	          one after another in this order: with remove(), or by close() after open()
 *	call      all at once with release()
 */
struct kind {
	const char *name, *part, *object;
	enum shape shape;
	bool exit;
	bool privileged; /* an ordinary user cannot do it */
	bool timers; /* each object has a high-resolution timer; see idle_total_ns() */
	const char *limit; /* what limits the number of objects; src/kteardown_hunt/limits.py */
	const char *modules; /* that a distribution's kernel needs for it, with blanks between */
	const char *needs; /* the symbol (CONFIG_...) without which it fails */
	const char *call; /* what release() calls, in words */
	int64_t most; /* a limit that is in the kind or the kernel itself; 0: none */

	void (*prepare)(void); /* before the objects are made */
	int (*open)(int64_t i); /* returns the descriptor that holds object i */
	void (*add)(int64_t i);
	void (*make)(void);
	void (*remove)(int64_t i);
	void (*release)(void);
	/* How many objects still exist after the release; checked if it is there. */
	int64_t (*left)(void);

	/*
	 * What stays while the objects are released: stay() makes one of nr_residents in the owner,
	 * after prepare(). A kind that has it also works with no objects, and then releases none:
	 * what that costs is not paid for the objects. So residents may end in the same release, as
	 * the inodes of a file system do whose unmounting is the release of its watches.
	 */
	const char *resident; /* what one of them is */
	const char *residents_limit; /* as limit */
	int64_t most_residents; /* if they are too expensive to be measured with more; 0: they are
				   not */
	void (*stay)(int64_t i);
};

/* Puts the kind into the list that the linker makes of the section "kinds". */
#define KIND(id, part_, object_, ...)                                                              \
	static const struct kind kind_##id = {                                                     \
		.name = #id, .part = part_, .object = object_, __VA_ARGS__};                       \
	static const struct kind *const kind_##id##_registered                                     \
		__attribute__((used, section("kinds"))) = &kind_##id

/* -- what a kind may use; all of it is in owner.c -- */

/* How many objects to make, and how many residents before them. */
extern int64_t nr_objects, nr_residents;

/* Ends the owner with a message if the call returns -1; otherwise returns its value. */
#define MUST(call)                                                                                 \
	({                                                                                         \
		long value_ = (long)(call);                                                        \
		if (value_ == -1)                                                                  \
			owner_failed(#call);                                                       \
		value_;                                                                            \
	})
__attribute__((noreturn)) void owner_failed(const char *call);

/* Writes a text to a file in one write. 0 or -errno. */
int put_file(const char *path, const char *text);
/* Makes an array of as many elements as there are objects, or of so many, in zeroed memory. */
void *array(size_t element);
void *array_of(int64_t number, size_t element);
/* unshare(), for an ordinary user together with a user namespace in which it is root. */
void new_namespaces(int flags);
/*
 * fork(), or a clone() with such flags: the child returns 0 and never goes on without the
 * owner's parent, since its parent's death kills it if `dies` is true.
 */
pid_t child(unsigned long flags, bool dies);
/* Sleeps until a signal kills the process. */
__attribute__((noreturn)) void wait_to_be_killed(void);
/* Lets a child say to its parent that it is ready: ready_wait() returns after ready_say(). */
void ready_make(void);
void ready_say(void);
void ready_wait(void);

#endif
