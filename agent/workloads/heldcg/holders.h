/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The holders: what a process makes in a memory cgroup that may hold the cgroup after its
 * removal. Each is a struct holder in a file holder_*.c, and an entry of the list in holders.c.
 */
#ifndef KTEARDOWN_HOLDERS_H
#define KTEARDOWN_HOLDERS_H

#include "workload.h"

#define HELD_PARENT CGROUP_ROOT "held" /* the parent of all cgroups */
/* A cgroup in HELD_PARENT that is not removed. */
#define HELD_OUTSIDE HELD_PARENT "/outside"
/* A file system that contains only the objects' files, 0, 1, ... */
#define HELD_FILES "/tmp/held"

/* What a process has made, in memory that all processes share. */
struct made {
	int error; /* -errno of the step that failed; 0: none */
	char step[40];
	int descriptor; /* of a holder that shares descriptors; 0: none */
};

/*
 * By what the kernel shows that an object is charged to a cgroup: a file of the cgroup and, in
 * files of several lines, a key. The values are also those of the cgroups below.
 */
struct charge {
	const char *file, *key;
	int64_t pages, bytes; /* of each object; their sum counts */
	/*
	 * 0: exactly these bytes. Otherwise at least these, and where the objects are not, at
	 * most slack_bytes for all of them.
	 */
	int64_t slack_bytes;
};

struct holder {
	const char *name; /* the value of the parameter; with -outside, made in HELD_OUTSIDE */
	bool only_inside; /* there is no -outside */
	bool nested; /* it is made in a cgroup in the cgroup, which is removed as well */
	bool zombie; /* it is the process itself */
	bool shares_descriptors; /* the process and the agent have one table of descriptors */
	/* When an object is freed, a CPU's stock of charged pages can still hold its cgroup. */
	bool stocked;
	const char *controller; /* that the cgroups have besides memory; NULL: none */
	int64_t file_pages, swapped_pages; /* pages of files in memory, and in swap, of each */
	struct charge charge; /* no file: none */

	/* In setup(), before the first cgroup is made; NULL: nothing. Returns wl_fail()'s value. */
	int (*prepare)(struct trial *t, int64_t count);
	/* In the process, in its cgroup. Reports to made and exits if it fails. NULL: nothing. */
	void (*make)(int64_t number, struct made *made);
	/*
	 * In the agent, after the process: *kept is what release() gets, a pid, a descriptor or
	 * an address; 0: nothing. NULL: the pid of a zombie, the descriptor, or 0. Returns -errno.
	 */
	int (*keep)(int64_t number, int64_t *kept);
	/* After the last removal. NULL: nothing. Returns wl_fail()'s value. */
	int (*removed)(struct trial *t, int64_t count);
	/* How many of the objects exist. kept: of each object. NULL: they are not counted. */
	int64_t (*count)(const int64_t *kept, int64_t count, bool outside);
	/* Before the first release(). NULL: nothing. Returns wl_fail()'s value. */
	int (*before_release)(struct trial *t);
	/* Releases one object. NULL: nothing. Returns -errno. */
	int (*release)(int64_t number, int64_t kept);
	/* In cleanup(), also if prepare() has failed or was not called. NULL: nothing. */
	void (*tidy)(void);
};

/*
 * The choices of the parameter, ended by NULL: every holder's name, and the names with
 * -outside. In a static buffer.
 */
const char *const *holder_choices(void);
/* The holder of a choice, by its index; *outside: whether it ends in -outside. */
const struct holder *holder_of(int choice, bool *outside);

/* -- for make() -- */

/* Ends the process if error is not 0; the step is what it did, as "making a file". */
void made_check(struct made *made, const char *step, int error);

/* -- the number'th file of HELD_FILES or of another folder -- */

#define HELD_PATH_SIZE 64
void held_path(char path[HELD_PATH_SIZE], const char *folder, int64_t number);
/* Makes the file; returns its descriptor, or ends the process. */
int held_make_file(const char *folder, int64_t number, struct made *made);
/* Writes a page of data that do not compress to nothing. 0 or -errno. */
int held_write_page(int fd, int64_t number);
/* Deletes the file of HELD_FILES: a release(). */
int held_delete_file(int64_t number, int64_t kept);

extern const struct holder holder_none, holder_zombie;
extern const struct holder holder_file, holder_swapped, holder_child, holder_mlocked, holder_inode;
extern const struct holder holder_inotify, holder_socket;
extern const struct holder holder_hugetlb, holder_hugetlb_reserved;
extern const struct holder holder_dirty, holder_written, holder_written_late;

#endif
