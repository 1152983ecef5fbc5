// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's log, which the lab reads from the console: marks that say which trial runs, and what
 * kmemleak found in a trial.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"

#define KMEMLEAK "/sys/kernel/debug/kmemleak"
/* kmemleak reports only objects of this age (MSECS_MIN_AGE in mm/kmemleak.c), with a margin. */
#define LEAK_AGE_MS 6000

/* At a level that reaches the console. The log of a host that runs the unit tests is left alone. */
static void log_line(const char *text)
{
	char line[DETAIL_MAX];
	int fd, len;

	if (getpid() != 1)
		return;
	fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	len = snprintf(line, sizeof(line), "<4>kteardown: %s\n", text);
	if (len >= (int)sizeof(line))
		len = sizeof(line) - 1;
	/* A line that is missing only makes a report less exact. */
	if (write(fd, line, len) < 0)
		fprintf(stderr, "kteardown-agent: /dev/kmsg: %s\n", strerror(errno));
	close(fd);
}

static bool kmemleak(const char *command)
{
	int fd = open(KMEMLEAK, O_WRONLY | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return false;
	ok = write(fd, command, strlen(command)) > 0;
	close(fd);
	return ok;
}

void log_trial(const struct trial_plan *p)
{
	char text[DETAIL_MAX];
	size_t len;
	int i;

	/* What is unreferenced already is not of this trial. */
	kmemleak("clear");
	len = snprintf(text, sizeof(text), "trial %d: %s", p->index, p->workload->name);
	for (i = 0; i < p->nr_params && len < sizeof(text); i++)
		len += snprintf(text + len, sizeof(text) - len, " %s=%s", p->params[i].name,
				p->params[i].value);
	log_line(text);
}

void log_leaks(void)
{
	char line[256], text[DETAIL_MAX];
	int objects = 0, stack = 0;
	FILE *file;

	if (access(KMEMLEAK, W_OK))
		return;
	/* An object is reported if two scans find no pointer to it. */
	sleep_ms(LEAK_AGE_MS);
	if (!kmemleak("scan") || !kmemleak("scan"))
		return;
	file = fopen(KMEMLEAK, "re");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file))
		objects += !strncmp(line, "unreferenced object", 19);
	if (objects) {
		snprintf(text, sizeof(text),
			 "kmemleak: %d unreferenced objects, the first:", objects);
		log_line(text);
		rewind(file);
		/* Its description and its stack, up to the next object. */
		while (fgets(line, sizeof(line), file) && stack < 24) {
			line[strcspn(line, "\n")] = '\0';
			if (!strncmp(line, "unreferenced object", 19) && stack)
				break;
			log_line(line);
			stack++;
		}
	}
	fclose(file);
}
