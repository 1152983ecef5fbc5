// SPDX-License-Identifier: GPL-2.0
#include "tests/test.h"
#include "waits/waits.h"

static const uint64_t chain[] = {0xffffffff81000010, 0xffffffff81000020};

static void a_wait_ends_once_with_its_chain(void)
{
	struct open_waits o = {0};
	struct open_wait *w;

	CHECK(!open_waits_end(&o, 7));
	CHECK(open_waits_begin(&o, 7, 100, chain, 2) == 0);
	w = open_waits_end(&o, 7);
	CHECK(w && w->from_ns == 100 && w->nr == 2 && w->chain[1] == chain[1]);
	w->nr = 0;
	CHECK(!open_waits_end(&o, 7));
	/* The same task waits again. */
	CHECK(open_waits_begin(&o, 7, 300, chain, 1) == 0);
	w = open_waits_end(&o, 7);
	CHECK(w && w->from_ns == 300 && w->nr == 1);
	CHECK(o.nr == 1);
	open_waits_free(&o);
}

static void every_task_has_its_own_wait(void)
{
	struct open_waits o = {0};
	bool right = true;
	int tid;

	/* More than the table has at first, and numbers that differ by its size. */
	for (tid = 1; tid <= 5000; tid++)
		CHECK(open_waits_begin(&o, tid * 1024, tid, chain, 2) == 0);
	for (tid = 1; tid <= 5000; tid++) {
		struct open_wait *w = open_waits_end(&o, tid * 1024);

		right &= w && w->from_ns == tid;
	}
	CHECK(right);
	CHECK(!open_waits_end(&o, 1));
	open_waits_free(&o);
}

void test_open_waits(void)
{
	a_wait_ends_once_with_its_chain();
	every_task_has_its_own_wait();
}
