// SPDX-License-Identifier: GPL-2.0
/* Wakeup and request latencies of message threads and their workers in nested cgroups. */
#define _GNU_SOURCE /* pipe2() */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "message_threads.h"
#include "nested_cgroups.h"
#include "schbench_output.h"
#include "workload.h"

#define SETTLE_MS 20
#define ALIVE_MS 5000
/* After the runtime: with a small quota the last requests take this long. */
#define PATIENCE_MS 120000
#define SCHBENCH "/bin/schbench"

static struct nested_cgroups nested_cgroups;
static struct message_threads_plan plan;
static struct message_threads_result *result; /* shared with the process that measures */
static pid_t process;
static bool runs_schbench; /* schbench runs instead of the agent's threads */

static int setup(struct trial *t)
{
	nested_cgroups = (struct nested_cgroups){.depth = wl_param_int(t, "depth"),
						 .quota_us = wl_param_int(t, "quota_us"),
						 .period_us = wl_param_int(t, "period_us"),
						 .memory_mb = wl_param_int(t, "memory_max_mb")};
	plan = (struct message_threads_plan){.message_threads = wl_param_int(t, "message_threads"),
					     .workers = wl_param_int(t, "threads"),
					     .sleep_us = wl_param_int(t, "sleep_us"),
					     .cache_kb = wl_param_int(t, "cache_kb"),
					     .operations = wl_param_int(t, "operations"),
					     .locking = !strcmp(wl_param_str(t, "locking"), "on"),
					     .runtime_ns = wl_param_int(t, "runtime_ms") * 1000000,
					     .interval_ns =
						     wl_param_int(t, "interval_ms") * 1000000};
	runs_schbench = !strcmp(wl_param_str(t, "program"), "schbench");
	process = 0;
	result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (result == MAP_FAILED) {
		result = NULL;
		return wl_fail(t, "cannot mmap memory: %m");
	}
	if (runs_schbench && (plan.runtime_ns % 1000000000 || plan.interval_ns != 1000000000))
		return wl_fail(t, "program=schbench needs whole seconds for runtime_ms, and "
				  "interval_ms=1000");
	return nested_cgroups_make(t, &nested_cgroups);
}

/* -- in the process in the innermost cgroup -- */

static const char *decimal(char text[24], int64_t value)
{
	snprintf(text, 24, "%lld", (long long)value);
	return text;
}

/* An interval longer than the run: schbench prints its tables only at the end. */
static void exec_schbench(void)
{
	int64_t seconds = plan.runtime_ns / 1000000000;
	char m[24], t[24], r[24], i[24], f[24], n[24], s[24];

	execl(SCHBENCH, "schbench", "-m", decimal(m, plan.message_threads), "-t",
	      decimal(t, plan.workers), "-r", decimal(r, seconds), "-i", decimal(i, seconds * 10),
	      "-F", decimal(f, plan.cache_kb), "-n", decimal(n, plan.operations), "-s",
	      decimal(s, plan.sleep_us), "-w", "0", plan.locking ? NULL : "-L", NULL);
	dprintf(STDERR_FILENO, SCHBENCH ": %s", strerror(errno));
}

/* What it writes to its standard error is its message. */
__attribute__((noreturn)) static void run_process(int output)
{
	int error;

	dup2(output, STDERR_FILENO);
	error = cgroup_enter(nested_cgroups.leaf);
	if (error) {
		dprintf(STDERR_FILENO, "cannot enter %s: %s", nested_cgroups.leaf,
			strerror(-error));
		_exit(EXIT_FAILURE);
	}
	if (runs_schbench)
		exec_schbench();
	else
		error = message_threads_run(&plan, result);
	if (error)
		dprintf(STDERR_FILENO, "cannot start threads: %s", strerror(-error));
	_exit(error || runs_schbench ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* -- in the agent -- */

static int start(struct trial *t, int *output)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return wl_fail(t, "cannot make a pipe: %m");
	process = fork();
	if (process == 0)
		run_process(ends[1]);
	close(ends[1]);
	*output = ends[0];
	return process < 0 ? wl_fail(t, "cannot fork: %m") : 0;
}

/* Reads its standard error into text until it closes that, which it does when it exits. */
static int read_output(struct trial *t, int output, char *text, size_t size)
{
	int64_t end = now_ns() + plan.runtime_ns + PATIENCE_MS * INT64_C(1000000);
	struct pollfd p = {.fd = output, .events = POLLIN};
	size_t len = 0;
	ssize_t n = 1;

	while (n > 0 && len < size - 1) {
		if (now_ns() > end)
			return wl_fail(t, "the process did not exit within %d s after its runtime",
				       PATIENCE_MS / 1000);
		if (poll(&p, 1, ALIVE_MS) <= 0) {
			wl_alive(t, "%d workers", plan.message_threads * plan.workers);
			continue;
		}
		n = read(output, text + len, size - 1 - len);
		len += n > 0 ? n : 0;
	}
	text[len] = '\0';
	return 0;
}

static int reap(struct trial *t, const char *text)
{
	int status;

	if (waitpid(process, &status, 0) != process)
		return wl_fail(t, "cannot wait for the process: %m");
	process = 0;
	return status ? wl_fail(t, "wait status %#x: %.300s", (unsigned)status, text) : 0;
}

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int64_t rps_percentile(int percent)
{
	int rank = (result->intervals * percent + 99) / 100;

	return result->rps[rank > 0 ? rank - 1 : 0];
}

static const int permilles[] = {500, 900, 990, 999};
static const char *const wakeup_names[] = {"wakeup_p50_ns", "wakeup_p90_ns", "wakeup_p99_ns",
					   "wakeup_p999_ns"};
static const char *const request_names[] = {"request_p50_ns", "request_p90_ns", "request_p99_ns",
					    "request_p999_ns"};
static const int rps_percents[] = {20, 50, 90};
static const char *const rps_names[] = {"rps_p20_per_s", "rps_p50_per_s", "rps_p90_per_s"};

static int sample_agent(struct trial *t)
{
	int64_t woken = result->wakeup.count, done = result->request.count;

	if (!done)
		return wl_fail(t, "no request was completed in %lld ms",
			       (long long)plan.runtime_ns / 1000000);
	wl_check(t, "each_was_woken", woken == done, "%lld requests, %lld wakeups", (long long)done,
		 (long long)woken);
	for (size_t i = 0; i < ARRAY_SIZE(permilles); i++) {
		wl_sample(t, wakeup_names[i], histogram_percentile(&result->wakeup, permilles[i]));
		wl_sample(t, request_names[i],
			  histogram_percentile(&result->request, permilles[i]));
	}
	wl_sample(t, "wakeup_mean_ns", histogram_mean(&result->wakeup));
	qsort(result->rps, result->intervals, sizeof(*result->rps), by_value);
	for (size_t i = 0; i < ARRAY_SIZE(rps_percents); i++)
		wl_sample(t, rps_names[i], rps_percentile(rps_percents[i]));
	wl_sample(t, "rps_avg_per_s", done * 1000000000 / result->took_ns);
	wl_histogram(t, "wakeup_ns", &result->wakeup);
	wl_histogram(t, "request_ns", &result->request);
	return 0;
}

static int sample_schbench(struct trial *t, const char *text)
{
	struct schbench_output output;

	if (!schbench_read(text, &output))
		return wl_fail(t, "unexpected output of schbench: %.300s", text);
	for (size_t i = 0; i < ARRAY_SIZE(permilles); i++) {
		wl_sample(t, wakeup_names[i], output.wakeup_us[i] * 1000);
		wl_sample(t, request_names[i], output.request_us[i] * 1000);
	}
	for (size_t i = 0; i < ARRAY_SIZE(rps_percents); i++)
		wl_sample(t, rps_names[i], output.rps[i]);
	wl_sample(t, "rps_avg_per_s", output.average_rps);
	return 0;
}

static int64_t throttled(void)
{
	return nested_cgroups.quota_us
		       ? cgroup_value(nested_cgroups.leaf, "cpu.stat", "nr_throttled")
		       : -ENOENT;
}

static int run(struct trial *t)
{
	static char text[65536];
	int64_t before = throttled();
	int output = -1, error;

	memset(result, 0, sizeof(*result));
	wl_settle(t, SETTLE_MS);
	error = start(t, &output);
	if (!error)
		error = read_output(t, output, text, sizeof(text));
	if (!error)
		error = reap(t, text);
	close(output);
	if (error)
		return -1;
	if (before >= 0)
		wl_sample(t, "throttled_count", throttled() - before);
	return runs_schbench ? sample_schbench(t, text) : sample_agent(t);
}

static void cleanup(struct trial *t)
{
	if (process > 0)
		kill_and_reap_all(process);
	process = 0;
	if (result)
		munmap(result, sizeof(*result));
	result = NULL;
	nested_cgroups_remove(t);
}

static const char *const params[] = {
	"threads",	 "depth",	"message_threads", "quota_us",	 "period_us",
	"memory_max_mb", "sleep_us",	"cache_kb",	   "operations", "locking",
	"runtime_ms",	 "interval_ms", "program",	   NULL};
static const struct workload wakeups = {
	.name = "wakeups",
	.summary = "wakeup and request latencies of message threads and workers in nested cgroups",
	.params = params,
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(wakeups);
