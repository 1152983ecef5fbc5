// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/keys.h"

static void add(int64_t i)
{
	keys[i] = key_add("user", i, KEY_SPEC_SESSION_KEYRING);
}

static void remove_one(int64_t i)
{
	keyctl(KEYCTL_INVALIDATE, keys[i], 0);
}

KIND(keys_invalidated, "keys", "key of one keyring that is invalidated", .shape = OF_ONE,
     .limit = "keys", .needs = "CONFIG_KEYS", .prepare = keys_prepare, .add = add,
     .remove = remove_one);
