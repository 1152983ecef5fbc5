/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The lines that a script prints, with their times. They are kept in memory until the repetition is
 * over, since writing a record would be work of the guest within what is measured.
 */
#ifndef KTEARDOWN_SCRIPT_OUTPUT_H
#define KTEARDOWN_SCRIPT_OUTPUT_H

#include "workload.h"

/* Of a script's output, and as much of the kernel's log. */
#define OUTPUT_LINES 20000
#define OUTPUT_BYTES (4 << 20)
/* A longer line is stored as several. */
#define OUTPUT_LINE 3000
/* A record has room for this much of a line, with its escapes; record.c would cut more. */
#define OUTPUT_RECORD 2000
/* The line by which a script asks for ^C on its terminal. */
#define OUTPUT_INTERRUPT "kt-interrupt"

struct output_line {
	int64_t at_ns;
	size_t start; /* in the text, where it ends with a zero */
};

struct output {
	char *text;
	struct output_line *lines;
	size_t used;
	int nr;
	int64_t dropped;
	/* The line that has not ended yet. */
	char partial[OUTPUT_LINE + 1];
	size_t partial_len;
};

/* Makes the memory, which children do not inherit, and empties it. 0 or -ENOMEM. */
int output_init(struct output *o);
void output_free(struct output *o);
/* Adds what was read at this time. Returns how many lines asked for ^C. */
int output_add(struct output *o, const char *data, size_t len, int64_t at_ns);
/* After the last byte: what has no newline is a line, too. */
void output_end(struct output *o, int64_t at_ns);
/* The last line that is not empty, also if it has not ended yet; "" if all are. */
const char *output_last(const struct output *o);

/* How many bytes of a line the next record of it has. */
size_t output_piece(const char *line);
/* Writes the lines as records. */
void output_report(const struct output *o, int trial, int repetition);
/* /dev/kmsg, of which all is read until now; next: the number of the next message. Or -errno. */
int output_open_log(uint64_t *next);
/*
 * Writes what the kernel logged since then as records. Returns how many messages are missing: more
 * than the limits, or overwritten by the kernel before they were read.
 */
int64_t output_report_log(int kmsg, uint64_t next, int trial, int repetition);

#endif
