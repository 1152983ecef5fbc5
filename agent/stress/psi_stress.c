// SPDX-License-Identifier: GPL-2.0
/*
 * Cgroups are removed while the last task is exiting, and while their pressure is averaged: do
 * the cgroups above them still count correctly, and is no data used after it was freed?
 *
 * Tasks run on one CPU, and their cgroups are removed on another. An exiting task leaves its
 * cgroup some time before it leaves the CPU, so what it does in between is counted in a cgroup
 * that may be removed (in 6.12; in 7.2 cgroup_task_dead() takes it out after its last switch).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/kmsg.h"
#include "lib/tasks.h"
#include "workload.h"

#define TOP CGROUP_ROOT "psi_stress"
#define PARENT TOP "/parent"
#define MOST 64
#define LIMIT_MS 10000
/* The kernel averages a group for the first time two seconds after its first task (PSI_FREQ). */
#define AVERAGED_MS 2200
#define STALL_MS 200
#define QUIET_MS 100

enum task { EXITS, SPINS };

static const char *const kinds[] = {"cpu", "io", "memory"};
static int log_fd = -1, psi_log_fd = -1;

static int failed(struct trial *t, const char *what, int error)
{
	return wl_fail(t, "%s: %s", what, strerror(-error));
}

static void child_path(char *path, size_t size, int64_t i)
{
	snprintf(path, size, PARENT "/%lld", (long long)i);
}

/* A task on CPU 1 that is in the cgroup when this returns; or -errno. */
static pid_t start(const char *cgroup, enum task task)
{
	int ready[2];
	pid_t pid;
	char byte;

	if (pipe(ready))
		return -errno;
	pid = fork();
	if (!pid) {
		if (stay_on_cpu(1) || cgroup_enter(cgroup) || write(ready[1], "", 1) != 1)
			_exit(1);
		while (task == SPINS)
			;
		_exit(0);
	}
	if (pid < 0)
		pid = -errno;
	close(ready[1]);
	/* Nothing can be read if the task exited first. */
	if (read(ready[0], &byte, 1) != 1 && pid > 0) {
		task_reap(pid, LIMIT_MS);
		pid = -EIO;
	}
	close(ready[0]);
	return pid;
}

/* Removes the cgroup as soon as that is possible, which is before its task was waited for. */
static int remove_at_once(const char *cgroup)
{
	int64_t end = now_ns() + LIMIT_MS * 1000000LL;

	while (rmdir(cgroup))
		if (errno != EBUSY || now_ns() > end)
			return -errno;
	return 0;
}

static int end(pid_t pid)
{
	if (pid <= 0)
		return pid;
	kill(pid, SIGKILL);
	return task_reap(pid, LIMIT_MS) < 0 ? -ETIMEDOUT : 0;
}

/* -- the scenes; 0 or -errno -- */

/* Each cgroup is removed while its only task exits. */
static int remove_at_exit(struct trial *t, int64_t rounds)
{
	int64_t early = 0;
	int error = 0;

	for (int64_t i = 0; i < rounds && !error; i++) {
		char cgroup[128];
		pid_t pid;

		child_path(cgroup, sizeof(cgroup), i);
		error = cgroup_make(cgroup);
		if (error)
			break;
		pid = start(cgroup, EXITS);
		error = pid > 0 ? remove_at_once(cgroup) : pid;
		early += pid > 0 && task_state(pid) != 'Z';
		if (pid > 0 && task_reap(pid, LIMIT_MS) < 0)
			error = -ETIMEDOUT;
		if (i % 16 == 0)
			wl_alive(t, "%lld cgroups were removed", (long long)i);
	}
	wl_sample(t, "early_count", early);
	return error;
}

/* Cgroups are removed while the kernel averages their pressure for the first time. */
static int remove_while_averaged(int64_t count)
{
	int64_t made_ns[MOST];
	pid_t pids[MOST] = {0};
	char cgroup[128];
	int error = 0;

	/* The zombies keep the cgroups, so that work which is not cancelled goes on. */
	for (int64_t i = 0; i < count && !error; i++) {
		child_path(cgroup, sizeof(cgroup), i);
		error = cgroup_make(cgroup);
		made_ns[i] = now_ns();
		if (!error)
			pids[i] = start(cgroup, EXITS);
		error = pids[i] < 0 ? pids[i] : error;
	}
	for (int64_t i = 0; i < count && !error; i++) {
		int64_t due_ns = made_ns[i] + AVERAGED_MS * 1000000LL - now_ns();

		if (due_ns > 0)
			sleep_ns(due_ns);
		child_path(cgroup, sizeof(cgroup), i);
		error = remove_at_once(cgroup);
	}
	sleep_ms(AVERAGED_MS);
	for (int64_t i = 0; i < count; i++)
		error = pids[i] > 0 && task_reap(pids[i], LIMIT_MS) < 0 ? -ETIMEDOUT : error;
	return error;
}

/* -- what the cgroups count -- */

/* The time for which some task waited, in us; -errno. */
static int64_t pressure_us(const char *cgroup, const char *kind)
{
	char file[160], text[512];
	const char *total;
	int len;

	snprintf(file, sizeof(file), "%s/%s.pressure", cgroup, kind);
	len = read_file(file, text, sizeof(text));
	if (len < 0)
		return len;
	total = strstr(text, "total=");
	return total ? strtoll(total + strlen("total="), NULL, 10) : -EINVAL;
}

/* Of two tasks that want one CPU, one waits: their cgroup and the one above count that. */
static int check_stalls(struct trial *t)
{
	static const char cgroup[] = PARENT "/stalls";
	int64_t above_us = pressure_us(PARENT, "cpu"), us = 0, start_ns;
	pid_t pids[2] = {0};
	int error = cgroup_make(cgroup);

	for (int i = 0; i < 2 && !error; i++) {
		pids[i] = start(cgroup, SPINS);
		error = pids[i] < 0 ? pids[i] : 0;
	}
	start_ns = now_ns();
	sleep_ms(STALL_MS);
	us = pressure_us(cgroup, "cpu");
	above_us = pressure_us(PARENT, "cpu") - above_us;
	start_ns = now_ns() - start_ns;
	for (int i = 0; i < 2; i++)
		error = end(pids[i]) ? -ETIMEDOUT : error;
	if (!error)
		error = cgroup_remove(cgroup, LIMIT_MS);
	wl_check(t, "stalls_count", us >= STALL_MS * 500 && above_us >= us,
		 "a task waited for %lld us; its cgroup reports %lld, the one above %lld",
		 (long long)start_ns / 1000, (long long)us, (long long)above_us);
	return error;
}

/* When no task is left below a cgroup, its pressure does not grow any more. */
static void check_quiet(struct trial *t)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int64_t before = pressure_us(PARENT, kinds[i]), after;

		sleep_ms(QUIET_MS);
		after = pressure_us(PARENT, kinds[i]);
		wl_check(t, "quiet", before >= 0 && before == after,
			 "%s: %lld us after %lld us in a cgroup without tasks", kinds[i],
			 (long long)after, (long long)before);
	}
}

/* What the scheduler says of pressure is no warning: "psi: inconsistent task state!". */
static void check_log(struct trial *t)
{
	struct kmsg m;
	int got = kmsg_problem(log_fd, &m);

	wl_check(t, "log_clean", !got, "%s", got > 0 ? m.text : strerror(-got));
	while ((got = kmsg_next(psi_log_fd, &m)) > 0 || got == -EPIPE)
		if (got > 0 && !strncmp(m.text, "psi: ", 5))
			break;
	wl_check(t, "states_right", !got, "%s", got > 0 ? m.text : strerror(-got));
}

static int run(struct trial *t)
{
	int error = remove_at_exit(t, wl_param_int(t, "rounds"));
	int64_t dying;

	if (!error)
		error = remove_while_averaged(wl_param_int(t, "averaged"));
	if (!error)
		error = check_stalls(t);
	if (error)
		return failed(t, "cannot make, enter or remove a cgroup", error);
	check_quiet(t);
	dying = cgroup_value(TOP, "cgroup.stat", "nr_dying_descendants");
	wl_check(t, "all_gone", !dying, "%lld dying cgroups are left", (long long)dying);
	check_log(t);
	return 0;
}

static int setup(struct trial *t)
{
	int error = cgroup_make(TOP);

	if (!error)
		error = cgroup_make(PARENT);
	if (!error)
		error = stay_on_cpu(0);
	log_fd = kmsg_open();
	psi_log_fd = kmsg_open();
	if (!error && (log_fd < 0 || psi_log_fd < 0))
		error = -EIO;
	return error ? failed(t, "cannot prepare", error) : 0;
}

static void cleanup(struct trial *t)
{
	cpu_set_t all;

	(void)t;
	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	kill_and_reap_all(0);
	cgroup_remove_tree(TOP, LIMIT_MS);
	close(log_fd);
	close(psi_log_fd);
}

static const char *const params[] = {"rounds", "averaged", NULL};
static const struct workload psi_stress = {
	.name = "psi_stress",
	.summary = "remove cgroups while their tasks exit and while their pressure is averaged",
	.params = params,
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(psi_stress);
