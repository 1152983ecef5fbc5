/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of the chain share. */
#ifndef KTEARDOWN_CHAIN_PARTS_H
#define KTEARDOWN_CHAIN_PARTS_H

#include <stdatomic.h>

#include "chain.h"

/* File descriptors in the holder; a link keeps the first and the third. */
enum {
	CHAIN_LEFT, /* a link reads here; in the holder the end of the chain so far */
	CHAIN_NEXT, /* a new pipe's reading end, for the next link */
	CHAIN_RIGHT, /* a link writes here */
	CHAIN_REST, /* from here on nothing is a link's */
	CHAIN_ANSWERS = CHAIN_REST,
	CHAIN_ORDERS,
	CHAIN_HEAD, /* writing end of the first pipe */
	CHAIN_LAST, /* writing end of the last pipe, made first where links are nested */
	CHAIN_TAIL, /* and its reading end */
};

/* A link as a program of its own. */
#define CHAIN_PROGRAM "chain_program"

struct chain_answer {
	enum { CHAIN_DONE, CHAIN_PROGRESS, CHAIN_FAILED } kind;
	int64_t value; /* done: of the order; progress: links so far; failed: the error number */
};

/* Shared by agent, holder and, where nested, the links. */
struct chain_shared {
	struct chain_end end;
	pid_t group; /* of the links */
	pid_t agents_group; /* where the holder goes when all links are in theirs */
	int64_t made;
	char step[64]; /* what failed */
	pid_t pids[];
};

/* A link's whole life: pass the token on until killed. Touches no memory but its stack. */
__attribute__((noreturn)) void chain_link(bool used_pipes);

/* The holder's life: carry out orders (a byte each: 'm', 'p', 'r') and answer. */
__attribute__((noreturn)) void chain_hold(const struct chain_spec *spec, struct chain_shared *m);

/* Wait for all links, as the spec says; fills in m->end. */
void chain_reap_links(const struct chain_spec *spec, struct chain_shared *m);

#endif
