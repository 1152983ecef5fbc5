// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>

#include "core/agent.h"
#include "tests/test.h"

static int parse(const char *text, struct plan *plan, char *error)
{
	/* A buffer of exactly this size, so that the sanitizer notices a byte too many. */
	size_t len = strlen(text);
	char *copy = malloc(len ? len : 1);
	int status;

	memcpy(copy, text, len);
	status = plan_parse(copy, len, plan, error);
	free(copy);
	return status;
}

static void accepts(void)
{
	char error[DETAIL_MAX];
	struct plan plan;

	CHECK(!parse("kteardown-plan 1\n"
		     "seed 18446744073709551615\n"
		     "module /modules/a.ko\n"
		     "module /modules/b.ko\n"
		     "profile 10000\n"
		     "trial 7 fake 1 5 things=3000 how=well\n"
		     "profile 0\n"
		     "trial 0 fake 0 0 how=a=b things=-1\n",
		     &plan, error));
	CHECK(plan.seed == UINT64_MAX);
	CHECK(plan.nr_modules == 2);
	CHECK_TEXT(plan.modules[1], "/modules/b.ko");
	CHECK(plan.nr_trials == 2);
	CHECK(plan.trials[0].index == 7);
	CHECK(plan.trials[0].warmup == 1);
	CHECK(plan.trials[0].profile_ns == 10000 && plan.trials[1].profile_ns == 0);
	CHECK(plan.trials[0].repetitions == 5);
	CHECK(plan.trials[0].workload == workload_find("fake"));
	CHECK(plan.trials[0].nr_params == 2);
	CHECK_TEXT(plan.trials[0].params[0].name, "things");
	CHECK_TEXT(plan.trials[0].params[0].value, "3000");
	CHECK_TEXT(plan.trials[1].params[0].value, "a=b");
	plan_free(&plan);

	CHECK(!parse("kteardown-plan 1\n", &plan, error));
	CHECK(plan.nr_trials == 0 && plan.seed == 0);
	plan_free(&plan);
}

static void rejects(const char *text, const char *expected)
{
	char error[DETAIL_MAX] = "";
	struct plan plan;

	CHECK(parse(text, &plan, error) == -1);
	CHECK_TEXT(error, expected);
	plan_free(&plan);
}

#define HEAD "kteardown-plan 1\n"

static void names_the_line(void)
{
	rejects("", "plan line 1: the plan is empty");
	rejects("kteardown-plan 2\n", "plan line 1: expected \"kteardown-plan 1\"");
	rejects("kteardown-plan 1 \n", "plan line 1: expected \"kteardown-plan 1\"");
	rejects("\n", "plan line 1: expected \"kteardown-plan 1\"");
	rejects(HEAD "\n", "plan line 2: expected a directive at its beginning");
	rejects(HEAD " seed 1\n", "plan line 2: expected a directive at its beginning");
	rejects(HEAD "seed 1\nsow 2\n", "plan line 3: unknown directive \"sow\"");
	rejects(HEAD "seed 1", "plan line 2: the line is cut off: it has no newline at its end");
	rejects(HEAD "seed\n", "plan line 2: seed is missing");
	rejects(HEAD "seed  1\n", "plan line 2: seed is missing");
	rejects(HEAD "seed 1 \n", "plan line 2: there is more on the line than expected");
	rejects(HEAD "seed -1\n",
		"plan line 2: seed: expected a number up to 18446744073709551615, not \"-1\"");
	rejects(HEAD "seed 18446744073709551616\n",
		"plan line 2: seed: expected a number up to 18446744073709551615, "
		"not \"18446744073709551616\"");
	rejects(HEAD "profile\n", "plan line 2: profile is missing");
	rejects(HEAD "profile 9999\n",
		"plan line 2: profile: expected 0, or a period of at least 10000 ns");
	rejects(HEAD "profile 10000 1\n", "plan line 2: there is more on the line than expected");
	rejects(HEAD "module\n", "plan line 2: module: the path is missing");
	rejects(HEAD "module a b\n", "plan line 2: there is more on the line than expected");
}

static void checks_trials(void)
{
	rejects(HEAD "trial\n", "plan line 2: trial index is missing");
	rejects(HEAD "trial 2147483648 fake 1 1\n",
		"plan line 2: trial index: expected a number up to 2147483647, not \"2147483648\"");
	rejects(HEAD "trial 0\n", "plan line 2: the workload is missing");
	rejects(HEAD "trial 0 none 1 1\n", "plan line 2: this agent has no workload \"none\"");
	rejects(HEAD "trial 0 fake 1\n", "plan line 2: repetitions is missing");
	rejects(HEAD "trial 0 fake x 1\n",
		"plan line 2: warm-ups: expected a number up to 2147483647, not \"x\"");
	rejects(HEAD "trial 0 fake 1 1 things=1\n",
		"plan line 2: parameter how of fake is missing");
	rejects(HEAD "trial 0 fake 1 1 things=1 how=x other=1\n",
		"plan line 2: fake has no parameter \"other\"");
	rejects(HEAD "trial 0 fake 1 1 things=1 things=2 how=x\n",
		"plan line 2: parameter things appears twice");
	rejects(HEAD "trial 0 fake 1 1 things= how=x\n",
		"plan line 2: expected name=value, not \"things=\"");
	rejects(HEAD "trial 0 fake 1 1 =1\n", "plan line 2: expected name=value, not \"=1\"");
	rejects(HEAD "trial 0 fake 1 1 things=1 how=x \n",
		"plan line 2: there is more on the line than expected");
	rejects(HEAD "trial 0 fake 1 1 things=1 how=x\ntrial 0 fake 1 1 things=1 how=x\n",
		"plan line 3: trial 0 appears twice");
}

static void survives_anything(void)
{
	static const char text[] = HEAD "seed 5\nmodule /m\ntrial 3 fake 1 2 things=3 how=x\n";
	char error[DETAIL_MAX], copy[sizeof(text)];
	struct prng p = {1};
	struct plan plan;
	size_t len, i;

	/* If it is cut anywhere but at the end of a line, it is an error. */
	for (len = 0; len < strlen(text); len++) {
		char *cut = malloc(len ? len : 1);
		bool whole = len && text[len - 1] == '\n';

		memcpy(cut, text, len);
		CHECK(plan_parse(cut, len, &plan, error) == (whole ? 0 : -1));
		plan_free(&plan);
		free(cut);
	}
	/* With changed bytes it is accepted or rejected, and the sanitizers report nothing. */
	for (i = 0; i < 20000; i++) {
		int changes = 1 + prng_below(&p, 3);

		memcpy(copy, text, sizeof(text));
		while (changes--)
			copy[prng_below(&p, strlen(text))] = " =\n\0"
							     "019akx"[prng_below(&p, 10)];
		if (plan_parse(copy, strlen(text), &plan, error))
			CHECK(!strncmp(error, "plan line ", 10));
		plan_free(&plan);
	}
}

static void cuts_long_messages(void)
{
	char text[2000] = HEAD, error[DETAIL_MAX];
	struct plan plan;

	memset(text + strlen(HEAD), 'x', 1900);
	text[strlen(HEAD) + 1900] = '\n';
	CHECK(parse(text, &plan, error) == -1);
	CHECK(strlen(error) == DETAIL_MAX - 1);
	plan_free(&plan);
}

void test_plan(void)
{
	accepts();
	names_the_line();
	checks_trials();
	survives_anything();
	cuts_long_messages();
}
