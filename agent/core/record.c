// SPDX-License-Identifier: GPL-2.0
/* Records: one JSON object per line, as docs/formats.md describes them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"
#include "lib/histogram.h"

/* The longest escaped string: the kernel's command line (2048) and any detail fit. */
#define STRING_MAX 2100
/* Kept free for the closing braces and the newline. */
#define TAIL 8

static int records = -1;

void record_to(int fd)
{
	records = fd;
}

bool record_ready(void)
{
	return records >= 0;
}

static size_t room(const struct line *l)
{
	return sizeof(l->text) - TAIL - l->len;
}

static void put(struct line *l, const char *text, size_t len)
{
	if (len > room(l))
		len = room(l);
	memcpy(l->text + l->len, text, len);
	l->len += len;
}

static void put_text(struct line *l, const char *text)
{
	put(l, text, strlen(text));
}

/* Length of the UTF-8 character at s (RFC 3629), 0 if it is not valid. */
static size_t utf8_len(const unsigned char *s)
{
	size_t len, i;

	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		len = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		len = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		len = 4;
	else
		return 0;
	/* Overlong forms, surrogates, and code points above U+10FFFF. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	for (i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

/* Writes the character at s as a JSON string contains it; returns how many bytes of s that were. */
static size_t escape(const unsigned char *s, char out[8])
{
	size_t len = utf8_len(s);

	if (len) {
		memcpy(out, s, len);
		out[len] = '\0';
		return len;
	}
	if (*s == '"' || *s == '\\')
		sprintf(out, "\\%c", *s);
	else if (*s == '\n')
		strcpy(out, "\\n");
	else if (*s == '\t')
		strcpy(out, "\\t");
	else if (*s < 0x20 || *s == 0x7f)
		sprintf(out, "\\u%04x", *s);
	else if (*s > 0x7f)
		strcpy(out, "\\ufffd");
	else
		sprintf(out, "%c", *s);
	return 1;
}

static void put_string(struct line *l, const char *value)
{
	const unsigned char *s = (const unsigned char *)value;
	size_t limit = l->len + STRING_MAX;
	char out[8];

	put(l, "\"", 1);
	while (*s) {
		s += escape(s, out);
		if (strlen(out) + 1 > room(l) || l->len + strlen(out) > limit)
			break;
		put_text(l, out);
	}
	put(l, "\"", 1);
}

/* Writes the key. If a value of this length does not fit, it writes nothing and returns false. */
static bool put_key(struct line *l, const char *key, size_t value_len)
{
	if (strlen(key) + value_len + 4 > room(l))
		return false;
	if (!l->first)
		put(l, ",", 1);
	l->first = false;
	put_string(l, key);
	put(l, ":", 1);
	return true;
}

void line_begin(struct line *l, const char *type)
{
	l->len = 0;
	l->first = true;
	put(l, "{", 1);
	line_str(l, "type", type);
}

static void line_bare(struct line *l, const char *key, const char *text)
{
	if (put_key(l, key, strlen(text)))
		put_text(l, text);
}

void line_int(struct line *l, const char *key, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	line_bare(l, key, text);
}

void line_bool(struct line *l, const char *key, bool value)
{
	line_bare(l, key, value ? "true" : "false");
}

void line_str(struct line *l, const char *key, const char *value)
{
	if (put_key(l, key, 2))
		put_string(l, value);
}

void line_value(struct line *l, const char *key, const char *value)
{
	const char *digits = value + (*value == '-');
	char *end;

	/* JSON has no leading zeros, and strtoll() accepts signs and blanks that JSON does not. */
	errno = 0;
	strtoll(value, &end, 10);
	if (*digits < '0' || *digits > '9' || (*digits == '0' && digits[1]) || *end || errno)
		line_str(l, key, value);
	else
		line_bare(l, key, value);
}

void line_open(struct line *l, const char *key)
{
	line_bare(l, key, "{");
	l->first = true;
}

/* The closing brackets may use the TAIL bytes that everything else leaves free. */
static void close_mark(struct line *l, char mark)
{
	l->text[l->len++] = mark;
}

void line_close(struct line *l)
{
	close_mark(l, '}');
	l->first = false;
}

void line_array(struct line *l, const char *key)
{
	line_bare(l, key, "[");
	l->first = true;
}

void line_item(struct line *l, const char *value)
{
	if (strlen(value) + 3 > room(l))
		return;
	if (!l->first)
		put(l, ",", 1);
	l->first = false;
	put_string(l, value);
}

bool line_pair(struct line *l, int64_t a, int64_t b)
{
	char text[48];
	int len = snprintf(text, sizeof(text), "%s[%" PRId64 ",%" PRId64 "]", l->first ? "" : ",",
			   a, b);

	if ((size_t)len > room(l))
		return false;
	l->first = false;
	put(l, text, len);
	return true;
}

void line_array_end(struct line *l)
{
	close_mark(l, ']');
	l->first = false;
}

size_t line_end(struct line *l)
{
	close_mark(l, '}');
	close_mark(l, '\n');
	return l->len;
}

void line_send(struct line *l)
{
	int error;

	line_end(l);
	error = write_all(records, l->text, l->len);
	if (error) {
		records = -1;
		agent_error("cannot write a record: %s", strerror(-error));
	}
}

void record_trial_start(const struct trial_plan *p)
{
	struct line l;
	int i;

	line_begin(&l, "trial_start");
	line_int(&l, "trial", p->index);
	line_str(&l, "workload", p->workload->name);
	line_open(&l, "params");
	for (i = 0; i < p->nr_params; i++)
		line_value(&l, p->params[i].name, p->params[i].value);
	line_close(&l);
	line_send(&l);
}

static void send_sample(int trial, int repetition, const char *metric, const char *value,
			bool warmup)
{
	struct line l;

	line_begin(&l, "sample");
	line_int(&l, "trial", trial);
	line_int(&l, "repetition", repetition);
	line_str(&l, "metric", metric);
	line_bare(&l, "value", value);
	if (warmup)
		line_bool(&l, "warmup", true);
	line_send(&l);
}

void record_sample(int trial, int repetition, const char *metric, int64_t value, bool warmup)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	send_sample(trial, repetition, metric, text, warmup);
}

void record_ratio(int trial, int repetition, const char *metric, double value, bool warmup)
{
	char text[400]; /* any double without an exponent */

	snprintf(text, sizeof(text), "%.6f", value);
	send_sample(trial, repetition, metric, text, warmup);
}

/* Writes as many buckets, beginning with this one, as a line has room for; returns the next one. */
static int histogram_line(struct line *l, const struct histogram *h, int bucket)
{
	line_array(l, "buckets");
	for (; bucket < HISTOGRAM_BUCKETS; bucket++)
		if (h->buckets[bucket] && !line_pair(l, histogram_low(bucket), h->buckets[bucket]))
			break;
	line_array_end(l);
	line_send(l);
	return bucket;
}

void record_histogram(int trial, int repetition, const char *metric, const struct histogram *h,
		      bool warmup)
{
	int bucket = 0;
	struct line l;

	while (bucket < HISTOGRAM_BUCKETS && h->count) {
		line_begin(&l, "histogram");
		line_int(&l, "trial", trial);
		line_int(&l, "repetition", repetition);
		line_str(&l, "metric", metric);
		if (warmup)
			line_bool(&l, "warmup", true);
		line_int(&l, "bits", HISTOGRAM_BITS);
		bucket = histogram_line(&l, h, bucket);
	}
}

void record_check(int trial, int repetition, const char *name, bool ok, const char *detail)
{
	struct line l;

	line_begin(&l, "check");
	line_int(&l, "trial", trial);
	line_int(&l, "repetition", repetition);
	line_str(&l, "name", name);
	line_bool(&l, "ok", ok);
	line_str(&l, "detail", detail);
	line_send(&l);
}

void record_alive(int trial, const char *detail)
{
	struct line l;

	line_begin(&l, "alive");
	line_int(&l, "trial", trial);
	line_str(&l, "detail", detail);
	line_send(&l);
}

void record_trial_end(int trial, const char *status, const char *detail)
{
	struct line l;

	line_begin(&l, "trial_end");
	line_int(&l, "trial", trial);
	line_str(&l, "status", status);
	line_str(&l, "detail", detail);
	line_send(&l);
}

void record_profile(const struct profile *p)
{
	struct line l;

	line_begin(&l, "profile");
	line_int(&l, "trial", p->trial);
	line_int(&l, "repetition", p->repetition);
	line_int(&l, "period_ns", p->period_ns);
	line_int(&l, "stretch_ns", p->stretch_ns);
	line_int(&l, "cpus", p->cpus);
	line_int(&l, "samples", p->samples);
	line_int(&l, "lost", p->lost);
	line_send(&l);
}

void record_stack(const struct profile *p, const char *stack, int64_t count, int64_t ns)
{
	struct line l;

	line_begin(&l, "stack");
	line_int(&l, "trial", p->trial);
	line_int(&l, "repetition", p->repetition);
	line_str(&l, "stack", stack);
	line_int(&l, "count", count);
	line_int(&l, "ns", ns);
	line_send(&l);
}

void record_error(const char *detail)
{
	struct line l;

	line_begin(&l, "error");
	line_str(&l, "detail", detail);
	line_send(&l);
}

void record_bye(int trials)
{
	struct line l;

	line_begin(&l, "bye");
	line_int(&l, "trials", trials);
	line_send(&l);
}
