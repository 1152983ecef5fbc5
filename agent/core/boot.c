// SPDX-License-Identifier: GPL-2.0
/* From the start of user space to a guest that is ready for trials, and powering off. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"

#define PORT_NAME "kteardown.records"
#define PORTS "/sys/class/virtio-ports"
/*
 * A driver may need this long to probe its device if the host is loaded and the guest is
 * emulated.
 */
#define PORT_WAIT_MS 120000
#define EARLY_PORT_WAIT_MS 1000
#define CLOCK_WAIT_MS 10000

static const struct {
	const char *type, *path;
	bool required;
} mounts[] = {
	{"devtmpfs", "/dev", true},
	{"proc", "/proc", true},
	{"sysfs", "/sys", true},
	{"tracefs", "/sys/kernel/tracing", false},
	{"debugfs", "/sys/kernel/debug", false},
	{"cgroup2", "/sys/fs/cgroup", false},
	{"tmpfs", "/tmp", false},
};

/*
 * Connects standard error to the console, which the kernel could not open before /dev was
 * mounted.
 */
static void open_console(void)
{
	int fd = open("/dev/console", O_RDWR);

	if (fd < 0)
		return;
	dup2(fd, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

void boot_mounts(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(mounts); i++) {
		mkdir(mounts[i].path, 0755);
		/* EBUSY: the kernel has mounted it already. */
		if (mount(mounts[i].type, mounts[i].path, mounts[i].type, 0, NULL) &&
		    errno != EBUSY && mounts[i].required)
			agent_error("cannot mount %s on %s: %m", mounts[i].type, mounts[i].path);
		if (i == 0)
			open_console();
	}
}

void boot_modules(const struct plan *plan)
{
	int i;

	for (i = 0; i < plan->nr_modules; i++) {
		int fd = open(plan->modules[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			agent_error("module %s: %m", plan->modules[i]);
		if (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST)
			agent_error("cannot load the module %s: %m", plan->modules[i]);
		close(fd);
	}
}

/* Finds the device node of the port with our name. Returns 0, or -ENOENT. */
static int find_port(char *path, size_t size)
{
	DIR *dir = opendir(PORTS);
	struct dirent *entry;
	int error = -ENOENT;

	if (!dir)
		return -errno;
	while (error && (entry = readdir(dir))) {
		char file[512], name[64];

		snprintf(file, sizeof(file), PORTS "/%s/name", entry->d_name);
		if (entry->d_name[0] == '.' || read_file(file, name, sizeof(name)) < 0)
			continue;
		name[strcspn(name, "\n")] = '\0';
		if (strcmp(name, PORT_NAME))
			continue;
		snprintf(path, size, "/dev/%s", entry->d_name);
		error = 0;
	}
	closedir(dir);
	return error;
}

/* The open port, or -errno if no port with our name appeared in time. */
static int open_port(int wait_ms)
{
	char path[300];
	int error, fd;

	/* The device sends the name in a message, some time after the driver is bound. */
	while ((error = find_port(path, sizeof(path))) && wait_ms-- > 0)
		sleep_ms(1);
	if (error)
		return error;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int boot_records_port(void)
{
	int fd = open_port(PORT_WAIT_MS);

	if (fd < 0)
		agent_error("the virtio-serial port " PORT_NAME
			    ": %s; the kernel needs VIRTIO_CONSOLE and VIRTIO_PCI",
			    strerror(-fd));
	return fd;
}

void boot_clock(void)
{
	struct timespec resolution;
	int waited;

	/*
	 * x86 calibrates its TSC for a second of guest time before it uses it. Until then every
	 * timer expires on a tick, and a sleep of 1 ms takes 4 ms. If the timers of a machine stay
	 * that coarse, the trials are run nevertheless.
	 */
	for (waited = 0; waited < CLOCK_WAIT_MS; waited += 10) {
		clock_getres(CLOCK_MONOTONIC, &resolution);
		if (resolution.tv_sec == 0 && resolution.tv_nsec == 1)
			return;
		sleep_ms(10);
	}
}

void power_off(void)
{
	if (getpid() != 1)
		exit(EXIT_FAILURE);
	sync();
	reboot(RB_POWER_OFF);
	/* If the machine cannot power off, restart it: QEMU's -no-reboot makes that the end. */
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

void agent_error(const char *detail, ...)
{
	char text[DETAIL_MAX];
	va_list args;

	va_start(args, detail);
	vsnprintf(text, sizeof(text), detail, args);
	va_end(args);
	fprintf(stderr, "kteardown-agent: error: %s\n", text);
	/* An early error is still written as a record if the port exists. */
	if (!record_ready() && getpid() == 1)
		record_to(open_port(EARLY_PORT_WAIT_MS));
	if (record_ready())
		record_error(text);
	power_off();
}
