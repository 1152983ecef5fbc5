// SPDX-License-Identifier: GPL-2.0
#include <string.h>
#include <unistd.h>

#include "tests/test.h"
#include "workloads/heldcg/held_cgroups.h"

static void test_choices(void)
{
	const char *const *choices = holder_choices();
	char name[64];
	bool outside;
	int i, none = 0;

	for (i = 0; choices[i]; i++) {
		const struct holder *holder = holder_of(i, &outside);

		strcpy(name, holder->name);
		if (outside)
			strcat(name, "-outside");
		CHECK_TEXT(name, choices[i]);
		CHECK(!outside || !holder->only_inside);
		none += !strcmp(choices[i], "none-outside");
	}
	CHECK(i > 20 && none == 0);
}

static void test_charges(void)
{
	int64_t pages = 3 * sysconf(_SC_PAGESIZE);
	struct held h = {.holder = &holder_file, .count = 3};
	struct charged before = {.inside = 100, .outside = 50};
	struct charged inside = {.inside = 100 + pages, .outside = 50};
	struct charged outside = {.inside = 100, .outside = 50 + pages};
	struct charged both = {.inside = 100 + pages, .outside = 50 + pages};
	struct charged more = {.inside = 101 + pages, .outside = 50};

	CHECK(held_charges_right(&h, &before, &inside));
	CHECK(!held_charges_right(&h, &before, &outside));
	CHECK(!held_charges_right(&h, &before, &both));
	CHECK(!held_charges_right(&h, &before, &more));
	h.outside = true;
	CHECK(held_charges_right(&h, &before, &outside));
	CHECK(!held_charges_right(&h, &before, &inside));

	/* Nothing is charged for. */
	h = (struct held){.holder = &holder_none, .count = 3};
	CHECK(held_charges_right(&h, &before, &before));
	CHECK(!held_charges_right(&h, &before, &inside));
}

/* Slabs: more is charged than for the objects alone, and a remainder elsewhere. */
static void test_charges_of_slabs(void)
{
	const struct charge *charge = &holder_inode.charge;
	struct held h = {.holder = &holder_inode, .count = 1000};
	struct charged before = {0}, after = {.inside = h.count * charge->bytes};

	CHECK(held_charges_right(&h, &before, &after));
	after.outside = charge->slack_bytes;
	CHECK(held_charges_right(&h, &before, &after));
	after.outside++;
	CHECK(!held_charges_right(&h, &before, &after));
	after.outside = 0;
	after.inside--;
	CHECK(!held_charges_right(&h, &before, &after));
}

static void test_sizes_of_objects(void)
{
	int64_t page = sysconf(_SC_PAGESIZE);
	struct held h = {.holder = &holder_child, .count = 10};

	CHECK(held_removed(&h) == 20);
	CHECK(held_swapped_bytes(&h) == 10 * page);
	CHECK(held_file_bytes(&h) == 0);
	h.holder = &holder_mlocked;
	CHECK(held_removed(&h) == 10);
	CHECK(held_swapped_bytes(&h) == 0);
	CHECK(held_file_bytes(&h) == 10 * page);
}

void test_holders(void)
{
	test_choices();
	test_charges();
	test_charges_of_slabs();
	test_sizes_of_objects();
}
