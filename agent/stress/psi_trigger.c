// SPDX-License-Identifier: GPL-2.0
/*
 * A trigger is written to a pressure file while its cgroup is removed: is it refused, is its
 * worker gone, and is no memory used after it was freed?
 *
 * For the trigger of a privileged process the kernel makes a thread (psimon), and drops
 * cgroup_mutex meanwhile. If the cgroup is removed then, the data of the open file is freed.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/kmsg.h"
#include "lib/tasks.h"
#include "workload.h"

#define TOP CGROUP_ROOT "psi_trigger"
#define TRIGGER "some 100000 1000000"
#define LIMIT_MS 20000
/* The first rounds only measure how long a write takes. */
#define CALIBRATE 4

/* What the writer of a round and the remover share. */
static struct shared {
	volatile bool begun, writing;
	volatile int error; /* of the write; 0 if the trigger was accepted */
	volatile int64_t end_ns;
} * shared;

static int log_fd = -1;

/* The writer, on the other CPU. The file is closed when it exits. */
static void write_trigger(int fd)
{
	if (stay_on_cpu(1))
		_exit(1);
	shared->writing = true;
	while (!shared->begun)
		;
	shared->error = write(fd, TRIGGER, sizeof(TRIGGER)) < 0 ? errno : 0;
	shared->end_ns = now_ns();
	_exit(0);
}

/*
 * One round: a trigger is written, and after delay_ns its cgroup is removed; without a delay
 * (negative) it is removed later. *write_ns is how long the write took; *during is set if the
 * removal began and ended within the write. 0 or -errno.
 */
static int play(int64_t delay_ns, int64_t *write_ns, bool *during)
{
	static const char cgroup[] = TOP "/child";
	int error = cgroup_make(cgroup), fd;
	int64_t start_ns, removed_ns;
	pid_t pid;

	if (error)
		return error;
	fd = open(TOP "/child/memory.pressure", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	memset(shared, 0, sizeof(*shared));
	pid = fork();
	if (!pid)
		write_trigger(fd);
	close(fd);
	if (pid < 0)
		return -errno;
	while (!shared->writing)
		sched_yield();
	start_ns = now_ns();
	shared->begun = true;
	if (delay_ns >= 0) {
		while (now_ns() - start_ns < delay_ns)
			;
		error = cgroup_remove(cgroup, LIMIT_MS);
	}
	removed_ns = now_ns();
	if (task_reap(pid, LIMIT_MS))
		return -ETIMEDOUT;
	*write_ns = shared->end_ns - start_ns;
	*during = delay_ns >= 0 && removed_ns < shared->end_ns;
	return error || delay_ns >= 0 ? error : cgroup_remove(cgroup, LIMIT_MS);
}

/* The number of threads that serve triggers; -errno. */
static int workers(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int found = 0;

	if (!proc)
		return -errno;
	while ((entry = readdir(proc))) {
		char path[300], name[32];

		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		if (isdigit((unsigned char)entry->d_name[0]) &&
		    read_file(path, name, sizeof(name)) > 0)
			found += !strcmp(name, "psimon\n");
	}
	closedir(proc);
	return found;
}

static void check_end(struct trial *t)
{
	int64_t end_ns = now_ns() + LIMIT_MS * 1000000LL, dying;
	int left;

	/* A thread that was stopped exits a moment later, and so does the memory of a cgroup. */
	do {
		sleep_ms(20);
		left = workers();
		dying = cgroup_value(TOP, "cgroup.stat", "nr_dying_descendants");
	} while ((left || dying) && now_ns() < end_ns);
	wl_check(t, "workers_gone", !left, "%d threads called psimon are left", left);
	wl_check(t, "all_gone", !dying, "%lld dying cgroups are left", (long long)dying);
}

static int run(struct trial *t)
{
	int64_t rounds = wl_param_int(t, "rounds"), longest_ns = 0, met = 0, i;
	struct prng random = {1};
	struct kmsg m = {0};
	int problem = 0, odd = 0;

	for (i = 0; i < rounds && !problem; i++) {
		int64_t write_ns = 0;
		bool during = false;
		int error = play(i < CALIBRATE ? -1 : (int64_t)prng_below(&random, longest_ns + 1),
				 &write_ns, &during);

		if (error)
			return wl_fail(t, "cannot make or remove a cgroup, or write: %s",
				       strerror(-error));
		if (i < CALIBRATE && write_ns > longest_ns)
			longest_ns = write_ns;
		met += during;
		if (shared->error && shared->error != ENODEV)
			odd = shared->error;
		/* Memory is corrupted after the first report. */
		problem = kmsg_problem(log_fd, &m);
		if (i % 16 == 0)
			wl_alive(t, "%lld triggers were written", (long long)i);
	}
	wl_sample(t, "during_count", met);
	wl_check(t, "accepted_or_gone", !odd, "a write failed with %s", strerror(odd));
	wl_check(t, "log_clean", !problem, "%s", problem > 0 ? m.text : strerror(-problem));
	check_end(t);
	return 0;
}

static int setup(struct trial *t)
{
	int error = cgroup_make(TOP);

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	log_fd = kmsg_open();
	if (!error)
		error = stay_on_cpu(0);
	if (!error && (shared == MAP_FAILED || log_fd < 0))
		error = -EIO;
	return error ? wl_fail(t, "cannot prepare: %s", strerror(-error)) : 0;
}

static void cleanup(struct trial *t)
{
	cpu_set_t all;

	(void)t;
	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	kill_and_reap_all(0);
	cgroup_remove_tree(TOP, LIMIT_MS);
	if (shared != MAP_FAILED)
		munmap(shared, sizeof(*shared));
	close(log_fd);
}

static const char *const params[] = {"rounds", NULL};
static const struct workload psi_trigger = {
	.name = "psi_trigger",
	.summary = "write triggers to pressure files while their cgroups are removed",
	.params = params,
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(psi_trigger);
