/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Processes chained by pipes: each reads its left neighbour and writes its right
 * one. A holder makes them, in a process group of their own that it is not in, as
 * a shell would, and reaps them.
 *
 *	chain_open()   the holder is there
 *	chain_make()   so are the links
 *	chain_prove()  a token went through all of them, and each waits for the next
 *	chain_reap()   the holder begins to wait for the links, or leaves them to the agent
 *	kill(-chain.group, SIGKILL)
 *	chain_gone()   the last link was reaped
 *	chain_close()  nothing is left, whatever happened
 */
#ifndef KTEARDOWN_CHAIN_H
#define KTEARDOWN_CHAIN_H

#include <sys/types.h>

#include "workload.h"

/* How a link is made. */
enum chain_make {
	CHAIN_SHARED, /* clone: a process of its own on the holder's memory */
	CHAIN_FORK,
	CHAIN_EXEC, /* fork, and execute a small program */
	CHAIN_NESTED, /* each link forks the next; they are the holder's when their parents die */
};

/* How their parent lets go of dead links. */
enum chain_reap {
	CHAIN_NEWEST, /* wait for each by its number, newest first: in the order of the kernel's
			 kill */
	CHAIN_OLDEST, /* the same, oldest first */
	CHAIN_ANY, /* wait for any child: the kernel looks through all of them for a dead one */
	CHAIN_IGNORE, /* SIGCHLD is ignored: no link becomes a zombie */
};

struct chain_spec {
	int64_t links;
	enum chain_make make;
	enum chain_reap reap;
	int signo; /* what will kill them */
	bool orphans; /* the holder is gone before the signal, and the links are the agent's: PID
			 1's */
	bool used_pipes; /* of the usual size and with a page, as after a write; or the smallest */
};

struct chain {
	struct chain_spec spec;
	pid_t holder, group; /* 0: none */
	int orders, answers; /* our ends of the holder's pipes */
	struct chain_shared *shared;
};

struct chain_end {
	int64_t gone_ns; /* when the last was reaped */
	int64_t killed; /* links whose wait status says that the signal killed them */
	int64_t vanished; /* links of which nothing was left to wait for */
};

/* Each returns 0, or what wl_fail() returns. */
int chain_open(struct trial *t, struct chain *c, const struct chain_spec *spec);
int chain_make(struct trial *t, struct chain *c, int64_t *create_ns);
/* passed: how many links the token was told by. */
int chain_prove(struct trial *t, struct chain *c, int64_t *passed);
int chain_reap(struct trial *t, struct chain *c);
/* Speaks up every 10 s: too seldom for a record to show in what is measured meanwhile. */
int chain_gone(struct trial *t, struct chain *c, struct chain_end *end);

void chain_close(struct chain *c);

#endif
