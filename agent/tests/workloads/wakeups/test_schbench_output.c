// SPDX-License-Identifier: GPL-2.0
#include "tests/test.h"
#include "workloads/wakeups/schbench_output.h"

#define TABLE(heading, a, b, c, d)                                                                 \
	heading " runtime 5 (s) (700 total samples)\n"                                             \
		"\t  50.0th: " a "          (350 samples)\n"                                       \
		"\t  90.0th: " b "         (280 samples)\n"                                        \
		"\t* 99.0th: " c "        (60 samples)\n"                                          \
		"\t  99.9th: " d "        (7 samples)\n"                                           \
		"\t  min=1, max=1051\n"
#define RPS(a, b, c)                                                                               \
	"RPS percentiles (requests) runtime 5 (s) (6 total samples)\n"                             \
	"\t  20.0th: " a "        (2 samples)\n"                                                   \
	"\t* 50.0th: " b "        (1 samples)\n"                                                   \
	"\t  90.0th: " c "        (3 samples)\n"                                                   \
	"\t  min=0, max=150\n"
#define WAKEUP "Wakeup Latencies percentiles (usec)"
#define REQUEST "Request Latencies percentiles (usec)"

/* The tables that it printed during the run are not used. */
static const char whole[] = "setting worker threads to 2\n" TABLE(WAKEUP, "1", "2", "3", "4")
	TABLE(REQUEST, "5", "6", "7", "8") RPS("9", "10", "11") "current rps: 99.00\n" TABLE(
		WAKEUP, "7", "18", "175", "909") TABLE(REQUEST, "16864", "16992", "17248", "19872")
		RPS("139", "140", "142") "average rps: 139.60\n"
					 "sched delay: message 0 (usec) worker 0 (usec)\n";

void test_schbench_output(void)
{
	struct schbench_output output;

	CHECK(schbench_read(whole, &output));
	CHECK(output.wakeup_us[0] == 7 && output.wakeup_us[1] == 18);
	CHECK(output.wakeup_us[2] == 175 && output.wakeup_us[3] == 909);
	CHECK(output.request_us[0] == 16864 && output.request_us[1] == 16992);
	CHECK(output.request_us[2] == 17248 && output.request_us[3] == 19872);
	CHECK(output.rps[0] == 139 && output.rps[1] == 140 && output.rps[2] == 142);
	CHECK(output.average_rps == 140);
	CHECK(!schbench_read("", &output));
	CHECK(!schbench_read("average rps: 3.00\n", &output));
	CHECK(!schbench_read(TABLE(WAKEUP, "1", "2", "3", "4") "average rps: 3.00\n", &output));
	CHECK(!schbench_read(TABLE(WAKEUP, "1", "2", "3", "4") TABLE(REQUEST, "1", "2", "3", "4")
				     RPS("1", "2", "3"),
			     &output));
}
