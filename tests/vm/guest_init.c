// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of a guest. The kernel argument guest= says how the guest ends, so that a test can check which
 * outcome the lab reports. It writes records as the agent does, and needs no plan.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CHUNK (1 << 20)

static int port = -1;

static void put(const char *text)
{
	if (write(port, text, strlen(text)) < 0)
		exit(2);
}

static void open_port(void)
{
	struct timespec ms = {.tv_nsec = 1000000};
	int tries;

	mkdir("/dev", 0755);
	if (mount("devtmpfs", "/dev", "devtmpfs", 0, NULL) && errno != EBUSY)
		exit(2);
	for (tries = 0; port < 0 && tries < 10000; tries++) {
		port = open("/dev/vport0p1", O_WRONLY);
		nanosleep(&ms, NULL);
	}
}

/* Values that depend on the seed only: addresses, the kernel's random numbers, and the time. */
static void write_seeded_values(void)
{
	unsigned long drawn = 0;
	struct timespec now;
	char line[200];

	getrandom(&drawn, sizeof(drawn), GRND_NONBLOCK | GRND_INSECURE);
	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(line, sizeof(line),
		 "{\"type\":\"alive\",\"trial\":0,\"detail\":\"stack %p random %lx at "
		 "%ld.%09ld\"}\n",
		 (void *)&drawn, drawn, (long)now.tv_sec, now.tv_nsec);
	put(line);
}

/* One record for each line of a file that has the word. */
static void write_lines_with(const char *path, const char *word)
{
	char line[1000], record[1200], *at;
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof(line), file)) {
		for (at = line; (at = strpbrk(at, "\t\n\"\\")); at++)
			*at = ' ';
		if (!strstr(line, word))
			continue;
		snprintf(record, sizeof(record),
			 "{\"type\":\"alive\",\"trial\":0,\"detail\":\"%s\"}\n", line);
		put(record);
	}
	if (file)
		fclose(file);
}

static void write_timers_and_formats(void)
{
	/* The kernel changes to its final clock after a second. */
	sleep(2);
	if (mkdir("/proc", 0755) || mount("proc", "/proc", "proc", 0, NULL))
		exit(2);
	write_lines_with("/proc/timer_list", "Clock Event Device:");
	write_lines_with("/proc/timer_list", "hres_active");
	mkdir("/sys", 0755);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	write_lines_with("/sys/devices/system/clocksource/clocksource0/current_clocksource", "");
	mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	write_lines_with("/sys/kernel/tracing/events/tlb/tlb_flush/format", "print fmt");
}

static void suspend_to_memory(void)
{
	int state;

	mkdir("/sys", 0755);
	if (mount("sysfs", "/sys", "sysfs", 0, NULL) && errno != EBUSY)
		exit(2);
	state = open("/sys/power/state", O_WRONLY);
	if (write(state, "mem", 3) != 3)
		exit(4);
	close(state);
}

static void eat_memory(void)
{
	for (;;) {
		char *memory = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory != MAP_FAILED)
			memset(memory, 1, CHUNK);
	}
}

static void print_for_ever(void)
{
	FILE *console = fopen("/dev/console", "w");

	while (console)
		fprintf(console, "never the last line of the console\n");
}

/* In large parts: under an emulated hypervisor each write takes milliseconds. */
static void flood(void)
{
	static char part[CHUNK / 32];

	memset(part, 'x', sizeof(part) - 1);
	for (;;)
		put(part);
}

int main(void)
{
	const char *how = getenv("guest");
	int i;

	if (!how)
		how = "bye";
	open_port();
	put("{\"type\":\"alive\",\"trial\":0,\"detail\":\"started\"}\n");
	if (!strcmp(how, "hang"))
		for (;;)
			pause();
	if (!strcmp(how, "exit"))
		return 3;
	if (!strcmp(how, "crash"))
		*(volatile int *)0 = 1;
	if (!strcmp(how, "oom"))
		eat_memory();
	if (!strcmp(how, "error"))
		put("{\"type\":\"error\",\"detail\":\"the plan is empty\"}\n");
	if (!strcmp(how, "flood"))
		flood();
	if (!strcmp(how, "print"))
		print_for_ever();
	if (!strcmp(how, "reset")) {
		put("{\"type\":\"ali");
		reboot(RB_AUTOBOOT);
	}
	if (!strcmp(how, "suspend")) {
		for (i = 0; i < 6; i++) {
			suspend_to_memory();
			write_seeded_values();
		}
		put("{\"type\":\"bye\",\"trials\":0}\n");
	}
	if (!strcmp(how, "timers")) {
		write_timers_and_formats();
		put("{\"type\":\"bye\",\"trials\":0}\n");
	}
	if (!strcmp(how, "bye")) {
		for (i = 0; i < 100; i++)
			write_seeded_values();
		put("{\"type\":\"bye\",\"trials\":0}\n");
	}
	reboot(RB_POWER_OFF);
	return 0;
}
