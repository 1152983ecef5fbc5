/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which modules the guest of a prebuilt kernel has, in /modules/index (docs/formats.md). The lab
 * writes a line for each module that is built in, and one for each alias that the script asks for,
 * with the modules to load in their order. A rehearsal also has lines for what the script may ask
 * for; in their aliases "*", "?" and "[...]" stand for other characters, and "_" for "-":
 *
 *	builtin NAME
 *	alias ALIAS NAME [NAME ...]
 *	offer PATTERN NAME [NAME ...]
 */
#ifndef KTEARDOWN_SCRIPT_MODULE_INDEX_H
#define KTEARDOWN_SCRIPT_MODULE_INDEX_H

#include <stdbool.h>
#include <stddef.h>

#define MODULE_NAME 64

enum module_kind { MODULE_BUILTIN, MODULE_ALIAS, MODULE_OFFER };

struct module_line {
	enum module_kind kind;
	char name[MODULE_NAME]; /* of the module that is built in, or the alias */
	const char *modules; /* what follows: for module_index_word() */
};

/* Reads the next line that is valid, from *at on. False at the end. */
bool module_index_line(const char **at, struct module_line *line);
/* Copies the next word of a line, from *at on. False at its end, or if the word is too long. */
bool module_index_word(const char **at, char *word, size_t size);

/*
 * The modules to load for an alias, for module_index_word(); NULL if the index has none. kind: of
 * the line.
 */
const char *module_index_find(const char *index, const char *alias, enum module_kind *kind);
bool module_index_builtin(const char *index, const char *name);

/* Whether these are one name: "-" and "_" are equal, as for the kernel and modprobe. */
bool module_same(const char *a, const char *b);
/* Makes each "-" a "_": so the kernel calls a module in /sys/module. */
void module_normalize(char *name);

#endif
