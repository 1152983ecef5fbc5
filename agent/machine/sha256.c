// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "machine/sha256.h"

static const uint32_t constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t right(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static void add_block(uint32_t state[8], const unsigned char *block)
{
	uint32_t w[64], v[8];
	int i;

	for (i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | block[4 * i + 1] << 16 |
		       block[4 * i + 2] << 8 | block[4 * i + 3];
	for (; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (right(w[i - 15], 7) ^ right(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (right(w[i - 2], 17) ^ right(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, state, sizeof(v));
	for (i = 0; i < 64; i++) {
		uint32_t e = v[4], a = v[0];
		uint32_t one = v[7] + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) +
			       ((e & v[5]) ^ (~e & v[6])) + constants[i] + w[i];
		uint32_t two = (right(a, 2) ^ right(a, 13) ^ right(a, 22)) +
			       ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(*v));
		v[4] += one;
		v[0] = one + two;
	}
	for (i = 0; i < 8; i++)
		state[i] += v[i];
}

void sha256_begin(struct sha256 *s)
{
	static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

	memcpy(s->state, start, sizeof(start));
	s->bytes = 0;
}

void sha256_add(struct sha256 *s, const void *data, size_t len)
{
	const unsigned char *from = data;

	for (; len; len--) {
		s->block[s->bytes++ % 64] = *from++;
		if (s->bytes % 64 == 0)
			add_block(s->state, s->block);
	}
}

void sha256_end(struct sha256 *s, unsigned char digest[SHA256_BYTES])
{
	uint64_t bits = s->bytes * 8;
	unsigned char length[8];
	int i;

	for (i = 0; i < 8; i++)
		length[i] = bits >> (56 - 8 * i);
	sha256_add(s, "\x80", 1);
	while (s->bytes % 64 != 56)
		sha256_add(s, "", 1);
	sha256_add(s, length, sizeof(length));
	for (i = 0; i < SHA256_BYTES; i++)
		digest[i] = s->state[i / 4] >> (24 - 8 * (i % 4));
}

void hmac_sha256(const unsigned char *key, size_t key_len, const char *text, size_t len,
		 const char *more, size_t more_len, unsigned char mac[SHA256_BYTES])
{
	unsigned char inner[64] = {0}, outer[64];
	struct sha256 s;
	int i;

	memcpy(inner, key, key_len);
	for (i = 0; i < 64; i++) {
		outer[i] = inner[i] ^ 0x5c;
		inner[i] ^= 0x36;
	}
	sha256_begin(&s);
	sha256_add(&s, inner, sizeof(inner));
	sha256_add(&s, text, len);
	sha256_add(&s, more, more_len);
	sha256_end(&s, mac);
	sha256_begin(&s);
	sha256_add(&s, outer, sizeof(outer));
	sha256_add(&s, mac, SHA256_BYTES);
	sha256_end(&s, mac);
}
