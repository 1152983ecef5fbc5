/* SPDX-License-Identifier: GPL-2.0 */
/* The process that makes the objects of a kind, and releases them. */
#ifndef KTEARDOWN_HUNT_OWNER_H
#define KTEARDOWN_HUNT_OWNER_H

#include "hunt/kind.h"

enum way { WAY_EXIT, WAY_CALL, WAY_OLDEST, WAY_YOUNGEST, WAY_RANDOM, NR_WAYS };

extern const char *const way_names[]; /* ended by NULL */

/* In memory that the owner shares with its parent. */
struct owner_report {
	int64_t made_ns; /* how long making took */
	int64_t start_ns, end_ns; /* of the release, unless it was by exit */
	int64_t left;
	/* How often it gave up the CPU until it had made its objects, and while it released them.
	 */
	int64_t made_waits, waits;
	int error; /* errno of the call that failed */
	char call[120]; /* that failed; empty: none */
};

struct owner_spec {
	const struct kind *kind;
	enum way way;
	int64_t objects, residents;
	uint64_t seed; /* of the random order */
	bool user; /* run as an ordinary user, within the limits that it has */
	const char *name; /* of its processes; NULL: that of the caller */
	int cpu; /* -1: any */
	const char *folder; /* an empty folder */
};

struct owner {
	struct owner_spec spec;
	struct owner_report *report;
	pid_t pid;
	int from, to;
};

/* The kind of this name, or of this index; NULL if there is none. */
const struct kind *kind_named(const char *name);
const struct kind *kind_at(int index);
bool kind_has_way(const struct kind *k, enum way way);

int64_t clock_ns(void);
/*
 * Starts the owner; when this returns, it has prepared what its kind needs. False: a call failed,
 * which is in the report.
 */
bool owner_start(struct owner *o, const struct owner_spec *spec);
/* When this returns, the owner has made its objects. False: a call failed. */
bool owner_make(struct owner *o);
/* Begins the release; owner_released() waits for its end. False: a call failed. */
void owner_release(struct owner *o);
bool owner_released(struct owner *o);
/* Kills the owner if it lives, and gives its memory back. Its report must not be used any more. */
void owner_end(struct owner *o);

#endif
