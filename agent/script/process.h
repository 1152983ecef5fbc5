/* SPDX-License-Identifier: GPL-2.0 */
/* Runs a script on its terminal, waits for it and for all that it leaves. */
#ifndef KTEARDOWN_SCRIPT_PROCESS_H
#define KTEARDOWN_SCRIPT_PROCESS_H

#include "directives.h"
#include "output.h"
#include "terminal.h"

struct process {
	int pid;
	bool ended; /* false: not even SIGKILL has ended it */
	bool limited; /* it was killed at its limit */
	int status; /* as waitpid() has it */
	int64_t start_ns, end_ns;
	int64_t gone_ns; /* when the agent had no child left by itself; 0 if others had to be killed
			  */
	bool children; /* some are left */
};

/* Blocks the signals for which the agent waits. Before the terminal is opened. */
void process_block_signals(void);
void process_unblock_signals(void);
/*
 * Runs the script to its end and its processes to theirs, and reports meanwhile that it runs. 0, or
 * -errno if it cannot be forked.
 */
int process_run(struct process *p, struct trial *trial, const struct script *s,
		const struct terminal *t, struct output *o);
/* Kills every process but the agent. True if no child is left. */
bool process_kill_all(void);

#endif
