// SPDX-License-Identifier: GPL-2.0
#include "bandwidth.h"

#include <stdio.h>

#include "cgroup.h"

#define PATH_SIZE 256

static const char *file_of(const char *path, const char *name, char file[PATH_SIZE])
{
	snprintf(file, PATH_SIZE, "%s/%s", path, name);
	return file;
}

int bandwidth_allow(const char *parent)
{
	char file[PATH_SIZE];

	return write_file(file_of(parent, "cgroup.subtree_control", file), "+cpu");
}

int bandwidth_limit(const char *path, const struct bandwidth *b)
{
	char file[PATH_SIZE];
	int error;

	if (!b->quota_us)
		return 0;
	error = write_file(file_of(path, "cpu.max", file), "%lld %lld", (long long)b->quota_us,
			   (long long)b->period_us);
	if (error || !b->burst_us)
		return error;
	return write_file(file_of(path, "cpu.max.burst", file), "%lld", (long long)b->burst_us);
}

int bandwidth_lift(const char *path)
{
	char file[PATH_SIZE];

	return write_file(file_of(path, "cpu.max", file), "max");
}

static int64_t value_or_zero(const char *text, const char *key)
{
	int64_t value = cgroup_value_in(text, key);

	return value < 0 ? 0 : value;
}

void bandwidth_parse(const char *text, struct bandwidth_stat *s)
{
	s->usage_us = value_or_zero(text, "usage_usec");
	s->periods = value_or_zero(text, "nr_periods");
	s->throttled = value_or_zero(text, "nr_throttled");
	s->throttled_us = value_or_zero(text, "throttled_usec");
	s->bursts = value_or_zero(text, "nr_bursts");
}

int bandwidth_read(const char *path, struct bandwidth_stat *s)
{
	char file[PATH_SIZE], text[4096];
	int len = read_file(file_of(path, "cpu.stat", file), text, sizeof(text));

	if (len < 0)
		return len;
	bandwidth_parse(text, s);
	return 0;
}
