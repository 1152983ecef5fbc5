// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* close_range() */
#include "chain.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chain_parts.h"

#define ALIVE_MS 10000

static size_t shared_size(const struct chain *c)
{
	return sizeof(struct chain_shared) + c->spec.links * sizeof(pid_t);
}

/* -- in the holder -- */

/* Two descriptors in their places, and nothing else open. */
static int keep_only(int orders, int answers)
{
	/* Out of the way of the numbers that they are to have. */
	orders = fcntl(orders, F_DUPFD, CHAIN_TAIL + 1);
	answers = fcntl(answers, F_DUPFD, CHAIN_TAIL + 1);
	if (orders < 0 || answers < 0)
		return -1;
	if (dup2(orders, CHAIN_ORDERS) < 0 || dup2(answers, CHAIN_ANSWERS) < 0)
		return -1;
	return close_range(0, CHAIN_REST - 1, 0) || close_range(CHAIN_HEAD, ~0U, 0) ? -1 : 0;
}

__attribute__((noreturn)) static void become_holder(const struct chain *c, int orders, int answers)
{
	if (setpgid(0, 0) || keep_only(orders, answers))
		_exit(EXIT_FAILURE);
	chain_hold(&c->spec, c->shared);
}

/* -- in the agent -- */

static int fork_holder(struct trial *t, struct chain *c)
{
	int orders[2], answers[2];

	if (pipe2(orders, O_CLOEXEC))
		return wl_fail(t, "pipe: %m");
	if (pipe2(answers, O_CLOEXEC)) {
		close(orders[0]);
		close(orders[1]);
		return wl_fail(t, "pipe: %m");
	}
	c->orders = orders[1];
	c->answers = answers[0];
	c->holder = fork();
	if (c->holder == 0)
		become_holder(c, orders[0], answers[1]);
	close(orders[0]);
	close(answers[1]);
	if (c->holder < 0) {
		close(c->orders);
		close(c->answers);
		c->holder = 0;
		return wl_fail(t, "fork of the holder: %m");
	}
	c->group = c->shared->group = c->holder;
	return 0;
}

int chain_open(struct trial *t, struct chain *c, const struct chain_spec *spec)
{
	*c = (struct chain){.spec = *spec};
	c->shared = mmap(NULL, shared_size(c), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			 -1, 0);
	if (c->shared == MAP_FAILED) {
		c->shared = NULL;
		return wl_fail(t, "mmap for %lld process numbers: %m", (long long)spec->links);
	}
	/* The kernel starts its first process in a group 0, which no one can join. */
	if (getpgrp() == 0 && setpgid(0, 0))
		return wl_fail(t, "setpgid: %m");
	c->shared->agents_group = getpgrp();
	return fork_holder(t, c);
}

/* Waits for the answer to an order, with signs of life. */
static int await(struct trial *t, struct chain *c, int64_t *value)
{
	struct pollfd reply = {.fd = c->answers, .events = POLLIN};
	struct chain_answer a;

	for (;;) {
		long long made, links = c->spec.links;
		int ready = poll(&reply, 1, ALIVE_MS);

		made = c->shared->made;
		if (ready == 0) {
			wl_alive(t, "%lld of %lld links made", made, links);
			continue;
		}
		if (read_all(c->answers, &a, sizeof(a)))
			return wl_fail(t, "the holder of the chain died, %lld of %lld links made",
				       made, links);
		if (a.kind == CHAIN_DONE)
			break;
		if (a.kind == CHAIN_FAILED)
			return wl_fail(t, "%s: %s, %lld of %lld links made", c->shared->step,
				       strerror(a.value), made, links);
		wl_alive(t, "%lld of %lld links made", made, links);
	}
	*value = a.value;
	return 0;
}

static int order(struct trial *t, struct chain *c, char what, int64_t *value)
{
	int error = write_all(c->orders, &what, 1);

	if (error)
		return wl_fail(t, "an order to the holder of the chain: %s", strerror(-error));
	return await(t, c, value);
}

int chain_make(struct trial *t, struct chain *c, int64_t *create_ns)
{
	return order(t, c, 'm', create_ns);
}

int chain_prove(struct trial *t, struct chain *c, int64_t *passed)
{
	return order(t, c, 'p', passed);
}

int chain_reap(struct trial *t, struct chain *c)
{
	int64_t none;
	int status;

	if (order(t, c, 'r', &none))
		return -1;
	if (!c->spec.orphans)
		return 0;
	if (waitpid(c->holder, &status, 0) != c->holder || status)
		return wl_fail(t, "the holder did not leave its links to the agent");
	c->holder = 0;
	if (c->spec.reap == CHAIN_IGNORE)
		signal(SIGCHLD, SIG_IGN);
	return 0;
}

int chain_gone(struct trial *t, struct chain *c, struct chain_end *end)
{
	int64_t none;

	if (c->spec.orphans) {
		chain_reap_links(&c->spec, c->shared);
		signal(SIGCHLD, SIG_DFL);
	} else if (await(t, c, &none)) {
		return -1;
	}
	*end = c->shared->end;
	return 0;
}

void chain_close(struct chain *c)
{
	if (c->group) {
		kill(-c->group, SIGKILL);
		kill_and_reap_all(c->holder);
		close(c->orders);
		close(c->answers);
	}
	if (c->shared)
		munmap(c->shared, shared_size(c));
	*c = (struct chain){0};
}
