/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters that every kernel has, before and after a script: what memory is used for, what the
 * slabs have, what control groups exist.
 */
#ifndef KTEARDOWN_SCRIPT_SNAPSHOT_H
#define KTEARDOWN_SCRIPT_SNAPSHOT_H

#include "workload.h"

/* The largest of the files is slabinfo, with about 70 bytes for each of 200 to 400 caches. */
#define SNAPSHOT_TEXT 65536
#define SNAPSHOT_FILES 6
#define SNAPSHOT_NAME 96

struct snapshot {
	char text[SNAPSHOT_FILES][SNAPSHOT_TEXT];
};

/* Touches the memory, so that reading a file later uses no new page. */
void snapshot_init(struct snapshot *s);
/* A file that does not exist has the text "". */
void snapshot_take(struct snapshot *s);
/*
 * Takes the next counter from the text, which is moved on: its name without a colon at the end,
 * and the number that follows; of slabinfo, the objects in use. False at the end.
 */
bool snapshot_next(const char **text, char name[SNAPSHOT_NAME], int64_t *value);
/*
 * Writes a record for each counter that changed; a missing counter counts as 0, and those of a file
 * that has gone are left out.
 */
void snapshot_report(const struct snapshot *before, const struct snapshot *after, int trial,
		     int repetition);

#endif
