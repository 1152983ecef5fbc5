/* SPDX-License-Identifier: GPL-2.0 */
/* Parses what schbench prints at its end (on standard error). */
#ifndef KTEARDOWN_SCHBENCH_OUTPUT_H
#define KTEARDOWN_SCHBENCH_OUTPUT_H

#include "workload.h"

struct schbench_output {
	int64_t wakeup_us[4], request_us[4]; /* the percentiles 50, 90, 99, 99.9 */
	int64_t rps[3]; /* the percentiles 20, 50, 90 */
	int64_t average_rps;
};

/* False if a value is missing. */
bool schbench_read(const char *text, struct schbench_output *output);

#endif
