/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A small program inside the agent, for workloads whose processes execute one:
 *
 *	static int nothing(int argc, char **argv) { return 0; }
 *	TOOL(nothing, nothing);
 *
 *	execl("/proc/self/exe", "nothing", NULL);
 *
 * The agent is that program where its argv[0] is the tool's name.
 */
#ifndef KTEARDOWN_TOOL_H
#define KTEARDOWN_TOOL_H

struct tool {
	const char *name;
	int (*main)(int argc, char **argv);
};

/* Puts the tool in the list that the linker makes of section "tools". */
#define TOOL(tool_name, function)                                                                  \
	static const struct tool tool_name##_tool = {#tool_name, function};                        \
	static const struct tool *const tool_name##_registered                                     \
		__attribute__((used, section("tools"))) = &tool_name##_tool

/* NULL where there is no tool of this name. */
const struct tool *tool_find(const char *name);

#endif
