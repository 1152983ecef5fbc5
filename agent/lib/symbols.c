// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dontfork.h"
#include "symbols.h"

#define KALLSYMS "/proc/kallsyms"

static int add(struct symbols *s, uint64_t address, const char *name)
{
	size_t len = strlen(name) + 1;

	if (dontfork_grow((void **)&s->all, &s->room, (s->nr + 1) * sizeof(*s->all)) ||
	    dontfork_grow((void **)&s->names, &s->names_room, s->names_len + len))
		return -ENOMEM;
	s->all[s->nr++] = (struct symbol){address, s->names_len};
	memcpy(s->names + s->names_len, name, len);
	s->names_len += len;
	return 0;
}

/*
 * Functions: global or local, weak or not. Some labels of the linker script have these
 * types too.
 */
static bool is_function(char type)
{
	return strchr("tTwW", type);
}

/*
 * Of several names for one address, the plainest is used: the one with the fewest leading
 * underscores, then the alphabetically first.
 */
static bool is_plainer(const char *a, const char *b)
{
	size_t underscores_a = strspn(a, "_"), underscores_b = strspn(b, "_");

	if (underscores_a != underscores_b)
		return underscores_a < underscores_b;
	return strcmp(a, b) < 0;
}

static const struct symbols *sorted;

static int by_address(const void *x, const void *y)
{
	const struct symbol *a = x, *b = y;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return is_plainer(sorted->names + b->name, sorted->names + a->name) -
	       is_plainer(sorted->names + a->name, sorted->names + b->name);
}

static void keep_one_per_address(struct symbols *s)
{
	size_t i, kept = 0;

	sorted = s;
	qsort(s->all, s->nr, sizeof(*s->all), by_address);
	for (i = 0; i < s->nr; i++)
		if (!kept || s->all[kept - 1].address != s->all[i].address)
			s->all[kept++] = s->all[i];
	s->nr = kept;
}

int symbols_read(struct symbols *s, FILE *file)
{
	char line[512], name[256], type;
	uint64_t address;
	int error = 0;

	memset(s, 0, sizeof(*s));
	while (!error && fgets(line, sizeof(line), file))
		if (sscanf(line, "%" SCNx64 " %c %255s", &address, &type, name) == 3 &&
		    is_function(type))
			error = add(s, address, name);
	if (!error && ferror(file))
		error = -EIO;
	if (!error && s->nr)
		keep_one_per_address(s);
	/* If the kernel hides its addresses, all of them are zero. */
	if (!error && (!s->nr || (s->nr == 1 && !s->all[0].address)))
		error = -EACCES;
	if (error)
		symbols_free(s);
	return error;
}

int symbols_load(struct symbols *s)
{
	FILE *file = fopen(KALLSYMS, "re");
	int error;

	if (!file)
		return -errno;
	error = symbols_read(s, file);
	fclose(file);
	return error;
}

void symbols_free(struct symbols *s)
{
	dontfork_free((void **)&s->all, &s->room);
	dontfork_free((void **)&s->names, &s->names_room);
	memset(s, 0, sizeof(*s));
}

int symbols_find(const struct symbols *s, uint64_t address)
{
	size_t low = 0, high = s->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->all[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return (int)low - 1;
}

const char *symbols_name(const struct symbols *s, int which)
{
	return s->names + s->all[which].name;
}
