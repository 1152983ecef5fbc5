// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "kmsg.h"
#include "phases.h"

#define USER "Freezing user space processes"
#define REMAINING "Freezing remaining freezable tasks"

void phases_init(struct phases *p)
{
	static const struct phase unseen = {-1, -1};

	p->user = p->remaining = p->thaw = unseen;
	p->open = NULL;
	p->elapsed_user_ns = p->elapsed_remaining_ns = -1;
}

/* The text after prefix in the message; NULL if prefix does not occur. */
static const char *after(const char *message, const char *prefix)
{
	const char *at = strstr(message, prefix);

	return at ? at + strlen(prefix) : NULL;
}

static bool begins(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static void end_open(struct phases *p, int64_t time_ns)
{
	if (p->open)
		p->open->end_ns = time_ns;
	p->open = NULL;
}

void phases_freeze(struct phases *p, int64_t time_ns, const char *message)
{
	struct phase *phase = &p->user;
	const char *rest = after(message, USER);

	if (!rest) {
		phase = &p->remaining;
		rest = after(message, REMAINING);
	}
	if (!rest) {
		if (begins(message, "(elapsed "))
			end_open(p, time_ns);
	} else if (begins(rest, " completed")) {
		if (p->open == phase)
			end_open(p, time_ns);
	} else if (begins(rest, " failed") || begins(rest, " aborted")) {
		p->open = NULL;
	} else {
		phase->start_ns = time_ns;
		p->open = phase;
	}
}

void phases_thaw(struct phases *p, int64_t time_ns, const char *message)
{
	if (strstr(message, "Restarting tasks") && p->thaw.start_ns < 0)
		p->thaw.start_ns = time_ns;
	else if (strstr(message, "suspend exit") && p->thaw.start_ns >= 0)
		p->thaw.end_ns = time_ns;
}

void phases_elapsed(struct phases *p, const char *line)
{
	int64_t elapsed = kmsg_elapsed(line);

	if (elapsed < 0)
		return;
	if (strstr(line, USER))
		p->elapsed_user_ns = elapsed;
	else if (strstr(line, REMAINING))
		p->elapsed_remaining_ns = elapsed;
}

int64_t phase_ns(const struct phase *p)
{
	return p->start_ns < 0 || p->end_ns < p->start_ns ? -1 : p->end_ns - p->start_ns;
}
