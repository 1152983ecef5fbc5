// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU's emulator for several virtual CPUs in one thread (-icount): counts which cache
 * lines move between them in the measured stretches of trials.
 *
 *	-plugin file=contention.so,out=FILE,trial=ADDR,begin=ADDR,end=ADDR[,end=ADDR...]
 *		[,transfer=TICKS][,turn=TICKS]
 *
 * trial, begin and end are addresses in the agent, as of coverage.c. transfer is what a line costs
 * that another CPU has modified; an instruction is one tick. turn: cpus.h.
 *
 * The file has a section for each stretch: a line "stretch TRIAL NUMBER", both from 0, the lines of
 * cpus.h and lines.h, and a line "end". It is written when the stretch ends, before the guest goes
 * on.
 *
 * Code is translated again at the first trial, and is instrumented from then on. QEMU 7.2 aborts if
 * code is discarded a second time: it may still point to what a block was to call that was left in
 * the middle of an instruction.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../qemu_plugin.h"
#include "callers.h"
#include "cpus.h"
#include "fault.h"
#include "lines.h"
#include "x86.h"

EXPORT int qemu_plugin_version = API;

#define MAX_MARKS 8
#define MAX_INSN 16
/* A hostile guest must not fill the disk of the host. */
#define MOST_BYTES (1LL << 30)
/* What a locked instruction and PAUSE take, besides the tick of each instruction. */
#define LOCKED_TICKS 20
#define PAUSE_TICKS 40

enum kind { TRIAL, BEGIN, END };
static struct mark {
	uint64_t address;
	enum kind kind;
} marks[MAX_MARKS];
static int nr_marks;

static plugin_id self;
static FILE *out;
/* From the first trial on. */
static bool is_instrumented;
static bool is_inside;
static int trial = -1;
static int stretch;

/* Since version 3 of the interface, code is copied; before, a pointer to it is returned. */
static bool copies_code;
static void *insn_data;

static size_t code_of(const struct qemu_plugin_insn *insn, uint8_t *code)
{
	size_t size = qemu_plugin_insn_size(insn);

	if (size > MAX_INSN)
		size = MAX_INSN;
	if (copies_code)
		return ((size_t(*)(const struct qemu_plugin_insn *, void *, size_t))insn_data)(
			insn, code, size);
	memcpy(code, ((const void *(*)(const struct qemu_plugin_insn *))insn_data)(insn), size);
	return size;
}

/* -- what the guest executes -- */

static void on_block(unsigned int translator, void *data)
{
	(void)translator;
	cpu_runs(cpu_running(), (uintptr_t)data, false, is_inside);
}

/*
 * QEMU 7.2 computes the flags of CMPXCHG16B from a stale cc_op. The undefined bits do no harm until
 * the CPU is left before another instruction sets the flags: then they get into EFLAGS, and the
 * guest has a trap flag that it never set.
 */
static void on_fragile_block(unsigned int translator, void *data)
{
	(void)translator;
	cpu_runs(cpu_running(), (uintptr_t)data, true, is_inside);
}

static void on_halt(unsigned int translator, void *data)
{
	(void)translator;
	(void)data;
	cpu_sleeps(cpu_running());
}

static void on_pause(unsigned int translator, void *data)
{
	struct site *site = data;
	unsigned int cpu;

	(void)translator;
	if (!is_inside)
		return;
	cpu = cpu_running();
	line_spin(cpu, site, PAUSE_TICKS);
	cpu_goes_on(cpu, cpu_now(cpu) + PAUSE_TICKS);
}

static void on_access(unsigned int translator, mem_info info, uint64_t address, void *data)
{
	struct site *site = data;
	bool is_store = qemu_plugin_mem_is_store(info);
	unsigned int cpu;
	uint64_t now;

	(void)translator;
	if (!is_inside)
		return;
	cpu = cpu_running();
	if (site->is_call)
		caller_enters(cpu, address, site);
	if (site->is_return)
		caller_leaves(cpu, address);
	/* A locked instruction reads and writes, and has the line from its read on. */
	if (site->is_locked && is_store)
		return;
	if (address >> 63) {
		address = without_direct_map(address);
	} else {
		struct qemu_plugin_hwaddr *hwaddr = qemu_plugin_get_hwaddr(info, address);

		if (!hwaddr)
			return;
		address = qemu_plugin_hwaddr_phys_addr(hwaddr);
	}
	now = line_access(cpu, address, site->is_locked || is_store ? WRITE : READ, site,
			  cpu_now(cpu));
	if (site->is_locked) {
		site->count.locked++;
		now += LOCKED_TICKS;
	}
	cpu_goes_on(cpu, now);
}

/* -- stretches -- */

static void begin_stretch(void)
{
	if (is_inside)
		return;
	lines_reset();
	cpus_reset();
	is_inside = true;
}

static void end_stretch(void)
{
	if (!is_inside)
		return;
	is_inside = false;
	fprintf(out, "stretch %d %d\n", trial, stretch++);
	cpus_write(out);
	lines_write(out);
	fputs("end\n", out);
	if (fflush(out))
		give_up("cannot write what was counted");
	if (ftello(out) > MOST_BYTES)
		give_up("the guest moved more lines than can be kept");
}

static void register_all(void);

#if API < 7
static void on_reset(plugin_id id)
{
	(void)id;
	register_all();
}
#else
static void on_reset(void *data)
{
	(void)data;
	register_all();
}
#endif

static void begin_trial(void)
{
	trial++;
	stretch = 0;
	is_inside = false;
	if (is_instrumented)
		return;
	is_instrumented = true;
#if API < 7
	qemu_plugin_reset(self, on_reset);
#else
	qemu_plugin_reset(self, on_reset, NULL);
#endif
}

static void on_mark(unsigned int translator, void *data)
{
	const struct mark *mark = data;

	(void)translator;
	if (mark->kind == TRIAL)
		begin_trial();
	else if (mark->kind == BEGIN)
		begin_stretch();
	else
		end_stretch();
}

/* -- translation -- */

static void see_mark(struct qemu_plugin_insn *insn)
{
	int i;

	for (i = 0; i < nr_marks; i++)
		if (marks[i].address == qemu_plugin_insn_vaddr(insn))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, NO_REGISTERS,
							       &marks[i]);
}

/* Returns whether the instruction makes its block fragile. */
static bool instrument(struct qemu_plugin_insn *insn)
{
	uint8_t code[MAX_INSN];
	size_t size = code_of(insn, code);
	struct site *site = site_of(qemu_plugin_insn_vaddr(insn), is_locked(code, size));

	site->is_call = is_call(code, size);
	site->is_return = is_return(code, size);
	if (is_halt(code, size))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_halt, NO_REGISTERS, NULL);
	if (is_pause(code, size))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_pause, NO_REGISTERS, site);
	qemu_plugin_register_vcpu_mem_cb(insn, on_access, NO_REGISTERS, READS_AND_WRITES, site);
	return is_wide_exchange(code, size);
}

static void see_block(struct qemu_plugin_tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb), i;
	bool is_program = !(qemu_plugin_tb_vaddr(tb) >> 63), is_fragile = false;

	for (i = 0; i < nr; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (is_program)
			see_mark(insn);
		if (is_instrumented)
			is_fragile |= instrument(insn);
	}
	if (is_instrumented)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, is_fragile ? on_fragile_block : on_block,
						     NO_REGISTERS, (void *)(uintptr_t)nr);
}

#if API < 7
static void on_translated(plugin_id id, struct qemu_plugin_tb *tb)
{
	(void)id;
	see_block(tb);
}
#else
static void on_translated(struct qemu_plugin_tb *tb, void *data)
{
	(void)data;
	see_block(tb);
}
#endif

static void register_all(void)
{
#if API < 7
	qemu_plugin_register_vcpu_tb_trans_cb(self, on_translated);
#else
	qemu_plugin_register_vcpu_tb_trans_cb(self, on_translated, NULL);
#endif
}

/* -- arguments -- */

static bool parse_mark(const char *word)
{
	static const char *const kinds[] = {[TRIAL] = "trial=", [BEGIN] = "begin=", [END] = "end="};
	size_t kind;

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

static bool parse(const char *word)
{
	const struct {
		const char *name;
		uint64_t *value;
	} numbers[] = {{"transfer=", &transfer_ticks}, {"turn=", &turn_ticks}};
	size_t i;

	if (!strncmp(word, "out=", 4)) {
		out = fopen(word + 4, "w");
		return out;
	}
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		size_t len = strlen(numbers[i].name);

		if (!strncmp(word, numbers[i].name, len)) {
			*numbers[i].value = strtoull(word + len, NULL, 0);
			return true;
		}
	}
	return parse_mark(word);
}

int qemu_plugin_install(plugin_id id, const struct plugin_info *info, int argc, char **argv)
{
	int i;

	self = id;
	/* First: without arguments, the lab asks whether this QEMU has what the plugin needs. */
	cpus_prepare();
	for (i = 0; i < argc; i++)
		if (!parse(argv[i])) {
			fprintf(stderr, "contention plugin: cannot use the argument %s\n", argv[i]);
			return -1;
		}
	if (!out)
		return -1;
	copies_code = info->version.cur >= 3;
	insn_data = dlsym(RTLD_DEFAULT, "qemu_plugin_insn_data");
	register_all();
	return 0;
}
