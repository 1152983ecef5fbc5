/* SPDX-License-Identifier: GPL-2.0 */
#ifndef KTEARDOWN_WAIT_STRESS_H
#define KTEARDOWN_WAIT_STRESS_H

#include "workload.h"

enum wait_check { CHECK_FOUND, CHECK_RIGHT, CHECK_NOTHING, CHECK_IN_TURN };

/* What the process that compares leaves for the agent, in memory that they share. */
struct wait_result {
	volatile int64_t steps;
	volatile int in_order;
	volatile unsigned int failed; /* a bit for each wait_check */
	volatile bool ended;
	char doing[80]; /* the step */
	char detail[200];
};

#endif
