// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest.h"
#include "lib/cgroup.h"
#include "modprobe.h"

static const struct {
	const char *type, *path, *options;
	bool required;
} mounts[] = {
	{"devpts", "/dev/pts", "mode=620,ptmxmode=666", true},
	/* If the kernel has no tmpfs, the folder itself will do. */
	{"tmpfs", "/dev/shm", "mode=1777", false},
	{"tmpfs", "/run", "mode=755", false},
	{"tmpfs", "/var/tmp", "mode=1777", false},
};

static const struct {
	const char *target, *path;
} links[] = {
	{"/proc/self/fd", "/dev/fd"},
	{"/proc/self/fd/0", "/dev/stdin"},
	{"/proc/self/fd/1", "/dev/stdout"},
	{"/proc/self/fd/2", "/dev/stderr"},
};

static int mount_all(struct trial *t)
{
	size_t i;

	mkdir("/var", 0755);
	for (i = 0; i < ARRAY_SIZE(mounts); i++) {
		mkdir(mounts[i].path, 0755);
		if (mount(mounts[i].type, mounts[i].path, mounts[i].type, 0, mounts[i].options) &&
		    errno != EBUSY && mounts[i].required)
			return wl_fail(t, "cannot mount %s on %s: %m", mounts[i].type,
				       mounts[i].path);
	}
	for (i = 0; i < ARRAY_SIZE(links); i++)
		if (symlink(links[i].target, links[i].path) && errno != EEXIST)
			return wl_fail(t, "cannot make %s: %m", links[i].path);
	return 0;
}

/*
 * Lets the groups below the root group have every controller, as systemd does for those that its
 * units use: without it, a script that makes a group finds no file of a controller in it.
 */
static int enable_controllers(struct trial *t)
{
	char text[1024], *name, *rest = text;
	int error;

	/* A kernel without control groups has no such file. */
	if (read_file(CGROUP_ROOT "cgroup.controllers", text, sizeof(text)) < 0)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	while ((name = strsep(&rest, " "))) {
		if (!*name)
			continue;
		error = write_file(CGROUP_ROOT "cgroup.subtree_control", "+%s", name);
		if (error)
			return wl_fail(t, "cannot enable the cgroup controller %s: %s", name,
				       strerror(-error));
	}
	return 0;
}

int guest_prepare(struct trial *t)
{
	static bool done;
	int error;

	if (done)
		return 0;
	/* On any other system these mounts and limits would remain. */
	if (getpid() != 1)
		return wl_fail(t, "a script is run in a guest only");
	/*
	 * A script is root. Only a process with CAP_SYS_PTRACE may now take the agent's port for
	 * records (pidfd_getfd), write to its memory or trace it, and a script does not have that.
	 * A second process cannot open the port. What root can do in other ways the lab finds, or
	 * it is of this boot alone.
	 */
	if (prctl(PR_SET_DUMPABLE, 0))
		return wl_fail(t, "prctl: %m");
	if (mount_all(t) || enable_controllers(t))
		return -1;
	error = modprobe_prepare();
	if (error)
		return wl_fail(t, "cannot set up modprobe: %s", strerror(-error));
	error = raise_limits();
	if (error)
		return wl_fail(t, "cannot raise the limits: %s", strerror(-error));
	done = true;
	return 0;
}
