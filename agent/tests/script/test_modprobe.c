// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "lib/applet.h"
#include "script/modprobe.h"
#include "tests/test.h"

static struct modprobe parsed;

/* What is wrong with these arguments, which are separated by blanks; "" if nothing is. */
static const char *parse(const char *arguments)
{
	static char text[300], *argv[30];
	const char *wrong;
	char *at = text;
	int argc = 0;

	strcpy(text, arguments);
	while ((argv[argc] = strsep(&at, " ")))
		argc++;
	wrong = modprobe_parse(&parsed, argc, argv);
	return wrong ? wrong : "";
}

static void the_kernel_asks(void)
{
	/* call_modprobe() in kernel/module/kmod.c */
	CHECK_TEXT(parse("/modules/modprobe -q -- fs-ext4"), "");
	CHECK(parsed.quiet && !parsed.remove && !parsed.dry_run);
	CHECK(parsed.nr_names == 1);
	CHECK_TEXT(parsed.names[0], "fs-ext4");
	CHECK_TEXT(parsed.parameters, "");
}

static void a_script_asks(void)
{
	CHECK_TEXT(parse("modprobe zram num_devices=4 x=1,2"), "");
	CHECK(!parsed.quiet && parsed.nr_names == 1);
	CHECK_TEXT(parsed.names[0], "zram");
	CHECK_TEXT(parsed.parameters, "num_devices=4 x=1,2");
	CHECK_TEXT(parse("modprobe -v dummy --first-time numdummies=2"), "");
	CHECK_TEXT(parsed.names[0], "dummy");
	CHECK_TEXT(parsed.parameters, "numdummies=2");
	CHECK_TEXT(parse("modprobe --all dummy veth"), "");
	CHECK(parsed.nr_names == 2 && !parsed.remove);
	CHECK_TEXT(parsed.names[1], "veth");
	CHECK_TEXT(parsed.parameters, "");
	CHECK_TEXT(parse("modprobe -r dummy veth"), "");
	CHECK(parsed.nr_names == 2 && parsed.remove);
	CHECK_TEXT(parse("modprobe -nq -d /x -S 6.12 dummy"), "");
	CHECK(parsed.quiet && parsed.dry_run && parsed.nr_names == 1);
}

static void wrong_arguments(void)
{
	static char text[1200], *argv[] = {"modprobe", "dummy", text, NULL};

	CHECK_TEXT(parse("modprobe"), "missing parameters");
	CHECK_TEXT(parse("modprobe -a"), "missing parameters");
	CHECK_TEXT(parse("modprobe --show-depends dummy"), "unknown option");
	CHECK_TEXT(parse("modprobe -D dummy"), "unknown option");
	memset(text, 'x', sizeof(text) - 1);
	CHECK_TEXT(modprobe_parse(&parsed, 3, argv), "too many parameters");
	text[MODPROBE_PARAMETERS - 1] = '\0';
	CHECK(!modprobe_parse(&parsed, 3, argv));
	CHECK(strlen(parsed.parameters) == MODPROBE_PARAMETERS - 1);
}

/* The agent becomes it by these names; with any other it stays the agent. */
static void programs(void)
{
	CHECK(applet_find("modprobe"));
	CHECK(applet_find("/modules/modprobe"));
	CHECK(applet_find("/sbin/modprobe"));
	CHECK(applet_find("/usr/sbin/modprobe"));
	CHECK(!applet_find("/init"));
}

void test_modprobe(void)
{
	the_kernel_asks();
	a_script_asks();
	wrong_arguments();
	programs();
}
