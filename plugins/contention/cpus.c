// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "cpus.h"

#include <dlfcn.h>

#include "fault.h"
#include "lines.h"

/* What an interrupt of another CPU takes until that CPU executes its handler. */
#define INTERRUPT_TICKS 500
/*
 * How long a CPU runs while all others sleep. QEMU gives a CPU that is woken by an interrupt of
 * another one no turn before the turn of that one ends.
 */
#define ALONE_TICKS 500
#define NOBODY MAX_CPUS
/* The fragile one and two more. */
#define FRAGILE_BLOCKS 3

struct cpu {
	const void *state; /* QEMU's */
	bool is_awake;
	int fragile_blocks;
	uint64_t now, instructions, turns;
	/* How much of its time it slept, until it woke up last. */
	uint64_t slept_ticks;
};

uint64_t turn_ticks = 100;

static struct cpu cpus[MAX_CPUS];
static unsigned int last = NOBODY;
/* When the turn of the last CPU ends, and whether it has been ended. */
static uint64_t turn_end;
static bool is_over;
static void (*end_turn)(const void *state);
static const void *(*state_of)(int cpu);
/* QEMU's current_cpu of the thread that runs the CPUs. */
static const void *const *current;

static const void *const *find_current(void)
{
	/* Each thread has its own, and dlsym() returns that of the thread which calls it. */
	return dlsym(RTLD_DEFAULT, "current_cpu");
}

void cpus_prepare(void)
{
	end_turn = dlsym(RTLD_DEFAULT, "cpu_exit");
	state_of = dlsym(RTLD_DEFAULT, "qemu_get_cpu");
	if (!end_turn || !state_of || !find_current())
		give_up("it does not export cpu_exit(), qemu_get_cpu() and current_cpu");
}

unsigned int cpu_running(void)
{
	static unsigned int number = NOBODY;

	if (!current)
		current = find_current();
	if (number < MAX_CPUS && cpus[number].state == *current)
		return number;
	for (number = 0; number < MAX_CPUS; number++) {
		if (!cpus[number].state)
			cpus[number].state = state_of(number);
		if (cpus[number].state == *current)
			return number;
	}
	give_up("the guest has more than 64 CPUs");
}

void cpus_reset(void)
{
	int i;

	for (i = 0; i < MAX_CPUS; i++)
		cpus[i].now = cpus[i].instructions = cpus[i].turns = cpus[i].slept_ticks = 0;
	last = NOBODY;
}

static void begin_turn(unsigned int number)
{
	struct cpu *cpu = &cpus[number];
	uint64_t least = UINT64_MAX;
	unsigned int i;

	if (!cpu->is_awake) {
		uint64_t woken = last == NOBODY ? 0 : cpus[last].now + INTERRUPT_TICKS;

		cpu->is_awake = true;
		if (cpu->now < woken) {
			cpu->slept_ticks += woken - cpu->now;
			cpu->now = woken;
		}
	}
	for (i = 0; i < MAX_CPUS; i++)
		if (i != number && cpus[i].is_awake && cpus[i].now < least)
			least = cpus[i].now;
	turn_end = least == UINT64_MAX ? cpu->now + ALONE_TICKS : least + turn_ticks;
	is_over = false;
	cpu->turns++;
	last = number;
}

void cpu_runs(unsigned int number, uint64_t instructions, bool is_fragile, bool is_inside)
{
	struct cpu *cpu = &cpus[number];

	if (!is_inside) {
		cpu->is_awake = true;
		return;
	}
	if (number != last || !cpu->is_awake || is_over)
		begin_turn(number);
	cpu->now += instructions;
	cpu->instructions += instructions;
	if (is_fragile)
		cpu->fragile_blocks = FRAGILE_BLOCKS;
	if (cpu->fragile_blocks) {
		cpu->fragile_blocks--;
		return;
	}
	if (cpu->now < turn_end)
		return;
	end_turn(cpu->state);
	is_over = true;
}

void cpu_sleeps(unsigned int number)
{
	cpus[number].is_awake = false;
}

uint64_t cpu_now(unsigned int number)
{
	return cpus[number].now;
}

void cpu_goes_on(unsigned int number, uint64_t now)
{
	cpus[number].now = now;
}

void cpus_write(FILE *out)
{
	int i;

	for (i = 0; i < MAX_CPUS; i++)
		if (cpus[i].instructions)
			fprintf(out, "cpu %d %ju %ju %ju %ju\n", i, (uintmax_t)cpus[i].now,
				(uintmax_t)cpus[i].instructions, (uintmax_t)cpus[i].turns,
				(uintmax_t)cpus[i].slept_ticks);
}
