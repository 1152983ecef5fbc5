/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What stays in the guest while the objects of another kind are released: objects of any kind of
 * the catalogue, made by processes of their own. They stay for as many trials as ask for the same.
 */
#ifndef KTEARDOWN_HUNT_RESIDENTS_H
#define KTEARDOWN_HUNT_RESIDENTS_H

#include "hunt/owner.h"
#include "workload.h"

/* Kinds that can stay at once. */
#define RESIDENTS_MOST 16

struct resident {
	const struct kind *kind; /* NULL: what the released kind declares itself */
	int64_t number;
};

/*
 * Reads "files=4608,mounts=1152", or "-" for none; "declared=1152" means the residents of the
 * released kind itself. Returns how many there are, or -1 if the text is something else.
 */
int residents_parse(const char *text, struct resident residents[RESIDENTS_MOST]);
/* How many residents of the released kind the text asks for. */
int64_t residents_declared(const char *text);

/*
 * Makes the residents of other kinds that the text asks for, unless they are there, and ends those
 * that it does not ask for. 0, or what wl_fail() returns.
 */
int residents_make(struct trial *t, const char *text, bool user);
/* Whether there are residents of other kinds. */
bool residents_are_there(void);
/* Whether some of them have a timer each. */
bool residents_have_timers(void);
/* Kills and reaps every process but this one and the residents. */
void residents_kill_others(void);

#endif
