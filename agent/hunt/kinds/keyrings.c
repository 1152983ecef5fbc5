// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/keys.h"

static void add(int64_t i)
{
	keys[i] = key_add("keyring", i, KEY_SPEC_SESSION_KEYRING);
}

static void remove_one(int64_t i)
{
	keyctl(KEYCTL_UNLINK, keys[i], KEY_SPEC_SESSION_KEYRING);
}

KIND(keyrings, "keys", "keyring in one keyring", KEYS_OF_SESSION, .add = add, .remove = remove_one);
