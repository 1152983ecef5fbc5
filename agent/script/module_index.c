// SPDX-License-Identifier: GPL-2.0
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "module_index.h"

bool module_index_word(const char **at, char *word, size_t size)
{
	size_t len;

	*at += strspn(*at, " ");
	len = strcspn(*at, " \n");
	if (!len || len >= size)
		return false;
	memcpy(word, *at, len);
	word[len] = '\0';
	*at += len;
	return true;
}

/* By enum module_kind. */
static const char *const kinds[] = {"builtin", "alias", "offer"};

bool module_index_line(const char **at, struct module_line *line)
{
	while (**at) {
		const char *word = *at, *end = strchr(word, '\n');
		char kind[MODULE_NAME];
		bool valid = module_index_word(&word, kind, sizeof(kind)) &&
			     module_index_word(&word, line->name, sizeof(line->name));

		*at = end ? end + 1 : word + strlen(word);
		line->modules = word;
		for (size_t i = 0; valid && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			line->kind = i;
			if (!strcmp(kind, kinds[i]))
				return true;
		}
	}
	return false;
}

const char *module_index_find(const char *index, const char *alias, enum module_kind *kind)
{
	const char *offered = NULL;
	struct module_line line;
	char name[MODULE_NAME];

	snprintf(name, sizeof(name), "%s", alias);
	module_normalize(name);
	*kind = MODULE_ALIAS;
	while (module_index_line(&index, &line)) {
		if (line.kind == MODULE_ALIAS && module_same(line.name, alias))
			return line.modules;
		if (line.kind == MODULE_OFFER && !offered && !fnmatch(line.name, name, 0))
			offered = line.modules;
	}
	if (offered)
		*kind = MODULE_OFFER;
	return offered;
}

bool module_index_builtin(const char *index, const char *name)
{
	struct module_line line;

	while (module_index_line(&index, &line))
		if (line.kind == MODULE_BUILTIN && module_same(line.name, name))
			return true;
	return false;
}

bool module_same(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if (*a != *b && !(strchr("-_", *a) && strchr("-_", *b)))
			return false;
	return *a == *b;
}

void module_normalize(char *name)
{
	while ((name = strchr(name, '-')))
		*name = '_';
}
