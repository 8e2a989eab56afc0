/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libdw's unwinder over a live process, but with the registers and the stack of a sample: of its
 * memory it gets to see the copied bytes only. Where it cannot read, it falls back on frame
 * pointers and guesses; its walk is held to have ended there.
 */
#include "oracle.h"

#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POPPED_MAX       ((size_t)ARCH_REGISTERS_COUNT)
#define POPPED_BYTES_MAX 256
#define MARK             UINT64_C(0x6d61726b00000000)

struct popped {
    uint64_t address;
    bool is_known;
    unsigned int number; /* of the register that has its value */
};

struct oracle_libdw {
    Dwfl *dwfl;
    pid_t pid;
    const struct oracle_sample *sample; /* the one that is being unwound */
    struct oracle_stack *stack;
    bool missed;
    struct popped popped[POPPED_MAX];
    size_t popped_count;
};

static pid_t on_next_thread(Dwfl *dwfl, void *userdata, void **thread)
{
    (void)dwfl;
    struct oracle_libdw *libdw = userdata;
    if (*thread != NULL) {
        return 0;
    }
    *thread = libdw;
    return libdw->sample->tid;
}

static bool on_get_thread(Dwfl *dwfl, pid_t tid, void *userdata, void **thread)
{
    (void)dwfl;
    (void)tid;
    *thread = userdata;
    return true;
}

static bool read_popped(struct oracle_libdw *libdw, uint64_t address, Dwarf_Word *ret)
{
    uint64_t start = libdw->sample->registers[ARCH_DWARF_SP];
    if (libdw->stack->count != 1 || address >= start || start - address > POPPED_BYTES_MAX) {
        return false;
    }
    for (size_t i = 0; i < libdw->popped_count; i++) {
        const struct popped *popped = &libdw->popped[i];
        if (popped->address == address) {
            *ret = popped->is_known ? libdw->sample->registers[popped->number] : MARK + i;
            return true;
        }
    }
    if (libdw->popped_count == POPPED_MAX) {
        return false;
    }
    libdw->popped[libdw->popped_count] = (struct popped){.address = address};
    *ret = MARK + libdw->popped_count++;
    return true;
}

/* The frame above the leaf: which of its registers came out marked? */
static void find_popped(struct oracle_libdw *libdw, Dwfl_Frame *frame)
{
    for (unsigned int number = 0; number < ARCH_REGISTERS_COUNT; number++) {
        Dwarf_Word value = 0;
        if (dwfl_frame_reg(frame, number, &value) == 0 && value >= MARK &&
            value - MARK < libdw->popped_count) {
            libdw->popped[value - MARK].is_known = true;
            libdw->popped[value - MARK].number = number;
        }
    }
}

static bool on_memory_read(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret, void *userdata)
{
    (void)dwfl;
    struct oracle_libdw *libdw = userdata;
    const struct oracle_sample *sample = libdw->sample;
    uint64_t start = sample->registers[ARCH_DWARF_SP];
    if (address < start || sample->stack_bytes < sizeof *ret ||
        address - start > sample->stack_bytes - sizeof *ret) {
        if (read_popped(libdw, address, ret)) {
            return true;
        }
        libdw->missed = true;
        return false;
    }
    memcpy(ret, sample->stack + (address - start), sizeof *ret);
    return true;
}

static bool on_set_registers(Dwfl_Thread *thread, void *userdata)
{
    const struct oracle_libdw *libdw = userdata;
    Dwarf_Word words[ARCH_REGISTERS_COUNT + 1];
    memcpy(words, libdw->sample->registers, sizeof libdw->sample->registers);
    words[ARCH_DWARF_RA] = libdw->sample->ip;
    return dwfl_thread_state_registers(thread, 0, ARCH_REGISTERS_COUNT + 1, words);
}

static int on_frame(Dwfl_Frame *frame, void *userdata)
{
    struct oracle_libdw *libdw = userdata;
    struct oracle_stack *stack = libdw->stack;
    Dwarf_Addr pc = 0;
    bool interrupted = false;
    if (libdw->missed || libdw->stack->count == UNWIND_DEPTH_MAX ||
        !dwfl_frame_pc(frame, &pc, &interrupted)) {
        return DWARF_CB_ABORT;
    }
    if (libdw->stack->count == 1) {
        find_popped(libdw, frame);
    }
    /* It says so of the trampoline behind a handler as well: no call stands before either. */
    interrupted = interrupted && stack->count > 0;
    stack->frames[stack->count++] = interrupted ? pc + 1 : pc;
    return DWARF_CB_OK;
}

struct oracle_libdw *oracle_libdw_open(pid_t pid)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_linux_proc_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
    };
    static const Dwfl_Thread_Callbacks thread_callbacks = {
        .next_thread = on_next_thread,
        .get_thread = on_get_thread,
        .memory_read = on_memory_read,
        .set_initial_registers = on_set_registers,
    };
    struct oracle_libdw *libdw = oracle_alloc(NULL, sizeof *libdw);
    *libdw = (struct oracle_libdw){.dwfl = dwfl_begin(&callbacks), .pid = pid};
    if (libdw->dwfl == NULL || dwfl_linux_proc_report(libdw->dwfl, pid) != 0 ||
        dwfl_report_end(libdw->dwfl, NULL, NULL) != 0 ||
        !dwfl_attach_state(libdw->dwfl, NULL, pid, &thread_callbacks, libdw)) {
        (void)fprintf(stderr, "libdw cannot see process %d: %s\n", (int)pid, dwfl_errmsg(-1));
        exit(EXIT_FAILURE);
    }
    return libdw;
}

static int walk(struct oracle_libdw *libdw)
{
    libdw->stack->count = 0;
    libdw->missed = false;
    return dwfl_getthread_frames(libdw->dwfl, libdw->sample->tid, on_frame, libdw);
}

void oracle_libdw_unwind(struct oracle_libdw *libdw, const struct oracle_sample *sample,
                         struct oracle_stack *ret, bool *ret_missed, const char **ret_error)
{
    libdw->sample = sample;
    libdw->stack = ret;
    libdw->popped_count = 0;
    int r = walk(libdw);
    if (libdw->popped_count > 0) {
        r = walk(libdw);
    }
    *ret_error = r == 0 ? "its end" : dwfl_errmsg(-1);
    if (*ret_error == NULL) {
        *ret_error = "no reason";
    }
    *ret_missed = libdw->missed;
}

void oracle_libdw_name(struct oracle_libdw *libdw, uint64_t pc, char *text, size_t text_bytes)
{
    Dwfl_Module *module = dwfl_addrmodule(libdw->dwfl, pc);
    const char *path = module == NULL
                           ? "[anon]"
                           : dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    const char *function = module == NULL ? NULL : dwfl_module_addrname(module, pc);
    const char *file = strrchr(path, '/');
    (void)snprintf(text, text_bytes, "%s!%.60s", file == NULL ? path : file + 1,
                   function == NULL ? "?" : function);
}

struct oracle_libdw *oracle_libdw_free(struct oracle_libdw *libdw)
{
    dwfl_end(libdw->dwfl);
    free(libdw);
    return NULL;
}
