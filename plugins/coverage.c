// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU's emulator: counts how often each block of the guest's kernel is executed,
 * for each trial, inside and outside of its measured stretch.
 *
 *	-plugin file=coverage.so,out=FILE,trial=ADDR,begin=ADDR,end=ADDR[,end=ADDR...]
 *
 * trial, begin and end are addresses in the agent: a trial starts, its stretch begins, and it
 * ends. The guest is not changed: the plugin counts in the emulator, where the guest's clock
 * does not see it. All CPUs are counted, and whatever runs on them. It is for the instruction
 * clock, under which all CPUs run in one thread, so the counts need no lock.
 *
 * The file has one section for each trial, and one before for the boot. A section is a line
 * "trial N STRETCHES", N from 0 for the boot, and a line for each block that was executed:
 *
 *	ADDRESS INSIDE OUTSIDE LENGTHS
 *
 * with a digit (hexadecimal) for the length of each instruction of the block. "end" is the last
 * line. A block may begin in the middle of another, so an instruction was executed as often as
 * all blocks together that contain it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_MARKS 8
#define MAX_INSNS 512
#define NR_LISTS (1 << 16)

/*
 * The part of QEMU's plugin interface that is used. A plugin states the version of the interface
 * that it was made for, and QEMU names the lowest that it takes: 1, since 9.0 2, since 11.1 7.
 * Version 7 hands data to the functions that are called, in place of the plugin's id.
 */
#ifndef API
#define API 1
#endif

struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { NO_REGISTERS };
typedef uint64_t plugin_id;
typedef void (*executed_fn)(unsigned int cpu, void *data);
#if API < 7
typedef void (*translated_fn)(plugin_id id, struct qemu_plugin_tb *tb);
typedef void (*exit_fn)(plugin_id id, void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, translated_fn fn);
#else
typedef void (*translated_fn)(struct qemu_plugin_tb *tb, void *data);
typedef void (*exit_fn)(void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, translated_fn fn, void *data);
#endif
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, executed_fn fn, int registers,
					  void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, executed_fn fn,
					    int registers, void *data);
void qemu_plugin_register_atexit_cb(plugin_id id, exit_fn fn, void *data);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

EXPORT int qemu_plugin_version = API;
EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv);

struct block {
	struct block *next;
	uint64_t address, count[2]; /* outside, inside */
	char lengths[];
};

enum kind { TRIAL, BEGIN, END };
static struct mark {
	uint64_t address;
	enum kind kind;
} marks[MAX_MARKS];

static struct block *lists[NR_LISTS];
static int nr_marks, trial, stretches;
static bool inside;
static FILE *out;

/* The block with these instructions; QEMU translates the same one again and again. */
static struct block *find_block(uint64_t address, const char *lengths)
{
	struct block **list = &lists[(address ^ address >> 16) % NR_LISTS], *b;
	size_t size = strlen(lengths) + 1;

	for (b = *list; b; b = b->next)
		if (b->address == address && !strcmp(b->lengths, lengths))
			return b;
	b = calloc(1, sizeof(*b) + size);
	if (!b) {
		fputs("coverage plugin: not enough memory\n", stderr);
		exit(1);
	}
	b->address = address;
	memcpy(b->lengths, lengths, size);
	b->next = *list;
	*list = b;
	return b;
}

/* Writes the section of the trial that is over, and starts the next one. */
static void write_section(void)
{
	struct block *b;
	int i;

	fprintf(out, "trial %d %d\n", trial++, stretches);
	for (i = 0; i < NR_LISTS; i++)
		for (b = lists[i]; b; b = b->next) {
			if (b->count[0] || b->count[1])
				fprintf(out, "%jx %ju %ju %s\n", (uintmax_t)b->address,
					(uintmax_t)b->count[1], (uintmax_t)b->count[0], b->lengths);
			b->count[0] = b->count[1] = 0;
		}
	stretches = 0;
	inside = false;
}

static void on_block(unsigned int cpu, void *data)
{
	struct block *b = data;

	(void)cpu;
	b->count[inside]++;
}

static void on_mark(unsigned int cpu, void *data)
{
	const struct mark *m = data;

	(void)cpu;
	if (m->kind == TRIAL) {
		write_section();
		return;
	}
	stretches += m->kind == BEGIN && !inside;
	inside = m->kind == BEGIN;
}

static bool is_kernel(uint64_t address)
{
	return address >> 63;
}

static void watch(struct qemu_plugin_insn *insn)
{
	int i;

	for (i = 0; i < nr_marks; i++)
		if (marks[i].address == qemu_plugin_insn_vaddr(insn))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, NO_REGISTERS,
							       &marks[i]);
}

static void see_block(struct qemu_plugin_tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb), i;
	char lengths[MAX_INSNS + 1];

	for (i = 0; i < nr; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (!is_kernel(qemu_plugin_tb_vaddr(tb)))
			watch(insn);
		if (i < MAX_INSNS)
			lengths[i] = "0123456789abcdef"[qemu_plugin_insn_size(insn) & 15];
	}
	lengths[nr < MAX_INSNS ? nr : MAX_INSNS] = 0;
	if (is_kernel(qemu_plugin_tb_vaddr(tb)))
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, NO_REGISTERS,
						     find_block(qemu_plugin_tb_vaddr(tb), lengths));
}

static void finish(void)
{
	write_section();
	fputs("end\n", out);
	if (fclose(out))
		perror("coverage plugin");
}

#if API < 7
static void on_translated(plugin_id id, struct qemu_plugin_tb *tb)
{
	(void)id;
	see_block(tb);
}

static void on_exit_of_qemu(plugin_id id, void *data)
{
	(void)id;
	(void)data;
	finish();
}
#else
static void on_translated(struct qemu_plugin_tb *tb, void *data)
{
	(void)data;
	see_block(tb);
}

static void on_exit_of_qemu(void *data)
{
	(void)data;
	finish();
}
#endif

static bool parse(const char *word)
{
	static const char *const kinds[] = {[TRIAL] = "trial=", [BEGIN] = "begin=", [END] = "end="};
	size_t kind;

	if (!strncmp(word, "out=", 4)) {
		out = fopen(word + 4, "w");
		return out;
	}
	for (kind = 0; kind < 3; kind++) {
		size_t len = strlen(kinds[kind]);

		if (nr_marks < MAX_MARKS && !strncmp(word, kinds[kind], len)) {
			marks[nr_marks].kind = kind;
			marks[nr_marks++].address = strtoull(word + len, NULL, 0);
			return true;
		}
	}
	return false;
}

int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	int i;

	(void)info;
	for (i = 0; i < argc; i++)
		if (!parse(argv[i])) {
			fprintf(stderr, "coverage plugin: cannot use the argument %s\n", argv[i]);
			return -1;
		}
	if (!out)
		return -1;
#if API < 7
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
#else
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated, NULL);
#endif
	qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
	return 0;
}
