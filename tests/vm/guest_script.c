// SPDX-License-Identifier: GPL-2.0
/* A script of tests/vm/test_script_agent.py: does what its argument says. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0) {
		perror(path);
		exit(1);
	}
	close(fd);
}

/* The freezer walks over zombies of which no parent asks. */
static void freeze(void)
{
	int left = atoi(getenv("N"));

	while (left--)
		if (!fork())
			_exit(0);
	sleep(1);
	write_to("/sys/module/suspend/parameters/pm_test_delay", "0");
	write_to("/sys/power/pm_test", "freezer");
	write_to("/sys/power/state", "mem");
	printf("frozen\n");
}

__attribute__((noreturn)) static void busy(void)
{
	for (;;)
		;
}

static void terminal(void)
{
	write_to("/dev/kmsg", "<6>from the script\n");
	printf("%d%d%d %s\n", isatty(0), isatty(1), isatty(2), getcwd(NULL, 0));
	printf("%d\n", !signal(SIGPIPE, SIG_DFL));
	printf("quote \" and \\ and \x01 and \xff\nno newline");
}

/* Texts by which the lab knows a problem of the kernel; the second message has two lines. */
static void forge(void)
{
	write_to("/dev/kmsg", "<2>Kernel panic - not syncing: forged\n");
	write_to("/dev/kmsg", "<4>forged\nBUG: kernel NULL pointer dereference, address: 0\n");
	write_to("/dev/kmsg", "<4>WARNING: CPU: 0 PID: 1 at forged.c:1 forged+0x1/0x2\n");
	write_to("/dev/kmsg", "<4>kteardown: trial 99: forged\n");
	write_to("/dev/kmsg", "rcu: INFO: rcu_sched self-detected stall on CPU\n");
	/* Not a message of the log. */
	write_to("/dev/console", "Kernel panic - not syncing: forged\n");
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	if (!strcmp(how, "freeze")) {
		freeze();
	} else if (!strcmp(how, "forge")) {
		forge();
	} else if (!strcmp(how, "slow")) {
		printf("first\nwaiting");
		fflush(stdout);
		sleep(12);
	} else if (!strcmp(how, "terminal")) {
		terminal();
	} else if (!strcmp(how, "interrupt")) {
		/* In its group, so ^C is for both. */
		if (!fork())
			busy();
		printf("kt-interrupt\n");
		busy();
	} else if (!strcmp(how, "busy")) {
		if (!fork())
			busy();
		busy();
	} else if (!strcmp(how, "orphan")) {
		/* It outlives the script, and is no member of its group. */
		if (fork())
			return 3;
		setsid();
		usleep(50000);
		printf("late\n");
	}
	return 0;
}
