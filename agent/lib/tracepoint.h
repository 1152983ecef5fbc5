/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints that the calling task hits, through perf_event_open(). Time stamps are in ns of
 * CLOCK_MONOTONIC, the clock of now_ns().
 *
 *	static const char *const names[] = { "printk:console", NULL };
 *
 *	error = tracer_open(&tr, names);
 *	tp_field(&tr, 0, "msg", &msg);
 *	tracer_start(&tr);
 *	do_it();
 *	tracer_stop(&tr);
 *	while (tracer_next(&tr, &hit) > 0)
 *		tp_text(&hit, &msg, text, sizeof(text));
 */
#ifndef KTEARDOWN_TRACEPOINT_H
#define KTEARDOWN_TRACEPOINT_H

#include "perf_ring.h"
#include "workload.h"

#define TRACER_MAX 4

struct tp_field {
	unsigned int offset, size;
	enum { TP_PLAIN, TP_DATA_LOC, TP_REL_LOC } kind;
};

struct tracer {
	int nr;
	const char *names[TRACER_MAX]; /* "system:event" */
	int fds[TRACER_MAX];
	uint16_t ids[TRACER_MAX];
	struct perf_ring ring;
};

struct tracer_hit {
	int which; /* index into the names */
	int64_t time_ns;
	size_t len;
	uint8_t raw[1024];
};

/* names ends with NULL. 0, or -errno: -ENOENT if the kernel does not have the tracepoint. */
int tracer_open(struct tracer *tr, const char *const *names);
void tracer_close(struct tracer *tr);
/* Discards all records that were not read. */
void tracer_start(struct tracer *tr);
void tracer_stop(struct tracer *tr);
/* Reads the next hit, oldest first: 1; 0 at the end; -EOVERFLOW if hits were lost. */
int tracer_next(struct tracer *tr, struct tracer_hit *hit);

/* Finds the field in the raw data of a tracepoint. 0 or -errno. */
int tp_field(const struct tracer *tr, int which, const char *name, struct tp_field *field);
/* The same from the text of the event's "format" file. False if the field does not exist. */
bool tp_field_parse(const char *format, const char *name, struct tp_field *field);

/* Reads an unsigned number of 1, 2, 4 or 8 bytes. False if the hit is too short. */
bool tp_number(const struct tracer_hit *hit, const struct tp_field *field, uint64_t *value);
/* Reads a string, cut to size. False if the hit is too short. */
bool tp_text(const struct tracer_hit *hit, const struct tp_field *field, char *text, size_t size);

/*
 * A tracepoint that takes a constant string records its address, and the kernel's file
 * printk_formats has a line for each such string. True if the string at this address is
 * the given one.
 */
bool tp_constant(uint64_t address, const char *string);
/* The same for one line of the file. */
bool tp_constant_parse(const char *line, uint64_t address, const char *string);

#endif
