/* SPDX-License-Identifier: GPL-2.0 */
/* SHA-256 (FIPS 180-4) and HMAC (RFC 2104): the first process of a machine links no library for
 * them. */
#ifndef KTEARDOWN_SHA256_H
#define KTEARDOWN_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32

struct sha256 {
	uint32_t state[8];
	uint64_t bytes;
	unsigned char block[64];
};

void sha256_begin(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t len);
void sha256_end(struct sha256 *s, unsigned char digest[SHA256_BYTES]);

/* HMAC-SHA256 of a text and of what follows it, with a key of at most 64 bytes. */
void hmac_sha256(const unsigned char *key, size_t key_len, const char *text, size_t len,
		 const char *more, size_t more_len, unsigned char mac[SHA256_BYTES]);

#endif
