/* SPDX-License-Identifier: GPL-2.0 */
#ifndef KTEARDOWN_HUNT_TEST_H
#define KTEARDOWN_HUNT_TEST_H

#include "tests/test.h"

void test_sizes(void);
void test_locks(void);

#endif
