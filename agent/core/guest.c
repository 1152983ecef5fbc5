// SPDX-License-Identifier: GPL-2.0
/*
 * The properties that decide how fast this guest is, read from its own kernel. None of
 * them comes from the lab, so that guests that should be equal can be compared.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "agent.h"
#include "lib/kmsg.h"

#define CPUS "/sys/devices/system/cpu"
#define VULNERABILITIES CPUS "/vulnerabilities"
#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
/* If there are more packages or cores, this many are reported. */
#define MAX_UNITS 512

/*
 * Debugging features that slow the whole kernel down, and what the kernel logs at boot if
 * they are on.
 */
static const struct {
	const char *name, *message;
} debug_features[] = {
	{"lockdep", "Lock dependency validator: "},
	{"kasan", "KernelAddressSanitizer initialized"},
	{"kmsan", "KernelMemorySanitizer"},
	{"kcsan", "kcsan: enabled"},
	{"kmemleak", "Kernel memory leak detector initialized"},
	{"debug_objects", "ODEBUG: selftest passed"},
	{"page_owner", "page owner found early allocated"},
	{"kfence", "kfence: initialized"},
	{"init_on_alloc", "heap alloc:on"},
	{"init_on_free", "heap free:on"},
};

/* The first line of a file; empty if the file cannot be read. */
static void first_line(const char *path, char *text, size_t size)
{
	read_file(path, text, size);
	text[strcspn(text, "\n")] = '\0';
}

static void line_file(struct line *l, const char *key, const char *path)
{
	char text[2100]; /* the kernel's command line has at most 2048 bytes */

	first_line(path, text, sizeof(text));
	line_str(l, key, text);
}

/* The number of CPUs or nodes in a list such as "0-3,8"; 0 if the list cannot be read. */
static int count_listed(const char *path)
{
	char text[1024], *at = text;
	int count = 0;

	if (read_file(path, text, sizeof(text)) < 0)
		return 0;
	while (*at >= '0' && *at <= '9') {
		long first = strtol(at, &at, 10), last = first;

		if (*at == '-')
			last = strtol(at + 1, &at, 10);
		count += last - first + 1;
		if (*at == ',')
			at++;
	}
	return count;
}

static long long memory_kb(void)
{
	char text[512];
	long long kb = 0;

	if (read_file("/proc/meminfo", text, sizeof(text)) > 0)
		sscanf(text, "MemTotal: %lld", &kb);
	return kb;
}

/* On x86 the CPU has a name; on arm64 it has numbers (MIDR) that identify the model. */
static void line_cpu_model(struct line *l)
{
	char text[2048], model[128] = "", implementer[16], part[16];
	const char *at;

	read_file("/proc/cpuinfo", text, sizeof(text));
	at = strstr(text, "model name");
	if (at)
		sscanf(at, "model name : %127[^\n]", model);
	else if ((at = strstr(text, "CPU implementer")) &&
		 sscanf(at, "CPU implementer : %15s", implementer) == 1 &&
		 (at = strstr(at, "CPU part")) && sscanf(at, "CPU part : %15s", part) == 1)
		snprintf(model, sizeof(model), "implementer %s part %s", implementer, part);
	line_str(l, "cpu_model", model);
}

static void line_hypervisor(struct line *l)
{
	char name[13] = "";

#ifdef __x86_64__
	unsigned int a, b, c, d;

	/* No hardware sets this bit. All hypervisors answer the leaf that is read next. */
	if (__get_cpuid(1, &a, &b, &c, &d) && (c & (1u << 31))) {
		__cpuid(0x40000000, a, b, c, d);
		memcpy(name, &b, 4);
		memcpy(name + 4, &c, 4);
		memcpy(name + 8, &d, 4);
	}
#endif
	line_str(l, "hypervisor", name);
}

/* Counts a package or a core when it is seen for the first time. */
static void count_unit(long unit, long *seen, int *count)
{
	int i;

	for (i = 0; i < *count; i++)
		if (seen[i] == unit)
			return;
	if (*count < MAX_UNITS)
		seen[(*count)++] = unit;
}

static void line_topology(struct line *l)
{
	long packages[MAX_UNITS], cores[MAX_UNITS];
	int nr_packages = 0, nr_cores = 0, cpu;
	char path[96], text[32];

	for (cpu = 0;; cpu++) {
		long package;

		snprintf(path, sizeof(path), CPUS "/cpu%d/topology/physical_package_id", cpu);
		if (read_file(path, text, sizeof(text)) <= 0)
			break;
		package = strtol(text, NULL, 10);
		snprintf(path, sizeof(path), CPUS "/cpu%d/topology/core_id", cpu);
		read_file(path, text, sizeof(text));
		count_unit(package, packages, &nr_packages);
		/* Cores are numbered within their package. */
		count_unit(package << 32 | strtol(text, NULL, 10), cores, &nr_cores);
	}
	line_int(l, "packages", nr_packages);
	line_int(l, "cores", nr_cores);
	line_int(l, "nodes", count_listed("/sys/devices/system/node/online"));
}

static void line_mitigations(struct line *l)
{
	DIR *dir = opendir(VULNERABILITIES);
	struct dirent *entry;

	line_open(l, "mitigations");
	while (dir && (entry = readdir(dir))) {
		char path[384], text[256];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), VULNERABILITIES "/%s", entry->d_name);
		first_line(path, text, sizeof(text));
		if (strcmp(text, "Not affected"))
			line_str(l, entry->d_name, text);
	}
	if (dir)
		closedir(dir);
	line_close(l);
}

const char *guest_debug(const char *text)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(debug_features); i++)
		if (strstr(text, debug_features[i].message))
			return debug_features[i].name;
	return NULL;
}

static void line_debug(struct line *l)
{
	int fd = kmsg_open_all();
	const char *name;
	struct kmsg m;

	line_array(l, "debug");
	while (fd >= 0 && kmsg_next(fd, &m) == 1)
		if ((name = guest_debug(m.text)))
			line_item(l, name);
	line_array_end(l);
	if (fd >= 0)
		close(fd);
}

void record_hello(void)
{
	struct utsname name;
	struct line l;

	uname(&name);
	line_begin(&l, "hello");
	line_int(&l, "protocol", PROTOCOL);
	line_str(&l, "release", name.release);
	line_str(&l, "version", name.version);
	line_str(&l, "machine", name.machine);
	line_int(&l, "cpus_online", count_listed(CPUS "/online"));
	line_int(&l, "cpus_possible", count_listed(CPUS "/possible"));
	line_int(&l, "memory_kb", memory_kb());
	line_int(&l, "page_size", sysconf(_SC_PAGESIZE));
	/* Contains the compiler, which uname() does not report. */
	line_file(&l, "banner", "/proc/version");
	line_file(&l, "clocksource", CLOCKSOURCE);
	line_cpu_model(&l);
	line_hypervisor(&l);
	line_topology(&l);
	line_debug(&l);
	line_file(&l, "cmdline", "/proc/cmdline");
	line_mitigations(&l);
	line_send(&l);
}

void record_settled(void)
{
	struct timespec resolution;
	struct line l;

	clock_getres(CLOCK_MONOTONIC, &resolution);
	line_begin(&l, "settled");
	line_file(&l, "clocksource", CLOCKSOURCE);
	line_int(&l, "resolution_ns", resolution.tv_sec * 1000000000LL + resolution.tv_nsec);
	line_send(&l);
}
