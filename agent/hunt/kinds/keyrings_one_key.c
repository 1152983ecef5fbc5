// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/keys.h"

static int key;

static void prepare(void)
{
	keys_prepare();
	key = key_add("user", -1, KEY_SPEC_PROCESS_KEYRING);
}

static void add(int64_t i)
{
	keys[i] = key_add("keyring", i, KEY_SPEC_SESSION_KEYRING);
	keyctl(KEYCTL_LINK, key, keys[i]);
}

static void release(void)
{
	keyctl(KEYCTL_INVALIDATE, key, 0);
}

KIND(keyrings_one_key, "keys", "keyring with one and the same key", .shape = ON_ONE,
     .limit = "keys", .needs = "CONFIG_KEYS", .exit = true, .call = "keyctl(KEYCTL_INVALIDATE)",
     .prepare = prepare, .add = add, .release = release);
