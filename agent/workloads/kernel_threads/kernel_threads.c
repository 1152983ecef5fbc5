// SPDX-License-Identifier: GPL-2.0
/*
 * What kernel threads cost a suspend that never freezes them: in every pass the freezer takes
 * its lock for each of them, and finds PF_NOFREEZE.
 *
 * The kernel makes such a thread, psimon, for each cgroup for which a privileged process has
 * set a pressure trigger. No task is in these cgroups, so the threads sleep.
 *
 * The phases are read from the kernel's log, in microseconds: with thousands of threads that
 * is less than an instruction for each.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/kmsg.h"
#include "lib/phases.h"
#include "lib/suspend.h"

#define TOP CGROUP_ROOT "kernel_threads"
#define TRIGGER "some 100000 1000000"
/* How many are made between two progress reports. */
#define PROGRESS 500
#define SETTLE_MS 50
#define REMOVE_MS 10000
/* include/linux/sched.h; both are visible in /proc/PID/stat. */
#define PF_NOFREEZE 0x00008000UL
#define PF_KTHREAD 0x00200000UL

static int *triggers;
static int64_t made;
static int64_t before, never_frozen; /* kernel threads with PF_NOFREEZE, without and with ours */
static int log_fd;

/* The flags of a task; 0 if it does not exist any more. */
static unsigned long task_flags(const char *pid)
{
	char path[300], text[512], *end;
	unsigned long flags;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	if (read_file(path, text, sizeof(text)) <= 0)
		return 0;
	end = strrchr(text, ')'); /* the name of a task may contain any character */
	if (!end || sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %lu", &flags) != 1)
		return 0;
	return flags;
}

/* -errno, or how many kernel threads there are that are never frozen. */
static int64_t count_never_frozen(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int64_t found = 0;

	if (!proc)
		return -errno;
	while ((entry = readdir(proc))) {
		unsigned long flags;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		flags = task_flags(entry->d_name);
		found += (flags & PF_KTHREAD) && (flags & PF_NOFREEZE);
	}
	closedir(proc);
	return found;
}

/* A cgroup with a trigger, and thus a kernel thread. The trigger's file, or -errno. */
static int make_thread(int64_t number)
{
	char path[96];
	int error, fd;

	snprintf(path, sizeof(path), TOP "/%lld", (long long)number);
	error = cgroup_make(path);
	if (error)
		return error;
	strcat(path, "/cpu.pressure");
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, TRIGGER, sizeof(TRIGGER)) < 0) {
		error = -errno;
		close(fd);
		return error;
	}
	return fd;
}

static int make_threads(struct trial *t, int64_t count)
{
	int error = raise_limits();

	if (error)
		return wl_fail(t, "cannot raise the limits on tasks: %s", strerror(-error));
	triggers = malloc((count + 1) * sizeof(*triggers));
	if (!triggers)
		return wl_fail(t, "not enough memory");
	error = cgroup_make(TOP);
	if (error)
		return wl_fail(t, "cannot make " TOP ": %s", strerror(-error));
	for (; made < count; made++) {
		triggers[made] = make_thread(made);
		if (triggers[made] < 0)
			return wl_fail(t, "cannot set a trigger: %s; the kernel needs PSI",
				       strerror(-triggers[made]));
		if (made % PROGRESS == PROGRESS - 1)
			wl_alive(t, "%lld threads", (long long)made + 1);
	}
	return 0;
}

static int setup(struct trial *t)
{
	made = 0;
	triggers = NULL;
	log_fd = kmsg_open();
	if (log_fd < 0)
		return wl_fail(t, "cannot read /dev/kmsg: %s", strerror(-log_fd));
	before = count_never_frozen();
	if (suspend_prepare(t, "freezer") || make_threads(t, wl_param_int(t, "kthreads")))
		return -1;
	never_frozen = count_never_frozen();
	return 0;
}

static int read_log(struct phases *p)
{
	struct kmsg line;
	int status;

	while ((status = kmsg_next(log_fd, &line)) > 0) {
		phases_freeze(p, line.time_ns, line.text);
		phases_thaw(p, line.time_ns, line.text);
	}
	return status;
}

static void sample(struct trial *t, const char *metric, int64_t ns)
{
	if (ns >= 0)
		wl_sample(t, metric, ns);
}

static int run(struct trial *t)
{
	int64_t call, user, remaining;
	struct phases p;

	phases_init(&p);
	wl_settle(t, SETTLE_MS);
	wl_profile_begin(t);
	call = suspend_once();
	wl_profile_end(t);
	read_log(&p);
	user = phase_ns(&p.user);
	remaining = phase_ns(&p.remaining);
	wl_check(t, "freeze_completed", call >= 0 && user >= 0 && remaining >= 0, "suspend: %s",
		 call < 0 ? strerror(-call) : "done");
	wl_check(t, "threads_made", before > 0 && never_frozen - before == made,
		 "%lld of %lld kernel threads are new", (long long)(never_frozen - before),
		 (long long)never_frozen);
	sample(t, "freeze_user_ns", user);
	sample(t, "freeze_remaining_ns", remaining);
	sample(t, "thaw_ns", phase_ns(&p.thaw));
	sample(t, "suspend_call_ns", call);
	wl_sample(t, "never_frozen_count", never_frozen);
	return 0;
}

static void cleanup(struct trial *t)
{
	int error;

	for (int64_t i = 0; i < made; i++)
		close(triggers[i]);
	free(triggers);
	triggers = NULL;
	error = cgroup_remove_tree(TOP, REMOVE_MS);
	if (error)
		wl_fail(t, "cannot remove " TOP ": %s", strerror(-error));
	suspend_restore();
	if (log_fd >= 0)
		close(log_fd);
}

static const char *const params[] = {"kthreads", NULL};
static const struct workload kernel_threads = {
	.name = "kernel_threads",
	.summary = "suspend and resume, with many kernel threads that are never frozen",
	.params = params,
	.stretch = "the suspend call, including the thaw",
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(kernel_threads);
