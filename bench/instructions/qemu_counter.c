// qemu_counter.c: counts the instructions between two addresses of a program that qemu runs
// SPDX-License-Identifier: BSD-3-Clause
//
// A plugin: qemu-aarch64 -plugin counter.so,start=ADDRESS,stop=ADDRESS PROGRAM writes the count to
// the standard error. What is counted begins after the block of the first address and ends before
// the second. Declares what it needs of qemu's plugin interface, version 1, as distributions do not
// ship the header: https://www.qemu.org/docs/master/devel/tcg-plugins.html
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { no_registers = 0 };

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id,
                                           void (*use)(plugin_id, struct qemu_plugin_tb*));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb* block, size_t k);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn* instruction);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn* instruction,
                                            void (*use)(unsigned, void*), int registers,
                                            void* data);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb* block,
                                          void (*use)(unsigned, void*), int registers, void* data);
void qemu_plugin_register_atexit_cb(plugin_id id, void (*use)(plugin_id, void*), void* data);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

static uint64_t start, stop, count;
static int counts;

static void begin(unsigned processor, void* data) {
    (void)processor, (void)data;
    counts = 1;
}

static void end(unsigned processor, void* data) {
    (void)processor, (void)data;
    counts = 0;
}

static void run_block(unsigned processor, void* n_instructions) {
    (void)processor;
    if (counts) count += (uintptr_t)n_instructions;
}

static void translate(plugin_id id, struct qemu_plugin_tb* block) {
    (void)id;
    const size_t n = qemu_plugin_tb_n_insns(block);
    qemu_plugin_register_vcpu_tb_exec_cb(block, run_block, no_registers, (void*)(uintptr_t)n);
    for (size_t k = 0; k < n; ++k) {
        struct qemu_plugin_insn* instruction = qemu_plugin_tb_get_insn(block, k);
        const uint64_t address = qemu_plugin_insn_vaddr(instruction);
        if (address != start && address != stop) continue;
        qemu_plugin_register_vcpu_insn_exec_cb(instruction, address == start ? begin : end,
                                               no_registers, NULL);
    }
}

static void write_count(plugin_id id, void* data) {
    (void)id, (void)data;
    fprintf(stderr, "instructions: %llu\n", (unsigned long long)count);
}

__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const void* info,
                                                               int n_arguments, char** arguments) {
    (void)info;
    if (n_arguments != 2) return 1;
    start = strtoull(arguments[0] + sizeof("start=") - 1, NULL, 16);
    stop = strtoull(arguments[1] + sizeof("stop=") - 1, NULL, 16);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_atexit_cb(id, write_count, NULL);
    return 0;
}
