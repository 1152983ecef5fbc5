// SPDX-License-Identifier: GPL-2.0
/*
 * Children of PID 1 are killed one after another, or all before the first wait, and PID 1 waits for
 * them as an init program does: whenever SIGCHLD comes, until no exited child is left.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/start_barrier.h"
#include "lib/tasks.h"
#include "workload.h"

#define SETTLE_MS 50
#define LIMIT_MS 60000

enum how { ANY, PEEK, SHELL };

static pid_t *pids;
static int64_t number, longest_ns;

/* Every child has a session of its own, as services have. */
static int make(struct trial *t)
{
	for (int64_t i = 0; i < number; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			return wl_fail(t, "cannot fork child %lld: %m", (long long)i);
		if (!pids[i]) {
			setsid();
			for (;;)
				pause();
		}
		if (i % 1000 == 999)
			wl_alive(t, "%lld children made", (long long)i + 1);
	}
	return 0;
}

static int timed_wait(idtype_t type, id_t id, siginfo_t *info, int options)
{
	int64_t start = now_ns(), took;
	int status;

	info->si_pid = 0;
	status = waitid(type, id, info, options | WNOHANG);
	took = now_ns() - start;
	longest_ns = took > longest_ns ? took : longest_ns;
	return status;
}

/* Whether a child was reaped. */
static bool reap_one(enum how how)
{
	static const int options[] = {[ANY] = WEXITED,
				      [PEEK] = WEXITED | WNOWAIT,
				      [SHELL] = WEXITED | WSTOPPED | WCONTINUED};
	siginfo_t info;

	if (timed_wait(P_ALL, 0, &info, options[how]) || !info.si_pid)
		return false;
	return how != PEEK || !timed_wait(P_PID, (id_t)info.si_pid, &info, WEXITED);
}

static bool reap(enum how how, int64_t *left)
{
	const struct timespec limit = {.tv_sec = LIMIT_MS / 1000};
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	if (sigtimedwait(&child, NULL, &limit) != SIGCHLD)
		return false;
	while (*left && reap_one(how))
		--*left;
	return true;
}

static bool all_exited(void)
{
	for (int64_t i = 0; i < number; i++)
		if (!task_wait_state(pids[i], 'Z', LIMIT_MS))
			return false;
	return true;
}

/* Returns the time from the first kill, or the first wait if all are killed before, to the last
 * wait. */
static int64_t kill_and_reap(enum how how, const char *killed)
{
	int64_t left = number, start = now_ns();

	longest_ns = 0;
	for (int64_t i = 0; i < number; i++) {
		bool youngest = !strcmp(killed, "youngest");

		if (kill(pids[youngest ? number - 1 - i : i], SIGKILL))
			return -1;
		/* A signal that was not waited for stays pending for the next round. */
		if (strcmp(killed, "all") && !reap(how, &left))
			return -1;
	}
	if (!strcmp(killed, "all")) {
		if (!all_exited())
			return -1;
		start = now_ns();
	}
	while (left)
		if (!reap(how, &left))
			return -1;
	return now_ns() - start;
}

static int run(struct trial *t)
{
	static const char *const hows[] = {"any", "peek", "shell", NULL};
	enum how how = (enum how)wl_param_choice(t, "how", hows);
	int64_t took_ns;

	if (make(t))
		return -1;
	wl_settle(t, SETTLE_MS);
	wl_profile_begin(t);
	took_ns = kill_and_reap(how, wl_param_str(t, "killed"));
	wl_profile_end(t);
	if (took_ns < 0)
		return wl_fail(t, "a child did not exit, or was not reported");
	wl_sample(t, "reap_ns", took_ns);
	wl_sample(t, "call_ns", longest_ns);
	wl_check(t, "none_left", waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "%s", "");
	return 0;
}

static int setup(struct trial *t)
{
	sigset_t child;

	number = wl_param_int(t, "processes");
	pids = calloc((size_t)number, sizeof(*pids));
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	if (!pids || sigprocmask(SIG_BLOCK, &child, NULL) || raise_limits())
		return wl_fail(t, "cannot prepare: %m");
	return 0;
}

static void cleanup(struct trial *t)
{
	sigset_t child;

	(void)t;
	for (int64_t i = 0; pids && i < number; i++)
		if (pids[i] > 0 && !kill(pids[i], SIGKILL))
			waitpid(pids[i], NULL, 0);
	free(pids);
	pids = NULL;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_UNBLOCK, &child, NULL);
}

static const char *const params[] = {"processes", "how", "killed", NULL};
static const struct workload reaper = {
	.name = "reaper",
	.summary = "PID 1 waits for its children as an init program does",
	.params = params,
	.stretch = "from the first kill until the last child is reaped",
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(reaper);
