// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "core/agent.h"
#include "lib/applet.h"
#include "lib/meminfo.h"
#include "tests/test.h"
#include "workloads/pipechain/chain.h"

#define LINKS 8

static struct chain_spec wanted;
static struct chain_end end;
static int64_t passed, create_ns;
static pid_t group;

static int chain_life(struct trial *t)
{
	struct chain c;
	int status = chain_open(t, &c, &wanted) || chain_make(t, &c, &create_ns) ||
		     chain_prove(t, &c, &passed) || chain_reap(t, &c);

	group = c.group;
	if (!status && !kill(-group, wanted.signo))
		status = chain_gone(t, &c, &end);
	chain_close(&c);
	return status;
}

static const struct workload life = {.name = "life", .summary = "a chain", .run = chain_life};

static void live(void)
{
	struct trial_plan plan = {.workload = &life, .repetitions = 1};

	end = (struct chain_end){0};
	passed = create_ns = 0;
	trial_run(&plan, 1);
}

/* The init of this machine reaps what has lost its parent, and may be late. */
static bool gone(void)
{
	for (int ms = 0; ms < 10000 && !kill(-group, 0); ms++)
		sleep_ms(1);
	return kill(-group, 0) == -1 && errno == ESRCH;
}

/*
 * Not CHAIN_SHARED: 256 bytes of stack are too few for the sanitizers. Not CHAIN_EXEC:
 * this program has no applets to execute.
 */
static void every_way(void)
{
	static const enum chain_make makes[] = {CHAIN_FORK, CHAIN_NESTED};

	for (size_t make = 0; make < ARRAY_SIZE(makes); make++)
		for (int reap = CHAIN_NEWEST; reap <= CHAIN_IGNORE; reap++) {
			wanted = (struct chain_spec){.links = LINKS,
						     .make = makes[make],
						     .reap = reap,
						     .signo = reap % 2 ? SIGINT : SIGKILL,
						     .used_pipes = reap % 2};
			CHECK(strstr(records_of(live), "\"status\":\"ok\""));
			CHECK(passed == LINKS);
			CHECK(create_ns > 0 && end.gone_ns > 0);
			CHECK(end.killed == (reap == CHAIN_IGNORE ? 0 : LINKS));
			CHECK(end.vanished == (reap == CHAIN_IGNORE ? LINKS : 0));
			CHECK(gone());
			CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
		}
}

static void memory_lines(void)
{
	static const char text[] = "MemTotal:  1000 kB\nMemFree:     12 kB\nSlab:        7 kB\n";
	struct meminfo m;

	CHECK(meminfo_field(text, "MemFree") == 12);
	CHECK(meminfo_field(text, "MemTotal") == 1000);
	CHECK(meminfo_field(text, "Slab") == 7);
	CHECK(meminfo_field(text, "Mem") == -1);
	CHECK(meminfo_field("", "Slab") == -1);
	CHECK(!meminfo_read(&m) && m.free > 0 && m.stacks > 0);
}

static void tools(void)
{
	const struct applet *link = applet_find("chain_program");

	CHECK(link && !strcmp(link->name, "chain_program"));
	CHECK(!applet_find("/init"));
	CHECK(!applet_find(""));
}

void test_chain(void)
{
	every_way();
	memory_lines();
	tools();
}
