/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An applet is a small program inside the agent, for workloads whose processes execute one:
 *
 *	static int nothing(int argc, char **argv)
 *	{
 *		return 0;
 *	}
 *	APPLET(nothing, nothing);
 *
 *	execl("/proc/self/exe", "nothing", NULL);
 *
 * The agent becomes that program if its argv[0] is the name of the applet.
 */
#ifndef KTEARDOWN_APPLET_H
#define KTEARDOWN_APPLET_H

struct applet {
	const char *name;
	int (*main)(int argc, char **argv);
};

/* Puts the applet into the list that the linker makes of the section "applets". */
#define APPLET(applet_name, function)                                                              \
	static const struct applet applet_name##_applet = {#applet_name, function};                \
	static const struct applet *const applet_name##_registered                                 \
		__attribute__((used, section("applets"))) = &applet_name##_applet

/* NULL if there is no applet of this name. */
const struct applet *applet_find(const char *name);

#endif
