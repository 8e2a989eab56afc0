/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Functions in assembly without call-frame information, of which the rows are known by hand: each
 * MARK() says what must hold before the instruction that follows it. The table is that of this very
 * program. None of them is ever executed.
 */
#include "code_rows.h"

#include "arch_x86_64.h"
#include "built_tables.h"
#include "elf_image.h"

/* In a mark: what the CFA is, and where the caller's rbp and rbx are (0: in the register itself,
 * LOST, or below the CFA). */
#define ROOT             "2, 0, 0, 0"
#define SP(n)            "3, 7, " #n ", 0"
#define BP(n)            "3, 6, " #n ", 0"
#define SI(n)            "3, 4, " #n ", 0"
#define AX(n)            "3, 0, " #n ", 0"
#define AT_SP(n, addend) "4, 7, " #n ", " #addend
#define FORK(n)          "8, 7, " #n ", 0"
#define ENDS             "9, 0, 0, 0"
#define NO_ROW           "0, 0, 0, 0"
#define LOST             "1"
#define SAME             "0"
#define BELOW(n)         "-" #n

#define MARK(cfa, bp, bx)                                                                          \
    "771:\n.pushsection .rodata.marks, \"a\"\n.long 771b - ., " cfa ", " bp ", " bx                \
    "\n.popsection\n"
#define FUNCTION(name) ".pushsection .text\n.p2align 4\n.type " #name ", @function\n" #name ":\n"
#define END(name)      ".size " #name ", . - " #name "\n.popsection\n"

/* How one whose symbol is gone is left: with nothing that says where it begins. */
#define NAMELESS     ".pushsection .text\n.p2align 4\nint3\n.p2align 4\n"
#define END_NAMELESS "int3\n.popsection\n"

extern const char marks[], marks_end[];
__asm__(".pushsection .rodata.marks, \"a\"\n.globl marks\nmarks:\n.popsection\n");

/* clang-format off */
__asm__(
    FUNCTION(pushes) /* what a compiler makes */
    MARK(SP(8), SAME, SAME)              "push %rbx\n"
    MARK(SP(16), SAME, BELOW(16))        "push %rbp\n"
    MARK(SP(24), BELOW(24), BELOW(16))   "mov %rdi, %rbp\n"
    MARK(SP(24), BELOW(24), BELOW(16))   "sub $0x28, %rsp\n"
    MARK(SP(64), BELOW(24), BELOW(16))   "mov %rsi, %rbx\n"
                                         "call pushes\n"
    MARK(SP(64), BELOW(24), BELOW(16))   "add $0x28, %rsp\n"
    MARK(SP(24), BELOW(24), BELOW(16))   "pop %rbp\n"
    MARK(SP(16), SAME, BELOW(16))        "pop %rbx\n"
    MARK(SP(8), SAME, SAME)              "ret\n"
    END(pushes));

__asm__(
    FUNCTION(apart) /* what a return address stands behind: a call, or none */
                                         "sub $0x28, %rsp\n"
    MARK(SP(48), SAME, SAME)             "mov %rdi, %rsi\n"
                                         "call pushes\n"
    MARK(SP(48), SAME, SAME)             ".byte 0x48, 0x83, 0xc4\n" /* add $0x28, %rsp */
    MARK(ENDS, SAME, SAME)               ".byte 0x28\n"
    MARK(SP(8), SAME, SAME)              "ret\n"
    END(apart));

__asm__( /* callees that come back with another stack pointer, and some that only look so */
    FUNCTION(takes_off) "movq $1, %rdi\n ret $8\n" END(takes_off) /* in byte 7 */
    FUNCTION(leaves_word) "pop %rax\n push %rcx\n push %rax\n ret\n" END(leaves_word)
    FUNCTION(leaves_frame) "pop %rax\n push %rbp\n mov %rsp, %rbp\n sub $64, %rsp\n jmp *%rax\n"
    END(leaves_frame)
    FUNCTION(takes_behind_call) "sub $8, %rsp\n call pushes\n add $8, %rsp\n ret $16\n" END(takes_behind_call));

__asm__(
    FUNCTION(puts_back) "pop %rdx\n mov $0, %eax\n push %rdx\n ret\n" END(puts_back)
    FUNCTION(jumps_back) "pop %rcx\n lfence\n jmp *%rcx\n" END(jumps_back)
    FUNCTION(ends_within) "sub $24, %rsp\n test %rdi, %rdi\n je 1f\n add $24, %rsp\n ret\n"
                          "1: call pushes\n add $16, %rsp\n ret\n" END(ends_within));

/* A call, and what holds behind it, where nothing returns. */
#define CALLS(name, callee, ...)                                                                   \
    FUNCTION(name)                                                                                 \
    MARK(SP(8), SAME, SAME)              "push %rbx\n"                                             \
    MARK(SP(16), SAME, BELOW(16))        "test %rsi, %rsi\n je 2f\n"                              \
    MARK(SP(16), SAME, BELOW(16))        "call " #callee "\n"                                      \
    MARK(__VA_ARGS__)                    "1: call pushes\n jmp 1b\n"                              \
    MARK(SP(16), SAME, BELOW(16))        "2: pop %rbx\n"                                           \
    MARK(SP(8), SAME, SAME)              "ret\n"                                                   \
    END(name)

__asm__(
    CALLS(behind_taking, takes_off, ENDS, SAME, SAME)
    CALLS(behind_leaving, leaves_word, ENDS, SAME, SAME)
    CALLS(behind_framing, leaves_frame, ENDS, SAME, SAME)
    CALLS(behind_behind, takes_behind_call, ENDS, SAME, SAME)
    CALLS(behind_restoring, puts_back, SP(16), SAME, BELOW(16))
    CALLS(behind_jumping, jumps_back, SP(16), SAME, BELOW(16))
    CALLS(behind_ending, ends_within, SP(16), SAME, BELOW(16)));

__asm__(
    FUNCTION(frame) /* one that aligns its stack */
                                         "push %rbp\n"
    MARK(SP(16), BELOW(16), SAME)        "mov %rsp, %rbp\n"
    MARK(BP(16), BELOW(16), SAME)        "and $-32, %rsp\n"
    MARK(BP(16), BELOW(16), SAME)        "push %rdi\n"
    MARK(BP(16), BELOW(16), SAME)        "leave\n"
    MARK(SP(8), SAME, SAME)              "ret\n"
    END(frame));

__asm__(
    FUNCTION(saved_sp) /* and one that keeps the old stack pointer on the new stack */
                                         "mov %rsp, %rax\n"
                                         "push %rbx\n"
    MARK(SP(16), SAME, BELOW(16))        "sub $64, %rsp\n"
    MARK(SP(80), SAME, BELOW(16))        "and $-64, %rsp\n"
    MARK(AX(8), SAME, BELOW(16))         "mov %rax, 56(%rsp)\n"
    MARK(AT_SP(56, 8), SAME, BELOW(16))  "xor %ebx, %ebx\n"
                                         "call pushes\n"
    MARK(AT_SP(56, 8), SAME, BELOW(16))  "movq $0, 48(%rsp)\n"
    MARK(AT_SP(56, 8), SAME, BELOW(16))  "mov 56(%rsp), %rsi\n"
                                         "xor %eax, %eax\n"
    MARK(SI(8), SAME, BELOW(16))         "movups %xmm0, 48(%rsp)\n"
    MARK(SI(8), SAME, BELOW(16))         "test %rdi, %rdi\n"
                                         "jz 1f\n"
    MARK(SI(8), SAME, BELOW(16))         "mov -8(%rsi), %rbx\n"
                                         "lea (%rsi), %rsp\n"
    MARK(SP(8), SAME, SAME)              "ret\n"
                                         "1: xor %esi, %esi\n" /* it is not on the stack either */
    MARK(ENDS, SAME, SAME)               "1: call pushes\n"
                                         "jmp 1b\n"
    END(saved_sp));

__asm__(
    FUNCTION(branches) /* ways that part and meet */
                                         "test %rdi, %rdi\n"
                                         "jz 2f\n"
                                         "push %rbp\n"
    MARK(SP(16), BELOW(16), SAME)        "1: dec %rdi\n"
                                         "jnz 1b\n"
    MARK(SP(16), BELOW(16), SAME)        "pop %rbp\n"
    MARK(SP(8), SAME, SAME)              "2: jmp pushes\n"
    END(branches));

__asm__(
    FUNCTION(no_return) /* what follows a call that does not return is another way's */
                                         "test %rdi, %rdi\n"
                                         "jz 1f\n"
                                         "sub $24, %rsp\n"
    MARK(ENDS, SAME, SAME)               "call pushes\n"
                                         "1: mov $1, %eax\n"
    MARK(SP(8), SAME, SAME)              "ret\n"
    END(no_return));

__asm__(
    FUNCTION(own_address) /* a call that only pushes */
                                         "call 1f\n"
                                         "1:\n"
    MARK(SP(16), SAME, SAME)             "pop %rax\n"
    MARK(SP(8), SAME, SAME)              "ret\n"
    END(own_address));

__asm__(
    FUNCTION(other_stack) /* nothing tells what is on it */
                                         "push %rbp\n"
                                         "mov %rdi, %rsp\n"
    MARK(ENDS, SAME, SAME)               "call pushes\n"
    MARK(ENDS, SAME, SAME)               "jmp *%rax\n"
    END(other_stack));

__asm__(
    FUNCTION(pushed_return) /* a return that is a jump */
                                         "push %rdi\n"
    MARK(ENDS, SAME, SAME)               "nop\n"
                                         "ret\n"
    END(pushed_return));

__asm__(
    FUNCTION(loop_that_grows) /* what is pushed depends on how often */
                                         "1: push %rdi\n"
    MARK(ENDS, SAME, SAME)               "dec %rsi\n"
                                         "jnz 1b\n"
                                         "ud2\n"
    END(loop_that_grows));

__asm__(
    NAMELESS
                                         "push %rbp\n"
                                         "push %rbx\n"
    MARK(SP(24), BELOW(16), BELOW(24))   "xor %ebx, %ebx\n"
                                         "xor %ebp, %ebp\n"
    MARK(SP(24), BELOW(16), BELOW(24))   "pop %rbx\n"
    MARK(SP(16), BELOW(16), SAME)        "pop %rbp\n"
    MARK(SP(8), SAME, SAME)              "ret\n"
    END_NAMELESS);

__asm__(
    NAMELESS /* an indirect call may not return, so it proves nothing of the code before it */
                                         "push %rbx\n"
    MARK(ENDS, SAME, SAME)               "call *%rax\n"
    MARK(SP(16), SAME, BELOW(16))        "pop %rbx\n"
    MARK(SP(8), SAME, SAME)              "ret\n"
    END_NAMELESS);

__asm__(
    NAMELESS /* it saves a register without a push */
                                         "sub $16, %rsp\n"
    MARK(SP(24), SAME, SAME)             "mov %rbx, 8(%rsp)\n"
    MARK(SP(24), SAME, BELOW(16))        "xor %ebx, %ebx\n"
    MARK(SP(24), SAME, BELOW(16))        "mov 8(%rsp), %rbx\n"
                                         "add $16, %rsp\n"
    MARK(SP(8), SAME, SAME)              "ret\n"
    END_NAMELESS);

__asm__(
    NAMELESS /* it returns with another register's value in one */
                                         "sub $16, %rsp\n"
    MARK(SP(24), SAME, LOST)             "mov %rdi, 8(%rsp)\n"
    MARK(SP(24), SAME, BELOW(16))        "mov 8(%rsp), %rbx\n"
                                         "add $16, %rsp\n"
    MARK(SP(8), SAME, SAME)              "ret\n"
    END_NAMELESS);

__asm__(
    NAMELESS /* it ends with a jump to another function */
                                         "push %rbx\n"
    MARK(SP(16), SAME, BELOW(16))        "xor %ebx, %ebx\n"
                                         "pop %rbx\n"
    MARK(SP(8), SAME, SAME)              "jmp pushes\n"
    END_NAMELESS);

__asm__(
    NAMELESS /* it ends with a jump to one that nothing shows to be called */
                                         "push %rbx\n"
    MARK(ENDS, SAME, SAME)               "xor %ebx, %ebx\n"
                                         "pop %rbx\n"
    MARK(ENDS, SAME, SAME)               "jmp loop_that_grows\n"
    END_NAMELESS);

__asm__(
    FUNCTION(restores) /* without a pop, and goes on anywhere */
                                         "push %rbx\n"
                                         "xor %ebx, %ebx\n"
    MARK(ENDS, SAME, SAME)               "mov (%rsp), %rbx\n"
    MARK(ENDS, SAME, SAME)               "movq $0, (%rsp)\n"
    MARK(ENDS, SAME, SAME)               "jmp *%rax\n"
    END(restores));

/* What only jumps through tables lead to: of distances, as compilers make them for libraries, with
 * an index that is compared; and one that is biased, and not compared. */
#define TABLE(entries) ".pushsection .rodata\n.balign 4\n8: " entries "\n.popsection\n"
__asm__(
    FUNCTION(switches)
                                         "push %rbx\n"
                                         "cmp $2, %edi\n"
                                         "ja 9f\n"
                                         "lea 8f(%rip), %rdx\n"
                                         "mov %edi, %edi\n"
                                         "movslq (%rdx,%rdi,4), %rax\n"
                                         "add %rdx, %rax\n"
    MARK(SP(16), SAME, BELOW(16))        "jmp *%rax\n"
    MARK(SP(16), SAME, BELOW(16))        "1: call *%rbx\n"
    MARK(SP(16), SAME, BELOW(16))        "jmp 1b\n"
                                         "2: sub $16, %rsp\n"
    MARK(SP(32), SAME, BELOW(16))        "3: call *%rcx\n"
                                         "jmp 3b\n"
    MARK(SP(16), SAME, BELOW(16))        "9: pop %rbx\n"
                                         "ret\n"
    TABLE(".long 1b - 8b, 2b - 8b, 9b - 8b")
    END(switches));
__asm__(
    FUNCTION(no_table) /* what the comparison lets through is more than leads to code */
                                         "push %rbx\n"
                                         "cmp $4, %edi\n"
                                         "ja 9f\n"
                                         "lea 8f(%rip), %rdx\n"
                                         "movslq (%rdx,%rdi,4), %rax\n"
                                         "add %rdx, %rax\n"
                                         "jmp *%rax\n"
    MARK(ENDS, SAME, SAME)               "1: call *%rbx\n"
                                         "jmp 1b\n"
    MARK(SP(16), SAME, BELOW(16))        "9: pop %rbx\n"
                                         "ret\n"
    TABLE(".long 1b - 8b, 9b - 8b, 0x70000000, 0, 9b - 8b")
    END(no_table));

__asm__( /* there is no instruction before it */
    ".pushsection alone, \"ax\"\n"
    ".type first_of_all, @function\n"
    "first_of_all:\n"
    MARK(SP(8), SAME, SAME)              "push %rbx\n"
    MARK(SP(16), SAME, BELOW(16))        "pop %rbx\n"
                                         "ret\n"
    END(first_of_all));

__asm__( /* a call leads to it, and from another part of the file a jump through a table */
    ".pushsection far, \"ax\"\n .type far_case, @function\n far_case:\n"
    MARK(ENDS, SAME, SAME)               "1: call pushes\n jmp 1b\n"
    END(far_case)
    ".pushsection alone, \"ax\"\n .type switches_far, @function\n switches_far:\n"
                                         "push %rbx\n cmp $1, %edi\n ja 9f\n lea 8f(%rip), %rdx\n"
                                         "mov %rdi, %rcx\n movslq (%rdx,%rcx,4), %rax\n"
                                         "add %rdx, %rax\n jmp *%rax\n"
    MARK(SP(16), SAME, BELOW(16))        "9: pop %rbx\n call far_case\n ret\n"
    TABLE(".long far_case - 8b, 9b - 8b")
    END(switches_far));

__asm__(
    FUNCTION(new_thread) /* as clone() */
                                         "mov $56, %eax\n"
                                         "syscall\n"
    MARK(FORK(8), SAME, SAME)            "test %rax, %rax\n"
    MARK(FORK(8), SAME, SAME)            "jl 2f\n"
    MARK(FORK(8), SAME, SAME)            "jz 1f\n"
    MARK(SP(8), SAME, SAME)              "ret\n"
    MARK(ROOT, SAME, SAME)               "1: xor %ebp, %ebp\n"
                                         "pop %rax\n"
    MARK(ROOT, SAME, SAME)               "call *%rax\n"
    MARK(ROOT, SAME, SAME)               "mov $60, %eax\n"
                                         "syscall\n"
                                         "2: neg %eax\n"
    MARK(SP(8), SAME, SAME)              "ret\n"
    END(new_thread));

/* The end of a function of libgcc's, which goes on in another frame and says so in no row. */
__asm__(
    FUNCTION(resumer)
                                         ".cfi_startproc\n"
                                         "push %rbp\n"
                                         ".cfi_def_cfa_offset 16\n"
                                         ".cfi_offset 6, -16\n"
                                         "mov %rsp, %rbp\n"
                                         ".cfi_def_cfa_register 6\n"
                                         "push %rbx\n"
                                         ".cfi_offset 3, -24\n"
                                         "push %rdx\n"
                                         "push %rax\n"
                                         ".cfi_offset 1, -32\n"
                                         ".cfi_offset 0, -40\n"
                                         "call pushes\n"
    MARK(BP(16), BELOW(16), BELOW(24))   "mov %rsp, %rdi\n"
    MARK(ENDS, SAME, SAME)               "call pushes\n"
                                         "mov %rax, %rdx\n"
                                         "call pushes\n"
    MARK(ENDS, SAME, SAME)               "mov %rsi, 8(%rbp, %rdx)\n"
                                         "lea 8(%rbp, %rdx), %rcx\n"
                                         "mov -8(%rbp), %rbx\n"
                                         "mov (%rbp), %rbp\n"
                                         ".cfi_restore 6\n"
                                         ".cfi_def_cfa 2, 8\n"
    MARK(ENDS, SAME, SAME)               "mov %rcx, %rsp\n"
                                         ".cfi_def_cfa_register 7\n"
    MARK(ENDS, SAME, SAME)               "pop %rcx\n"
                                         ".cfi_def_cfa_offset 0\n"
                                         ".cfi_register 16, 2\n"
    MARK(ENDS, SAME, SAME)               "jmp *%rcx\n"
                                         ".cfi_endproc\n"
    END(resumer));

/* The same instructions, but one that saves no result: it is like setjmp()'s other half. */
__asm__(
    FUNCTION(jumper)
                                         ".cfi_startproc\n"
                                         "push %rbp\n"
                                         ".cfi_def_cfa_offset 16\n"
                                         ".cfi_offset 6, -16\n"
                                         "call pushes\n"
    MARK(SP(16), BELOW(16), SAME)        "mov %rsi, %rcx\n"
    MARK(SP(16), BELOW(16), SAME)        "mov %rcx, %rsp\n"
                                         "ret\n"
                                         ".cfi_endproc\n"
    END(jumper));
/* clang-format on */

__asm__(
    ".pushsection .text\n.p2align 4\nint3\n.type trampoline, @function\n"
    "trampoline: mov $15, %rax\n syscall\n.size trampoline, . - trampoline\n int3\n.popsection\n"
    ".globl trampoline\n");
extern const char trampoline, __executable_start;

/* One that keeps its old stack pointer in rax, and calls what leaves it alone, and what does not.
 */
__asm__(FUNCTION(kept_caller) ".cfi_startproc\n mov %rsp, %rax\n .cfi_def_cfa_register %rax\n"
                              "sub $96, %rsp\n and $-64, %rsp\n call keeps_described\n"
                              "call keeps_bare\n call keeps_loop\n call keeps_until_end\n"
                              "call changes_late\n call changes_by_loop\n call calls\n"
                              "call goes_anywhere\n call loads_address\n lea (%rax), %rsp\n"
                              ".cfi_def_cfa_register %rsp\n ret\n .cfi_endproc\n" END(kept_caller));
__asm__(FUNCTION(kept_caller_cx) ".cfi_startproc\n mov %rsp, %rcx\n .cfi_def_cfa_register %rcx\n"
                                 "sub $96, %rsp\n and $-64, %rsp\n call keeps_loop\n"
                                 "call changes_by_loop\n lea (%rcx), %rsp\n"
                                 ".cfi_def_cfa_register %rsp\n ret\n .cfi_endproc\n" END(
                                     kept_caller_cx));
#define CALLEE(name, body)                                                                         \
    __asm__(FUNCTION(name) ".cfi_startproc\n" body "\n.cfi_endproc\n" END(name));                  \
    extern const char name
CALLEE(keeps_described, "mov (%rax), %rcx\n ret");
CALLEE(keeps_loop, "1: dec %rdi\n jz 2f\n jmp 1b\n 2: ret");
/* What changes it stands behind the return. */
CALLEE(keeps_until_end, "mov %rdi, %rcx\n ret\n xor %eax, %eax\n ret");
CALLEE(changes_late, "mov %rdi, %rcx\n test %rcx, %rcx\n jz 1f\n ret\n 1: movb $1, %al\n ret");
CALLEE(changes_by_loop, "1: nop\n loop 1b\n ret");
CALLEE(calls, "nop\n call keeps_loop\n ret");
CALLEE(goes_anywhere, "nop\n jmp *%rdx");
CALLEE(loads_address, "mov (%rdi), %rax\n ret");

/* clang-format off */
__asm__(
    FUNCTION(framed_stub) /* its way back is not proved, so the frame pointer is followed */
    MARK(ENDS, SAME, SAME)               "push %rbp\n"
    MARK(ENDS, SAME, SAME)               "mov %rsp, %rbp\n"
    MARK(NO_ROW, SAME, SAME)             "push $2\n"
    MARK(NO_ROW, SAME, SAME)             "and $-16, %rsp\n"
    MARK(NO_ROW, SAME, SAME)             "call *%rbx\n"
    MARK(NO_ROW, SAME, SAME)             "mov %rax, %rdx\n"
    MARK(NO_ROW, SAME, SAME)             "leave\n"
    MARK(ENDS, SAME, SAME)               "mov %rdx, %rax\n"
    MARK(ENDS, SAME, SAME)               "pop %rcx\n"
    MARK(ENDS, SAME, SAME)               "lea 8(%r15), %rsp\n"
    MARK(ENDS, SAME, SAME)               "push %rcx\n"
                                         "ret\n"
    END(framed_stub));

__asm__(
    FUNCTION(keeps_elsewhere) /* not on the stack */
                                         "mov %rbx, (%rdi)\n xor %ebx, %ebx\n"
    MARK(SP(8), SAME, LOST)              "mov (%rdi), %rbx\n"
    MARK(SP(8), SAME, SAME)              "call *%rax\n"
    MARK(SP(8), SAME, SAME)              "ret\n"
    END(keeps_elsewhere)
    FUNCTION(aligns) "and $-16, %rsp\n add $8, %rsp\n ret\n" END(aligns)
    CALLS(behind_aligning, aligns, SP(16), SAME, BELOW(16)));
/* clang-format on */

__asm__(".pushsection .rodata.marks, \"a\"\n.globl marks_end\nmarks_end:\n.popsection\n");

__asm__(FUNCTION(keeps_bare) "push %rdi\n mov %rdi, %rcx\n pop %rdi\n ret\n" END(keeps_bare));
extern const char keeps_bare;

struct mark {
    int32_t where; /* from here */
    int32_t kind;
    int32_t cfa_register;
    int32_t cfa_offset;
    int32_t cfa_addend;
    int32_t kept[2]; /* rbp and rbx */
};

static struct made_cfi read_rows(int fd, enum code_rows_extent extent)
{
    struct cfi_builder *builder = cfi_builder_new();
    assert_int_equal(code_rows_read(fd, extent, builder), 0);
    return finish_cfi(builder);
}

/* The table of this program. */
static struct made_cfi read_table(enum code_rows_extent extent)
{
    cleanup_(closep) int fd = open_self();
    return read_rows(fd, extent);
}

static struct made_cfi all_rows;

/* A file's table of all rows is the same when it is made of what its own table has left. */
TEST(reads_the_rest_of_a_file_again)
{
    cleanup_(closep) int fd = open_self();
    cleanup_(free_cfi) struct made_cfi own = {0};
    struct code_pointers pointers = {0};
    struct cfi_builder *builder = cfi_builder_new();
    assert_int_equal(code_rows_read_first(fd, CODE_ROWS_OWN, &pointers, builder), 0);
    assert_int_equal(cfi_builder_finish(builder, &own.bytes, &own.size_bytes), 0);
    const struct cfi_table *table = cfi_builder_rewind(builder);
    assert_non_null(table);
    assert_int_equal(code_rows_read_again(fd, CODE_ROWS_ALL, table, &pointers, builder), 0);
    cleanup_(free_cfi) struct made_cfi again = finish_cfi(builder);
    code_pointers_done(&pointers);
    assert_int_equal(again.size_bytes, all_rows.size_bytes);
    assert_memory_equal(again.bytes, all_rows.bytes, all_rows.size_bytes);
    assert_int_not_equal(own.size_bytes, again.size_bytes);
}

static int set_up(void **state)
{
    (void)state;
    all_rows = read_table(CODE_ROWS_ALL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free_cfi(&all_rows);
    return 0;
}

TEST_GROUP(set_up, tear_down)

/* What the table says of this program's code. */
static const struct cfi_rule *rule_at(const char *code)
{
    return cfi_table_find(&all_rows.table, (uint64_t)(code - &__executable_start));
}

static void check_kept(const char *name, uint64_t at, int32_t wanted, uint8_t saved, int32_t offset)
{
    enum cfi_saved expected = wanted < 0 ? CFI_AT_CFA : wanted == 0 ? CFI_SAME : CFI_LOST;
    /* What was saved and has not been changed yet is in both places. */
    bool is_same = saved == CFI_SAME && expected == CFI_AT_CFA;
    if (!is_same && (saved != expected || (wanted < 0 && offset != wanted))) {
        fail_msg("at %#lx: %s %u%+d, not %d", (unsigned long)at, name, saved, offset, wanted);
    }
}

TEST(knows_each_instruction)
{
    size_t count = (size_t)(marks_end - marks) / sizeof(struct mark);
    assert_in_range(count, 100, 200);
    for (size_t i = 0; i < count; i++) {
        struct mark mark;
        const char *at = marks + i * sizeof mark;
        memcpy(&mark, at, sizeof mark);
        uint64_t address = (uint64_t)(at + mark.where - &__executable_start);
        const struct cfi_rule *rule = rule_at(at + mark.where);
        if (rule->kind != (uint8_t)mark.kind ||
            (mark.kind > CFI_ROOT &&
             (rule->cfa_register != (uint8_t)mark.cfa_register ||
              rule->cfa_offset != mark.cfa_offset || rule->cfa_addend != mark.cfa_addend))) {
            fail_msg("mark %zu at %#lx: kind %u, CFA r%u%+d%+d, not kind %d, r%d%+d%+d", i,
                     (unsigned long)address, rule->kind, rule->cfa_register, rule->cfa_offset,
                     rule->cfa_addend, mark.kind, mark.cfa_register, mark.cfa_offset,
                     mark.cfa_addend);
        }
        if (mark.kind > CFI_ROOT) {
            check_kept("rbp", address, mark.kept[0], rule->bp_saved, rule->bp_offset);
            check_kept("rbx", address, mark.kept[1], rule->bx_saved, rule->bx_offset);
        }
    }
}

TEST(knows_a_signal_trampoline)
{
    /* From the byte before it, which a return address leads to, to that behind the system call. */
    for (const char *at = &trampoline - 1; at < &trampoline + 10; at++) {
        const struct cfi_rule *rule = rule_at(at);
        assert_int_equal(rule->kind, CFI_DEREF);
        assert_int_equal(rule->signal_frame, 1);
        assert_int_equal(rule->cfa_register, ARCH_DWARF_SP);
        assert_int_equal(rule->cfa_offset, 160);
        assert_int_equal(rule->ra_saved, CFI_AT_SP);
        assert_int_equal(rule->ra_offset, 168);
    }
    assert_int_equal(rule_at(&trampoline - 2)->kind, CFI_END);
}

TEST(knows_which_registers_callees_keep)
{
    const uint32_t ax = 1U << ARCH_DWARF_AX;
    const uint32_t cx = 1U << 2;
    const struct {
        const char *code;
        uint32_t kept;
    } cases[] = {
        {&keeps_described, ax}, {&keeps_described + 3, ax}, {&keeps_bare, ax},
        {&keeps_bare + 1, ax},  {&keeps_loop, ax | cx},     {&keeps_until_end, ax},
        {&changes_by_loop, ax}, {&changes_late, 0},         {&calls, 0},
        {&goes_anywhere, 0},    {&loads_address, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct cfi_rule *rule = rule_at(cases[i].code);
        if (rule->kind != CFI_OFFSET || rule->kept != cases[i].kept) {
            fail_msg("row %zu: kind %u, %#x kept", i, rule->kind, rule->kept);
        }
    }
}

/* A function without rows of the file, between two that have some. */
__asm__(".pushsection .text\n.p2align 4\n.cfi_startproc\nret\n.cfi_endproc\n"
        ".p2align 4\n.type small_stretch, @function\n.globl small_stretch\nsmall_stretch:\n"
        "push %rbx\n pop %rbx\n ret\n.size small_stretch, . - small_stretch\n"
        ".p2align 4\n.cfi_startproc\nret\n.cfi_endproc\n.popsection\n");
extern const char small_stretch;

TEST(has_the_rows_of_small_stretches_in_the_own_table_already)
{
    const uint64_t small = (uint64_t)(&small_stretch - &__executable_start);
    cleanup_(free_cfi) struct made_cfi made = read_table(CODE_ROWS_OWN);
    const struct cfi_table *own = &made.table;
    assert_false(own->lacks_small);
    assert_int_equal(cfi_table_find(own, small)->cfa_offset, 8);
    assert_int_equal(cfi_table_find(own, small + 1)->cfa_offset, 16);
    for (size_t i = 0; i < own->segment_count; i++) {
        const struct symbol_segment *segment = &own->segments[i];
        for (uint64_t at = segment->vaddr; at < segment->vaddr + segment->size_bytes; at++) {
            const struct cfi_rule *rule = cfi_table_find(own, at);
            const struct cfi_rule *all = cfi_table_find(&all_rows.table, at);
            if (cfi_rule_covers(rule) ? memcmp(rule, all, sizeof *rule) != 0
                                      : cfi_table_is_settled(own, at) && cfi_rule_covers(all)) {
                fail_msg("at %#lx: kind %u, not %u", (unsigned long)at, rule->kind, all->kind);
            }
        }
    }
}

TEST(has_no_rows_of_what_is_not_mapped_as_code)
{
    static const uint8_t code[] = {0x53, 0x5b, 0xc3}; /* push %rbx, pop %rbx, ret */
    const struct elf_image_section section = {
        "code", SHT_PROGBITS, SHF_EXECINSTR, code, sizeof code, 0, 0};
    struct elf_image image = {
        .sections = {section, section}, .section_count = 2, .segment_count = 1};
    const uint64_t unmapped = elf_image_offset(&image, 2);
    image.segments[0] =
        (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = unmapped};
    cleanup_(closep) int fd = elf_image_make(&image);
    cleanup_(free_cfi) struct made_cfi made = read_rows(fd, CODE_ROWS_ALL);
    assert_int_equal(cfi_table_find(&made.table, elf_image_offset(&image, 1))->kind, CFI_OFFSET);
    assert_int_equal(cfi_table_find(&made.table, unmapped)->kind, CFI_NONE);
}
