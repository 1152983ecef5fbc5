// SPDX-License-Identifier: GPL-2.0
#include "script/module_index.h"
#include "tests/test.h"

static const char index_text[] = "builtin unix\n"
				 "builtin snd-seq-dummy\n"
				 "alias rtnl-link-dummy dummy\n"
				 "alias fs-ext4 crc16 mbcache jbd2 ext4\n"
				 "alias crypto-crc32c crc32c_generic";

static enum module_kind kind; /* of the line that was found */

/* The words of the alias, each with a bar behind it; "none" if the index does not have it. */
static const char *found(const char *index, const char *alias)
{
	const char *modules = module_index_find(index, alias, &kind);
	static char text[200];
	char *at = text;
	char word[MODULE_NAME];

	if (!modules)
		return "none";
	*at = '\0';
	while (module_index_word(&modules, word, sizeof(word))) {
		for (const char *c = word; *c; c++)
			*at++ = *c;
		*at++ = '|';
		*at = '\0';
	}
	return text;
}

static void aliases(void)
{
	CHECK_TEXT(found(index_text, "rtnl-link-dummy"), "dummy|");
	CHECK_TEXT(found(index_text, "rtnl_link_dummy"), "dummy|");
	CHECK_TEXT(found(index_text, "fs-ext4"), "crc16|mbcache|jbd2|ext4|");
	/* The last line may have no newline. */
	CHECK_TEXT(found(index_text, "crypto-crc32c"), "crc32c_generic|");
	CHECK_TEXT(found(index_text, "fs-ext"), "none");
	CHECK_TEXT(found(index_text, "fs-ext44"), "none");
	CHECK_TEXT(found(index_text, "dummy"), "none");
	/* What is built in is no alias. */
	CHECK_TEXT(found(index_text, "unix"), "none");
	CHECK_TEXT(found("", "x"), "none");
}

static void offers(void)
{
	static const char text[] = "offer loop loop\n"
				   "offer char_major_10_237 loop\n"
				   "offer block_major_7_* loop\n"
				   "offer fs_ext[34] jbd2 ext4\n"
				   "alias fs-ext4 asked\n";

	CHECK_TEXT(found(text, "block-major-7-0"), "loop|");
	CHECK(kind == MODULE_OFFER);
	CHECK_TEXT(found(text, "char-major-10-237"), "loop|");
	CHECK_TEXT(found(text, "fs-ext3"), "jbd2|ext4|");
	CHECK_TEXT(found(text, "fs-ext5"), "none");
	CHECK_TEXT(found(text, "block-major-70-0"), "none");
	/* What the script asked for before comes first. */
	CHECK_TEXT(found(text, "fs-ext4"), "asked|");
	CHECK(kind == MODULE_ALIAS);
}

static void built_in(void)
{
	CHECK(module_index_builtin(index_text, "unix"));
	CHECK(module_index_builtin(index_text, "snd_seq_dummy"));
	CHECK(!module_index_builtin(index_text, "uni"));
	CHECK(!module_index_builtin(index_text, "dummy"));
	CHECK(!module_index_builtin("", "unix"));
}

static void lines_that_are_not_valid(void)
{
	static const char text[] =
		"\n \nalias\nbuiltin\nother x y\n"
		"alias "
		"a234567890123456789012345678901234567890123456789012345678901234"
		" x\n"
		"builtin b\n";
	const char *at = text;
	struct module_line line;

	CHECK(module_index_line(&at, &line));
	CHECK(line.kind == MODULE_BUILTIN);
	CHECK_TEXT(line.name, "b");
	CHECK(!module_index_line(&at, &line));
	/* An alias without modules has none to load. */
	CHECK_TEXT(found("alias a\n", "a"), "");
}

static void names(void)
{
	char name[] = "snd-seq-dummy";

	CHECK(module_same("a-b_c", "a_b-c"));
	CHECK(!module_same("a", "ab"));
	CHECK(!module_same("ab", "a"));
	CHECK(!module_same("a.b", "a-b"));
	CHECK(module_same("", ""));
	module_normalize(name);
	CHECK_TEXT(name, "snd_seq_dummy");
}

void test_module_index(void)
{
	aliases();
	offers();
	built_in();
	lines_that_are_not_valid();
	names();
}
