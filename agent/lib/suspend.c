// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "suspend.h"

#define PM_TEST "/sys/power/pm_test"
#define STATE "/sys/power/state"
#define MEM_SLEEP "/sys/power/mem_sleep"
#define SYNC "/sys/power/sync_on_suspend"
#define SECONDS_MAX 1000
#define DELAY "/sys/module/suspend/parameters/pm_test_delay"

int suspend_prepare(struct trial *t, const char *level)
{
	char offered[128];
	int error;

	error = write_file(PM_TEST, "%s", level);
	if (error)
		return wl_fail(t, "cannot write %s: %s; the kernel needs SUSPEND and PM_DEBUG",
			       PM_TEST, strerror(-error));
	error = write_file(DELAY, "0");
	if (error)
		return wl_fail(t, "cannot write %s: %s", DELAY, strerror(-error));
	/* Writing back file systems is a different cost. The file exists since Linux 5.6. */
	error = write_file(SYNC, "0");
	if (error && error != -ENOENT)
		return wl_fail(t, "cannot write %s: %s", SYNC, strerror(-error));
	/* Suspend-to-idle does not involve the firmware. */
	if (read_file(MEM_SLEEP, offered, sizeof(offered)) > 0 && strstr(offered, "s2idle")) {
		error = write_file(MEM_SLEEP, "s2idle");
		if (error)
			return wl_fail(t, "cannot write %s: %s", MEM_SLEEP, strerror(-error));
	}
	return 0;
}

int64_t suspend_once(void)
{
	int fd = open(STATE, O_WRONLY | O_CLOEXEC);
	int64_t start, end;
	ssize_t n;

	if (fd < 0)
		return -errno;
	start = now_ns();
	n = write(fd, "mem", 3);
	end = now_ns();
	if (n < 0) {
		int error = -errno;

		close(fd);
		return error;
	}
	close(fd);
	return end - start;
}

void suspend_restore(void)
{
	write_file(PM_TEST, "none");
}

int suspend_keep_frozen(struct trial *t, int64_t window_s)
{
	int64_t second_ns, seconds;
	int error = write_file(DELAY, "1");

	if (error)
		return wl_fail(t, "cannot write %s: %s", DELAY, strerror(-error));
	second_ns = suspend_once();
	if (second_ns <= 0)
		return wl_fail(t, "cannot suspend: %s", strerror((int)-second_ns));
	seconds = (window_s * 1000000000 + second_ns - 1) / second_ns;
	if (seconds > SECONDS_MAX)
		return wl_fail(t,
			       "a second of mdelay() takes only %lld ns, so window_s needs more "
			       "than 1000 of them; choose a smaller window_s",
			       (long long)second_ns);
	error = write_file(DELAY, "%lld", (long long)seconds);
	return error ? wl_fail(t, "cannot write %s: %s", DELAY, strerror(-error)) : 0;
}
