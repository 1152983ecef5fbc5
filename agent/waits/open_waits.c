// SPDX-License-Identifier: GPL-2.0
/* The tasks that wait, by their thread number. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "waits.h"

#define ROOM_MIN 1024
/* Spreads consecutive numbers over the table. */
#define PRIME 2654435761u

/* The entry of the task, or the free one where it belongs. */
static struct open_wait *place_of(const struct open_waits *o, int tid)
{
	size_t at = (uint32_t)tid * PRIME & (o->room - 1);

	while (o->all[at].tid && o->all[at].tid != tid)
		at = (at + 1) & (o->room - 1);
	return &o->all[at];
}

/* Keeps half of the table free. */
static int grow(struct open_waits *o)
{
	struct open_waits bigger = {.room = o->room ? o->room * 2 : ROOM_MIN};
	size_t i;

	if (o->nr * 2 < o->room)
		return 0;
	bigger.all = calloc(bigger.room, sizeof(*bigger.all));
	if (!bigger.all)
		return -ENOMEM;
	for (i = 0; i < o->room; i++)
		if (o->all[i].tid)
			*place_of(&bigger, o->all[i].tid) = o->all[i];
	bigger.nr = o->nr;
	free(o->all);
	*o = bigger;
	return 0;
}

int open_waits_begin(struct open_waits *o, int tid, int64_t from_ns, const uint64_t *chain, int nr)
{
	struct open_wait *w;
	uint64_t *copy;

	if (grow(o))
		return -ENOMEM;
	w = place_of(o, tid);
	copy = realloc(w->chain, (nr + 1) * sizeof(*chain));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, chain, nr * sizeof(*chain));
	o->nr += !w->tid;
	*w = (struct open_wait){.tid = tid, .from_ns = from_ns, .nr = nr, .chain = copy};
	return 0;
}

struct open_wait *open_waits_end(struct open_waits *o, int tid)
{
	struct open_wait *w = o->room ? place_of(o, tid) : NULL;

	return w && w->tid && w->nr ? w : NULL;
}

void open_waits_free(struct open_waits *o)
{
	size_t i;

	for (i = 0; i < o->room; i++)
		free(o->all[i].chain);
	free(o->all);
	memset(o, 0, sizeof(*o));
}
