# SPDX-License-Identifier: Apache-2.0
unit_test(build_id symbolize)
unit_test(elf_symbols symbolize)
unit_test(elf_worker modules)
unit_test(kallsyms symbolize)
unit_test(module_cache modules)
unit_test(module_store modules)
unit_test(opener modules)
unit_test(symbol_table symbolize)
