// SPDX-License-Identifier: GPL-2.0
/*
 * Is a CPU quota still enforced? Tasks that want more CPU time than their cgroup may have
 * run for many periods. What they used is compared with the quota, and what the kernel
 * counted with what must have happened.
 */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpu_load.h"
#include "irqs_off.h"
#include "lib/bandwidth.h"
#include "lib/cgroup.h"
#include "lib/kmsg.h"

#define OUTER CGROUP_ROOT "quota"
#define INNER OUTER "/inner"
#define SETTLE_MS 20
#define GONE_MS 60000
#define REMOVE_MS 10000
#define ALIVE_NS 5000000000
/* A burst of twice the quota, then idle, so that there is unused quota to save. */
#define CYCLE_PERIODS 5
#define BURST_QUOTAS 2
/* The timer runs for this many periods at the end of the measured time. */
#define WATCHED_PERIODS 5
/* How far the usage may be from the quota, in parts of a thousand, or by two periods of it. */
#define TOLERANCE 50

static struct bandwidth outer, inner;
static struct cpu_load tasks;
static int64_t periods, period_ns, cpus;
static int log_fd;

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The cgroup with the tighter quota, and its quota; 0 without a quota. */
static const char *tighter_quota(int64_t *quota_us)
{
	bool is_outer = outer.quota_us && (!inner.quota_us || outer.quota_us < inner.quota_us);

	*quota_us = is_outer ? outer.quota_us : inner.quota_us;
	return is_outer ? OUTER : INNER;
}

/* CPU time that the tasks can use in a period without a quota. */
static int64_t usable_us(void)
{
	return least(tasks.tasks, cpus) * inner.period_us;
}

/* CPU time that the tasks are entitled to in this time. */
static int64_t entitled_us(int64_t elapsed_ns)
{
	int64_t quota_us;

	tighter_quota(&quota_us);
	if (tasks.work == CPU_LOAD_BURST)
		return (elapsed_ns + tasks.cycle_ns / 2) / tasks.cycle_ns * tasks.burst_ns / 1000;
	return (double)elapsed_ns / period_ns * least(quota_us, usable_us());
}

/* True if the tasks always want more than the quota. */
static bool always_short(void)
{
	int64_t quota_us;

	tighter_quota(&quota_us);
	return tasks.work != CPU_LOAD_BURST && quota_us < usable_us();
}

/* -- one repetition -- */

static int start(struct trial *t)
{
	int error = cgroup_make(OUTER);

	if (!error)
		error = bandwidth_allow(OUTER);
	if (!error)
		error = cgroup_make(INNER);
	if (error)
		return wl_fail(t, "cannot make " INNER ": %s", strerror(-error));
	if (cpu_load_start(t, INNER, &tasks))
		return -1;
	/* Not earlier: with a small quota many tasks take long to start. */
	error = bandwidth_limit(OUTER, &outer);
	if (!error)
		error = bandwidth_limit(INNER, &inner);
	if (error)
		return wl_fail(t,
			       "cannot write cpu.max: %s; the kernel needs CFS_BANDWIDTH, and "
			       "Linux 5.14 for bursts",
			       strerror(-error));
	return 0;
}

static void sleep_until(struct trial *t, int64_t ns)
{
	for (;;) {
		int64_t left_ns = ns - now_ns();

		if (left_ns <= 0)
			return;
		sleep_ns(least(left_ns, ALIVE_NS));
		wl_alive(t, "the tasks run");
	}
}

/* What the cgroup with the tighter quota used in the measured time, and how it was throttled. */
struct measured {
	int64_t elapsed_ns, irqs_off_ns;
	int64_t least_ns, all_ns; /* all_ns == 0: not known */
	struct bandwidth_stat before, after;
};

static int watch(struct trial *t, struct measured *m, int64_t end_ns)
{
	int64_t timer_ns = wl_param_int(t, "irq_timer_us") * 1000;

	if (timer_ns) {
		sleep_until(t, end_ns - least(WATCHED_PERIODS, periods) * period_ns);
		if (irqs_off_begin(t, timer_ns))
			return -1;
	}
	sleep_until(t, end_ns);
	return timer_ns ? irqs_off_end(t, &m->irqs_off_ns) : 0;
}

static int measure(struct trial *t, struct measured *m)
{
	int64_t quota_us, from_ns, start_ns;
	const char *group = tighter_quota(&quota_us);
	int error;

	wl_settle(t, SETTLE_MS);
	from_ns = cpu_load_go();
	/* Between two bursts, and not at the edge of a period. */
	sleep_until(t, from_ns + CYCLE_PERIODS * period_ns - period_ns / 2);
	cpu_load_usage(&m->least_ns, &m->all_ns);
	start_ns = now_ns();
	error = bandwidth_read(group, &m->before);
	if (watch(t, m, start_ns + periods * period_ns))
		return -1;
	m->elapsed_ns = now_ns() - start_ns;
	if (!error)
		error = bandwidth_read(group, &m->after);
	if (!cpu_load_usage(&m->least_ns, &m->all_ns))
		m->all_ns = 0;
	return error ? wl_fail(t, "cannot read %s/cpu.stat: %s", group, strerror(-error)) : 0;
}

/* Kills and reaps all tasks and removes both cgroups. 0 or -errno. */
static int kill_and_remove(void)
{
	int64_t end = now_ns() + GONE_MS * 1000000LL;
	pid_t pid;
	int error;

	bandwidth_lift(INNER);
	bandwidth_lift(OUTER);
	cpu_load_kill();
	while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) >= 0 || errno == EINTR) {
		if (now_ns() > end)
			return -ETIMEDOUT;
		if (pid == 0)
			sleep_ms(1);
	}
	error = cgroup_remove(INNER, REMOVE_MS);
	return error && error != -ENOENT ? error : cgroup_remove(OUTER, REMOVE_MS);
}

static void sample_usage(struct trial *t, const struct measured *m)
{
	int64_t used = m->after.usage_us - m->before.usage_us;
	int64_t entitled = entitled_us(m->elapsed_ns);
	int64_t two_periods = entitled_us(2 * period_ns), slack = entitled * TOLERANCE / 1000;

	/* A short run begins and ends within a period: what it gets of those two is chance. */
	slack = slack > two_periods ? slack : two_periods;
	wl_sample_ratio(t, "usage_share", used, entitled);
	wl_check(t, "quota_kept", used >= entitled - slack && used <= entitled + slack,
		 "used %lld us of %lld us", (long long)used, (long long)entitled);
}

static void sample_shares(struct trial *t, const struct measured *m)
{
	if (m->all_ns)
		wl_sample_ratio(t, "least_share", m->least_ns * tasks.tasks, m->all_ns);
}

static void sample_throttling(struct trial *t, const struct measured *m)
{
	int64_t counted = m->after.periods - m->before.periods;
	int64_t throttled = m->after.throttled - m->before.throttled;
	int64_t throttled_us = m->after.throttled_us - m->before.throttled_us;
	int64_t elapsed = m->elapsed_ns / period_ns;

	wl_sample(t, "throttled_count", throttled);
	wl_sample(t, "throttled_us", throttled_us);
	wl_sample(t, "bursts_count", m->after.bursts - m->before.bursts);
	wl_check(t, "counted",
		 throttled <= counted && counted <= elapsed + 2 &&
			 throttled_us * 1000 <= (m->elapsed_ns + period_ns) * cpus &&
			 (!always_short() || (throttled && throttled_us)),
		 "%lld periods of %lld, %lld of them throttled, for %lld us", (long long)counted,
		 (long long)elapsed, (long long)throttled, (long long)throttled_us);
}

static void read_log(struct trial *t)
{
	struct kmsg m = {0};

	wl_check(t, "log_clean", kmsg_problem(log_fd, &m) <= 0, "%s", m.text);
}

static int run(struct trial *t)
{
	struct measured m = {0};
	int64_t quota_us;
	int error;

	if (start(t) || measure(t, &m))
		return -1;
	error = kill_and_remove();
	wl_check(t, "let_go", !error, "%s",
		 error ? strerror(-error) : "killed, reaped and removed");
	tighter_quota(&quota_us);
	if (quota_us) {
		sample_usage(t, &m);
		sample_shares(t, &m);
		sample_throttling(t, &m);
	}
	if (wl_param_int(t, "irq_timer_us"))
		wl_sample(t, "irqs_off_ns", m.irqs_off_ns);
	read_log(t);
	return 0;
}

/* -- before and after -- */

/* The words are those of quota.toml, in the order of the enum; the lab has checked them. */
static int setup(struct trial *t)
{
	static const char *const works[] = {"spin", "syscall", "burst", NULL};
	int64_t percent_us = wl_param_int(t, "period_ms") * 10, quota_us;
	bool one = !strcmp(wl_param_str(t, "on"), "one");
	int error = bandwidth_allow(CGROUP_ROOT);

	log_fd = kmsg_open();
	periods = wl_param_int(t, "periods");
	inner.period_us = outer.period_us = percent_us * 100;
	inner.quota_us = wl_param_int(t, "quota") * percent_us;
	inner.burst_us = wl_param_int(t, "burst") * percent_us;
	outer.quota_us = wl_param_int(t, "outer") * percent_us;
	period_ns = inner.period_us * 1000;
	cpus = one ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
	tighter_quota(&quota_us);
	tasks.work = wl_param_choice(t, "work", works);
	tasks.tasks = wl_param_int(t, "tasks");
	tasks.cpu = one ? sysconf(_SC_NPROCESSORS_ONLN) - 1 : -1;
	tasks.cycle_ns = CYCLE_PERIODS * period_ns;
	tasks.burst_ns = BURST_QUOTAS * quota_us * 1000;
	if (error)
		return wl_fail(
			t, "cannot enable the cpu controller: %s; the kernel needs CGROUP_SCHED",
			strerror(-error));
	if (inner.burst_us > inner.quota_us)
		return wl_fail(
			t,
			"the burst is larger than the quota; choose a burst of at most the quota");
	if (tasks.work == CPU_LOAD_BURST && (!quota_us || periods % CYCLE_PERIODS))
		return wl_fail(t, "work=burst needs a quota, and periods that are a multiple of %d",
			       CYCLE_PERIODS);
	return 0;
}

static void cleanup(struct trial *t)
{
	int error = kill_and_remove();

	if (error && error != -ENOENT)
		wl_fail(t, "cannot remove " OUTER ": %s", strerror(-error));
	irqs_off_drop();
	if (log_fd >= 0)
		close(log_fd);
}

static const char *const params[] = {"tasks", "work",  "quota", "period_ms",	"periods",
				     "outer", "burst", "on",	"irq_timer_us", NULL};
static const struct workload quota = {
	.name = "quota",
	.summary = "tasks want more CPU time than their cgroup may have: how much do they get?",
	.params = params,
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(quota);
