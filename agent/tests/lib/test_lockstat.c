// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>

#include "lib/lockstat.h"
#include "tests/test.h"

/* Lines from 7.2.12, with two processes that freed 1,024 pages each. */
static const char heading[] =
	"                              class name    con-bounces    contentions   waitt"
	"ime-min   waittime-max waittime-total   waittime-avg    acq-bounces   acquisit"
	"ions   holdtime-min   holdtime-max holdtime-total   holdtime-avg";
static const char write_side[] =
	"                         tasklist_lock-W:             0              0        "
	"   0.00           0.00           0.00           0.00             34           "
	" 141           0.00       39140.12      422697.43        2997.85";
static const char place[] =
	"                           tasklist_lock             21          [<00000000ba7"
	"e2515>] __do_wait+0x43/0x230";
static const char spinlock[] =
	"                             &pool->lock:             9              9        "
	"3834.05       14511.12       57168.67        6352.07             38           "
	" 266           0.00       16611.98       75407.87         283.49";
static const char nested[] =
	"                  ptlock_ptr(ptdesc)#2/1:             0              0        "
	"   0.00           0.00           0.00           0.00              7           "
	" 253           0.51         211.84         944.51           3.73";
static const char read_side[] =
	"                         &pool->lock#2-R:             0              0        "
	"   0.00           0.00           0.00           0.00            134           "
	"4099           0.85         148.24        6761.57           1.65";
static const char cluster[] =
	"                   &cluster_info[i].lock:             0              0        "
	"   0.00           0.00           0.00           0.00              4          1"
	"0254           0.59       28375.62      134437.78          13.11";
static const char later[] =
	"                              &p->lock#2:             0              0        "
	"   0.00           0.00           0.00           0.00              8           "
	"  47           0.47         115.73         244.60           5.20";

static void kinds(void)
{
	struct lock_line line;

	CHECK(lockstat_parse(spinlock, &line));
	CHECK_TEXT(line.name, "&pool->lock");
	CHECK(!line.shared && !line.later);
	CHECK(lockstat_parse(read_side, &line));
	CHECK_TEXT(line.name, "&pool->lock");
	CHECK(line.shared && line.reading && line.later);
	CHECK(lockstat_parse(write_side, &line));
	CHECK_TEXT(line.name, "tasklist_lock");
	CHECK(line.shared && !line.reading && !line.later);
	CHECK(lockstat_parse(nested, &line));
	CHECK_TEXT(line.name, "ptlock_ptr(ptdesc)");
	CHECK(line.later);
	CHECK(lockstat_parse(cluster, &line));
	CHECK_TEXT(line.name, "&cluster_info[i].lock");
	CHECK(lockstat_parse(later, &line));
	CHECK_TEXT(line.name, "&p->lock");
	CHECK(!line.shared && line.later);
}

static void numbers(void)
{
	struct lock_line line;

	CHECK(lockstat_parse(spinlock, &line));
	CHECK(line.use.acquired == 266);
	CHECK(line.use.contended == 9);
	CHECK(line.use.wait_ns == 57168670);
	CHECK(line.longest_ns == 16611980 && line.held_ns == 75407870);
	CHECK(lockstat_parse(read_side, &line));
	CHECK(line.use.acquired == 4099);
	CHECK(line.use.contended == 0);
}

static void others(void)
{
	struct lock_line line;

	CHECK(!lockstat_parse(heading, &line));
	CHECK(!lockstat_parse(place, &line));
	CHECK(!lockstat_parse("lock_stat version 0.4", &line));
	CHECK(!lockstat_parse("", &line));
	/* If the line is cut anywhere, the acquisitions are missing or are a smaller number. */
	for (size_t length = 0; length < strlen(read_side); length++) {
		char *part = strndup(read_side, length);

		CHECK(!lockstat_parse(part, &line) || line.use.acquired <= 4099);
		free(part);
	}
}

void test_lockstat(void)
{
	kinds();
	numbers();
	others();
}
