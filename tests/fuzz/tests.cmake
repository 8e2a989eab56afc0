# SPDX-License-Identifier: Apache-2.0
fuzz_target(elf_symbols symbolize)
fuzz_target(kallsyms symbolize)
fuzz_target(symbol_table symbolize)
