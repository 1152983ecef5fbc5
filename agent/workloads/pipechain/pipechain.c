// SPDX-License-Identifier: GPL-2.0
/*
 * One signal is sent to many processes that are chained by pipes. How long does the call
 * take, how long until the last process is gone, and can other processes use the system
 * meanwhile?
 *
 * A repetition makes the chain, proves with a token that it is one, sends the signal, and
 * reaps. Latency probes run beside it. The memory that the chain takes is the difference
 * of the free memory before and after it was made.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "chain.h"
#include "lib/latency_probe.h"
#include "lib/meminfo.h"

/*
 * Long enough for what was freed before (by RCU, freed stacks) to be gone, and for every
 * link to sleep.
 */
#define SETTLE_MS 50
/* Processes that exist in the guest in any case. */
#define OTHERS 1000

static struct chain chain;

/* The words are those of pipechain.toml, in the order of the enums; the lab has checked them. */
static struct chain_spec read_spec(const struct trial *t)
{
	static const char *const makes[] = {"shared", "fork", "exec", "nested", NULL};
	static const char *const reaps[] = {"newest", "oldest", "any", "ignore", NULL};

	return (struct chain_spec){
		.links = wl_param_int(t, "processes"),
		.make = wl_param_choice(t, "make", makes),
		.reap = wl_param_choice(t, "reap", reaps),
		.orphans = !strcmp(wl_param_str(t, "parent"), "init"),
		.signo = strcmp(wl_param_str(t, "signal"), "int") ? SIGKILL : SIGINT,
		.used_pipes = !strcmp(wl_param_str(t, "pipes"), "used"),
	};
}

/* -- what must be available before the first process is made -- */

static int64_t limit_of(const char *path)
{
	char text[32];

	return read_file(path, text, sizeof(text)) > 0 ? strtoll(text, NULL, 10) : INT64_MAX;
}

static int check_numbers(struct trial *t, int64_t links)
{
	static const char *const limits[] = {"/proc/sys/kernel/pid_max",
					     "/proc/sys/kernel/threads-max",
					     "/proc/sys/fs/file-max"};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		int64_t limit = limit_of(limits[i]), need = links + OTHERS;

		/* Each process holds both ends of a pipe open. */
		if (!strcmp(limits[i], "/proc/sys/fs/file-max"))
			need += links;
		if (limit < need)
			return wl_fail(t,
				       "%lld processes need %s of at least %lld, and it is %lld; "
				       "ask for fewer processes",
				       (long long)links, limits[i], (long long)need,
				       (long long)limit);
	}
	return 0;
}

static int check_memory(struct trial *t, const struct chain_spec *spec)
{
	/* Measured on 6.12, x86_64, and rounded up; findings/masskill.md says where the memory
	 * goes. */
	static const int64_t each_bytes[] = {[CHAIN_SHARED] = 23800,
					     [CHAIN_FORK] = 100500,
					     [CHAIN_EXEC] = 131500,
					     [CHAIN_NESTED] = 100500};
	int64_t links = spec->links;
	int64_t need = links * (each_bytes[spec->make] + spec->used_pipes * 5120) / 1024;
	struct meminfo m;
	int error = meminfo_read(&m);

	if (error)
		return wl_fail(t, "cannot read /proc/meminfo: %s", strerror(-error));
	/* The pages of every ancestor refer to a nested link (anon_vma). */
	if (spec->make == CHAIN_NESTED)
		need += links * links / 7;
	if (need > m.available)
		return wl_fail(t,
			       "%lld processes need about %lld MB, and %lld MB are available; give "
			       "the guest more memory",
			       (long long)links, (long long)need / 1024,
			       (long long)m.available / 1024);
	return 0;
}

static int setup(struct trial *t)
{
	struct chain_spec spec = read_spec(t);
	int error = raise_limits();

	chain = (struct chain){0};
	if (error)
		return wl_fail(t, "cannot raise the limits on tasks: %s", strerror(-error));
	/*
	 * Limits on the pipes of one user; 0 is no limit. A kernel without these files has no
	 * limit.
	 */
	write_file("/proc/sys/fs/pipe-user-pages-soft", "0");
	write_file("/proc/sys/fs/pipe-user-pages-hard", "0");
	write_file("/proc/sys/fs/file-max", "%lld", (long long)INT64_MAX);
	return check_numbers(t, spec.links) || check_memory(t, &spec) ? -1 : 0;
}

/* -- one repetition -- */

static void sample_memory(struct trial *t, const struct meminfo *before,
			  const struct meminfo *after)
{
	wl_sample(t, "memory_kb", before->free - after->free);
	wl_sample(t, "slab_kb", after->slab - before->slab);
	wl_sample(t, "stack_kb", after->stacks - before->stacks);
	wl_sample(t, "page_table_kb", after->page_tables - before->page_tables);
	wl_sample(t, "user_kb", after->anonymous - before->anonymous);
}

static int make(struct trial *t)
{
	struct meminfo before, after;
	int64_t create_ns, passed;
	int error;

	wl_settle(t, SETTLE_MS);
	error = meminfo_read(&before);
	if (chain_make(t, &chain, &create_ns) || chain_prove(t, &chain, &passed))
		return -1;
	error = error ? error : meminfo_read(&after);
	if (error)
		return wl_fail(t, "cannot read /proc/meminfo: %s", strerror(-error));
	wl_check(t, "chained", passed == chain.spec.links, "%lld of %lld links passed the token on",
		 (long long)passed, (long long)chain.spec.links);
	wl_sample(t, "create_ns", create_ns);
	sample_memory(t, &before, &after);
	return 0;
}

static void sample_probes(struct trial *t, const struct probe_results *w)
{
	wl_sample(t, "unusable_ns", w->longest_ns);
	wl_sample(t, "probe_p50_ns", w->p50_ns);
	wl_sample(t, "probe_p99_ns", w->p99_ns);
	wl_sample(t, "newcomer_ns", w->newcomer_ns);
	wl_sample(t, "newcomer_worst_ns", w->newcomer_worst_ns);
	wl_sample(t, "realtime_gap_ns", w->realtime_ns);
	wl_sample(t, "runnable_count", w->runnable);
}

/* How the links died, and that none of them is left, not even as a zombie. */
static void check_end(struct trial *t, const struct chain_end *end)
{
	int64_t links = chain.spec.links;
	bool has_status = chain.spec.reap != CHAIN_IGNORE;

	wl_check(t, "killed", has_status ? end->killed == links : end->vanished == links,
		 "%lld of %lld were killed by the signal, %lld left no status",
		 (long long)end->killed, (long long)links, (long long)end->vanished);
	wl_check(t, "none_left", kill(-chain.group, 0) && errno == ESRCH, "process group %d",
		 (int)chain.group);
}

static int kill_all(struct trial *t)
{
	struct probe_spec probes = {.any = !strcmp(wl_param_str(t, "probes"), "all")};
	struct probe_results seen;
	struct chain_end end;
	int64_t start, returned;
	int status;

	if (latency_probes_start(t, &probes) || chain_reap(t, &chain))
		return -1;
	wl_settle(t, SETTLE_MS);
	wl_profile_begin(t);
	start = latency_probes_from();
	status = kill(-chain.group, chain.spec.signo);
	returned = now_ns();
	if (status)
		return wl_fail(t, "cannot send the signal: %m");
	if (chain_gone(t, &chain, &end))
		return -1;
	wl_profile_end(t);
	if (latency_probes_stop(t, end.gone_ns, &seen))
		return -1;
	wl_sample(t, "signal_ns", returned - start);
	wl_sample(t, "teardown_ns", end.gone_ns - start);
	if (probes.any)
		sample_probes(t, &seen);
	check_end(t, &end);
	return 0;
}

static int run(struct trial *t)
{
	struct chain_spec spec = read_spec(t);

	if (chain_open(t, &chain, &spec) || make(t) || kill_all(t))
		return -1;
	chain_close(&chain);
	return 0;
}

static void cleanup(struct trial *t)
{
	(void)t;
	latency_probes_drop();
	chain_close(&chain);
}

static const char *const params[] = {"processes", "make",  "signal", "parent",
				     "reap",	  "pipes", "probes", NULL};
static const struct workload pipechain = {
	.name = "pipechain",
	.summary = "kill a very large group of processes that are chained by pipes",
	.params = params,
	.stretch = "from the signal until the last process is reaped",
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(pipechain);
