/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Processes that are chained by pipes: each reads from its left neighbour and writes to its right
 * one. A process called the holder makes them, in a process group that it leaves afterwards, as a
 * shell would, and reaps them.
 *
 *	chain_open()   the holder exists
 *	chain_make()   the links exist
 *	chain_prove()  a token has passed through all of them, and each waits for the next
 *	chain_reap()   the holder begins to wait for the links, or leaves them to the agent
 *	kill(-chain.group, SIGKILL)
 *	chain_gone()   the last link was reaped
 *	chain_close()  nothing is left, in any case
 */
#ifndef KTEARDOWN_CHAIN_H
#define KTEARDOWN_CHAIN_H

#include <sys/types.h>

#include "workload.h"

/* How a link is made. */
enum chain_make {
	CHAIN_SHARED, /* clone(): a process of its own that shares the holder's memory */
	CHAIN_FORK,
	CHAIN_EXEC, /* fork, and execute a small program */
	/* Each link forks the next; when their parents die they become children of the holder. */
	CHAIN_NESTED,
};

/* How the links' parent releases exited links. */
enum chain_reap {
	/*
	 * Waits for each by its number, newest first: in the order in which the kernel kills them.
	 */
	CHAIN_NEWEST,
	CHAIN_OLDEST, /* the same, oldest first */
	/* Waits for any child: the kernel searches all of them for one that has exited. */
	CHAIN_ANY,
	CHAIN_IGNORE, /* ignores SIGCHLD: no link becomes a zombie */
};

struct chain_spec {
	int64_t links;
	enum chain_make make;
	enum chain_reap reap;
	int signo; /* the signal that will kill them */
	/* The holder exits before the signal, and the links become children of the agent, PID 1. */
	bool orphans;
	/* Pipes have the usual size and a page, as after a write; otherwise the smallest size. */
	bool used_pipes;
};

struct chain {
	struct chain_spec spec;
	pid_t holder, group; /* 0: none */
	int orders, answers; /* our ends of the pipes to the holder */
	struct chain_shared *shared;
};

struct chain_end {
	int64_t gone_ns; /* when the last link was reaped */
	int64_t killed; /* links whose wait status shows that the signal killed them */
	int64_t vanished; /* links of which nothing was left to wait for */
};

/* Each returns 0, or what wl_fail() returns. */
int chain_open(struct trial *t, struct chain *c, const struct chain_spec *spec);
int chain_make(struct trial *t, struct chain *c, int64_t *create_ns);
/* passed: how many links have passed the token on. */
int chain_prove(struct trial *t, struct chain *c, int64_t *passed);
int chain_reap(struct trial *t, struct chain *c);
/* Reports progress every 10 s: too seldom to influence what is measured meanwhile. */
int chain_gone(struct trial *t, struct chain *c, struct chain_end *end);

void chain_close(struct chain *c);

#endif
