// SPDX-License-Identifier: GPL-2.0
/*
 * Close N event devices one after the other, then the same N at once from N threads.
 * Needs the modules uinput and evdev (modprobe uinput; modprobe evdev) and root.
 * N: number of event devices (default 8).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/input.h>
#include <linux/uinput.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NODES "/kt-evdev"

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

/* A module may be loaded already, or built in: the steps that need it say whether it is there. */
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

static int create(int i)
{
	struct uinput_setup setup = {.id = {.bustype = BUS_VIRTUAL, .vendor = 1, .product = 1}};
	int fd = open("/dev/uinput", O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		die("/dev/uinput");
	snprintf(setup.name, sizeof(setup.name), "kt %d", i);
	if (ioctl(fd, UI_SET_EVBIT, EV_KEY) || ioctl(fd, UI_SET_KEYBIT, KEY_A) ||
	    ioctl(fd, UI_DEV_SETUP, &setup) || ioctl(fd, UI_DEV_CREATE))
		die("uinput");
	return fd;
}

/* Make a node of the event device of a uinput device, and return its name. */
static char *node(int fd, int i)
{
	char name[64], path[600], *made;
	unsigned int major_nr, minor_nr;
	struct dirent *entry;
	FILE *file;
	DIR *dir;
	int found = 0;

	if (ioctl(fd, UI_GET_SYSNAME(sizeof(name)), name) < 0)
		die("UI_GET_SYSNAME");
	snprintf(path, sizeof(path), "/sys/devices/virtual/input/%s", name);
	dir = opendir(path);
	if (!dir)
		die(path);
	while ((entry = readdir(dir)))
		if (!strncmp(entry->d_name, "event", 5)) {
			snprintf(path, sizeof(path), "/sys/devices/virtual/input/%s/%s/dev", name,
				 entry->d_name);
			found = 1;
			break;
		}
	closedir(dir);
	if (!found) {
		fprintf(stderr, "%s has no event device: is the module evdev loaded?\n", name);
		exit(1);
	}
	file = fopen(path, "r");
	if (!file || fscanf(file, "%u:%u", &major_nr, &minor_nr) != 2)
		die(path);
	fclose(file);
	if (asprintf(&made, NODES "/%d", i) < 0)
		die("asprintf");
	if (mknod(made, S_IFCHR | 0600, makedev(major_nr, minor_nr)))
		die(made);
	return made;
}

static pthread_barrier_t start;

static void *close_one(void *fd)
{
	pthread_barrier_wait(&start);
	close((int)(long)fd);
	return NULL;
}

int main(void)
{
	long n = atol(getenv("N") ?: "8"), i;
	struct rlimit limit = {4096, 4096};
	long long begin, sequential, parallel;
	pthread_attr_t attr;
	pthread_t *threads;
	char **names;
	int *fds;

	if (n < 1 || n > 900) {
		fprintf(stderr, "N must be 1 to 900\n");
		return 1;
	}
	if (setrlimit(RLIMIT_NOFILE, &limit))
		die("setrlimit");
	load("uinput");
	load("evdev");
	mkdir(NODES, 0700);
	names = calloc(n, sizeof(*names));
	fds = calloc(n, sizeof(*fds));
	threads = calloc(n, sizeof(*threads));
	if (!names || !fds || !threads)
		die("calloc");
	for (i = 0; i < n; i++)
		names[i] = node(create(i), i);

	for (i = 0; i < n; i++)
		if ((fds[i] = open(names[i], O_RDONLY | O_NONBLOCK)) < 0)
			die(names[i]);
	begin = now_ns();
	for (i = 0; i < n; i++)
		close(fds[i]);
	sequential = now_ns() - begin;

	for (i = 0; i < n; i++)
		if ((fds[i] = open(names[i], O_RDONLY | O_NONBLOCK)) < 0)
			die(names[i]);
	pthread_barrier_init(&start, NULL, n + 1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (i = 0; i < n; i++)
		if ((errno = pthread_create(&threads[i], &attr, close_one, (void *)(long)fds[i])))
			die("pthread_create");
	begin = now_ns();
	pthread_barrier_wait(&start);
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	parallel = now_ns() - begin;

	printf("close_ns %lld ns\n", sequential);
	printf("close_threads_ns %lld ns\n", parallel);
	return 0;
}
