// SPDX-License-Identifier: GPL-2.0
/*
 * Runs what a user brings: a script, a program or a command, on a terminal of its own. It does not
 * report figures by itself, so the agent reports its time, its output with times, what the kernel
 * logged, and which counters changed; the lab reads the metrics from these.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../waits/waits.h"
#include "core/agent.h"
#include "directives.h"
#include "guest.h"
#include "lib/dontfork.h"
#include "output.h"
#include "process.h"
#include "snapshot.h"
#include "terminal.h"

#define NAME "script"
#define SETTLE_MS 20
/* Of the directives; the longest argument of a program is 128 kB (MAX_ARG_STRLEN). */
#define TEXT_MAX (1 << 20)

static struct plan plan;
/* Where this trial is in the plan. */
static int next_trial, trial_index, repetition;
/* Its CPUs are sampled, and so its waits are watched. */
static bool profiled;

static struct script script;
static char *text, *environment; /* of which the script's strings are parts */
static struct output output;
static struct terminal terminal = {-1, -1};
static int kmsg = -1;
static uint64_t next_message; /* the number of the first in the repetition */
/* Before and after; children do not inherit them. */
static struct snapshot *snapshots;
static size_t snapshots_size;

/* The whole file, ended by a zero; NULL if it cannot be read, see errno. */
static char *load(const char *path)
{
	char *content = NULL;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC), error = 0;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st))
		error = -errno;
	else if (st.st_size > TEXT_MAX)
		error = -EFBIG;
	else if (!(content = calloc(1, st.st_size + 1)))
		error = -ENOMEM;
	else
		error = read_all(fd, content, st.st_size);
	close(fd);
	if (error) {
		free(content);
		errno = -error;
		return NULL;
	}
	return content;
}

/*
 * The index of this trial, which its own records have: a workload does not see it, so it is read
 * from the plan, whose trials are run in their order.
 */
static int find_index(struct trial *t, const char *name)
{
	const struct trial_plan *p;
	char error[DETAIL_MAX];
	char *content;

	if (!plan.nr_trials) {
		content = load("/plan");
		if (!content)
			return wl_fail(t, "cannot read /plan: %m");
		if (plan_parse(content, strlen(content), &plan, error))
			return wl_fail(t, "%s", error);
		free(content);
	}
	while (next_trial < plan.nr_trials) {
		p = &plan.trials[next_trial++];
		if (strcmp(p->workload->name, NAME))
			continue;
		trial_index = p->index;
		profiled = p->profile_ns;
		for (int i = 0; i < p->nr_params; i++)
			if (!strcmp(p->params[i].name, NAME) && !strcmp(p->params[i].value, name))
				return 0;
		break;
	}
	return wl_fail(t, "/plan has not this trial at its place");
}

static int read_script(struct trial *t, const char *name)
{
	char path[300], error[DETAIL_MAX];

	if (strchr(name, '/') || strlen(name) > 200)
		return wl_fail(t, "script: \"%.200s\" is not the name of a file", name);
	snprintf(path, sizeof(path), "/script/%s", name);
	free(text);
	free(environment);
	environment = strdup(wl_param_str(t, "environment"));
	text = load(path);
	if (!text || !environment)
		return wl_fail(t, "cannot read %s: %m", path);
	if (script_parse(&script, text, error, sizeof(error)) ||
	    script_add_environment(&script, environment, error, sizeof(error)))
		return wl_fail(t, "%s: %.400s", path, error);
	return 0;
}

static int setup(struct trial *t)
{
	const char *name = wl_param_str(t, NAME);

	repetition = 0;
	if (guest_prepare(t) || find_index(t, name) || read_script(t, name))
		return -1;
	if (output_init(&output) ||
	    dontfork_grow((void **)&snapshots, &snapshots_size, 2 * sizeof(struct snapshot)))
		return wl_fail(t, "there is not enough memory for the output");
	return 0;
}

/* Of the processes that were reaped, and of those that they had reaped. */
static int64_t children_cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000LL + u.ru_utime.tv_usec +
	       u.ru_stime.tv_usec;
}

static void report_end(const struct process *p)
{
	bool signal = WIFSIGNALED(p->status);
	struct line l;

	line_begin(&l, "ended");
	line_int(&l, "trial", trial_index);
	line_int(&l, "repetition", repetition);
	line_str(&l, "how", p->limited ? "limit" : signal ? "signal" : "exit");
	line_int(&l, "code",
		 p->limited ? 0
		 : signal   ? WTERMSIG(p->status)
			    : WEXITSTATUS(p->status));
	line_int(&l, "dropped", output.dropped);
	line_send(&l);
}

static void check_end(struct trial *t, const struct process *p)
{
	bool signal = WIFSIGNALED(p->status);
	int code = signal ? WTERMSIG(p->status) : WEXITSTATUS(p->status);
	bool ok = !p->limited && script_allows(&script, signal, code);
	char how[64];

	if (p->limited)
		snprintf(how, sizeof(how), "killed after %g s", script.limit_ms / 1000.0);
	else
		snprintf(how, sizeof(how), "%s %d", signal ? "signal" : "exit", code);
	if (ok || !*output_last(&output))
		wl_check(t, "ended", ok, "%s", how);
	else
		wl_check(t, "ended", ok, "%s; its last line: %.300s", how, output_last(&output));
}

static void report(struct trial *t, const struct process *p, int64_t cpu_us)
{
	int error;

	wl_sample(t, "whole_ns", p->end_ns - p->start_ns);
	if (p->gone_ns)
		wl_sample(t, "all_gone_ns", p->gone_ns - p->start_ns);
	wl_sample(t, "cpu_us", cpu_us);
	output_report(&output, trial_index, repetition);
	output.dropped += output_report_log(kmsg, next_message, trial_index, repetition);
	snapshot_report(&snapshots[0], &snapshots[1], trial_index, repetition);
	report_end(p);
	error = profiled ? waits_report(trial_index, repetition) : 0;
	if (error)
		wl_fail(t, "cannot read what tasks waited for: %s", strerror(-error));
	check_end(t, p);
}

/* With the terminal open: what the agent itself needs is not in the counters. */
static int run_on_terminal(struct trial *t)
{
	int64_t cpu_us = children_cpu_us();
	struct process p;
	int error;

	snapshot_take(&snapshots[0]);
	wl_settle(t, SETTLE_MS);
	wl_profile_begin(t);
	if (profiled)
		waits_start();
	error = process_run(&p, t, &script, &terminal, &output);
	if (profiled)
		waits_stop();
	wl_profile_end(t);
	terminal_read(&terminal, &output);
	output_end(&output, now_ns());
	snapshot_take(&snapshots[1]);
	if (error)
		wl_fail(t, "cannot fork: %s", strerror(-error));
	else if (!p.ended || p.children)
		wl_fail(t, "processes of the script are left, which SIGKILL does not end");
	else
		report(t, &p, children_cpu_us() - cpu_us);
	return 0;
}

static int watch_waits(struct trial *t)
{
	int error = profiled ? waits_open() : 0;

	if (error)
		wl_fail(t,
			"cannot watch what tasks wait for: %s; it needs Linux 6.0 or later with "
			"PERF_EVENTS and KALLSYMS",
			strerror(-error));
	return error;
}

static int run(struct trial *t)
{
	int error, status = -1;

	/* Empty, and every page of it in memory: reading into it allocates none. */
	if (output_init(&output))
		return wl_fail(t, "there is not enough memory for the output");
	snapshot_init(&snapshots[0]);
	snapshot_init(&snapshots[1]);
	process_block_signals();
	error = terminal_open(&terminal);
	kmsg = output_open_log(&next_message);
	if (error)
		wl_fail(t, "cannot open a terminal: %s", strerror(-error));
	else if (kmsg < 0)
		wl_fail(t, "cannot read the kernel's log: %s", strerror(-kmsg));
	else if (!watch_waits(t))
		status = run_on_terminal(t);
	if (profiled)
		waits_close();
	terminal_close(&terminal);
	if (kmsg >= 0)
		close(kmsg);
	process_unblock_signals();
	repetition++;
	return status;
}

static void cleanup(struct trial *t)
{
	/* Also where setup() found that this is no guest: there nothing may be killed. */
	if (getpid() != 1)
		return;
	process_block_signals();
	if (!process_kill_all())
		wl_fail(t, "processes of the script are left, which SIGKILL does not end");
	process_unblock_signals();
	output_free(&output);
	dontfork_free((void **)&snapshots, &snapshots_size);
}

static const char *const params[] = {NAME, "environment", NULL};

static const struct workload workload = {
	.name = NAME,
	.summary = "run a script of the user on a terminal, and report all that it changes",
	.params = params,
	.stretch = "the script and all processes that it leaves, until the last of them has ended",
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(workload);
