// SPDX-License-Identifier: GPL-2.0
/*
 * Tasks run out of CPU quota while they hold a kernel lock. A task that needs this lock
 * waits until they get new quota, run again, and release it.
 *
 * A repetition starts the other side, which has no quota, then the lock holders in their
 * cgroup. Operations of the other side are then due at fixed times. However long one
 * stalls, the trial ends: after patience_ms the quota is lifted and all processes are
 * killed.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contention.h"
#include "hungtask.h"
#include "lib/bandwidth.h"
#include "lib/cgroup.h"
#include "lib/kmsg.h"
#include "lib/start_barrier.h"

#define GROUP CGROUP_ROOT "holders"
#define PERIOD_US 100000
#define PERCENT_US (PERIOD_US / 100)
#define MAX_HOLDERS 1000
#define MAX_OPERATIONS 1000000
#define SETTLE_MS 20
#define LEAD_NS 10000000
#define LOOK_MS 10
#define ALIVE_NS 5000000000
#define START_MS 30000
#define GONE_MS 60000
#define REMOVE_MS 10000
#define BLOCKED_NS 20000000
#define HUNG_S 10

/* What the lock holders and the agent share. */
struct shared {
	struct start_barrier go;
	_Atomic int64_t ready;
	/* Of each holder: how often it held the lock, or -1 if it failed. */
	_Atomic int64_t holds[MAX_HOLDERS];
};

/* The counters at the beginning of the measured time, and at its end. */
struct moment {
	int64_t ns, holds;
	struct bandwidth_stat used;
};

static const struct contention *contention;
static struct shared *shared;
static struct operation *operations;
static int64_t holders, count, every_ns;
static bool made, detects_hung;
static int log_fd;

/* -- a lock holder -- */

__attribute__((noreturn)) static void hold_repeatedly(int64_t index)
{
	if (cgroup_enter(GROUP) || !contention->begin(openloop_pid()))
		_exit(EXIT_FAILURE);
	shared->ready++;
	start_barrier_wait(&shared->go);
	while (contention->hold())
		shared->holds[index]++;
	shared->holds[index] = -1;
	_exit(EXIT_FAILURE);
}

static int start_holders(struct trial *t)
{
	int64_t end = now_ns() + START_MS * 1000000LL;

	memset(shared, 0, sizeof(*shared));
	for (int64_t i = 0; i < holders; i++) {
		pid_t pid = fork();

		if (pid == 0)
			hold_repeatedly(i);
		if (pid < 0)
			return wl_fail(t, "cannot fork lock holder %lld: %m", (long long)i);
	}
	while (shared->ready < holders) {
		if (now_ns() > end)
			return wl_fail(t, "%lld of %lld lock holders started",
				       (long long)shared->ready, (long long)holders);
		sleep_ms(1);
	}
	return 0;
}

/* -- one repetition -- */

static int start(struct trial *t)
{
	struct bandwidth quota = {wl_param_int(t, "quota") * PERCENT_US, PERIOD_US, 0};
	int error = cgroup_make(GROUP);

	if (error)
		return wl_fail(t, "cannot make " GROUP ": %s", strerror(-error));
	if (openloop_start(t, &contention->need, wl_param_int(t, "outsiders"), count, every_ns) ||
	    start_holders(t))
		return -1;
	/* Not earlier: with a small quota many holders take long to start. */
	error = bandwidth_limit(GROUP, &quota);
	return error ? wl_fail(t,
			       "cannot write " GROUP "/cpu.max: %s; the kernel needs CFS_BANDWIDTH",
			       strerror(-error))
		     : 0;
}

static int read_moment(struct trial *t, struct moment *m)
{
	int error = bandwidth_read(GROUP, &m->used);

	if (error)
		return wl_fail(t, "cannot read " GROUP "/cpu.stat: %s", strerror(-error));
	m->holds = 0;
	for (int64_t i = 0; i < holders; i++)
		m->holds += shared->holds[i];
	m->ns = now_ns();
	return 0;
}

/*
 * Waits until all operations are done, or patience_ms has passed. Returns 0, or
 * wl_fail()'s value.
 */
static int watch(struct trial *t, int64_t from_ns)
{
	int64_t patience_ns = wl_param_int(t, "patience_ms") * 1000000;
	int64_t end = from_ns + count * every_ns + patience_ns, alive = from_ns, done;

	while ((done = openloop_done()) < count && now_ns() < end) {
		if (done < 0)
			return wl_fail(t, "the process that needs the lock is gone");
		if (now_ns() - alive > ALIVE_NS) {
			alive = now_ns();
			wl_alive(t, "%lld of %lld operations are done", (long long)done,
				 (long long)count);
		}
		sleep_ms(LOOK_MS);
	}
	return 0;
}

/*
 * Kills and reaps every child and removes the cgroup. The quota is lifted first, so that
 * they can exit. 0 or -errno.
 */
static int kill_and_remove(void)
{
	int64_t end = now_ns() + GONE_MS * 1000000LL;
	pid_t pid;

	bandwidth_lift(GROUP);
	write_file(GROUP "/cgroup.kill", "1");
	openloop_kill();
	while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) >= 0 || errno == EINTR) {
		if (now_ns() > end)
			return -ETIMEDOUT;
		if (pid == 0)
			sleep_ms(1);
	}
	return cgroup_remove(GROUP, REMOVE_MS);
}

static int64_t longest_ns(void)
{
	int64_t longest = 0;

	for (int64_t i = 0; i < count; i++) {
		int64_t latency = operations[i].to_ns - operations[i].from_ns;

		longest = latency > longest ? latency : longest;
	}
	return longest;
}

static int64_t last_ns(void)
{
	int64_t last = 0;

	for (int64_t i = 0; i < count; i++)
		last = operations[i].to_ns > last ? operations[i].to_ns : last;
	return last;
}

static void sample_operations(struct trial *t)
{
	for (int64_t i = 0; i < count; i++)
		wl_sample(t, "latency_ns", operations[i].to_ns - operations[i].from_ns);
	wl_sample(t, "longest_stall_ns", longest_ns());
	wl_sample_ratio(t, "blocked_share", latency_blocked(operations, count, BLOCKED_NS),
			last_ns() - operations[0].from_ns);
}

static void sample_holders(struct trial *t, const struct moment *before, const struct moment *after,
			   bool cut_short)
{
	bool limited = wl_param_int(t, "quota") > 0;
	int64_t throttled = after->used.throttled - before->used.throttled, least = INT64_MAX;

	for (int64_t i = 0; i < holders; i++)
		least = shared->holds[i] < least ? shared->holds[i] : least;
	wl_sample_ratio(t, "holds_per_s", (after->holds - before->holds) * 1000000000,
			after->ns - before->ns);
	wl_sample(t, "throttled_count", throttled);
	wl_check(t, "held", least > (cut_short ? -1 : 0), "at least %lld times each",
		 (long long)least);
	wl_check(t, "throttled", limited == (throttled > 0), "in %lld of %lld periods",
		 (long long)throttled, (long long)(after->used.periods - before->used.periods));
}

static void read_log(struct trial *t)
{
	char first[128] = "";
	int64_t hung = 0, others = 0;
	struct kmsg m;

	while (kmsg_problem(log_fd, &m) > 0) {
		if (hungtask_report(m.text)) {
			hung++;
			continue;
		}
		if (!others++)
			memcpy(first, m.text, sizeof(first) - 1);
	}
	if (detects_hung)
		wl_sample(t, "hung_tasks_count", hung);
	wl_check(t, "log_clean", !others, "%lld messages; %s", (long long)others, first);
}

static int measure(struct trial *t)
{
	struct moment before, after;
	int64_t from_ns, given_up;
	int error;

	wl_settle(t, SETTLE_MS);
	from_ns = now_ns() + LEAD_NS;
	if (read_moment(t, &before))
		return -1;
	openloop_go(from_ns);
	wl_profile_begin(t);
	start_barrier_open(&shared->go);
	if (watch(t, from_ns) || read_moment(t, &after))
		return -1;
	wl_profile_end(t);
	given_up = openloop_times(operations, after.ns);
	error = kill_and_remove();
	wl_check(t, "let_go", !error, "%s",
		 error ? strerror(-error) : "killed, reaped and removed");
	sample_operations(t);
	sample_holders(t, &before, &after, given_up > 0);
	wl_sample(t, "given_up_count", given_up);
	wl_check(t, "worked", openloop_failed() == 0, "%lld of %lld operations failed",
		 (long long)openloop_failed(), (long long)count);
	read_log(t);
	openloop_drop();
	return 0;
}

static int run(struct trial *t)
{
	return start(t) || measure(t) ? -1 : 0;
}

/* -- before and after -- */

static int setup(struct trial *t)
{
	const char *what = wl_param_str(t, "what");
	int error = bandwidth_allow(CGROUP_ROOT);

	made = false;
	shared = NULL;
	log_fd = kmsg_open();
	detects_hung = hungtask_after(HUNG_S);
	holders = wl_param_int(t, "holders");
	for (contention = contentions; strcmp(contention->name, what); contention++)
		;
	every_ns = (wl_param_int(t, "every_us") ?: contention->every_us) * 1000;
	count = wl_param_int(t, "duration_ms") * 1000000 / every_ns;
	if (error)
		return wl_fail(
			t, "cannot enable the cpu controller: %s; the kernel needs CGROUP_SCHED",
			strerror(-error));
	if (count < 1 || count > MAX_OPERATIONS)
		return wl_fail(
			t,
			"%lld operations are due; expected 1 to %d: change every_us or duration_ms",
			(long long)count, MAX_OPERATIONS);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	operations = calloc(count, sizeof(*operations));
	if (shared == MAP_FAILED || !operations)
		return wl_fail(t, "not enough memory: %m");
	error = contention->make();
	made = !error;
	return error ? wl_fail(t, "cannot prepare what=%s: %s", what, strerror(-error)) : 0;
}

static void cleanup(struct trial *t)
{
	int error = kill_and_remove();

	if (error && error != -ENOENT)
		wl_fail(t, "cannot remove " GROUP ": %s", strerror(-error));
	openloop_drop();
	if (made)
		contention->clear();
	free(operations);
	operations = NULL;
	if (shared && shared != MAP_FAILED)
		munmap(shared, sizeof(*shared));
	hungtask_restore();
	if (log_fd >= 0)
		close(log_fd);
}

static const char *const params[] = {"what",	 "quota",	"holders",     "outsiders",
				     "every_us", "duration_ms", "patience_ms", NULL};
static const struct workload holder = {
	.name = "holder",
	.summary = "tasks run out of CPU quota while they hold a kernel lock that another process "
		   "needs",
	.params = params,
	.stretch = "until the last operation is done or given up",
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(holder);
