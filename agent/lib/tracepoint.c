// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tracepoint.h"

#define EVENTS "/sys/kernel/tracing/events"
#define FORMATS "/sys/kernel/tracing/printk_formats"
/* One suspend hits about a dozen of these tracepoints; a page has room for fifty. */
#define RING_PAGES 16
/* The length of a record has 16 bits. */
#define RECORD_MAX 65536

static int event_file(const char *name, const char *file, char *text, size_t size)
{
	const char *colon = strchr(name, ':');
	char path[256];

	if (!colon)
		return -EINVAL;
	snprintf(path, sizeof(path), EVENTS "/%.*s/%s/%s", (int)(colon - name), name, colon + 1,
		 file);
	return read_file(path, text, size);
}

static int open_event(uint16_t id)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = id,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
		.disabled = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* The first event owns the ring; the other events of the same task write to it too. */
static int share_ring(struct tracer *tr, int i)
{
	if (i > 0)
		return ioctl(tr->fds[i], PERF_EVENT_IOC_SET_OUTPUT, tr->fds[0]) ? -errno : 0;
	return perf_ring_open(&tr->ring, tr->fds[0], RING_PAGES);
}

int tracer_open(struct tracer *tr, const char *const *names)
{
	int error = 0;

	memset(tr, 0, sizeof(*tr));
	while (!error && names[tr->nr]) {
		int i = tr->nr;
		char text[32];

		if (i == TRACER_MAX)
			error = -E2BIG;
		else
			error = event_file(names[i], "id", text, sizeof(text));
		if (error < 0)
			break;
		tr->names[i] = names[i];
		tr->ids[i] = atoi(text);
		tr->fds[i] = open_event(tr->ids[i]);
		if (tr->fds[i] < 0) {
			error = tr->fds[i];
			break;
		}
		tr->nr++;
		error = share_ring(tr, i);
	}
	if (error < 0)
		tracer_close(tr);
	return error;
}

void tracer_close(struct tracer *tr)
{
	while (tr->nr)
		close(tr->fds[--tr->nr]);
	perf_ring_close(&tr->ring);
}

static void control(struct tracer *tr, unsigned long request)
{
	int i;

	for (i = 0; i < tr->nr; i++)
		ioctl(tr->fds[i], request, 0);
}

void tracer_start(struct tracer *tr)
{
	perf_ring_forget(&tr->ring);
	control(tr, PERF_EVENT_IOC_ENABLE);
}

void tracer_stop(struct tracer *tr)
{
	control(tr, PERF_EVENT_IOC_DISABLE);
}

/* In the order of sample_type above: the time, then the size of the raw data and the data. */
static int read_sample(const struct tracer *tr, const uint8_t *at, size_t len,
		       struct tracer_hit *hit)
{
	uint16_t id;
	uint32_t size;
	int i;

	if (len < sizeof(hit->time_ns) + sizeof(size))
		return -EPROTO;
	memcpy(&hit->time_ns, at, sizeof(hit->time_ns));
	at += sizeof(hit->time_ns);
	memcpy(&size, at, sizeof(size));
	at += sizeof(size);
	if (size > len - sizeof(hit->time_ns) - sizeof(size) || size < sizeof(id))
		return -EPROTO;
	hit->len = size < sizeof(hit->raw) ? size : sizeof(hit->raw);
	memcpy(hit->raw, at, hit->len);
	/* The data of every tracepoint begin with its id (common_type). */
	memcpy(&id, hit->raw, sizeof(id));
	for (i = 0; i < tr->nr; i++)
		if (tr->ids[i] == id) {
			hit->which = i;
			return 1;
		}
	return -EPROTO;
}

int tracer_next(struct tracer *tr, struct tracer_hit *hit)
{
	uint8_t record[RECORD_MAX];
	int len;

	while ((len = perf_ring_next(&tr->ring, record, sizeof(record))) > 0) {
		struct perf_event_header header;

		memcpy(&header, record, sizeof(header));
		if (header.type == PERF_RECORD_LOST)
			return -EOVERFLOW;
		if (header.type == PERF_RECORD_SAMPLE)
			return read_sample(tr, record + sizeof(header), len - sizeof(header), hit);
	}
	return len;
}

int tp_field(const struct tracer *tr, int which, const char *name, struct tp_field *field)
{
	char format[8192];
	int error = event_file(tr->names[which], "format", format, sizeof(format));

	if (error < 0)
		return error;
	return tp_field_parse(format, name, field) ? 0 : -ENOENT;
}

/*
 * True if the name is the last word of the declaration: "type name" or "type name[n]", up
 * to the semicolon.
 */
static bool declares(const char *declaration, size_t len, const char *name)
{
	size_t size = strlen(name);
	const char *bracket = memchr(declaration, '[', len);

	/* In "__data_loc char[] msg" the brackets are before the name. */
	if (bracket && !memchr(bracket, ' ', declaration + len - bracket))
		len = bracket - declaration;
	return len > size && declaration[len - size - 1] == ' ' &&
	       !memcmp(declaration + len - size, name, size);
}

bool tp_field_parse(const char *format, const char *name, struct tp_field *field)
{
	static const char prefix[] = "field:";
	const char *line = format;

	while ((line = strstr(line, prefix))) {
		const char *declaration = line + strlen(prefix);
		size_t len = strcspn(declaration, ";\n");

		line = declaration + len;
		if (*line != ';' || !declares(declaration, len, name))
			continue;
		if (sscanf(line, "; offset:%u; size:%u;", &field->offset, &field->size) != 2)
			return false;
		field->kind = !strncmp(declaration, "__data_loc", 10) ? TP_DATA_LOC
			      : !strncmp(declaration, "__rel_loc", 9) ? TP_REL_LOC
								      : TP_PLAIN;
		return true;
	}
	return false;
}

static bool inside(const struct tracer_hit *hit, uint64_t offset, uint64_t size)
{
	return size <= hit->len && offset <= hit->len - size;
}

bool tp_number(const struct tracer_hit *hit, const struct tp_field *field, uint64_t *value)
{
	const uint8_t *at = hit->raw + field->offset;
	uint32_t four;
	uint16_t two;

	if (!inside(hit, field->offset, field->size))
		return false;
	switch (field->size) {
	case 1:
		*value = *at;
		return true;
	case 2:
		memcpy(&two, at, sizeof(two));
		*value = two;
		return true;
	case 4:
		memcpy(&four, at, sizeof(four));
		*value = four;
		return true;
	case 8:
		memcpy(value, at, sizeof(*value));
		return true;
	}
	return false;
}

bool tp_text(const struct tracer_hit *hit, const struct tp_field *field, char *text, size_t size)
{
	uint64_t offset = field->offset, len = field->size, where;

	if (field->kind != TP_PLAIN) {
		/* The upper half is the length, the lower half the offset. */
		if (field->size != sizeof(uint32_t) || !tp_number(hit, field, &where))
			return false;
		offset = where & 0xffff;
		len = where >> 16;
		if (field->kind == TP_REL_LOC)
			offset += field->offset + field->size;
	}
	if (!inside(hit, offset, len))
		return false;
	if (len > size - 1)
		len = size - 1;
	memcpy(text, hit->raw + offset, len);
	text[len] = '\0';
	return true;
}

bool tp_constant_parse(const char *line, uint64_t address, const char *string)
{
	char expected[256];

	snprintf(expected, sizeof(expected), "0x%" PRIx64 " : \"%s\"", address, string);
	return strcspn(line, "\n") == strlen(expected) &&
	       !strncmp(line, expected, strlen(expected));
}

bool tp_constant(uint64_t address, const char *string)
{
	FILE *file = fopen(FORMATS, "re");
	bool found = false;
	char line[512];

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = tp_constant_parse(line, address, string);
	fclose(file);
	return found;
}
