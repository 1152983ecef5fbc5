// SPDX-License-Identifier: GPL-2.0
/*
 * The same zombies and the cgroup freezer: the parent and its zombies are in a cgroup,
 * which is frozen and thawed through cgroup.freeze.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/zombie_parent.h"

#define CGROUP CGROUP_ROOT "kteardown"
#define SETTLE_MS 100
/*
 * Notifications for one file are at least 10 ms apart (CGROUP_FILE_NOTIFY_MIN_INTV): after
 * a longer pause the next one comes at once.
 */
#define PAUSE_MS 50
#define PATIENCE_MS 60000
#define REMOVE_MS 10000

static struct zombie_parent parent;
static int events_fd;

/* Reading cgroup.events also arms its next notification. -1 if it cannot be read. */
static int is_frozen(void)
{
	char text[256];
	ssize_t n = pread(events_fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return -1;
	text[n] = '\0';
	return strstr(text, "frozen 1") != NULL;
}

/* The time in ns from writing cgroup.freeze until the cgroup reports the new state; -errno. */
static int64_t change(int frozen)
{
	struct pollfd notice = {.fd = events_fd, .events = POLLPRI};
	int64_t start;
	int error;

	if (is_frozen() < 0)
		return -errno;
	start = now_ns();
	error = write_file(CGROUP "/cgroup.freeze", "%d", frozen);
	if (error)
		return error;
	while (is_frozen() != frozen)
		if (poll(&notice, 1, PATIENCE_MS) == 0)
			return -ETIMEDOUT;
	return now_ns() - start;
}

static int setup(struct trial *t)
{
	int64_t zombies = wl_param_int(t, "zombies");
	bool shared = !strcmp(wl_param_str(t, "make"), "shared");
	int error;

	parent.pid = 0;
	events_fd = -1;
	error = cgroup_make(CGROUP);
	if (error)
		return wl_fail(t, "cannot make " CGROUP ": %s; the kernel needs CGROUPS",
			       strerror(-error));
	events_fd = open(CGROUP "/cgroup.events", O_RDONLY | O_CLOEXEC);
	if (events_fd < 0)
		return wl_fail(t,
			       "cannot open " CGROUP "/cgroup.events: %m; is cgroup v2 mounted?");
	if (zombie_parent_start(t, &parent, zombies, shared, CGROUP))
		return -1;
	return 0;
}

static int run(struct trial *t)
{
	int64_t freeze, thaw, count, zombies = wl_param_int(t, "zombies");

	wl_settle(t, SETTLE_MS);
	wl_profile_begin(t);
	freeze = change(1);
	wl_profile_end(t);
	sleep_ms(PAUSE_MS);
	thaw = change(0);
	count = zombie_parent_count(&parent);

	wl_check(t, "freeze_completed", freeze >= 0 && thaw >= 0, "freeze: %s, thaw: %s",
		 freeze < 0 ? strerror(-freeze) : "done", thaw < 0 ? strerror(-thaw) : "done");
	wl_check(t, "all_zombies", count == zombies, "%lld", (long long)count);
	if (freeze >= 0)
		wl_sample(t, "freeze_cgroup_ns", freeze);
	if (thaw >= 0)
		wl_sample(t, "thaw_cgroup_ns", thaw);
	return 0;
}

static void cleanup(struct trial *t)
{
	zombie_parent_stop(&parent);
	if (events_fd >= 0)
		close(events_fd);
	if (cgroup_remove(CGROUP, REMOVE_MS) == -EBUSY)
		wl_fail(t, "cannot remove " CGROUP ": still busy");
}

static const char *const params[] = {"zombies", "make", NULL};
static const struct workload zombies_cgroup = {
	.name = "zombies_cgroup",
	.summary = "freeze and thaw a cgroup with many exited children that are not waited for",
	.params = params,
	.stretch = "freezing the cgroup",
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(zombies_cgroup);
