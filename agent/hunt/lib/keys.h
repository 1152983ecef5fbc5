/* SPDX-License-Identifier: GPL-2.0 */
/* Keys, in a session keyring of their own. */
#ifndef KTEARDOWN_HUNT_KEYS_H
#define KTEARDOWN_HUNT_KEYS_H

#include "hunt/kind.h"

#include <linux/keyctl.h>

static int32_t *keys;

static inline long keyctl(int what, long a, long b)
{
	return MUST(syscall(SYS_keyctl, what, a, b, 0, 0));
}

static inline void keys_prepare(void)
{
	keyctl(KEYCTL_JOIN_SESSION_KEYRING, 0, 0);
	keys = array(sizeof(*keys));
}

/* Adds a key, or a keyring, to a keyring. */
static inline int key_add(const char *type, int64_t i, long keyring)
{
	bool ring = !strcmp(type, "keyring");
	char name[24];

	snprintf(name, sizeof(name), "k%lld", (long long)i);
	return MUST(syscall(SYS_add_key, type, name, ring ? NULL : "x", ring ? 0 : 1, keyring));
}

static inline void keys_clear(void)
{
	keyctl(KEYCTL_CLEAR, KEY_SPEC_SESSION_KEYRING, 0);
}

/* As the arguments of KIND(): keys of the session keyring, which ends with its process. */
#define KEYS_OF_SESSION                                                                            \
	.shape = OF_ONE, .limit = "keys", .needs = "CONFIG_KEYS", .exit = true,                    \
	.call = "keyctl(KEYCTL_CLEAR)", .prepare = keys_prepare, .release = keys_clear

#endif
