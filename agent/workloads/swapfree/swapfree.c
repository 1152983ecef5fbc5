// SPDX-License-Identifier: GPL-2.0
/*
 * Several processes free compressed swap at the same moment: how long does each take, how
 * long all of them, and when is the memory really free?
 *
 * Every repetition starts with an empty device. Each process makes its data and swaps them
 * out; then all wait for one signal, and call munmap() or are killed.
 */
#define _GNU_SOURCE /* pipe2() */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compactor.h"
#include "lib/meminfo.h"
#include "lib/swap_data.h"
#include "lock_metrics.h"
#include "mrelease.h"

#define MAX_PROCESSES 256
#define SETTLE_MS 20
/* What the pool needs for a page of the data, with its overhead, rounded up. */
#define POOL_BYTES_PER_PAGE 1700
/* What a process needs besides its data, and what the device's table needs for a page. */
#define PROCESS_KB 3072
#define TABLE_BYTES_PER_PAGE 64
#define SPARE (64 << 20)

enum end { END_MUNMAP, END_EXIT, END_MRELEASE, END_REWRITE };

/* The result of a process, in memory that all of them share. */
struct result {
	_Atomic int64_t stored, stored_ns;
	_Atomic int64_t from, to; /* of freeing */
	_Atomic int error;
};

static struct result *results; /* an array of MAX_PROCESSES */
static enum end end_by;
static enum backend backend;
static int64_t processes, bytes_each, cpus;
static pid_t group;
/*
 * The ends of pipes. "ready" and "done" get a byte from each process; "go" and "leave" are
 * closed.
 */
static int ready[2], go[2], done[2], leave[2];

/* -- in a process -- */

/* Nothing is ever written: the end of the pipe is the signal. */
static void await_close(int *ends)
{
	char byte;

	while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
		;
}

static int release(struct swap_data *h, struct result *c)
{
	int64_t before = h->stored_ns, start = now_ns(), end;
	int error = end_by == END_REWRITE ? swap_data_rewrite(h) : swap_data_free(h);

	end = now_ns();
	/* The time for making the new data is excluded. */
	c->from = end_by == END_REWRITE ? end - (h->stored_ns - before) : start;
	c->to = end;
	return error;
}

__attribute__((noreturn)) static void run_member(int index, bool one_size)
{
	struct result *c = &results[index];
	struct swap_data_spec spec = {backend, bytes_each, one_size, index};
	struct swap_data h;

	close(go[1]);
	close(leave[1]);
	stay_on_cpu(index % cpus);
	c->error = swap_data_store(&h, &spec);
	c->stored = c->error ? 0 : swap_data_stored(&h);
	c->stored_ns = h.stored_ns;
	if (write_all(ready[1], "", 1))
		_exit(EXIT_FAILURE);
	await_close(go);
	if (!c->error)
		c->error = release(&h, c);
	/* No process exits while others are still freeing. */
	write_all(done[1], "", 1);
	await_close(leave);
	if (end_by == END_REWRITE && !c->error)
		swap_data_free(&h);
	_exit(EXIT_SUCCESS);
}

static void close_end(int *end)
{
	if (*end >= 0)
		close(*end);
	*end = -1;
}

static void close_pipes(void)
{
	int *const pipes[] = {ready, go, done, leave};

	for (size_t i = 0; i < ARRAY_SIZE(pipes); i++) {
		close_end(&pipes[i][0]);
		close_end(&pipes[i][1]);
	}
}

static int start_members(struct trial *t)
{
	bool one_size = !strcmp(wl_param_str(t, "sizes"), "one");
	char bytes[MAX_PROCESSES];
	pid_t pids[MAX_PROCESSES];

	memset(results, 0, MAX_PROCESSES * sizeof(*results));
	if (pipe2(ready, O_CLOEXEC) || pipe2(go, O_CLOEXEC) || pipe2(done, O_CLOEXEC) ||
	    pipe2(leave, O_CLOEXEC))
		return wl_fail(t, "cannot make a pipe: %m");
	group = 0;
	for (int i = 0; i < processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return wl_fail(t, "cannot fork process %d: %m", i);
		if (!pid)
			run_member(i, one_size);
		group = group ? group : pid;
		setpgid(pid, group);
		pids[i] = pid;
	}
	/* Only now, so that no process inherits them. */
	for (int i = 0; end_by == END_MRELEASE && i < processes; i++)
		if (mrelease_open(t, pids[i]))
			return -1;
	close_end(&ready[1]);
	close_end(&done[1]);
	if (read_all(ready[0], bytes, processes))
		return wl_fail(t, "a process died before its pages were swapped out");
	for (int i = 0; i < processes; i++)
		if (results[i].error)
			return wl_fail(t, "process %d, swapping out: %s", i,
				       strerror(-results[i].error));
	return 0;
}

/* -- one repetition -- */

static int kill_members(struct trial *t, int64_t start)
{
	int status;

	if (end_by == END_MRELEASE) {
		if (mrelease_kill(t, group))
			return -1;
	} else if (kill(-group, SIGKILL)) {
		return wl_fail(t, "cannot send the signal: %m");
	}
	for (int i = 0; i < processes; i++) {
		if (waitpid(-group, &status, 0) < 0)
			return wl_fail(t, "cannot wait for the process: %m");
		results[i].from = start;
		results[i].to = now_ns();
	}
	return 0;
}

static int release_members(struct trial *t, int64_t *start)
{
	char bytes[MAX_PROCESSES];

	*start = now_ns();
	if (end_by == END_EXIT || end_by == END_MRELEASE)
		return kill_members(t, *start);
	close_end(&go[1]);
	if (read_all(done[0], bytes, processes))
		return wl_fail(t, "a process died before it was done");
	return 0;
}

static int64_t last_ns(int64_t start)
{
	int64_t last = start;

	for (int i = 0; i < processes; i++)
		last = results[i].to > last ? results[i].to : last;
	return last - start;
}

static void check_stored(struct trial *t, const struct pool_usage *before,
			 const struct pool_usage *full)
{
	int64_t wanted = processes * bytes_each / sysconf(_SC_PAGESIZE), least = wanted, stored = 0;
	int64_t held = full->pages - before->pages, behind = full->behind_pages;

	for (int i = 0; i < processes; i++) {
		stored += results[i].stored;
		if (results[i].stored * processes < least)
			least = results[i].stored * processes;
	}
	wl_check(t, "swapped", least * 100 >= wanted * 99,
		 "%lld of %lld pages are swapped out; of one process %lld", (long long)stored,
		 (long long)wanted, (long long)(least / processes));
	wl_check(t, "held", held * 100 >= wanted * 99 && behind * 100 <= wanted,
		 "the pool has %lld of %lld pages; the device behind it has %lld", (long long)held,
		 (long long)wanted, (long long)behind);
	wl_check(t, "compressed", full->special_pages * 100 <= wanted,
		 "%lld of %lld pages consist of one word or do not compress",
		 (long long)full->special_pages, (long long)wanted);
	wl_sample(t, "swapped_pages_count", held);
	wl_sample(t, "pool_kb", full->pool_kb - before->pool_kb);
}

/* Turns swap off and checks that nothing is left of what the processes swapped out. */
static int check_emptied(struct trial *t, const struct pool_usage *before)
{
	struct pool_usage left;
	int64_t when;
	int error = backend_stop(backend);

	if (error)
		return wl_fail(t, "cannot turn swap off: %s", strerror(-error));
	error = backend_settle(backend, before, &left, &when);
	wl_check(t, "emptied", !error && pool_usage_equal(&left, before),
		 "%lld pages are left, %lld kB", (long long)(left.pages - before->pages),
		 (long long)(left.pool_kb - before->pool_kb));
	return error ? wl_fail(t, "cannot read the pool's statistics: %s", strerror(-error)) : 0;
}

static void sample_times(struct trial *t, int64_t start, int64_t settled_ns)
{
	for (int i = 0; i < processes; i++) {
		wl_sample(t, "munmap_ns", results[i].to - results[i].from);
		wl_sample(t, "store_ns", results[i].stored_ns);
	}
	wl_sample(t, "last_ns", last_ns(start));
	wl_sample(t, "settled_ns", settled_ns - start);
}

static int free_all(struct trial *t, int64_t *start)
{
	int64_t compactions;

	wl_settle(t, SETTLE_MS);
	lock_metrics_begin();
	compactions = compactor_rounds();
	wl_profile_begin(t);
	if (release_members(t, start))
		return -1;
	wl_profile_end(t);
	compactions = compactor_rounds() - compactions;
	lock_metrics_sample(t);
	wl_sample(t, "compactions_count", compactions);
	for (int i = 0; i < processes; i++)
		if (results[i].error)
			return wl_fail(t, "process %d, freeing: %s", i,
				       strerror(-results[i].error));
	return 0;
}

static int measure(struct trial *t, const struct pool_usage *before)
{
	struct pool_usage full, left;
	int64_t start, settled_ns;
	int error = backend_usage(backend, &full);

	if (error)
		return wl_fail(t, "cannot read the pool's statistics: %s", strerror(-error));
	check_stored(t, before, &full);
	if (!strcmp(wl_param_str(t, "compactor"), "on") &&
	    compactor_start(t, backend_compact_file(backend), processes % cpus))
		return -1;
	if (free_all(t, &start))
		return -1;
	error = backend_settle(backend, end_by == END_REWRITE ? &full : before, &left, &settled_ns);
	if (error)
		return wl_fail(t, "cannot read the pool's statistics: %s", strerror(-error));
	sample_times(t, start, settled_ns);
	return compactor_stop(t);
}

static void reap_members(void)
{
	close_pipes();
	mrelease_close();
	while (group && (waitpid(-group, NULL, 0) > 0 || errno == EINTR))
		;
	group = 0;
}

static int run(struct trial *t)
{
	int64_t bytes = processes * bytes_each;
	struct pool_usage before;
	const char *what;
	/* Each CPU allocates in a part of its own, and the last part of each need not be full. */
	int error = backend_open(backend, wl_param_str(t, "compressor"), bytes + bytes / 4 + SPARE,
				 &what);

	if (!error)
		error = backend_usage(backend, &before);
	if (error)
		return wl_fail(t, "%s: %s", what, strerror(-error));
	if (start_members(t) || measure(t, &before))
		return -1;
	reap_members();
	if (check_emptied(t, &before))
		return -1;
	error = backend_close(backend);
	return error ? wl_fail(t, "cannot reset the device: %s", strerror(-error)) : 0;
}

/* -- before and after -- */

static int check_memory(struct trial *t)
{
	int64_t pages = processes * bytes_each / sysconf(_SC_PAGESIZE);
	int64_t need = pages * (POOL_BYTES_PER_PAGE + TABLE_BYTES_PER_PAGE) / 1024 +
		       processes * PROCESS_KB;
	struct meminfo m;
	int error = meminfo_read(&m);

	if (error)
		return wl_fail(t, "cannot read /proc/meminfo: %s", strerror(-error));
	if (need > m.available)
		return wl_fail(t,
			       "%lld processes with %lld MB each need about %lld MB after "
			       "compression, and %lld MB are available; give the guest more memory",
			       (long long)processes, (long long)(bytes_each >> 20),
			       (long long)need / 1024, (long long)m.available / 1024);
	return 0;
}

/* The words are those of swapfree.toml, in the order of the enums; the lab has checked them. */
static int setup(struct trial *t)
{
	static const char *const backends[] = {"zram", "zswap", "direct", NULL};
	static const char *const ends[] = {"munmap", "exit", "mrelease", "rewrite", NULL};

	ready[0] = ready[1] = go[0] = go[1] = -1;
	done[0] = done[1] = leave[0] = leave[1] = -1;
	group = 0;
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	processes = wl_param_int(t, "processes");
	bytes_each = wl_param_int(t, "mb") << 20;
	backend = wl_param_choice(t, "backend", backends);
	end_by = wl_param_choice(t, "end", ends);
	if ((end_by == END_EXIT || end_by == END_MRELEASE) && backend == BACKEND_DIRECT)
		return wl_fail(
			t,
			"end=%s frees swap, but what was written to the device "
			"(backend=direct) outlives its writer; choose another end or backend",
			wl_param_str(t, "end"));
	if (end_by == END_REWRITE && backend != BACKEND_DIRECT)
		return wl_fail(t, "end=rewrite needs backend=direct");
	results = mmap(NULL, MAX_PROCESSES * sizeof(*results), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (results == MAP_FAILED)
		return wl_fail(t, "cannot mmap memory: %m");
	return check_memory(t);
}

static void cleanup(struct trial *t)
{
	(void)t;
	if (group)
		kill(-group, SIGKILL);
	compactor_drop();
	reap_members();
	backend_close(backend);
	munmap(results, MAX_PROCESSES * sizeof(*results));
}

static const char *const params[] = {"processes",  "mb",	"backend", "end",
				     "compressor", "compactor", "sizes",   NULL};
static const struct workload swapfree = {
	.name = "swapfree",
	.summary = "several processes free compressed swap at once",
	.params = params,
	.stretch = "from the signal until the last process has freed its pages",
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(swapfree);
