// SPDX-License-Identifier: GPL-2.0
/*
 * A trigger is written to a pressure file while its cgroup is removed.
 *
 *	gcc -O2 -static -o psi-trigger psi-trigger.c
 *	ROUNDS=400 ./psi-trigger
 *
 * Run it as root with two CPUs that run at once, or as the init of a guest (then ROUNDS is a word
 * of the kernel's command line, and the guest is switched off at the end). A kernel with KASAN and
 * without commit 94a4acfec146 ("cgroup/psi: Set of->priv to NULL upon file release") reports
 * "slab-use-after-free in pressure_write", and threads called psimon are left. By reading, these use
 * the memory of cgroups that are freed.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"
#define CGROUP ROOT "/removed"
#define TRIGGER "some 100000 1000000"
/* The first rounds only measure how long a write takes. */
#define FIRST_ROUNDS 4

static struct shared {
	volatile bool ready, begun;
	volatile int error;
	volatile int64_t end_ns;
} * shared;

static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	fflush(stdout);
	if (getpid() == 1)
		reboot(RB_POWER_OFF);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("two CPUs are needed");
}

static void write_trigger(int fd)
{
	run_on(1);
	shared->ready = true;
	while (!shared->begun)
		;
	shared->error = write(fd, TRIGGER, sizeof(TRIGGER)) < 0 ? errno : 0;
	shared->end_ns = now_ns();
	_exit(0);
}

/*
 * Writes a trigger, and removes its cgroup delay_ns after the write has begun. *write_ns is how
 * long the write took. Returns whether the cgroup was removed during the write.
 */
static bool play(int64_t delay_ns, int64_t *write_ns)
{
	int64_t start_ns, removed_ns;
	int fd;
	pid_t pid;

	if (mkdir(CGROUP, 0755))
		die(CGROUP);
	fd = open(CGROUP "/memory.pressure", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die("memory.pressure");
	memset(shared, 0, sizeof(*shared));
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid)
		write_trigger(fd);
	close(fd);
	while (!shared->ready)
		sched_yield();
	start_ns = now_ns();
	shared->begun = true;
	while (now_ns() - start_ns < delay_ns)
		;
	if (rmdir(CGROUP))
		die("rmdir");
	removed_ns = now_ns();
	waitpid(pid, NULL, 0);
	*write_ns = shared->end_ns - start_ns;
	return removed_ns < shared->end_ns;
}

static int psimons(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int found = 0;

	while (proc && (entry = readdir(proc))) {
		char path[300], name[32] = "";
		int fd;

		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		fd = isdigit((unsigned char)entry->d_name[0]) ? open(path, O_RDONLY) : -1;
		if (fd >= 0 && read(fd, name, sizeof(name) - 1) > 0)
			found += !strcmp(name, "psimon\n");
		if (fd >= 0)
			close(fd);
	}
	if (proc)
		closedir(proc);
	return found;
}

int main(void)
{
	int64_t write_ns, longest_ns = 0, delay_ns;
	const char *wanted = getenv("ROUNDS");
	long rounds = wanted ? atol(wanted) : 400, during = 0, refused = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (getpid() == 1) {
		mkdir("/proc", 0755);
		mkdir("/sys", 0755);
		if (mount("proc", "/proc", "proc", 0, NULL) ||
		    mount("sysfs", "/sys", "sysfs", 0, NULL) ||
		    mount("cgroup2", ROOT, "cgroup2", 0, NULL))
			die("mount");
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		die("mmap");
	run_on(0);
	srand(1);
	for (long i = 0; i < rounds; i++) {
		delay_ns = i < FIRST_ROUNDS ? 100000000 : rand() % (longest_ns + 1);
		during += play(delay_ns, &write_ns);
		refused += shared->error == ENODEV;
		if (i < FIRST_ROUNDS && write_ns > longest_ns)
			longest_ns = write_ns;
	}
	sleep(2);
	printf("%ld writes: %ld cgroups were removed meanwhile, %ld writes were refused, "
	       "%d psimon left\n",
	       rounds, during, refused, psimons());
	if (getpid() == 1)
		reboot(RB_POWER_OFF);
	return 0;
}
