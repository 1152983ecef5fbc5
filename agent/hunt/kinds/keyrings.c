// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/keys.h"

/* A keyring with a key. */
static void add(int64_t i)
{
	keys[i] = key_add("keyring", i, KEY_SPEC_SESSION_KEYRING);
	key_add("user", i, keys[i]);
}

static void remove_one(int64_t i)
{
	keyctl(KEYCTL_UNLINK, keys[i], KEY_SPEC_SESSION_KEYRING);
}

KIND(keyrings, "keys", "keyring with a key, in one keyring", KEYS_OF_SESSION, .add = add,
     .remove = remove_one);
