// SPDX-License-Identifier: GPL-2.0
/* The rules of cache lines, and how instructions and addresses are read. Ends with 1 if one fails.
 */
#include <stdio.h>
#include <string.h>

#include "../contention/callers.h"
#include "../contention/lines.h"
#include "../contention/x86.h"

static int failed;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			failed = 1;                                                                \
		}                                                                                  \
	} while (0)

#define KERNEL_CODE 0xffffffff81000000ULL
#define LINE (77 << 6)
#define STACK 0xffffc90000003f00ULL
#define NEXT_LINE (LINE + 64)

static struct site *site;

static uint64_t access_at(unsigned int cpu, enum access access, uint64_t now)
{
	return line_access(cpu, LINE, access, site, now);
}

static void test_a_line_of_one_cpu_costs_nothing(void)
{
	lines_reset();
	CHECK(access_at(0, READ, 5) == 5);
	CHECK(access_at(0, WRITE, 6) == 6);
	CHECK(access_at(0, READ, 7) == 7);
	CHECK(site->count.moves == 0 && site->count.shared_reads == 0);
}

static void test_a_modified_line_moves(void)
{
	lines_reset();
	access_at(0, WRITE, 0);
	CHECK(access_at(1, READ, 10) == 10 + transfer_ticks);
	CHECK(site->count.moves == 1);
	/* Both have it now; the first one to write takes it from the other. */
	CHECK(access_at(0, READ, 200) == 200);
	CHECK(access_at(0, WRITE, 200) == 200 + transfer_ticks);
	CHECK(site->count.moves == 2);
	CHECK(access_at(0, WRITE, 400) == 400);
}

static void test_readers_share_a_clean_line(void)
{
	lines_reset();
	access_at(0, READ, 0);
	CHECK(access_at(1, READ, 0) == SHARED_READ_TICKS);
	CHECK(access_at(2, READ, 0) == SHARED_READ_TICKS);
	CHECK(access_at(1, READ, 99) == 99);
	CHECK(site->count.moves == 0 && site->count.shared_reads == 2);
}

static void test_moves_of_a_line_wait_for_each_other(void)
{
	lines_reset();
	access_at(0, WRITE, 0);
	CHECK(access_at(1, WRITE, 0) == transfer_ticks);
	CHECK(access_at(2, WRITE, 0) == 2 * transfer_ticks);
	CHECK(line_access(3, NEXT_LINE, WRITE, site, 0) == 0);
}

static void test_what_is_written(void)
{
	char text[512] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");

	lines_reset();
	access_at(0, WRITE, 0);
	access_at(1, WRITE, 0);
	lines_write(out);
	fclose(out);
	CHECK(strstr(text, "count kernel 1 0 0 1 0\ncount programs 0 0 0 0 0\n"));
	CHECK(strstr(text, "site ffffffff81000000 1 0 0\n"));
	CHECK(strstr(text, "line 1340 1 0 2 0 100 ffffffff81000000:0:0:1\n"));
}

static void test_a_locked_move_has_its_caller(void)
{
	struct site *locked = site_of(KERNEL_CODE + 8, true),
		    *call = site_of(KERNEL_CODE + 16, false);
	char text[512] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");

	lines_reset();
	line_access(0, LINE, WRITE, locked, 0);
	caller_enters(1, STACK, call);
	line_access(1, LINE + 24, WRITE, locked, 0);
	line_spin(1, site, 40);
	line_spin(2, site, 40);
	lines_write(out);
	fclose(out);
	CHECK(site->count.spins == 2);
	CHECK(strstr(text, "line 1340 1 0 2 1 140 ffffffff81000008:ffffffff81000010:24:1\n"));
}

static void test_callers(void)
{
	struct site *outer = site_of(KERNEL_CODE + 32, false);
	struct site *inner = site_of(KERNEL_CODE + 40, false);

	callers_reset();
	CHECK(!caller_of(0));
	caller_enters(0, STACK, outer);
	caller_enters(0, STACK - 64, inner);
	CHECK(caller_of(0) == inner && !caller_of(1));
	caller_leaves(0, STACK - 64);
	CHECK(caller_of(0) == outer);
	/* A call at the same place: the one before has returned in a way that was not seen. */
	caller_enters(0, STACK, inner);
	caller_leaves(0, STACK);
	CHECK(!caller_of(0));
	/* Another task. */
	caller_enters(0, STACK, outer);
	caller_leaves(0, STACK + (1 << 20));
	CHECK(!caller_of(0));
}

static void test_calls_nest_deeply(void)
{
	struct site *call = site_of(KERNEL_CODE + 48, false);
	uint64_t depth;

	callers_reset();
	for (depth = 0; depth < 100; depth++)
		caller_enters(0, STACK - 8 * depth, call);
	caller_leaves(0, STACK - 8 * 98);
	CHECK(caller_of(0) == call);
	caller_leaves(0, STACK);
	CHECK(!caller_of(0));
}

static void test_instructions(void)
{
	const uint8_t lock_xadd[] = {0xf0, 0x48, 0x0f, 0xc1, 0x07};
	const uint8_t gs_lock[] = {0x65, 0xf0, 0x0f, 0xc1, 0x07};
	const uint8_t xchg[] = {0x87, 0x07}, xchg_registers[] = {0x87, 0xc1};
	const uint8_t mov[] = {0x48, 0x89, 0x07};
	const uint8_t exchange16[] = {0x65, 0x48, 0x0f, 0xc7, 0x0e}, rdrand[] = {0x0f, 0xc7, 0xf0};
	const uint8_t call[] = {0xe8, 0, 0, 0, 0}, call_table[] = {0x41, 0xff, 0x55, 0x08};
	const uint8_t returns[] = {0xc3}, returns_early[] = {0xf3, 0xc3};
	const uint8_t jump[] = {0xff, 0x25, 0, 0, 0, 0};
	const uint8_t pause[] = {0xf3, 0x90}, halt[] = {0xf4}, prefixes[] = {0x66, 0x66};

	CHECK(is_locked(lock_xadd, sizeof(lock_xadd)) && is_locked(gs_lock, sizeof(gs_lock)));
	CHECK(is_locked(xchg, sizeof(xchg)) && !is_locked(xchg_registers, sizeof(xchg_registers)));
	CHECK(!is_locked(mov, sizeof(mov)) && !is_locked(prefixes, sizeof(prefixes)));
	CHECK(is_wide_exchange(exchange16, sizeof(exchange16)));
	CHECK(!is_wide_exchange(rdrand, sizeof(rdrand)) && !is_wide_exchange(mov, sizeof(mov)));
	CHECK(is_call(call, sizeof(call)) && is_call(call_table, sizeof(call_table)));
	CHECK(is_return(returns, sizeof(returns)) &&
	      is_return(returns_early, sizeof(returns_early)));
	CHECK(!is_return(call, sizeof(call)));
	CHECK(!is_call(mov, sizeof(mov)) && !is_call(jump, sizeof(jump)));
	CHECK(is_pause(pause, sizeof(pause)) && !is_pause(halt, sizeof(halt)));
	CHECK(is_halt(halt, sizeof(halt)) && !is_halt(pause, sizeof(pause)));
}

static void test_addresses(void)
{
	CHECK(without_direct_map(0xffff888000001000) == 0x1000);
	CHECK(without_direct_map(0xff11000000001000) == 0x1000);
	CHECK(without_direct_map(KERNEL_CODE) == KERNEL_CODE);
	CHECK(without_direct_map(0xffffc90000001000) == 0xffffc90000001000);
}

int main(void)
{
	site = site_of(KERNEL_CODE, false);
	CHECK(site_of(KERNEL_CODE, false) == site && site_of(KERNEL_CODE, true) != site);
	test_a_line_of_one_cpu_costs_nothing();
	test_a_modified_line_moves();
	test_readers_share_a_clean_line();
	test_moves_of_a_line_wait_for_each_other();
	test_what_is_written();
	test_a_locked_move_has_its_caller();
	test_callers();
	test_calls_nest_deeply();
	test_instructions();
	test_addresses();
	return failed;
}
