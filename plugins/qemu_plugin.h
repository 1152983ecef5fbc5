/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of QEMU's interface for plugins that the plugins of kteardown use. QEMU's own header is
 * not in the packages of all distributions.
 *
 * A plugin states the version of the interface that it was made for, and QEMU names the lowest that
 * it takes: 1, since 9.0 2, since 11.1 7. Version 7 hands data to the functions that are called, in
 * place of the plugin's id.
 */
#ifndef QEMU_PLUGIN_H
#define QEMU_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef API
#define API 1
#endif

#define EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
enum { NO_REGISTERS };
enum { READS = 1, WRITES, READS_AND_WRITES };
typedef uint64_t plugin_id;
typedef uint32_t mem_info;
typedef void (*executed_fn)(unsigned int cpu, void *data);
typedef void (*accessed_fn)(unsigned int cpu, mem_info info, uint64_t address, void *data);
#if API < 7
typedef void (*simple_fn)(plugin_id id);
typedef void (*translated_fn)(plugin_id id, struct qemu_plugin_tb *tb);
typedef void (*exit_fn)(plugin_id id, void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, translated_fn fn);
void qemu_plugin_reset(plugin_id id, simple_fn fn);
#else
typedef void (*simple_fn)(void *data);
typedef void (*translated_fn)(struct qemu_plugin_tb *tb, void *data);
typedef void (*exit_fn)(void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, translated_fn fn, void *data);
void qemu_plugin_reset(plugin_id id, simple_fn fn, void *data);
#endif
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, executed_fn fn, int registers,
					  void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, executed_fn fn,
					    int registers, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, accessed_fn fn, int registers,
				      int accesses, void *data);
void qemu_plugin_register_atexit_cb(plugin_id id, exit_fn fn, void *data);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
bool qemu_plugin_mem_is_store(mem_info info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(mem_info info, uint64_t address);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *hwaddr);

/* The first fields of what qemu_plugin_install() gets. */
struct plugin_info {
	const char *target;
	struct {
		int min, cur;
	} version;
};

extern EXPORT int qemu_plugin_version;
EXPORT int qemu_plugin_install(plugin_id id, const struct plugin_info *info, int argc, char **argv);

#endif
