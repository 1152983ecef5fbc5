// SPDX-License-Identifier: GPL-2.0
#include "tool.h"

#include <stddef.h>
#include <string.h>

extern const struct tool *const __start_tools[];
extern const struct tool *const __stop_tools[];

const struct tool *tool_find(const char *name)
{
	const struct tool *const *t;

	for (t = __start_tools; t < __stop_tools; t++)
		if (!strcmp((*t)->name, name))
			return *t;
	return NULL;
}
