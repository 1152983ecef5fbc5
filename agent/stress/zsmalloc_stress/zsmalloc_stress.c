// SPDX-License-Identifier: GPL-2.0
/*
 * Everything that can happen to compressed pages at the same time, and the proof that none
 * of them is lost, none gets the data of another, and none is left. One CPU moves objects
 * while the other frees them, so this needs the wall clock and two CPUs.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/kmsg.h"
#include "lib/swap_backend.h"
#include "lib/tasks.h"
#include "stressors.h"
#include "workload.h"

#define STOP_MS 30000
/* A slow guest needs long for its passes; a guest in which a task is stuck never completes them. */
#define LONGEST_S 60
#define HUNG_S 15
#define SQUEEZE_BYTES "3000000"
/* The swap device has room for several times the pages that the stressors use. */
#define SWAP_BYTES (256LL << 20)

static struct stress *stress;
static enum backend backend;
static pid_t pids[STRESSORS_MAX];
static bool stuck;
static int problems_fd = -1, messages_fd = -1;
static struct kmsg problem;
static int problem_status; /* 1: the message is in problem; or -errno */

static int start_stressors(struct trial *t)
{
	for (int i = 0; stressors[i].name; i++) {
		const struct stressor *stressor = &stressors[i];

		pids[i] = fork();
		if (pids[i] < 0)
			return wl_fail(t, "cannot fork the %s: %m", stressor->name);
		if (pids[i])
			continue;
		if (stressor->in_small_cgroup)
			stress->errors[i] = cgroup_enter(STRESS_CGROUP);
		if (!stress->errors[i])
			stress->errors[i] = stressor->run(stress, i);
		_exit(0);
	}
	return 0;
}

/*
 * With a broken pool the kernel can loop for ever: a stressor that does not stop is left
 * until the end of the guest.
 */
static int stop_stressors(struct trial *t)
{
	int64_t end = now_ns() + STOP_MS * 1000000LL;
	const char *late = NULL;
	int error = 0;

	stress->stop = true;
	for (int i = 0; stressors[i].name; i++) {
		int64_t left_ms = (end - now_ns()) / 1000000;
		int status = pids[i] > 0 ? task_reap(pids[i], left_ms) : 0;

		pids[i] = 0;
		if (status < 0)
			late = stressors[i].name;
		if (status > 0)
			error = wl_fail(t, "%s: wait status %#x", stressors[i].name, status);
		else if (stress->errors[i])
			error = wl_fail(t, "the %s failed: %s", stressors[i].name,
					strerror(-stress->errors[i]));
	}
	stuck = late;
	wl_check(t, "all_stop", !late, "late: %s", late ? late : "none");
	return late ? wl_fail(t, "%s does not stop", late) : error;
}

static void check_content(struct trial *t)
{
	wl_check(t, "memory_kept", !stress->wrong_pages,
		 "%lld pages were read back with other data", (long long)stress->wrong_pages);
	wl_check(t, "disk_kept", !stress->wrong_blocks, "%lld blocks have other data",
		 (long long)stress->wrong_blocks);
	wl_sample(t, "passes_count", stress->passes[0]);
	wl_sample(t, "pools_destroyed_count", stress->destroyed);
}

static int check_emptied(struct trial *t, const struct pool_usage *before)
{
	struct pool_usage left;
	int64_t when;
	int error = backend_stop(backend);

	if (!error)
		error = backend_settle(backend, before, &left, &when);
	if (error)
		return wl_fail(t, "cannot turn swap off: %s", strerror(-error));
	wl_check(t, "emptied", pool_usage_equal(&left, before), "%lld pages are left, %lld kB",
		 (long long)(left.pages - before->pages),
		 (long long)(left.pool_kb - before->pool_kb));
	return 0;
}

static int64_t migrated_pages(void)
{
	static char text[32768];
	int len = read_file("/proc/vmstat", text, sizeof(text));

	return len < 0 ? len : cgroup_value_in(text, "pgmigrate_success");
}

/* True if all of them have done enough passes, or if one has exited by itself. */
static bool enough(int64_t passes)
{
	bool done = true;

	for (int i = 0; stressors[i].name; i++) {
		if (task_state(pids[i]) == 'Z')
			return true;
		done = done && stress->passes[i] >= passes;
	}
	return done;
}

static bool has_problem(void)
{
	if (!problem_status)
		problem_status = kmsg_problem(problems_fd, &problem);
	return problem_status;
}

static int run_stressors(struct trial *t, int64_t seconds, int64_t passes)
{
	int64_t migrated = migrated_pages();

	if (start_stressors(t))
		return -1;
	for (int64_t i = 0; (i < seconds || (i < LONGEST_S && !enough(passes))) && !has_problem();
	     i++) {
		sleep_ms(1000);
		wl_alive(t, "%lld passes", (long long)stress->passes[0]);
	}
	if (stop_stressors(t))
		return -1;
	/* Not every kernel counts migrations. */
	if (migrated >= 0)
		wl_sample(t, "migrated_pages_count", migrated_pages() - migrated);
	return 0;
}

static int stress_backend(struct trial *t)
{
	struct pool_usage before;
	const char *what = "cannot read the state of the backend";
	int error = backend_open(backend, "lzo-rle", SWAP_BYTES, &what);

	if (!error)
		error = backend_usage(backend, &before);
	if (error)
		return wl_fail(t, "%s: %s", what, strerror(-error));
	if (run_stressors(t, wl_param_int(t, "seconds"), wl_param_int(t, "passes")))
		return -1;
	check_content(t);
	if (check_emptied(t, &before))
		return -1;
	error = backend_close(backend);
	return error ? wl_fail(t, "cannot reset the device: %s", strerror(-error)) : 0;
}

/*
 * kmsg_problem() does not match zsmalloc's own message about a pool that is destroyed
 * and not empty.
 */
static void check_log(struct trial *t)
{
	int more;

	has_problem();
	while (!problem_status && ((more = kmsg_next(messages_fd, &problem)) > 0 || more == -EPIPE))
		problem_status = more > 0 && strstr(problem.text, "is not empty");
	wl_check(t, "log_clean", !problem_status, "%s",
		 problem_status > 0 ? problem.text : strerror(-problem_status));
}

static int prepare_cgroup(void)
{
	int error = write_file("/sys/fs/cgroup/cgroup.subtree_control", "+memory");

	if (!error)
		error = cgroup_make(STRESS_CGROUP);
	return error ? error : write_file(STRESS_CGROUP "/memory.high", SQUEEZE_BYTES);
}

static int setup(struct trial *t)
{
	int error;

	stuck = false;
	problem_status = 0;
	memset(pids, 0, sizeof(pids));
	backend = strcmp(wl_param_str(t, "backend"), "zswap") ? BACKEND_ZRAM : BACKEND_ZSWAP;
	stress = mmap(NULL, sizeof(*stress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (stress == MAP_FAILED)
		return wl_fail(t, "cannot mmap memory: %m");
	stress->disk.number = -1;
	problems_fd = kmsg_open();
	messages_fd = kmsg_open();
	if (problems_fd < 0 || messages_fd < 0)
		return wl_fail(t, "cannot read /dev/kmsg: %s",
			       strerror(problems_fd < 0 ? -problems_fd : -messages_fd));
	/* Not every configuration has the detector of hung tasks. */
	write_file("/proc/sys/kernel/hung_task_timeout_secs", "%d", HUNG_S);
	error = prepare_cgroup();
	if (error)
		return wl_fail(t, "cannot make " STRESS_CGROUP ": %s", strerror(-error));
	error = zram_disk_add(&stress->disk);
	return error ? wl_fail(t, "cannot add a second device: %s", strerror(-error)) : 0;
}

static int run(struct trial *t)
{
	struct zram_disk disk = stress->disk;
	int error;

	memset(stress, 0, sizeof(*stress));
	stress->disk = disk;
	stress->pages = wl_param_int(t, "pages");
	stress->compact_file = backend_compact_file(BACKEND_ZRAM);
	error = stress_backend(t);
	check_log(t);
	return error;
}

static void cleanup(struct trial *t)
{
	(void)t;
	for (int i = 0; i < STRESSORS_MAX; i++)
		if (pids[i] > 0)
			kill(pids[i], SIGKILL);
	if (!stuck) {
		kill_and_reap_all(0);
		backend_close(backend);
		zram_disk_remove(&stress->disk);
	}
	cgroup_remove(STRESS_CGROUP, 1000);
	write_file("/sys/fs/cgroup/cgroup.subtree_control", "-memory");
	if (problems_fd >= 0)
		close(problems_fd);
	if (messages_fd >= 0)
		close(messages_fd);
	munmap(stress, sizeof(*stress));
}

static const char *const params[] = {"backend", "pages", "passes", "seconds", NULL};
static const struct workload zsmalloc_stress = {
	.name = "zsmalloc_stress",
	.summary = "compressed pages are freed, moved, overwritten and read at the same time",
	.params = params,
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(zsmalloc_stress);
