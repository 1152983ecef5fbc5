// SPDX-License-Identifier: GPL-2.0
/*
 * A process has N MB of memory and a TAP device, as a monitor of a virtual machine. It is killed:
 * how long is the device still busy for the next one?
 * Needs the module tun (modprobe tun) and root. Memory: N MB and 100 MB.
 * N: MB (default 64). THP=1: memory in huge pages, if the kernel has them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void load(const char *module)
{
	pid_t pid = fork();

	if (!pid) {
		int null = open("/dev/null", O_WRONLY);

		if (null >= 0)
			dup2(null, 2);
		execlp("modprobe", "modprobe", module, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

/* Return a descriptor of the device, or -1 with errno EBUSY. */
static int attach(void)
{
	struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC), error;

	if (fd < 0)
		die("/dev/net/tun");
	strcpy(request.ifr_name, "kttap0");
	if (!ioctl(fd, TUNSETIFF, &request))
		return fd;
	error = errno;
	close(fd);
	errno = error;
	if (errno != EBUSY)
		die("TUNSETIFF");
	return -1;
}

/* A TAP device that stays when nobody is attached to it. */
static void make_device(void)
{
	int fd;

	load("tun");
	if (access("/dev/net/tun", F_OK)) {
		mkdir("/dev/net", 0755);
		if (mknod("/dev/net/tun", S_IFCHR | 0600, makedev(10, 200)))
			die("/dev/net/tun");
	}
	fd = attach();
	if (fd < 0 || ioctl(fd, TUNSETPERSIST, 1))
		die("a lasting TAP device");
	close(fd);
}

__attribute__((noreturn)) static void hold(size_t size, int huge, int ready)
{
	char *memory;
	size_t i;

	if (attach() < 0)
		_exit(1);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		_exit(2);
	madvise(memory, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	for (i = 0; i < size; i += 4096)
		memory[i] = 1;
	if (write(ready, "r", 1) != 1)
		_exit(3);
	for (;;)
		pause();
}

/* Kills the process, and tries to attach to its device until that works. */
static void measure(pid_t pid)
{
	struct timespec step = {0, 200000};
	long long begin = now_ns(), busy = 0, gone = 0;
	int fd = -1, status;

	kill(pid, SIGKILL);
	while (!busy || !gone) {
		if (!busy && (fd = attach()) >= 0)
			busy = now_ns() - begin;
		if (!gone && waitpid(pid, &status, WNOHANG) == pid)
			gone = now_ns() - begin;
		if (!busy || !gone)
			nanosleep(&step, NULL);
	}
	ioctl(fd, TUNSETPERSIST, 0);
	printf("busy_ns %lld ns\n", busy);
	printf("exit_ns %lld ns\n", gone);
}

int main(void)
{
	size_t size = atol(getenv("N") ?: "64") << 20;
	int huge = atoi(getenv("THP") ?: "0"), ready[2], status;
	pid_t pid;
	char c;

	if (!size)
		return 1;
	make_device();
	if (pipe(ready))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		close(ready[0]);
		hold(size, huge, ready[1]);
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1) {
		waitpid(pid, &status, 0);
		fprintf(stderr, "the process with the memory failed: %#x\n", status);
		return 1;
	}
	if (attach() >= 0) {
		fprintf(stderr, "the device is not busy\n");
		return 1;
	}
	measure(pid);
	return 0;
}
