// SPDX-License-Identifier: GPL-2.0
/*
 * The tests of the counts are a program of their own, so that they make the tests of the agent no
 * larger.
 */
#include "counts/tests/counts_test.h"

int main(void)
{
	test_counters();
	return checks_end();
}
