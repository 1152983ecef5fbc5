// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/keys.h"

static void add(int64_t i)
{
	keys[i] = key_add("user", i, KEY_SPEC_SESSION_KEYRING);
}

static void remove_one(int64_t i)
{
	keyctl(KEYCTL_REVOKE, keys[i], 0);
}

static void release(void)
{
	keyctl(KEYCTL_REVOKE, KEY_SPEC_SESSION_KEYRING, 0);
}

KIND(keys_revoked, "keys", "key of one keyring that is revoked; they are revoked, or it is",
     .shape = OF_ONE, .limit = "keys", .needs = "CONFIG_KEYS", .call = "keyctl(KEYCTL_REVOKE)",
     .prepare = keys_prepare, .add = add, .remove = remove_one, .release = release);
