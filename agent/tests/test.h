/* SPDX-License-Identifier: GPL-2.0 */
#ifndef KTEARDOWN_TEST_H
#define KTEARDOWN_TEST_H

#include <stdbool.h>
#include <stddef.h>

/* Reports the place and continues, so that one run shows all failures. */
#define CHECK(condition) check(condition, __FILE__, __LINE__, #condition)
#define CHECK_TEXT(is, expected) check_text(is, expected, __FILE__, __LINE__)

void check(bool ok, const char *file, int line, const char *condition);
void check_text(const char *is, const char *expected, const char *file, int line);

/* Prints how many checks there were. Returns the exit status of the program. */
int checks_end(void);

/* The records that work() writes, in a static buffer. */
const char *records_of(void (*work)(void));

void test_plan(void);
void test_line(void);
void test_record(void);
void test_guest(void);
void test_trial(void);
void test_util(void);
void test_kmsg(void);
void test_phases(void);
void test_tracepoint(void);
void test_tasks(void);
void test_perf_ring(void);
void test_symbols(void);
void test_stacks(void);
void test_dontfork(void);
void test_latency(void);
void test_chain(void);
void test_parallel(void);
void test_cgroup(void);
void test_lockstat(void);
void test_swap_data(void);
void test_throttle_stress(void);
void test_zram(void);
void test_bandwidth(void);
void test_openloop(void);
void test_hungtask(void);
void test_histogram(void);
void test_disk_image(void);
void test_holders(void);
void test_message_threads(void);
void test_schbench_output(void);
void test_counters(void);
void test_locks(void);
void test_owner(void);
void test_residents(void);
void test_sizes(void);
void test_switches(void);
void test_directives(void);
void test_modprobe(void);
void test_module_index(void);
void test_output(void);
void test_open_waits(void);
void test_snapshot(void);
void test_terminal(void);
void test_sha256(void);

#endif
