// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/sha256.h"
#include "tests/test.h"

static const char *hex(const unsigned char digest[SHA256_BYTES])
{
	static char text[2 * SHA256_BYTES + 1];
	int i;

	for (i = 0; i < SHA256_BYTES; i++)
		sprintf(text + 2 * i, "%02x", digest[i]);
	return text;
}

static const char *digest_of(const char *text, size_t len)
{
	unsigned char digest[SHA256_BYTES];
	struct sha256 s;

	sha256_begin(&s);
	sha256_add(&s, text, len);
	sha256_end(&s, digest);
	return hex(digest);
}

/* The examples of FIPS 180-4. */
static void test_digests(void)
{
	char *many = malloc(1000000);

	CHECK_TEXT(digest_of("abc", 3),
		   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	CHECK_TEXT(digest_of("", 0),
		   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	CHECK_TEXT(digest_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56),
		   "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	memset(many, 'a', 1000000);
	CHECK_TEXT(digest_of(many, 1000000),
		   "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	free(many);
}

static const char *mac_of(const char *key, size_t key_len, const char *text, size_t len)
{
	unsigned char mac[SHA256_BYTES];

	/* In two parts, as a line is sent. */
	hmac_sha256((const unsigned char *)key, key_len, text, len / 3, text + len / 3,
		    len - len / 3, mac);
	return hex(mac);
}

/* The test cases 1, 2 and 3 of RFC 4231. */
static void test_macs(void)
{
	char key[20], text[50];

	memset(key, 0x0b, sizeof(key));
	CHECK_TEXT(mac_of(key, 20, "Hi There", 8),
		   "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	CHECK_TEXT(mac_of("Jefe", 4, "what do ya want for nothing?", 28),
		   "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof(key));
	memset(text, 0xdd, sizeof(text));
	CHECK_TEXT(mac_of(key, 20, text, sizeof(text)),
		   "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
}

void test_sha256(void)
{
	test_digests();
	test_macs();
}
