/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What acts as modprobe in the guest of a script: for the kernel, which calls it when a module is
 * missing (call_modprobe() in kernel/module/kmod.c), and for the script. It loads what the lab has
 * put into /modules. For anything else it logs a line, by which the lab learns what the script
 * needs, and fails.
 */
#ifndef KTEARDOWN_SCRIPT_MODPROBE_H
#define KTEARDOWN_SCRIPT_MODPROBE_H

#include <stdbool.h>

#define MODPROBE_PARAMETERS 1024

struct modprobe {
	bool quiet, remove, dry_run;
	char **names; /* names or aliases of modules */
	int nr_names;
	char parameters[MODPROBE_PARAMETERS]; /* of the only module, separated by blanks */
};

/* Reads the arguments. NULL, or what is wrong. */
const char *modprobe_parse(struct modprobe *m, int argc, char **argv);

/*
 * Makes this program the modprobe of the guest, loads the modules of /modules/index, and makes the
 * nodes in /dev by which programs ask for a module. Does nothing on a kernel without modules.
 * 0 or -errno.
 */
int modprobe_prepare(void);

#endif
