// SPDX-License-Identifier: GPL-2.0
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/agent.h"
#include "tests/test.h"

const char *records_of(void (*work)(void))
{
	static char text[65536];
	FILE *file = tmpfile();
	size_t len;

	record_to(fileno(file));
	work();
	rewind(file);
	len = fread(text, 1, sizeof(text) - 1, file);
	text[len] = '\0';
	fclose(file);
	record_to(-1);
	return text;
}

/*
 * Writes each zero-terminated string of standard input as a line, for tests that have a
 * JSON parser.
 */
static int echo(void)
{
	char *text = NULL;
	size_t room = 0;
	struct line l;

	while (getdelim(&text, &room, '\0', stdin) > 0) {
		line_begin(&l, "echo");
		line_str(&l, "text", text);
		line_value(&l, "value", text);
		fwrite(l.text, 1, line_end(&l), stdout);
	}
	free(text);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--echo"))
		return echo();
	/* nohup and a shell's background jobs ignore them, and tests kill processes with them. */
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	test_plan();
	test_line();
	test_record();
	test_guest();
	test_trial();
	test_util();
	test_kmsg();
	test_phases();
	test_tracepoint();
	test_tasks();
	test_perf_ring();
	test_symbols();
	test_stacks();
	test_dontfork();
	test_latency();
	test_chain();
	test_parallel();
	test_cgroup();
	test_lockstat();
	test_swap_data();
	test_throttle_stress();
	test_zram();
	test_bandwidth();
	test_openloop();
	test_hungtask();
	test_histogram();
	test_disk_image();
	test_holders();
	test_message_threads();
	test_schbench_output();
	test_counters();
	test_locks();
	test_owner();
	test_residents();
	test_sizes();
	test_switches();
	test_directives();
	test_modprobe();
	test_module_index();
	test_output();
	test_open_waits();
	test_snapshot();
	test_terminal();
	test_sha256();
	return checks_end();
}
