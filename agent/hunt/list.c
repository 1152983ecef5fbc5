// SPDX-License-Identifier: GPL-2.0
/* Prints the catalogue of kinds as JSON, one kind a line, for the lab. Runs on the host. */
#include "hunt/owner.h"

static const char *const shapes[] = {[OF_ONE] = "of one", [ON_ONE] = "on one", [OWNERS] = "owners"};

/* Texts of kinds have no character that JSON would have to escape; the lab would refuse the line.
 */
static const char *text(const char *value)
{
	return value ? value : "";
}

/* Words with blanks between as the members of a list. */
static void print_words(const char *words)
{
	while (*words) {
		int length = strcspn(words, " ");

		printf("\"%.*s\"%s", length, words, words[length] ? ", " : "");
		words += length + strspn(words + length, " ");
	}
}

static void print_kind(const struct kind *k)
{
	const char *comma = "";
	enum way way;

	printf("{\"name\": \"%s\", \"part\": \"%s\", \"object\": \"%s\", \"shape\": \"%s\", "
	       "\"privileged\": %s, \"limit\": \"%s\", \"needs\": \"%s\", \"call\": \"%s\", "
	       "\"most\": %lld, \"resident\": \"%s\", \"residents_limit\": \"%s\", "
	       "\"most_residents\": %lld, \"modules\": [",
	       k->name, k->part, k->object, shapes[k->shape], k->privileged ? "true" : "false",
	       text(k->limit), text(k->needs), text(k->call), (long long)k->most,
	       k->stay ? text(k->resident) : "", text(k->residents_limit),
	       (long long)k->most_residents);
	print_words(text(k->modules));
	printf("], \"ways\": [");
	for (way = 0; way < NR_WAYS; way++) {
		if (!kind_has_way(k, way))
			continue;
		printf("%s\"%s\"", comma, way_names[way]);
		comma = ", ";
	}
	puts("]}");
}

int main(void)
{
	const struct kind *k;
	int i;

	for (i = 0; (k = kind_at(i)); i++)
		print_kind(k);
	return 0;
}
