// SPDX-License-Identifier: GPL-2.0
#include "applet.h"

#include <stddef.h>
#include <string.h>

extern const struct applet *const __start_applets[];
extern const struct applet *const __stop_applets[];

const struct applet *applet_find(const char *name)
{
	const struct applet *const *t;

	for (t = __start_applets; t < __stop_applets; t++)
		if (!strcmp((*t)->name, name))
			return *t;
	return NULL;
}
