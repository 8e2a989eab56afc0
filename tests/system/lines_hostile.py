# SPDX-License-Identifier: Apache-2.0
"""What lines_hostile.sh says: makes each file with the assembler or by cutting, and runs the probe on it."""
import os, resource, subprocess, sys, tempfile

LIMIT_S = 20
LIMIT_MIB = 1024
ADDRESSES = "".join(f"{0x1000 + 16 * i:#x}\n" for i in range(256))

ABBREVIATIONS = """
.section .debug_abbrev,"",@progbits
.uleb128 1, 0x11; .byte 1            # compile unit with children: low_pc, high_pc, stmt_list
.uleb128 0x11, 0x01, 0x12, 0x06, 0x10, 0x17, 0, 0
.uleb128 2, 0x2e; .byte 1            # subprogram with children: low_pc, high_pc, sibling
.uleb128 0x11, 0x01, 0x12, 0x06, 0x01, 0x13, 0, 0
.uleb128 3, 0x39; .byte 1, 0, 0      # namespace with children
.uleb128 4, 0x1d; .byte 0            # inlined subroutine: origin, ranges
.uleb128 0x31, 0x13, 0x55, 0x17, 0, 0
.uleb128 5, 0x2e; .byte 1            # subprogram with children: low_pc, high_pc
.uleb128 0x11, 0x01, 0x12, 0x06, 0, 0
.uleb128 6, 0x1d; .byte 1            # inlined subroutine with children: origin, low_pc, high_pc
.uleb128 0x31, 0x13, 0x11, 0x01, 0x12, 0x06, 0, 0
.byte 0
"""
UNIT = """
.text
.globl start
start: .fill 8192, 1, 0x90
.section .debug_info,"",@progbits
info: .long unit_end - unit_begin
unit_begin: .short 4; .long .debug_abbrev; .byte 8
unit: .uleb128 1; .quad start; .long 8192; .long .debug_line
%s
.byte 0
unit_end:
"""
LINES = """
.section .debug_line,"",@progbits
.long line_end - line_begin
line_begin: .short 4; .long program - header
header: .byte 1, 1, 1, -5, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0
.asciz "a.c"; .byte 0, 0, 0, 0
program: .byte 0, 9, 2; .quad start
.fill %d, 1, %d
.byte 2; .uleb128 8192; .byte 0, 1, 1
line_end:
"""
BLOCK = ".uleb128 5; .quad start; .long 8192\n"

CASES = {
    "an entry is its own sibling": ("one: .uleb128 2; .quad start; .long 8192; .long one - info; .byte 0", 1, 1),
    "two entries are each other's siblings": (
        "one: .uleb128 2; .quad start; .long 8192; .long two - info; .byte 0\n"
        "two: .uleb128 2; .quad start; .long 8192; .long one - info; .byte 0", 1, 1),
    "the sibling is the first child, all the way down": (
        "".join(f"n{i}: .uleb128 2; .quad start; .long 8192; .long n{i + 1} - info\n" for i in range(3000)) +
        "n3000: .byte 0\n", 1, 1),
    "an origin is itself": (BLOCK + "one: .uleb128 6; .long one - info; .quad start; .long 8192; .byte 0, 0", 1, 1),
    "namespaces a million deep": (".fill 1000000, 1, 3\n", 1, 1),
    "functions deeper than any": (BLOCK + "".join(
        f"i{i}: .uleb128 6; .long i0 - info; .quad start; .long 8192\n" for i in range(5000)), 1, 1),
    "ranges shared by all": (
        BLOCK + "".join("one: .uleb128 4; .long unit - info; .long ranges\n" if i == 0 else
                        ".uleb128 4; .long unit - info; .long ranges\n" for i in range(20000)) +
        '.byte 0\n.pushsection .debug_ranges,"",@progbits\nranges: .rept 20000; .quad 16, 32; .endr\n.quad 0, 0\n'
        ".popsection", 1, 1),
    "a line table of 64 MiB of rows": ("", 64 << 20, 1),
    "a line table of almost 4 MiB of rows": ("", (4 << 20) - 65536, 1),
    "a section beside such a table that tells less of it": (
        '.pushsection .debug_line_x,"",@progbits\n.long 100\n.fill 200, 1, 0\n.popsection\n', 64 << 20, 1),
    "a line table of noise": ("", 100000, 255),
}


def run(probe, path):
    """(status, seconds of CPU, MiB)"""
    pid = os.fork()
    if pid == 0:
        with open(path + ".in", "w", encoding="ascii") as text:
            text.write(ADDRESSES)
        os.dup2(os.open(path + ".in", os.O_RDONLY), 0)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        # A sanitizer's finding is no refusal.
        os.environ["ASAN_OPTIONS"] = os.environ["LSAN_OPTIONS"] = "exitcode=99"
        resource.setrlimit(resource.RLIMIT_CPU, (2 * LIMIT_S, 2 * LIMIT_S))
        os.execv(probe, [probe, path])
    _, status, usage = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    probe, source = sys.argv[1:]
    failed = False
    with tempfile.TemporaryDirectory() as work:
        files = []
        for number, (name, (entries, rows, row)) in enumerate(CASES.items()):
            path = f"{work}/{number}"
            with open(path + ".s", "w", encoding="ascii") as text:
                text.write(UNIT % entries + ABBREVIATIONS + LINES % (rows, row))
            subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,-Ttext=0x1000", "-o", path, path + ".s"], check=True)
            files.append((name, path))
        whole = f"{work}/whole"
        subprocess.run(["g++", "-O1", "-g", "-o", whole, source], check=True)
        content = open(whole, "rb").read()
        for part in range(1, 24):
            path = f"{work}/cut{part}"
            with open(path, "wb") as cut:
                cut.write(content[:len(content) * part // 24])
            files.append((f"cut after {part}/24", path))
        for name, path in files:
            status, seconds, mib = run(probe, path)
            limit = LIMIT_MIB + os.path.getsize(path) / 2**20
            good = status in (0, 1) and seconds <= LIMIT_S and mib <= limit
            print(f"{'ok  ' if good else 'FAIL'} status {status}, {seconds:6.2f} s, {mib:6.0f} MiB: {name}")
            failed |= not good
    sys.exit(failed)


main()
