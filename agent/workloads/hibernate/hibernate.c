// SPDX-License-Identifier: GPL-2.0
/*
 * A hibernation up to the point where the machine would be switched off, beside zombies: both
 * freezes, the image, and the reading of it.
 *
 * The agent does what the tools for user space hibernation do (/dev/snapshot): it freezes user
 * space, has the kernel freeze its threads and copy the memory, and reads the copy page by page.
 * It does not write the copy to a disk, which would cost what that disk costs. Then it gives the
 * image back and thaws everything. Nothing is restored.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/suspend_ioctls.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/kmsg.h"
#include "lib/phases.h"
#include "lib/suspend.h"
#include "lib/zombie_parent.h"

#define SNAPSHOT "/dev/snapshot"
#define PAGE 4096
#define SETTLE_MS 50

static struct zombie_parent parent;
static int log_fd;
static char page[PAGE];

/* What one hibernation took. A step that was not reached is -1. */
struct steps {
	int64_t freeze_ns, snapshot_ns, read_ns, thaw_ns;
	int64_t pages;
};

static int setup(struct trial *t)
{
	parent.pid = 0;
	log_fd = kmsg_open();
	if (log_fd < 0)
		return wl_fail(t, "cannot read /dev/kmsg: %s", strerror(-log_fd));
	suspend_restore(); /* no test: the whole sequence */
	return zombie_parent_start(t, &parent, wl_param_int(t, "zombies"), true, NULL);
}

/* Reads the image. The number of pages, or -errno. */
static int64_t read_image(int snapshot)
{
	int64_t pages = 0;
	ssize_t n;

	while ((n = read(snapshot, page, PAGE)) > 0)
		pages++;
	return n < 0 ? -errno : pages;
}

/* Since *since, which becomes now. */
static int64_t lap(int64_t *since)
{
	int64_t now = now_ns(), took = now - *since;

	*since = now;
	return took;
}

/* Leaves everything thawed. 0 or -errno of the step that failed. */
static int hibernate(struct steps *s)
{
	int snapshot = open(SNAPSHOT, O_RDONLY | O_CLOEXEC), in_suspend = 0, error = 0;
	int64_t since = now_ns();

	*s = (struct steps){-1, -1, -1, -1, -1};
	if (snapshot < 0)
		return -errno;
	if (ioctl(snapshot, SNAPSHOT_FREEZE)) {
		error = -errno;
		close(snapshot);
		return error;
	}
	s->freeze_ns = lap(&since);
	if (ioctl(snapshot, SNAPSHOT_CREATE_IMAGE, &in_suspend))
		error = -errno;
	s->snapshot_ns = lap(&since);
	if (!error && !in_suspend)
		error = -EAGAIN; /* a restored system continues here */
	if (!error) {
		s->pages = read_image(snapshot);
		error = s->pages < 0 ? (int)s->pages : 0;
		s->read_ns = lap(&since);
	}
	ioctl(snapshot, SNAPSHOT_FREE);
	if (ioctl(snapshot, SNAPSHOT_UNFREEZE) && !error)
		error = -errno;
	s->thaw_ns = lap(&since);
	close(snapshot);
	return error;
}

static void read_log(struct phases *p)
{
	struct kmsg line;

	while (kmsg_next(log_fd, &line) > 0)
		phases_freeze(p, line.time_ns, line.text);
}

static void sample(struct trial *t, const char *metric, int64_t value)
{
	if (value >= 0)
		wl_sample(t, metric, value);
}

static int run(struct trial *t)
{
	int64_t count, zombies = wl_param_int(t, "zombies"), whole;
	struct phases p;
	struct steps s;
	int error;

	phases_init(&p);
	wl_settle(t, SETTLE_MS);
	wl_profile_begin(t);
	whole = now_ns();
	error = hibernate(&s);
	whole = now_ns() - whole;
	wl_profile_end(t);
	read_log(&p);
	count = zombie_parent_count(&parent);
	wl_check(t, "image_read", !error, "%s", error ? strerror(-error) : "");
	wl_check(t, "all_zombies", count == zombies, "%lld", (long long)count);
	sample(t, "freeze_user_ns", phase_ns(&p.user));
	sample(t, "freeze_remaining_ns", phase_ns(&p.remaining));
	sample(t, "freeze_call_ns", s.freeze_ns);
	sample(t, "snapshot_call_ns", s.snapshot_ns);
	sample(t, "read_ns", s.read_ns);
	sample(t, "thaw_call_ns", s.thaw_ns);
	sample(t, "hibernation_ns", whole);
	if (s.pages >= 0)
		wl_sample(t, "image_kb", s.pages * (PAGE / 1024));
	return 0;
}

static void cleanup(struct trial *t)
{
	(void)t;
	zombie_parent_stop(&parent);
	if (log_fd >= 0)
		close(log_fd);
}

static const char *const params[] = {"zombies", NULL};
static const struct workload hibernate_workload = {
	.name = "hibernate",
	.summary = "hibernate up to the switch-off, with many exited children",
	.params = params,
	.stretch = "the hibernation, including the thaw",
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(hibernate_workload);
