// SPDX-License-Identifier: GPL-2.0
#include "hunt/owner.h"

#include "tests/test.h"

static int open_one(int64_t i)
{
	return MUST(open(i < 3 ? "/dev/null" : "/missing", O_RDONLY | O_CLOEXEC));
}

KIND(opened, "tests", "descriptor of /dev/null", .open = open_one);

static struct owner_spec objects(int64_t number)
{
	return (struct owner_spec){
		.kind = kind_named("opened"),
		.way = WAY_YOUNGEST,
		.objects = number,
		.cpu = -1,
		.folder = "/",
	};
}

static void releases(void)
{
	struct owner_spec spec = objects(3);
	struct owner o;

	CHECK(owner_start(&o, &spec) && owner_make(&o));
	owner_release(&o);
	CHECK(owner_released(&o) && o.report->end_ns > o.report->start_ns);
	owner_end(&o);
}

static void reports_the_call(void)
{
	struct owner_spec spec = objects(4);
	struct owner o;

	CHECK(owner_start(&o, &spec) && !owner_make(&o));
	CHECK(o.report->error == ENOENT && strstr(o.report->call, "open("));
	owner_end(&o);
}

/* An owner that cannot be started follows an owner that has ended. */
static void fails_after(int resource, const char *call, int error)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), from, to;
	struct owner_spec spec = objects(3);
	struct rlimit usual, none;
	struct owner o;

	CHECK(owner_start(&o, &spec));
	from = o.from;
	to = o.to;
	owner_end(&o);
	/* Something else has these numbers now. */
	CHECK(dup2(null, from) == from && dup2(null, to) == to);
	getrlimit(resource, &usual);
	none = (struct rlimit){0, usual.rlim_max};
	setrlimit(resource, &none);
	CHECK(!owner_start(&o, &spec));
	setrlimit(resource, &usual);
	CHECK_TEXT(o.report->call, call);
	CHECK(o.report->error == error);
	CHECK(o.pid <= 0);
	owner_end(&o);
	CHECK(!close(from) && !close(to) && !close(null));
}

void test_owner(void)
{
	releases();
	reports_the_call();
	fails_after(RLIMIT_NOFILE, "pipe2()", EMFILE);
	fails_after(RLIMIT_AS, "mmap()", ENOMEM);
}
