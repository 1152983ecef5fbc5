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
#ifndef KTEARDOWN_APPLET_H
#define KTEARDOWN_APPLET_H

struct applet {
	const char *name;
	int (*main)(int argc, char **argv);
};

/* Puts the tool in the list that the linker makes of section "tools". */
#define APPLET(applet_name, function)                                                              \
	static const struct applet applet_name##_applet = {#applet_name, function};                \
	static const struct applet *const applet_name##_registered                                 \
		__attribute__((used, section("applets"))) = &applet_name##_applet

/* NULL where there is no tool of this name. */
const struct applet *applet_find(const char *name);

#endif
