// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "core/agent.h"
#include "tests/test.h"

static void says_hello(void)
{
	const char *text = records_of(record_hello);

	CHECK(!strncmp(text, "{\"type\":\"hello\",\"protocol\":1,\"release\":\"", 39));
	CHECK(strstr(text, "\"cpus_online\":0") == NULL);
	CHECK(strstr(text, "\"memory_kb\":0") == NULL);
	CHECK(strstr(text, "\"banner\":\"Linux version ") != NULL);
	CHECK(strstr(text, "\"cpu_model\":\"\"") == NULL);
}

static void says_what_times_the_trials(void)
{
	const char *text = records_of(record_settled);

	CHECK(!strncmp(text, "{\"type\":\"settled\",\"clocksource\":\"", 33));
	CHECK(strstr(text, "\"resolution_ns\":") != NULL);
}

/* As kernels 6.12 and 7.2 write it. */
static void knows_what_costs_time(void)
{
	CHECK_TEXT(guest_debug("Lock dependency validator: Copyright (c) 2006 Red Hat, Inc."),
		   "lockdep");
	CHECK_TEXT(guest_debug("KernelAddressSanitizer initialized (generic)"), "kasan");
	CHECK_TEXT(guest_debug("kmemleak: Kernel memory leak detector initialized (mem pool)"),
		   "kmemleak");
	CHECK_TEXT(guest_debug("mem auto-init: stack:off, heap alloc:on, heap free:off"),
		   "init_on_alloc");
	CHECK(!guest_debug("mem auto-init: stack:off, heap alloc:off, heap free:off"));
	CHECK(!guest_debug("page_owner is disabled"));
}

static void arrays(void)
{
	struct line l;

	line_begin(&l, "x");
	line_array(&l, "none");
	line_array_end(&l);
	line_array(&l, "two");
	line_item(&l, "a");
	line_item(&l, "b\"");
	line_array_end(&l);
	line_int(&l, "n", 1);
	l.text[line_end(&l)] = '\0';
	CHECK_TEXT(l.text, "{\"type\":\"x\",\"none\":[],\"two\":[\"a\",\"b\\\"\"],\"n\":1}\n");
}

void test_guest(void)
{
	says_hello();
	says_what_times_the_trials();
	knows_what_costs_time();
	arrays();
}
