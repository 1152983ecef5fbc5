// SPDX-License-Identifier: GPL-2.0
/*
 * The tests of the hunt are a program of their own, so that they make the tests of the agent no
 * larger.
 */
#include "hunt/tests/hunt_test.h"

int main(void)
{
	test_sizes();
	test_locks();
	return checks_end();
}
