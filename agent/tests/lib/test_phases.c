// SPDX-License-Identifier: GPL-2.0
#include "lib/phases.h"
#include "tests/test.h"

static void feed(struct phases *p, const char *const *messages)
{
	int64_t time = 100;

	phases_init(p);
	for (; *messages; messages++, time += 100) {
		phases_freeze(p, time, *messages);
		phases_thaw(p, time, *messages);
		phases_elapsed(p, *messages);
	}
}

static void since_6_2(void)
{
	static const char *const messages[] = {
		"PM: suspend entry (s2idle)\n",
		"Freezing user space processes\n",
		"Freezing user space processes completed (elapsed 0.005 seconds)\n",
		"OOM killer disabled.\n",
		"Freezing remaining freezable tasks\n",
		"Freezing remaining freezable tasks completed (elapsed 0.012 seconds)\n",
		"OOM killer enabled.\n",
		"Restarting tasks ... ",
		"done.\n",
		"PM: suspend exit\n",
		NULL,
	};
	struct phases p;

	feed(&p, messages);
	CHECK(p.user.start_ns == 200 && p.user.end_ns == 300);
	CHECK(p.remaining.start_ns == 500 && p.remaining.end_ns == 600);
	CHECK(p.thaw.start_ns == 800 && p.thaw.end_ns == 1000);
	CHECK(p.elapsed_user_ns == 5000000 && p.elapsed_remaining_ns == 12000000);
	CHECK(phase_ns(&p.user) == 100 && phase_ns(&p.thaw) == 200);
}

/* As the tracepoint shows the pieces; in the log each phase is one line. */
static void in_6_1(void)
{
	static const char *const messages[] = {
		"Freezing user space processes ... ",
		"(elapsed 0.005 seconds) ",
		"done.",
		"\n",
		"Freezing remaining freezable tasks ... ",
		"(elapsed 0.001 seconds) ",
		"done.",
		NULL,
	};
	struct phases p;

	feed(&p, messages);
	CHECK(p.user.start_ns == 100 && p.user.end_ns == 200);
	CHECK(p.remaining.start_ns == 500 && p.remaining.end_ns == 600);
	CHECK(phase_ns(&p.thaw) == -1);
	phases_elapsed(&p, "Freezing user space processes ... (elapsed 0.005 seconds) done.");
	CHECK(p.elapsed_user_ns == 5000000);
}

static void that_fail(void)
{
	static const char *const messages[] = {
		"Freezing user space processes",
		"Freezing user space processes failed after 20.003 seconds (1 tasks refusing)",
		"Freezing user space processes completed (elapsed 0.001 seconds)",
		NULL,
	};
	static const char *const ends_only[] = {
		"Freezing remaining freezable tasks completed (elapsed 0.001 seconds)",
		"PM: suspend exit",
		NULL,
	};
	struct phases p;

	feed(&p, messages);
	CHECK(phase_ns(&p.user) == -1);
	feed(&p, ends_only);
	CHECK(phase_ns(&p.remaining) == -1 && phase_ns(&p.thaw) == -1);
}

void test_phases(void)
{
	since_6_2();
	in_6_1();
	that_fail();
}
