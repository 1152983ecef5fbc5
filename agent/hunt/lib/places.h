/* SPDX-License-Identifier: GPL-2.0 */
/* A program with a place for a uprobe for each object: one instruction of one byte. */
#ifndef KTEARDOWN_HUNT_PLACES_H
#define KTEARDOWN_HUNT_PLACES_H

#include "hunt/lib/names.h"

static char places_path[4096];

/* Place i is at offset i of the file places_path. */
static inline void places_prepare(void)
{
	char nops[4096];
	int64_t i;
	int fd = make_file("file");

	memset(nops, 0x90, sizeof(nops));
	for (i = 0; i < nr_objects; i += sizeof(nops))
		MUST(write(fd, nops, sizeof(nops)));
	close(fd);
	MUST((long)getcwd(places_path, sizeof(places_path) - 10));
	strcat(places_path, "/file");
}

#endif
