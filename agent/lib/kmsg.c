// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kmsg.h"

int kmsg_open_all(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int kmsg_open(void)
{
	int fd = kmsg_open_all();

	if (fd < 0)
		return fd;
	if (lseek(fd, 0, SEEK_END) < 0) {
		int error = -errno;

		close(fd);
		return error;
	}
	return fd;
}

int kmsg_next(int fd, struct kmsg *m)
{
	char raw[8192];
	ssize_t n;

	do
		n = read(fd, raw, sizeof(raw));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	return kmsg_parse(raw, n, m) ? 1 : -EPROTO;
}

int kmsg_problem(int fd, struct kmsg *m)
{
	static const char *const problems[] = {"WARNING:", "BUG:", "Oops", "INFO: task",
					       "refusing to freeze"};
	int got;

	while ((got = kmsg_next(fd, m)) > 0 || got == -EPIPE)
		for (size_t i = 0; got > 0 && i < ARRAY_SIZE(problems); i++)
			if (strstr(m->text, problems[i]))
				return 1;
	return got;
}

bool kmsg_parse(const char *raw, size_t len, struct kmsg *m)
{
	const char *text = memchr(raw, ';', len);
	unsigned long long usec;
	char head[128];
	size_t size;

	if (!text || (size_t)(text - raw) >= sizeof(head))
		return false;
	memcpy(head, raw, text - raw);
	head[text - raw] = '\0';
	if (sscanf(head, "%*u,%*u,%llu,", &usec) != 1 || usec > INT64_MAX / 1000)
		return false;
	text++;
	/* Lines of the form key=value follow the first newline. */
	for (size = 0; text + size < raw + len && text[size] != '\n'; size++)
		;
	if (size >= sizeof(m->text))
		size = sizeof(m->text) - 1;
	memcpy(m->text, text, size);
	m->text[size] = '\0';
	m->time_ns = usec * 1000;
	return true;
}

int64_t kmsg_elapsed(const char *text)
{
	const char *at = strstr(text, "(elapsed ");
	unsigned int seconds, milliseconds;
	int end = 0;

	if (!at || sscanf(at, "(elapsed %6u.%3u seconds)%n", &seconds, &milliseconds, &end) != 2 ||
	    !end)
		return -1;
	return (seconds * 1000LL + milliseconds) * 1000000;
}
