/* SPDX-License-Identifier: GPL-2.0 */
#ifndef KTEARDOWN_COUNTS_TEST_H
#define KTEARDOWN_COUNTS_TEST_H

#include "tests/test.h"

void test_counters(void);

#endif
