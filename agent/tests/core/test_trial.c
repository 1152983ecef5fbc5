// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "core/agent.h"
#include "tests/test.h"

/* A workload that does what its parameter "how" says. */
static const char *how;

static int fake_setup(struct trial *t)
{
	how = wl_param_str(t, "how");
	if (!strcmp(how, "no-setup"))
		return wl_fail(t, "no %s", "way");
	return 0;
}

static int fake_run(struct trial *t)
{
	wl_sample(t, "things_count", wl_param_int(t, "things"));
	if (!strcmp(how, "silent"))
		return -1;
	if (!strcmp(how, "broken")) {
		CHECK(!wl_check(t, "first", false, "%d left", 2));
		CHECK(!wl_check(t, "second", false, "too"));
	}
	if (!strcmp(how, "both")) {
		wl_check(t, "first", false, "bad");
		return wl_fail(t, "worse");
	}
	return 0;
}

static void fake_cleanup(struct trial *t)
{
	wl_alive(t, "cleaned up");
	if (!strcmp(how, "dirty"))
		wl_check(t, "clean", false, "not");
}

static const char *const params[] = {"things", "how", NULL};
static const struct workload fake = {
	.name = "fake",
	.summary = "for tests",
	.params = params,
	.setup = fake_setup,
	.run = fake_run,
	.cleanup = fake_cleanup,
};
WORKLOAD(fake);

static const char *chosen;

static void run_chosen(void)
{
	struct param values[] = {{"things", "12"}, {"how", (char *)chosen}};
	struct trial_plan plan = {
		.index = 2,
		.workload = &fake,
		.warmup = 1,
		.repetitions = 2,
		.params = values,
		.nr_params = 2,
	};

	trial_run(&plan, 9);
}

#define START(how)                                                                                 \
	"{\"type\":\"trial_start\",\"trial\":2,\"workload\":\"fake\",\"params\":{\"things\":12,"   \
	"\"how\":\"" how "\"}}\n"
#define SAMPLE(n, end)                                                                             \
	"{\"type\":\"sample\",\"trial\":2,\"repetition\":" #n                                      \
	",\"metric\":\"things_count\",\"value\":12" end "}\n"
#define WARMUP ",\"warmup\":true"
#define CHECKED(n, name, detail)                                                                   \
	"{\"type\":\"check\",\"trial\":2,\"repetition\":" #n ",\"name\":\"" name                   \
	"\",\"ok\":false,\"detail\":\"" detail "\"}\n"
#define CLEANED "{\"type\":\"alive\",\"trial\":2,\"detail\":\"cleaned up\"}\n"
#define END(status, detail)                                                                        \
	"{\"type\":\"trial_end\",\"trial\":2,\"status\":\"" status "\",\"detail\":\"" detail "\"}" \
	"\n"

static void gives(const char *what, const char *expected)
{
	chosen = what;
	CHECK_TEXT(records_of(run_chosen), expected);
}

void test_trial(void)
{
	gives("well",
	      START("well") SAMPLE(0, WARMUP) SAMPLE(1, "") SAMPLE(2, "") CLEANED END("ok", ""));
	gives("no-setup", START("no-setup") CLEANED END("failed", "no way"));
	gives("silent", START("silent") SAMPLE(0, WARMUP) CLEANED END("failed", "run failed"));
	gives("broken", START("broken") SAMPLE(0, WARMUP) CHECKED(0, "first", "2 left")
				CHECKED(0, "second", "too") CLEANED END("void", "first: 2 left"));
	gives("both", START("both") SAMPLE(0, WARMUP) CHECKED(0, "first", "bad")
			      CLEANED END("failed", "worse"));
	gives("dirty", START("dirty") SAMPLE(0, WARMUP) SAMPLE(1, "") SAMPLE(2, "")
			       CLEANED CHECKED(2, "clean", "not") END("void", "clean: not"));
}
