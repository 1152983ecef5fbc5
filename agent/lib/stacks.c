// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dontfork.h"
#include "stacks.h"

static const char cut_off[] = "[cut]";

/* FNV-1a over the frames. */
static uint32_t hash_of(const int32_t *frames, int nr)
{
	uint32_t hash = 2166136261u;
	int i;

	for (i = 0; i < nr; i++)
		hash = (hash ^ (uint32_t)frames[i]) * 16777619u;
	return hash;
}

/* Writes the functions of the sample, outermost first; returns how many. */
static int frames_of(const struct cpu_sample *sample, const struct symbols *symbols,
		     int64_t period_ns, int32_t *frames)
{
	int nr = 0, i;

	if (sample->idle_task)
		frames[nr++] = FRAME_IDLE_TASK;
	for (i = sample->nr - 1; i >= 0; i--) {
		/* The call before a return address may be the last instruction of its function. */
		int which = symbols_find(symbols, sample->chain[i] - (i > 0));

		frames[nr++] = which < 0 ? FRAME_UNKNOWN : which;
	}
	if (sample->user)
		frames[nr++] = FRAME_USER;
	if (2 * sample->ns >= 3 * period_ns)
		frames[nr++] = FRAME_NO_INTERRUPTS;
	return nr;
}

/* The entry of the stack with these frames, or the free entry where it belongs. */
static struct stack *place_of(const struct stacks *s, uint32_t hash, const int32_t *frames,
			      uint32_t nr)
{
	size_t at = hash & (s->room - 1);

	while (s->all[at].count) {
		struct stack *there = &s->all[at];

		if (there->hash == hash && there->nr == nr &&
		    !memcmp(s->frames + there->frames, frames, nr * sizeof(*frames)))
			break;
		at = (at + 1) & (s->room - 1);
	}
	return &s->all[at];
}

/* Keeps a third of the table free. */
static int grow_table(struct stacks *s)
{
	struct stacks bigger = *s;
	size_t i, wanted = s->room ? s->room * 2 : 1024;

	if ((s->nr + 1) * 3 <= s->room * 2)
		return 0;
	bigger.all = NULL;
	bigger.bytes = 0;
	if (dontfork_grow((void **)&bigger.all, &bigger.bytes, wanted * sizeof(*bigger.all)))
		return -ENOMEM;
	bigger.room = wanted;
	for (i = 0; i < s->room; i++)
		if (s->all[i].count)
			*place_of(&bigger, s->all[i].hash, s->frames + s->all[i].frames,
				  s->all[i].nr) = s->all[i];
	dontfork_free((void **)&s->all, &s->bytes);
	*s = bigger;
	return 0;
}

static int grow_frames(struct stacks *s, int nr)
{
	return dontfork_grow((void **)&s->frames, &s->frames_bytes,
			     (s->nr_frames + nr) * sizeof(*s->frames));
}

int stacks_add(struct stacks *s, const struct symbols *symbols, const struct cpu_sample *sample,
	       int64_t period_ns)
{
	int32_t frames[STACK_FRAMES_MAX];
	int nr = frames_of(sample, symbols, period_ns, frames);
	uint32_t hash = hash_of(frames, nr);
	struct stack *place;

	if (grow_table(s) || grow_frames(s, nr))
		return -ENOMEM;
	place = place_of(s, hash, frames, nr);
	if (!place->count) {
		*place = (struct stack){.hash = hash, .nr = nr, .frames = s->nr_frames};
		memcpy(s->frames + s->nr_frames, frames, nr * sizeof(*frames));
		s->nr_frames += nr;
		s->nr++;
	}
	place->count++;
	place->ns += sample->ns;
	return 0;
}

static const char *frame_name(const struct symbols *symbols, int32_t frame)
{
	switch (frame) {
	case FRAME_UNKNOWN:
		return "[unknown]";
	case FRAME_USER:
		return "[user]";
	case FRAME_IDLE_TASK:
		return "[idle task]";
	case FRAME_NO_INTERRUPTS:
		return "[no interrupts]";
	}
	return symbols_name(symbols, frame);
}

/* Written from the end backwards, so that the outermost frames are left out if there is no room. */
static char *text_of(const struct stacks *s, const struct symbols *symbols,
		     const struct stack *stack)
{
	char text[STACK_TEXT_MAX + 1], *at = text + STACK_TEXT_MAX;
	uint32_t i;

	*at = '\0';
	for (i = stack->nr; i > 0; i--) {
		const char *name = frame_name(symbols, s->frames[stack->frames + i - 1]);
		size_t room = at - text, needed = strlen(name) + 1;
		bool fits = needed + (i > 1 ? sizeof(cut_off) : 0) <= room;

		if (!fits)
			name = cut_off;
		if (*at)
			*--at = ';';
		at -= strlen(name);
		memcpy(at, name, strlen(name));
		if (!fits)
			break;
	}
	return strdup(at);
}

struct named_stack {
	char *text;
	int64_t count, ns;
};

static int by_text(const void *x, const void *y)
{
	const struct named_stack *a = x, *b = y;

	return strcmp(a->text, b->text);
}

int stacks_report(const struct stacks *s, const struct symbols *symbols,
		  void (*report)(void *to, const char *text, int64_t count, int64_t ns), void *to)
{
	struct named_stack *named = calloc(s->nr + 1, sizeof(*named));
	size_t i, nr = 0;
	int error = named ? 0 : -ENOMEM;

	for (i = 0; !error && i < s->room; i++) {
		if (!s->all[i].count)
			continue;
		named[nr] = (struct named_stack){text_of(s, symbols, &s->all[i]), s->all[i].count,
						 s->all[i].ns};
		if (!named[nr++].text)
			error = -ENOMEM;
	}
	if (!error)
		qsort(named, nr, sizeof(*named), by_text);
	for (i = 0; !error && i < nr; i++) {
		if (i + 1 < nr && !by_text(&named[i], &named[i + 1])) {
			named[i + 1].count += named[i].count;
			named[i + 1].ns += named[i].ns;
		} else {
			report(to, named[i].text, named[i].count, named[i].ns);
		}
	}
	for (i = 0; i < nr; i++)
		free(named[i].text);
	free(named);
	return error;
}

void stacks_free(struct stacks *s)
{
	dontfork_free((void **)&s->all, &s->bytes);
	dontfork_free((void **)&s->frames, &s->frames_bytes);
	memset(s, 0, sizeof(*s));
}
