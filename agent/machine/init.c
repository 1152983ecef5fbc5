// SPDX-License-Identifier: GPL-2.0
/*
 * The first process of a real machine. It runs the agent, which is the same program as in a
 * guest, and sends its records over a serial line, after which it resets the machine. On a
 * machine without a serial line it writes them to memory that the reset does not clear (pmsg of
 * ramoops), and the machine's own system reads them there.
 *
 * Nothing is sent while the agent runs: the records stay in memory, so that no interrupt of the
 * serial line and no wakeup of this process falls into a measured stretch. What a kernel that
 * panics or hangs has to say is in its console, where the agent names each trial.
 *
 * Arguments on the kernel's command line:
 *
 * - kteardown.boot=RUN:N:KEY: the run, the boot of its plan, and the key with which each line is
 *   signed. Every line repeats the first two; no line has the key.
 * - kteardown.records=ttyS1: the serial line, or pmsg0; without it ttyS0.
 * - kteardown.end=poweroff: switch the machine off at the end; without it, reset it.
 * - kteardown.fault=panic: do that instead of running the agent: panic, or hang.
 *
 * On the machine's own system, "arm SECONDS" arms its watchdog and leaves it armed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <linux/watchdog.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "machine/sha256.h"

#define RECORDS "/records"
#define CPU "/sys/devices/system/cpu"
/* Of the 256 bits of a MAC, so many are sent. */
#define MAC_BYTES 16
#define KEY_BYTES 16
/* Lines can lose characters on their way: what is short is sent twice. */
#define SENT_TWICE (256 << 10)

static const char *const mounts[][2] = {
	{"devtmpfs", "/dev"},
	{"proc", "/proc"},
	{"sysfs", "/sys"},
	{"tracefs", "/sys/kernel/tracing"},
	{"debugfs", "/sys/kernel/debug"},
	{"cgroup2", "/sys/fs/cgroup"},
	{"tmpfs", "/tmp"},
};

static int line_fd = -1;
static long long line_bytes;
static char boot[96] = "none 0";
static char key_text[2 * KEY_BYTES + 1];
static unsigned char key[KEY_BYTES];
static char attempt[9] = "00000000";

/* The first line of a file; empty if it cannot be read. */
static void first_line(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? 0 : read(fd, text, size - 1);

	text[len < 0 ? 0 : len] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (fd >= 0)
		close(fd);
}

static void put_line(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		fprintf(stderr, "kteardown: %s: %m\n", path);
	close(fd);
}

static bool argument(const char *name, char *value, size_t size)
{
	char line[4096], key[64], *at;

	first_line("/proc/cmdline", line, sizeof(line));
	snprintf(key, sizeof(key), "kteardown.%s=", name);
	at = strstr(line, key);
	if (!at)
		return false;
	at += strlen(key);
	at[strcspn(at, " ")] = '\0';
	snprintf(value, size, "%s", at);
	return true;
}

static void write_whole(const char *text, size_t len)
{
	while (len) {
		ssize_t written = write(line_fd, text, len);

		if (written < 0 && errno != EINTR)
			return;
		if (written > 0) {
			text += written;
			len -= written;
			line_bytes += written;
		}
	}
}

/* A record may have the kernel's command line, or its log, and so the key. */
static void hide_key(char *record, size_t len)
{
	char *at;

	while (*key_text && (at = memmem(record, len, key_text, strlen(key_text))))
		memset(at, '*', strlen(key_text));
}

/* Sends one line: what it belongs to, its number, the MAC of all that, and the record. */
static void send_line(int number, char *record, size_t len)
{
	unsigned char mac[SHA256_BYTES];
	char head[128], start[192];
	size_t at, i;

	hide_key(record, len);
	snprintf(head, sizeof(head), "%s %s %d ", boot, attempt, number);
	hmac_sha256(key, sizeof(key), head, strlen(head), record, len, mac);
	/* Whatever the kernel printed last on this line ends here. */
	at = snprintf(start, sizeof(start), "\n@kteardown %s", head);
	for (i = 0; i < MAC_BYTES; i++)
		at += sprintf(start + at, "%02x", mac[i]);
	sprintf(start + at, " ");
	write_whole(start, strlen(start));
	write_whole(record, len);
	write_whole("\n", 1);
}

static void reset(void)
{
	char end[16] = "";

	argument("end", end, sizeof(end));
	if (line_fd >= 0)
		tcdrain(line_fd);
	sync();
	if (!strcmp(end, "poweroff"))
		reboot(RB_POWER_OFF);
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

static void fail(const char *text, ...)
{
	char record[512] = "{\"type\":\"error\",\"detail\":\"";
	size_t len = strlen(record);
	va_list args;
	char *c;

	va_start(args, text);
	vsnprintf(record + len, sizeof(record) - len - 2, text, args);
	va_end(args);
	for (c = record + len; *c; c++)
		if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
			*c = '\'';
	strcpy(c, "\"}");
	fprintf(stderr, "%s\n", record);
	if (line_fd >= 0)
		send_line(1, record, strlen(record));
	reset();
}

static void mount_all(void)
{
	size_t i;
	int fd;

	for (i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		mkdir(mounts[i][1], 0755);
		mount(mounts[i][0], mounts[i][1], mounts[i][0], 0, NULL);
		if (i)
			continue;
		fd = open("/dev/console", O_RDWR);
		if (fd < 0) /* no serial port is a console: the log is kept in memory */
			fd = open("/dev/kmsg", O_RDWR);
		if (fd < 0)
			continue;
		dup2(fd, STDIN_FILENO);
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		if (fd > STDERR_FILENO)
			close(fd);
	}
}

/* Splits RUN:N:KEY. Without a whole key no line is believed. */
static void take_key(void)
{
	char *number = strchr(boot, ':'), *text = number ? strchr(number + 1, ':') : NULL;
	int i;

	if (!text)
		return;
	*number = ' ';
	*text++ = '\0';
	snprintf(key_text, sizeof(key_text), "%s", text);
	for (i = 0; i < KEY_BYTES; i++)
		if (sscanf(key_text + 2 * i, "%2hhx", &key[i]) != 1)
			return;
}

static void open_line(void)
{
	char name[32] = "ttyS0", path[40], id[64];
	struct termios t;

	argument("records", name, sizeof(name));
	if (argument("boot", boot, sizeof(boot)))
		take_key();
	first_line("/proc/sys/kernel/random/boot_id", id, sizeof(id));
	snprintf(attempt, sizeof(attempt), "%.8s", id);
	snprintf(path, sizeof(path), "/dev/%s", name);
	line_fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	if (line_fd < 0)
		fail("%s for the records cannot be opened: %m", path);
	if (tcgetattr(line_fd, &t))
		return; /* a port of another kind, which has no speed, or memory */
	cfmakeraw(&t);
	cfsetspeed(&t, B115200);
	t.c_cflag |= CLOCAL;
	tcsetattr(line_fd, TCSANOW, &t);
}

static void load_modules(void)
{
	char line[512];
	FILE *plan = fopen("/plan", "re");

	if (!plan)
		fail("/plan cannot be read: %m");
	while (fgets(line, sizeof(line), plan)) {
		int fd;

		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "module ", 7))
			continue;
		fd = open(line + 7, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST))
			fail("the module %s cannot be loaded: %m", line + 7);
		close(fd);
	}
	fclose(plan);
}

/* Writes to each file that matches, as far as the kernel has it. */
static void set_all(const char *pattern, const char *value)
{
	glob_t found;
	size_t i;

	if (glob(pattern, 0, NULL, &found))
		return;
	for (i = 0; i < found.gl_pathc; i++)
		put_line(found.gl_pathv[i], value);
	globfree(&found);
}

static long long sum_of(const char *pattern)
{
	long long sum = 0;
	char text[64];
	glob_t found;
	size_t i;

	if (glob(pattern, 0, NULL, &found))
		return -1;
	for (i = 0; i < found.gl_pathc; i++) {
		first_line(found.gl_pathv[i], text, sizeof(text));
		sum += atoll(text);
	}
	globfree(&found);
	return sum;
}

static void add(char *record, size_t size, const char *name, const char *value)
{
	size_t len = strlen(record);
	char *c;

	snprintf(record + len, size - len, ",\"%s\":\"%.100s\"", name, value);
	for (c = record + len + strlen(name) + 5; *c && c[1]; c++)
		if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = '\'';
}

static void add_file(char *record, size_t size, const char *name, const char *path)
{
	char text[128];

	first_line(path, text, sizeof(text));
	if (*text)
		add(record, size, name, text);
}

/* The build ID of the running kernel, so that one kernel is not taken for another. */
static void add_build(char *record, size_t size)
{
	unsigned char notes[4096];
	int fd = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? 0 : read(fd, notes, sizeof(notes)), at = 0;
	char text[64] = "";
	uint32_t head[3], i;

	if (fd >= 0)
		close(fd);
	/* Each note: the lengths of its name and contents, its type (3: build ID), and both. */
	while (at + 12 <= len) {
		memcpy(head, notes + at, sizeof(head));
		at += 12 + ((head[0] + 3) & ~3u);
		if (head[0] > 64 || head[1] > 2048 || at + (ssize_t)head[1] > len)
			break;
		if (head[2] == 3 && head[0] == 4 && !memcmp(notes + at - 4, "GNU", 4))
			for (i = 0; i < head[1] && i < 20; i++)
				sprintf(text + 2 * i, "%02x", notes[at + i]);
		at += (head[1] + 3) & ~3u;
	}
	if (*text)
		add(record, size, "build", text);
}

/*
 * The settings that decide how fast the machine is, after they were made as steady as they can be,
 * as the lab describes a host.
 */
static void send_machine(void)
{
	char record[2048] = "{\"type\":\"machine\"",
	     cpu[512] = ",\"cpu\":{\"architecture\":\"x86_64\"";
	char line[256], off[8], boost[8], *value;
	FILE *info = fopen("/proc/cpuinfo", "re");

	set_all(CPU "/cpufreq/policy*/scaling_governor", "performance");
	put_line(CPU "/intel_pstate/no_turbo", "1");
	put_line(CPU "/cpufreq/boost", "0");
	while (info && fgets(line, sizeof(line), info)) {
		line[strcspn(line, "\n")] = '\0';
		value = strstr(line, ": ");
		if (value && !strncmp(line, "model name", 10) && !strstr(cpu, "\"model\""))
			add(cpu, sizeof(cpu), "model", value + 2);
		if (value && !strncmp(line, "microcode", 9) && !strstr(record, "\"microcode\""))
			add(record, sizeof(record), "microcode", value + 2);
	}
	if (info)
		fclose(info);
	add_file(cpu, sizeof(cpu), "governor", CPU "/cpufreq/policy0/scaling_governor");
	add_file(cpu, sizeof(cpu), "smt", CPU "/smt/control");
	first_line(CPU "/intel_pstate/no_turbo", off, sizeof(off));
	first_line(CPU "/cpufreq/boost", boost, sizeof(boost));
	if (*off || *boost)
		strcat(cpu, *off == '0' || (!*off && *boost == '1') ? ",\"turbo\":true"
								    : ",\"turbo\":false");
	add_build(record, sizeof(record));
	add_file(record, sizeof(record), "product", "/sys/class/dmi/id/product_name");
	add_file(record, sizeof(record), "idle_driver", CPU "/cpuidle/current_driver");
	strcat(strcat(record, cpu), "}}");
	send_line(0, record, strlen(record));
}

/* Runs the agent until it ends, with its records in a file in memory; returns its status. */
static int run_agent(void)
{
	int status, fd = open(RECORDS, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	sigset_t child;
	pid_t pid;

	if (fd < 0)
		fail(RECORDS ": %m");
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	pid = fork();
	if (pid < 0)
		fail("cannot start the agent: %m");
	if (!pid) {
		sigprocmask(SIG_UNBLOCK, &child, NULL);
		setsid();
		/* Orphans become children of the agent, as of the first process of a guest. */
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		dup2(fd, STDOUT_FILENO);
		execl("/agent", "/agent", "--run-on-this-host", "/plan", NULL);
		_exit(127);
	}
	/* In this sleep, unlike in poll(), a task can be frozen: freezing need not wait for it. */
	while (waitpid(pid, &status, WNOHANG) != pid)
		sigwaitinfo(&child, NULL);
	close(fd);
	return status;
}

static int send_records(void)
{
	FILE *file = fopen(RECORDS, "re");
	char *line = NULL;
	size_t size = 0;
	int number = 0;
	ssize_t len;

	while (file && (len = getline(&line, &size, file)) > 1)
		send_line(++number, line, line[len - 1] == '\n' ? len - 1 : len);
	free(line);
	if (file)
		fclose(file);
	return number;
}

static int arm_watchdog(int seconds)
{
	int fd = open("/dev/watchdog0", O_WRONLY | O_CLOEXEC), period = seconds;
	struct watchdog_info info = {0};

	if (fd < 0) {
		fprintf(stderr, "/dev/watchdog0 cannot be opened: %m\n");
		return 1;
	}
	ioctl(fd, WDIOC_GETSUPPORT, &info);
	if (ioctl(fd, WDIOC_SETTIMEOUT, &period) || period > seconds + 1) {
		fprintf(stderr, "the watchdog (%s) has no period of %d s\n", info.identity,
			seconds);
		return 1;
	}
	ioctl(fd, WDIOC_KEEPALIVE, 0);
	/* It is closed without the character that disarms it. */
	printf("%s, %d s\n", info.identity, period);
	return 0;
}

/* What a broken kernel does, on purpose: the lab tests whether the machine comes back. */
static void fail_as_asked(void)
{
	struct sched_param most = {.sched_priority = 99};
	char what[16] = "";
	int i;

	argument("fault", what, sizeof(what));
	if (!strcmp(what, "panic"))
		_exit(3); /* The kernel panics without its first process. */
	if (strcmp(what, "hang"))
		return;
	/* On every processor a task that no other task can preempt. */
	put_line("/proc/sys/kernel/sched_rt_runtime_us", "-1");
	for (i = 1; i < sysconf(_SC_NPROCESSORS_ONLN); i++)
		if (!fork())
			break;
	sched_setscheduler(0, SCHED_FIFO, &most);
	for (;;)
		;
}

int main(int argc, char **argv)
{
	long long hot, zone;
	int number, status;
	struct timespec up;
	char record[256];
	struct stat st;

	if (argc == 3 && !strcmp(argv[1], "arm"))
		return arm_watchdog(atoi(argv[2]));
	if (getpid() != 1) {
		fputs("kteardown: this is the first process of a test machine; it does nothing "
		      "else.\n",
		      stderr);
		return 2;
	}
	mount_all();
	open_line();
	load_modules();
	send_machine();
	fail_as_asked();
	hot = sum_of(CPU "/cpu*/thermal_throttle/core_throttle_count");
	status = run_agent();
	clock_gettime(CLOCK_BOOTTIME, &up);
	hot = hot < 0 ? -1 : sum_of(CPU "/cpu*/thermal_throttle/core_throttle_count") - hot;
	/* The kernel's own lines would fall between the characters of the records. */
	put_line("/proc/sys/kernel/printk", "1");
	number = send_records();
	/* Of what does not fit in memory the beginning is lost: this, the last line, says so. */
	zone = isatty(line_fd) ? 0 : sum_of("/sys/module/ramoops/parameters/pmsg_size");
	zone = zone < 0 ? 0 : zone;
	snprintf(record, sizeof(record),
		 "{\"type\":\"sent\",\"records\":%d,\"status\":%d,\"uptime_ms\":%lld,"
		 "\"throttled\":%lld,\"bytes\":%lld,\"zone\":%lld}",
		 number, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
		 up.tv_sec * 1000LL + up.tv_nsec / 1000000, hot, line_bytes, zone);
	send_line(number + 1, record, strlen(record));
	if (!zone && !stat(RECORDS, &st) && st.st_size < SENT_TWICE) {
		send_records();
		send_line(number + 1, record, strlen(record));
	}
	reset();
}
