// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* CLONE_FILES */
#include "held_cgroups.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cgroup.h"

#define REMOVE_MS 10000
/*
 * After this many cgroups, what the kernel frees after grace periods is waited for. Otherwise
 * the data of all of them exist at the same time, also of those that are not held, and slabs
 * and per-CPU areas stay larger than needed afterwards.
 */
#define BATCH 5
#define BATCH_MS 100

int64_t held_file_bytes(const struct held *h)
{
	return h->holder->file_pages * h->count * sysconf(_SC_PAGESIZE);
}

int64_t held_swapped_bytes(const struct held *h)
{
	return h->holder->swapped_pages * h->count * sysconf(_SC_PAGESIZE);
}

int64_t held_removed(const struct held *h)
{
	return h->holder->nested ? 2 * h->count : h->count;
}

/* -- making -- */

static pid_t fork_process(bool shares_descriptors)
{
	/* As fork(), which has no flags. The process makes only system calls. */
	return shares_descriptors ? syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0L, 0L, 0L, 0L)
				  : fork();
}

/*
 * A process enters the cgroup, makes the object if it is to, and exits. *kept: its pid, if it
 * is left as a zombie, or the descriptor that it has made.
 */
static int run_process(struct trial *t, const struct held *h, const char *cgroup, int64_t number,
		       bool object, struct made *made, int64_t *kept)
{
	const struct holder *holder = h->holder;
	siginfo_t info;
	int status = 0;
	pid_t pid;

	made->descriptor = 0;
	pid = fork_process(object && holder->shares_descriptors);
	if (pid < 0)
		return wl_fail(t, "cannot fork: %m");
	if (!pid) {
		made_check(made, "entering the cgroup", cgroup_enter(cgroup));
		if (object && holder->make)
			holder->make(number, made);
		_exit(EXIT_SUCCESS);
	}
	if (waitid(P_PID, pid, &info, WEXITED | WNOWAIT) || info.si_code != CLD_EXITED)
		status = -1;
	if (object && holder->zombie) {
		*kept = pid;
	} else {
		waitpid(pid, NULL, 0);
		*kept = made->descriptor;
	}
	if (made->error)
		return wl_fail(t, "cgroup %lld: %s: %s", (long long)number, made->step,
			       strerror(-made->error));
	return status ? wl_fail(t, "cgroup %lld: its process was killed", (long long)number) : 0;
}

/* Makes the cgroup, and for a nested object one in it. innermost: the one to be entered. */
static int make_cgroup(const struct held *h, const char *path, char *innermost, size_t size)
{
	char control[128];
	int error = cgroup_make(path);

	snprintf(innermost, size, "%s", path);
	if (error || !h->holder->nested)
		return error;
	snprintf(control, sizeof(control), "%s/cgroup.subtree_control", path);
	error = write_file(control, "+memory");
	snprintf(innermost, size, "%s/child", path);
	return error ? error : cgroup_make(innermost);
}

static int make_one(struct trial *t, struct held *h, int64_t number, struct made *made)
{
	const struct holder *holder = h->holder;
	int64_t *kept = &h->kept[number];
	char path[64], innermost[96];
	int error;

	snprintf(path, sizeof(path), HELD_PARENT "/%lld", (long long)number);
	error = make_cgroup(h, path, innermost, sizeof(innermost));
	if (error)
		return wl_fail(t, "cannot make %s: %s", path, strerror(-error));
	if (run_process(t, h, innermost, number, !h->outside, made, kept))
		return -1;
	if (h->outside && run_process(t, h, HELD_OUTSIDE, number, true, made, kept))
		return -1;
	error = holder->keep ? holder->keep(number, kept) : 0;
	if (error)
		return wl_fail(t, "cannot keep object %lld: %s", (long long)number,
			       strerror(-error));
	error = holder->nested ? cgroup_remove(innermost, REMOVE_MS) : 0;
	if (!error)
		error = cgroup_remove(path, REMOVE_MS);
	return error ? wl_fail(t, "cannot remove %s: %s", path, strerror(-error)) : 0;
}

int held_make(struct trial *t, struct held *h)
{
	struct made *made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	int status = 0;

	if (made == MAP_FAILED)
		return wl_fail(t, "cannot mmap memory: %m");
	h->kept = calloc(h->count + 1, sizeof(*h->kept));
	if (!h->kept)
		status = wl_fail(t, "cannot allocate memory: %m");
	for (int64_t i = 0; i < h->count && !status; i++) {
		status = make_one(t, h, i, made);
		if (i % BATCH == BATCH - 1) {
			sleep_ms(BATCH_MS);
			wl_alive(t, "%lld of %lld cgroups made", (long long)i + 1,
				 (long long)h->count);
		}
	}
	munmap(made, sizeof(*made));
	if (!status && h->holder->removed)
		status = h->holder->removed(t, h->count);
	return status;
}

/* -- what exists -- */

int64_t held_zombies(const struct held *h)
{
	return h->holder->zombie ? held_objects(h) : 0;
}

int64_t held_objects(const struct held *h)
{
	return h->holder->count ? h->holder->count(h->kept, h->count, h->outside) : h->count;
}

/* -- releasing -- */

int held_release(struct trial *t, struct held *h)
{
	const struct holder *holder = h->holder;

	if (holder->before_release && holder->before_release(t))
		return -1;
	for (int64_t i = 0; i < h->count && holder->release; i++) {
		int error = holder->release(i, h->kept[i]);

		h->kept[i] = 0;
		if (error)
			return wl_fail(t, "cannot release object %lld: %s", (long long)i,
				       strerror(-error));
	}
	free(h->kept);
	h->kept = NULL;
	return 0;
}

void held_abandon(struct held *h)
{
	for (int64_t i = 0; h->kept && h->holder->release && i < h->count; i++)
		h->holder->release(i, h->kept[i]);
	free(h->kept);
	h->kept = NULL;
}

/* -- what is charged -- */

/* A file with one number, or the number after the key. */
static int64_t charged_to(const char *cgroup, const struct charge *charge)
{
	char path[128], text[64];
	int len;

	if (charge->key)
		return cgroup_value(cgroup, charge->file, charge->key);
	snprintf(path, sizeof(path), "%s/%s", cgroup, charge->file);
	len = read_file(path, text, sizeof(text));
	return len < 0 ? len : strtoll(text, NULL, 10);
}

int held_charged(const struct held *h, struct charged *charged)
{
	const struct charge *charge = &h->holder->charge;
	int64_t all, outside;

	*charged = (struct charged){0};
	if (!charge->file)
		return 0;
	all = charged_to(HELD_PARENT, charge);
	outside = charged_to(HELD_OUTSIDE, charge);
	if (all < 0 || outside < 0)
		return all < 0 ? all : outside;
	*charged = (struct charged){.inside = all - outside, .outside = outside};
	return 0;
}

bool held_charges_right(const struct held *h, const struct charged *before,
			const struct charged *after)
{
	const struct charge *charge = &h->holder->charge;
	int64_t inside = after->inside - before->inside;
	int64_t outside = after->outside - before->outside;
	int64_t here = h->outside ? outside : inside, elsewhere = h->outside ? inside : outside;
	int64_t all = h->count * (charge->pages * sysconf(_SC_PAGESIZE) + charge->bytes);

	if (!charge->slack_bytes)
		return here == all && elsewhere == 0;
	return here >= all && elsewhere <= charge->slack_bytes;
}
