// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/agent.h"
#include "lib/dontfork.h"
#include "lib/kmsg.h"
#include "output.h"

static void *memory;
static size_t memory_size;

int output_init(struct output *o)
{
	size_t table = OUTPUT_LINES * sizeof(struct output_line);
	int error = dontfork_grow(&memory, &memory_size, table + OUTPUT_BYTES);

	if (error)
		return error;
	/* Each page is touched now: later it would be a page fault within what is measured. */
	memset(memory, 0, memory_size);
	memset(o, 0, sizeof(*o));
	o->lines = memory;
	o->text = (char *)memory + table;
	return 0;
}

void output_free(struct output *o)
{
	memset(o, 0, sizeof(*o));
	dontfork_free(&memory, &memory_size);
}

/* Stores the line that has ended. Returns whether it asks for ^C, also if there is no room left. */
static int end_line(struct output *o, int64_t at_ns)
{
	size_t len = o->partial_len;

	/* A script may have switched the translation of newlines on (stty sane). */
	if (len && o->partial[len - 1] == '\r')
		len--;
	o->partial[len] = '\0';
	o->partial_len = 0;
	if (o->nr == OUTPUT_LINES || o->used + len + 1 > OUTPUT_BYTES) {
		o->dropped++;
	} else {
		memcpy(o->text + o->used, o->partial, len + 1);
		o->lines[o->nr++] = (struct output_line){.at_ns = at_ns, .start = o->used};
		o->used += len + 1;
	}
	return !strcmp(o->partial, OUTPUT_INTERRUPT);
}

int output_add(struct output *o, const char *data, size_t len, int64_t at_ns)
{
	int interrupts = 0;
	size_t i;

	for (i = 0; i < len; i++) {
		if (data[i] == '\n') {
			interrupts += end_line(o, at_ns);
			continue;
		}
		if (o->partial_len == OUTPUT_LINE)
			end_line(o, at_ns);
		/* A zero would end the string; this is no UTF-8, so the record has U+FFFD. */
		o->partial[o->partial_len++] = data[i] ? data[i] : '\xff';
	}
	o->partial[o->partial_len] = '\0';
	return interrupts;
}

void output_end(struct output *o, int64_t at_ns)
{
	if (o->partial_len)
		end_line(o, at_ns);
}

const char *output_last(const struct output *o)
{
	int i;

	if (o->partial_len)
		return o->partial;
	for (i = o->nr - 1; i >= 0; i--)
		if (o->text[o->lines[i].start])
			return o->text + o->lines[i].start;
	return "";
}

/*
 * The length of the UTF-8 character at s by its first byte, 1 if the bytes that must follow do not.
 * Which code points are valid is up to record.c.
 */
static size_t character(const unsigned char *s)
{
	size_t len = *s >= 0xf0 ? 4 : *s >= 0xe0 ? 3 : *s >= 0xc2 ? 2 : 1, i;

	for (i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 1;
	return len;
}

/* How many bytes record.c writes for the character of this length. */
static size_t escaped(const unsigned char *s, size_t len)
{
	if (len > 1)
		return len;
	if (*s == '"' || *s == '\\' || *s == '\t')
		return 2;
	return *s < 0x20 || *s >= 0x7f ? 6 : 1;
}

size_t output_piece(const char *line)
{
	const unsigned char *s = (const unsigned char *)line;
	size_t bytes = 0, room = OUTPUT_RECORD;

	while (s[bytes]) {
		size_t len = character(s + bytes), needed = escaped(s + bytes, len);

		if (needed > room)
			break;
		room -= needed;
		bytes += len;
	}
	return bytes;
}

/*
 * An empty line is a record, too. The facility of a message that user space wrote is never 0, which
 * is the kernel's (devkmsg_write in kernel/printk/printk.c).
 */
static void send_line(int trial, int repetition, const char *source, unsigned int facility,
		      int64_t at_ns, const char *text)
{
	char piece[OUTPUT_RECORD + 1];
	struct line l;
	size_t len;

	do {
		len = output_piece(text);
		memcpy(piece, text, len);
		piece[len] = '\0';
		line_begin(&l, "output");
		line_int(&l, "trial", trial);
		line_int(&l, "repetition", repetition);
		line_str(&l, "source", source);
		if (facility)
			line_int(&l, "facility", facility);
		line_int(&l, "at_ns", at_ns);
		line_str(&l, "text", piece);
		line_send(&l);
		text += len;
	} while (*text);
}

void output_report(const struct output *o, int trial, int repetition)
{
	int i;

	for (i = 0; i < o->nr; i++)
		send_line(trial, repetition, "script", 0, o->lines[i].at_ns,
			  o->text + o->lines[i].start);
}

struct message {
	struct kmsg known;
	/* Which lib/kmsg.h does not give. */
	unsigned int priority;
	unsigned long long sequence;
};

/*
 * The next message of the log. 1, 0 at the end, or -errno; -EPIPE: the kernel has overwritten
 * messages, and continues with the oldest that it has (devkmsg_read in kernel/printk/printk.c).
 */
static int next_message(int kmsg, struct message *m)
{
	char raw[8192], head[64];
	ssize_t n;

	do
		n = read(kmsg, raw, sizeof(raw));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	snprintf(head, sizeof(head), "%.*s", (int)n, raw);
	if (!kmsg_parse(raw, n, &m->known) ||
	    sscanf(head, "%u,%llu,", &m->priority, &m->sequence) != 2)
		return -EPROTO;
	return 1;
}

int output_open_log(uint64_t *next)
{
	int kmsg = kmsg_open_all(), got;
	struct message m;

	if (kmsg < 0)
		return kmsg;
	/* All of it is read, since only a message says its number. */
	*next = 0;
	while ((got = next_message(kmsg, &m)) == 1 || got == -EPIPE)
		if (got == 1)
			*next = m.sequence + 1;
	return kmsg;
}

int64_t output_report_log(int kmsg, uint64_t next, int trial, int repetition)
{
	int64_t dropped = 0, bytes = 0;
	struct message m;
	int got, lines = 0;

	while ((got = next_message(kmsg, &m)) == 1 || got == -EPIPE) {
		if (got == -EPIPE)
			continue;
		if (m.sequence > next)
			dropped += m.sequence - next;
		next = m.sequence + 1;
		bytes += strlen(m.known.text) + 1;
		if (lines == OUTPUT_LINES || bytes > OUTPUT_BYTES) {
			dropped++;
			continue;
		}
		lines++;
		send_line(trial, repetition, "log", m.priority >> 3, m.known.time_ns, m.known.text);
	}
	return dropped;
}
