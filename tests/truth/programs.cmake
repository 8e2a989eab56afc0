# SPDX-License-Identifier: Apache-2.0
#
# The judged programs: name, source, declaration, options.

# How stock programs are built: rbp is free.
set(plain -O2 -fomit-frame-pointer)

# ladder(NAME OPTION...)
macro(ladder name)
    truth_program(${name} ladder.c ladder.truth OPTIONS ${ARGN})
endmacro()

foreach(level 0 1 2 3 s)
    ladder(O${level} -O${level})
endforeach()
ladder(O2_step ${plain} -DTRUTH_STEP)
ladder(O0_step -O0 -DTRUTH_STEP)
ladder(lto ${plain} -flto)
ladder(cet ${plain} -fcf-protection)
ladder(static ${plain} -static)
ladder(static_pie ${plain} -static-pie)
ladder(no_pie ${plain} -no-pie)

# Leaves in assembly, each of which spins, and each instruction of which is stepped through.
set(leaf_number 0)
foreach(leaf plain cfi pushes aligned frame inner tail pic stale saved_sp branches red_zone switched indirect enter
    push_ret loop_push ret_n data shared conflict grows noreturn table swapped counted kept kept_bare
    kept_not kept_deep)
    math(EXPR leaf_number "${leaf_number} + 1")
    set(declaration asm_leaf.truth)
    if(leaf MATCHES "^(tail|push_ret)$")
        set(declaration asm_tail.truth)
    elseif(leaf MATCHES "^(stale|pic|shared|kept_deep)$")
        set(declaration asm_${leaf}.truth)
    endif()
    truth_program(a_${leaf} asm_leaf.c ${declaration} OPTIONS ${plain} -DTRUTH_LEAF=${leaf_number})
    truth_program(a_${leaf}_s asm_leaf.c ${declaration} OPTIONS ${plain} -DTRUTH_LEAF=${leaf_number} -DTRUTH_STEP)
endforeach()
# main() keeps a frame pointer, and its callees leave it in rbp.
set(leaf_number 0)
foreach(leaf plain cfi pushes aligned frame inner)
    math(EXPR leaf_number "${leaf_number} + 1")
    truth_program(q_${leaf} asm_leaf.c asm_leaf.truth
        OPTIONS ${plain} -DTRUTH_LEAF=${leaf_number} -DTRUTH_QUIET -DTRUTH_MAIN_FP)
    truth_program(q_${leaf}_st asm_leaf.c asm_leaf.truth
        OPTIONS ${plain} -DTRUTH_LEAF=${leaf_number} -DTRUTH_QUIET -DTRUTH_MAIN_FP -DTRUTH_STEP)
endforeach()

# Prologues and epilogues, tail calls, ends that do not return.
foreach(level 0 1 2 3 s)
    truth_program(tiny_O${level} tiny.c tiny.truth OPTIONS -O${level})
    truth_program(tiny_O${level}_st tiny.c tiny.truth OPTIONS -O${level} -DTRUTH_STEP)
endforeach()
truth_program(tiny_fp_st tiny.c tiny.truth OPTIONS -O2 -fno-omit-frame-pointer -DTRUTH_STEP)
truth_program(tiny_cet_st tiny.c tiny.truth OPTIONS ${plain} -fcf-protection -DTRUTH_STEP)
truth_program(tail tail.c tail.truth OPTIONS ${plain})
truth_program(tail_st tail.c tail.truth OPTIONS ${plain} -DTRUTH_STEP)
# Linkers whose segment of code begins at 0.
set(removed ${plain} -g -fno-asynchronous-unwind-tables -ffunction-sections -Wl,--gc-sections)
truth_program(removed_gold removed.c removed.truth OPTIONS ${removed} -fuse-ld=gold)
truth_program(removed_bfd removed.c removed.truth OPTIONS ${removed} -Wl,-z,noseparate-code)
truth_program(noret noreturn.c noreturn.truth OPTIONS ${plain})
truth_program(noret_st noreturn.c noreturn.truth OPTIONS ${plain} -DTRUTH_STEP)
truth_program(noret_asm noreturn.c noreturn.truth OPTIONS ${plain} -DTRUTH_ASM)
truth_program(noret_asm_st noreturn.c noreturn.truth OPTIONS ${plain} -DTRUTH_ASM -DTRUTH_STEP)

# Frames of C, by their numbers in frames.c.
set(frame_number 0)
foreach(frame alloca vla drap aligned large jumps deep cold nested qsort both epilog)
    math(EXPR frame_number "${frame_number} + 1")
    set(declaration frames.truth)
    if(frame MATCHES "^(deep|qsort)$")
        set(declaration ${frame}.truth)
    endif()
    set(options ${plain} -DTRUTH_FRAME=${frame_number})
    if(frame STREQUAL nested)
        list(APPEND options -z execstack) # without it the linker warns
    endif()
    truth_program(f_${frame} frames.c ${declaration} OPTIONS ${options})
    if(NOT frame MATCHES "^(deep|jumps|cold)$")
        truth_program(f_${frame}_st frames.c ${declaration} OPTIONS ${options} -DTRUTH_STEP)
    endif()
endforeach()
truth_program(f_clash frames.c frames.truth OPTIONS ${plain} -DTRUTH_FRAME=5 -fstack-clash-protection)
truth_program(f_clash_st frames.c frames.truth OPTIONS ${plain} -DTRUTH_FRAME=5 -fstack-clash-protection -DTRUTH_STEP)
truth_program(f_protect_st frames.c frames.truth OPTIONS ${plain} -DTRUTH_FRAME=1 -fstack-protector-all -DTRUTH_STEP)
truth_program(realign_st tiny.c tiny.truth OPTIONS ${plain} -mstackrealign -DTRUTH_STEP)
truth_program(avx_st frames.c frames.truth OPTIONS ${plain} -DTRUTH_FRAME=4 -mavx -mstackrealign -DTRUTH_STEP)

# Signals, by their numbers in signals.c.
set(signal_number 0)
foreach(signal timer nested altstack first jumped both)
    math(EXPR signal_number "${signal_number} + 1")
    set(declaration ${signal}.truth)
    if(signal STREQUAL both)
        set(declaration nested.truth)
    endif()
    truth_program(s_${signal} signals.c ${declaration} OPTIONS ${plain} -DTRUTH_SIGNAL=${signal_number})
endforeach()

# Threads, processes and other stacks, by their numbers in tasks.c.
foreach(twin a b)
    set(room_a 50)
    set(room_b 9)
    add_custom_command(OUTPUT ${truth_dir}/twin_${twin}.so
        COMMAND ${CMAKE_C_COMPILER} ${plain} -shared -fPIC -DTRUTH_OWN=twin_${twin} -DTRUTH_ROOM=${room_${twin}}
        ${truth_sources}/twin_library.c -o ${truth_dir}/twin_${twin}.so
        DEPENDS ${truth_sources}/twin_library.c ${truth_sources}/truth.h VERBATIM)
endforeach()
set(task_number 0)
foreach(task churn vfork coroutine raw_clone fibers forks chained twins anonymous)
    math(EXPR task_number "${task_number} + 1")
    set(options ${plain} -DTRUTH_TASK=${task_number})
    set(declaration ${task}.truth)
    set(depends "")
    if(task STREQUAL chained)
        continue()
    elseif(task STREQUAL forks)
        set(declaration vfork.truth)
    elseif(task STREQUAL twins)
        list(APPEND options -DTRUTH_FOLDER="${truth_dir}")
        set(depends ${truth_dir}/twin_a.so ${truth_dir}/twin_b.so)
    endif()
    truth_program(${task} tasks.c ${declaration} DEPENDS ${depends} OPTIONS ${options})
endforeach()
truth_program(rewritten rewritten.c rewritten.truth DEPENDS ${truth_dir}/twin_a.so ${truth_dir}/twin_b.so
    OPTIONS ${plain} -DTRUTH_FOLDER="${truth_dir}")
truth_program(set_back rewritten.c set_back.truth DEPENDS ${truth_dir}/twin_a.so ${truth_dir}/twin_b.so
    OPTIONS ${plain} -DTRUTH_FOLDER="${truth_dir}" -DTRUTH_BACK)
truth_program(exec_b tasks.c "" OPTIONS ${plain} -DTRUTH_TASK=7 -DTRUTH_NEXT="exec_a" -DTRUTH_OWN=only_b)
truth_program(exec_a tasks.c chained.truth OPTIONS -O0 -DTRUTH_TASK=7 -DTRUTH_NEXT="exec_b" -DTRUTH_OWN=only_a)

# Linkage tables of each linker, in a program and in a library, bound at the first call or at the start.
# -z lazy and -z now are bfd's, as is -z ibtplt, by which the table has two parts.
function(plt_library linker)
    add_custom_command(OUTPUT ${truth_dir}/libplt_${linker}.so
        COMMAND ${CMAKE_C_COMPILER} ${plain} -shared -fPIC -fno-semantic-interposition -fuse-ld=${linker} ${ARGN}
        ${truth_sources}/plt_library.c -o ${truth_dir}/libplt_${linker}.so
        DEPENDS ${truth_sources}/plt_library.c ${truth_sources}/truth.h VERBATIM)
endfunction()
foreach(linker bfd gold lld mold)
    find_program(truth_ld_${linker} NAMES ld.${linker} ${linker})
    if(NOT truth_ld_${linker})
        truth_missing(plt_${linker} "no linker ${linker} here")
        continue()
    endif()
    plt_library(${linker} -Wl,-z,lazy)
    set(plt_library ${truth_dir}/libplt_${linker}.so)
    set(plt_options ${plain} -fuse-ld=${linker} ${plt_library} -Wl,-rpath,$ORIGIN)
    foreach(bound lazy now)
        truth_program(p_${linker}_${bound} plt.c plt.truth DEPENDS ${plt_library}
            OPTIONS ${plt_options} -Wl,-z,${bound})
        truth_program(ps_${linker}_${bound} plt.c plt.truth DEPENDS ${plt_library}
            OPTIONS ${plt_options} -Wl,-z,${bound} -DTRUTH_STEP)
    endforeach()
    truth_program(cet_${linker}_st plt.c plt.truth DEPENDS ${plt_library}
        OPTIONS ${plt_options} -Wl,-z,lazy -fcf-protection -DTRUTH_STEP)
    ladder(ladder_${linker} ${plain} -fuse-ld=${linker})
endforeach()
truth_program(plt_no_cfi_st plt.c plt.truth DEPENDS ${truth_dir}/libplt_bfd.so OPTIONS ${plain}
    ${truth_dir}/libplt_bfd.so -Wl,-rpath,$ORIGIN -Wl,-z,lazy,--no-ld-generated-unwind-info -DTRUTH_STEP)
if(truth_ld_lld)
    truth_program(plt_retpol_st plt.c plt.truth DEPENDS ${truth_dir}/libplt_lld.so OPTIONS ${plain} -fuse-ld=lld
        ${truth_dir}/libplt_lld.so -Wl,-rpath,$ORIGIN -Wl,-z,lazy,-z,retpolineplt -DTRUTH_STEP)
endif()
truth_program(resolve plt.c resolve.truth DEPENDS ${truth_dir}/libplt_bfd.so
    OPTIONS ${plain} -no-pie ${truth_dir}/libplt_bfd.so -Wl,-rpath,$ORIGIN -Wl,-z,lazy,-z,norelro -DTRUTH_RESOLVE)
truth_program(plt_ibt_st plt.c plt.truth DEPENDS ${truth_dir}/libplt_bfd.so OPTIONS ${plain} -fcf-protection
    ${truth_dir}/libplt_bfd.so -Wl,-rpath,$ORIGIN -Wl,-z,lazy,-z,ibtplt -DTRUTH_STEP)
truth_program(no_plt_st plt.c plt.truth DEPENDS ${truth_dir}/libplt_bfd.so OPTIONS ${plain} -fno-plt
    ${truth_dir}/libplt_bfd.so -Wl,-rpath,$ORIGIN -DTRUTH_STEP)

truth_program(resolve_st plt.c resolve.truth DEPENDS ${truth_dir}/libplt_bfd.so OPTIONS ${plain} -no-pie -DTRUTH_STEP
    ${truth_dir}/libplt_bfd.so -Wl,-rpath,$ORIGIN -Wl,-z,lazy,-z,norelro -DTRUTH_RESOLVE)

# The C library, the vDSO, the kernel; before main() and behind it.
set(library_number 0)
foreach(library memory text heap vdso kernel ctor exit)
    math(EXPR library_number "${library_number} + 1")
    set(declaration library.truth)
    if(library MATCHES "^(ctor|exit)$")
        set(declaration outside.truth)
    endif()
    truth_program(l_${library} library.c ${declaration} OPTIONS ${plain} -DTRUTH_LIBRARY=${library_number})
    truth_program(l_${library}_st library.c ${declaration}
        OPTIONS ${plain} -DTRUTH_LIBRARY=${library_number} -DTRUTH_STEP)
endforeach()

# No C library, 64 bits and 32.
truth_program(no_libc no_libc.c no_libc.truth OPTIONS ${plain} -ffreestanding -fno-pie -nostdlib -static)
truth_program(no_libc_fp no_libc.c no_libc.truth
    OPTIONS -O2 -fno-omit-frame-pointer -ffreestanding -fno-pie -nostdlib -static)
truth_program(i386 no_libc.c no_libc.truth OPTIONS ${plain} -m32 -ffreestanding -fno-pie -nostdlib -static)
truth_program(i386_fp no_libc.c no_libc.truth
    OPTIONS -O2 -fno-omit-frame-pointer -m32 -ffreestanding -fno-pie -nostdlib -static)

# 32 bits with the C library. main() keeps its stack pointer in ecx while it aligns the stack, and what is
# position-independent calls a thunk for its own address. Handlers return through the kernel's [vdso].
execute_process(COMMAND ${CMAKE_C_COMPILER} -m32 -print-file-name=crt1.o OUTPUT_VARIABLE truth_crt32
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(IS_ABSOLUTE "${truth_crt32}")
    set(plain32 ${plain} -m32)
    ladder(x_O0 -O0 -m32)
    ladder(x_O2 ${plain32})
    ladder(x_fp -O2 -fno-omit-frame-pointer -m32)
    ladder(x_O2_st ${plain32} -DTRUTH_STEP)
    ladder(x_fp_st -O2 -fno-omit-frame-pointer -m32 -DTRUTH_STEP)
    ladder(x_no_pie ${plain32} -no-pie -fno-pie)
    ladder(x_static ${plain32} -static)
    foreach(level 0 2 s)
        truth_program(x_tiny_O${level}_st tiny.c tiny.truth OPTIONS -O${level} -m32 -DTRUTH_STEP)
    endforeach()
    truth_program(x_tail_st tail.c tail.truth OPTIONS ${plain32} -DTRUTH_STEP)
    set(frame_number 0)
    foreach(frame alloca vla drap aligned large jumps deep cold nested qsort)
        math(EXPR frame_number "${frame_number} + 1")
        if(frame MATCHES "^(alloca|drap|aligned|qsort)$")
            set(declaration frames.truth)
            if(frame STREQUAL qsort)
                set(declaration qsort.truth)
            endif()
            set(options ${plain32} -DTRUTH_FRAME=${frame_number})
            truth_program(x_${frame} frames.c ${declaration} OPTIONS ${options})
            truth_program(x_${frame}_st frames.c ${declaration} OPTIONS ${options} -DTRUTH_STEP)
        endif()
    endforeach()
    set(signal_number 0)
    foreach(signal timer nested altstack first jumped)
        math(EXPR signal_number "${signal_number} + 1")
        truth_program(x_${signal} signals.c ${signal}.truth OPTIONS ${plain32} -DTRUTH_SIGNAL=${signal_number})
    endforeach()
    truth_program(x_kernel library.c library.truth OPTIONS ${plain32} -fno-plt -DTRUTH_LIBRARY=5)
    truth_program(x_vdso library.c library.truth OPTIONS ${plain32} -fno-plt -DTRUTH_LIBRARY=4)
    truth_program(x_text library.c library.truth OPTIONS ${plain32} -fno-plt -DTRUTH_LIBRARY=2)
    ladder(x_debug ${plain32} -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-exceptions -g)
    ladder(x_debug_z ${plain32} -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-exceptions -g -gz)
else()
    truth_missing(x "no C library for 32 bits here")
endif()

truth_program(thunks_st tail.c thunks.truth
    OPTIONS ${plain} -mindirect-branch=thunk -mfunction-return=thunk -fcf-protection=none -DTRUTH_STEP)
truth_program(thunk_ret thunk_ret.c thunk_ret.truth
    OPTIONS ${plain} -mfunction-return=thunk -fcf-protection=none -DTRUTH_STEP)

# C without any call-frame information of its own.
set(bare -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-exceptions)
ladder(bare ${plain} ${bare})
ladder(bare_st ${plain} ${bare} -DTRUTH_STEP)
ladder(bare_fp -O2 -fno-omit-frame-pointer ${bare})
ladder(bare_fp_st -O2 -fno-omit-frame-pointer ${bare} -DTRUTH_STEP)
ladder(bare_quiet ${plain} ${bare} -DTRUTH_QUIET)
ladder(bare_q_st ${plain} ${bare} -DTRUTH_QUIET -DTRUTH_STEP)
ladder(bare_O0 -O0 ${bare})
ladder(bare_O0_st -O0 ${bare} -DTRUTH_STEP)
ladder(bare_static ${plain} ${bare} -static)
foreach(level 0 1 2 3 s)
    truth_program(bare_tiny_O${level} tiny.c tiny.truth OPTIONS -O${level} -DTRUTH_STEP ${bare})
endforeach()
truth_program(bare_tail tail.c tail.truth OPTIONS ${plain} ${bare})
truth_program(bare_tail_st tail.c tail.truth OPTIONS ${plain} ${bare} -DTRUTH_STEP)
set(frame_number 0)
foreach(frame alloca vla drap aligned large)
    math(EXPR frame_number "${frame_number} + 1")
    truth_program(bare_${frame} frames.c frames.truth OPTIONS ${plain} ${bare} -DTRUTH_FRAME=${frame_number})
endforeach()
truth_program(bare_qsort frames.c qsort.truth OPTIONS ${plain} ${bare} -DTRUTH_FRAME=10)
truth_program(bare_timer signals.c timer.truth OPTIONS ${plain} ${bare} -DTRUTH_SIGNAL=1)
truth_program(bare_nested signals.c nested.truth OPTIONS ${plain} ${bare} -DTRUTH_SIGNAL=2)
truth_program(bare_first signals.c first.truth OPTIONS ${plain} ${bare} -DTRUTH_SIGNAL=4)
truth_program(bare_churn tasks.c churn.truth OPTIONS ${plain} ${bare} -DTRUTH_TASK=1)
truth_program(bare_vfork tasks.c vfork.truth OPTIONS ${plain} ${bare} -DTRUTH_TASK=2)
truth_program(bare_corout tasks.c coroutine.truth OPTIONS ${plain} ${bare} -DTRUTH_TASK=3)
truth_program(bare_fibers tasks.c fibers.truth OPTIONS ${plain} ${bare} -DTRUTH_TASK=5)
truth_program(bare_noret noreturn.c noreturn.truth OPTIONS ${plain} ${bare} -DTRUTH_STEP)
truth_program(bare_thunks tail.c thunks.truth
    OPTIONS ${plain} ${bare} -mindirect-branch=thunk -mfunction-return=thunk -fcf-protection=none -DTRUTH_STEP)
truth_program(bare_realign tiny.c tiny.truth OPTIONS ${plain} ${bare} -mstackrealign -DTRUTH_STEP)
truth_program(bare_altstack signals.c altstack.truth OPTIONS ${plain} ${bare} -DTRUTH_SIGNAL=3)

# Only .debug_frame, as it is and compressed.
ladder(debug_frame ${plain} ${bare} -g)
ladder(debug_frame_z ${plain} ${bare} -g -gz)
ladder(debug_fr_st ${plain} ${bare} -g -DTRUTH_STEP)

# A library without call-frame information between functions with it.
foreach(kind plain quiet fp O0)
    set(options_plain ${plain})
    set(options_quiet ${plain} -DTRUTH_QUIET)
    set(options_fp -O2 -fno-omit-frame-pointer)
    set(options_O0 -O0)
    set(library ${truth_dir}/libmixed_${kind}.so)
    add_custom_command(OUTPUT ${library}
        COMMAND ${CMAKE_C_COMPILER} ${options_${kind}} ${bare} -shared -fPIC -Wl,-z,now ${truth_sources}/mixed_library.c -o ${library}
        DEPENDS ${truth_sources}/mixed_library.c ${truth_sources}/truth.h VERBATIM)
    truth_program(mixed_${kind} mixed.c mixed.truth DEPENDS ${library}
        OPTIONS ${plain} ${library} -Wl,-rpath,$ORIGIN)
    truth_program(mix_${kind}_st mixed.c mixed.truth DEPENDS ${library}
        OPTIONS ${plain} ${library} -Wl,-rpath,$ORIGIN -DTRUTH_STEP)
endforeach()

# Stripped: an exported function has its name, any other has none, and never its neighbour's.
foreach(stripped stripped exported some)
    set(export "")
    if(stripped STREQUAL exported)
        set(export -rdynamic)
    elseif(stripped STREQUAL some)
        set(export -Wl,--dynamic-list=${truth_sources}/some.list)
    endif()
    truth_program(${stripped} ladder.c stripped.truth OPTIONS ${plain} ${export}
        AFTER cp ${stripped}.truth ${stripped}.truth.unstripped COMMAND strip ${stripped}.truth)
endforeach()

# Other compilers and their libraries.
set(musl_compiler musl-gcc -std=gnu17 -D_GNU_SOURCE)
set(clang_compiler clang -std=gnu17 -D_GNU_SOURCE)
find_program(truth_musl musl-gcc)
find_program(truth_clang clang)
if(truth_musl)
    foreach(link dynamic static)
        set(options ${plain})
        if(link STREQUAL static)
            list(APPEND options -static)
        endif()
        truth_program(musl_${link} ladder.c musl.truth COMPILER ${musl_compiler} OPTIONS ${options})
        truth_program(mus_${link} ladder.c musl.truth COMPILER ${musl_compiler} OPTIONS ${options} -DTRUTH_STEP)
        truth_program(muq_${link} frames.c musl_qsort.truth COMPILER ${musl_compiler}
            OPTIONS ${options} -DTRUTH_FRAME=10)
    endforeach()
    truth_program(musl_stripped ladder.c musl_stripped.truth COMPILER ${musl_compiler} OPTIONS ${plain} -static
        AFTER cp musl_stripped.truth musl_stripped.truth.unstripped COMMAND strip musl_stripped.truth)
    truth_program(musl_churn tasks.c musl_churn.truth COMPILER ${musl_compiler} OPTIONS ${plain} -static -DTRUTH_TASK=1)
else()
    truth_missing(musl "no musl-gcc here")
endif()
if(truth_clang)
    foreach(level 0 2 s)
        truth_program(clang_O${level} ladder.c ladder.truth COMPILER ${clang_compiler} OPTIONS -O${level})
        truth_program(ct_O${level}_st tiny.c tiny.truth COMPILER ${clang_compiler} OPTIONS -O${level} -DTRUTH_STEP)
        truth_program(cb_O${level}_st tiny.c tiny.truth COMPILER ${clang_compiler}
            OPTIONS -O${level} -DTRUTH_STEP ${bare})
    endforeach()
    truth_program(clang_tail_st tail.c tail.truth COMPILER ${clang_compiler} OPTIONS -O2 -DTRUTH_STEP)
else()
    truth_missing(clang "no clang here")
endif()
find_program(truth_cxx g++)
if(truth_cxx)
    truth_program(cxx cxx.cc cxx.truth COMPILER ${truth_cxx} OPTIONS ${plain})
    truth_program(cxx_O0 cxx.cc cxx.truth COMPILER ${truth_cxx} OPTIONS -O0)
    truth_program(cxx_st cxx.cc cxx.truth COMPILER ${truth_cxx} OPTIONS ${plain} -DTRUTH_STEP)
else()
    truth_missing(cxx "no g++ here")
endif()

# These take no option for the process's name.
find_program(truth_rustc rustc)
if(truth_rustc)
    foreach(options "rust -O" "rust_O0 -Copt-level=0 -Coverflow-checks=off" "rust_fp -O -Cforce-frame-pointers=yes"
        "rust_bare -O -Cpanic=abort -Cforce-unwind-tables=no")
        separate_arguments(options)
        list(POP_FRONT options name)
        truth_command(${name} rust.rs rust.truth ${CMAKE_COMMAND} -E env TRUTH_NAME=${name}
            ${truth_rustc} --edition 2021 ${options} ${truth_sources}/rust.rs -o ${name}.truth)
    endforeach()
else()
    truth_missing(rust "no rustc here")
endif()
find_program(truth_go go)
if(truth_go)
    foreach(options "golang" "golang_s -s -w")
        separate_arguments(options)
        list(POP_FRONT options name)
        list(JOIN options " " options)
        truth_command(${name} golang.go golang.truth
            ${CMAKE_COMMAND} -E env GOCACHE=${truth_dir}/go-cache GO111MODULE=off
            ${truth_go} build "-ldflags=-X main.process=t.${name} ${options}" -o ${name}.truth
            ${truth_sources}/golang.go)
    endforeach()
    add_custom_command(OUTPUT ${truth_dir}/libgo_shared.so
        COMMAND ${CMAKE_COMMAND} -E env GOCACHE=${truth_dir}/go-cache GO111MODULE=off CGO_ENABLED=1
        CC=${CMAKE_C_COMPILER} ${truth_go} build -buildmode=c-shared -o ${truth_dir}/libgo_shared.so
        ${truth_sources}/go_shared.go
        DEPENDS ${truth_sources}/go_shared.go VERBATIM)
    truth_program(go_shared go_shared.c go_shared.truth DEPENDS ${truth_dir}/libgo_shared.so
        OPTIONS ${plain} ${truth_dir}/libgo_shared.so -Wl,-rpath,$ORIGIN)
else()
    truth_missing(golang "no go here")
endif()

# By their numbers in misled.c. What is false today has KNOWN; docs/unwinding.md, "What reading code cannot tell", says the
# same in words.
set(case_number 0)
foreach(case ret_n labels operators epilogue entries zero red_zone pop_mem indexed no_return exits middle sigreturn far
    names switched retpoline two_slots passed pushed data_calls)
    math(EXPR case_number "${case_number} + 1")
    set(options ${plain} -DTRUTH_QUIET)
    if(case MATCHES "^(red_zone|two_slots)$")
        set(options -O2 -fno-omit-frame-pointer -mno-red-zone)
    endif()
    truth_program(m_${case} misled.c misled.truth OPTIONS ${options} -DTRUTH_CASE=${case_number})
endforeach()
set(options ${plain} -ffreestanding -fno-pie -no-pie -nostdlib -static)
truth_program(m_entry entry.c entry.truth OPTIONS ${options})
truth_program(m_entry_begin entry.c entry.truth OPTIONS ${options} -DTRUTH_ENTRY="begin" -Wl,-e,begin)
truth_program(m_entry_call entry.c entry_stripped.truth OPTIONS ${options} -DTRUTH_BARE_CALL
    AFTER cp m_entry_call.truth m_entry_call.truth.unstripped COMMAND strip m_entry_call.truth)
truth_program(m_entry_next entry.c entry_next.truth OPTIONS ${options} -DTRUTH_NEXT
    AFTER cp m_entry_next.truth m_entry_next.truth.unstripped COMMAND strip m_entry_next.truth)
foreach(kind entry long)
    set(library ${truth_dir}/liblib_${kind}.so)
    set(options ${plain} ${bare} -shared -fPIC -DTRUTH_LIBRARY -Wl,-e,work)
    if(kind STREQUAL long)
        list(APPEND options -DTRUTH_LONG)
    endif()
    add_custom_command(OUTPUT ${library} COMMAND ${CMAKE_C_COMPILER} ${options} ${truth_sources}/lib_entry.c -o ${library}
        DEPENDS ${truth_sources}/lib_entry.c ${truth_sources}/truth.h VERBATIM)
    truth_program(m_lib_${kind} lib_entry.c lib_entry.truth DEPENDS ${library}
        OPTIONS ${plain} ${library} -Wl,-rpath,$ORIGIN)
endforeach()
truth_program(m_ifunc ifunc.c ifunc.truth OPTIONS ${plain})
foreach(name sizeless size_bare size_next)
    set(options_sizeless ${plain} -rdynamic)
    set(options_size_bare ${plain} -rdynamic ${bare})
    set(options_size_next ${plain} -rdynamic -DTRUTH_BARE)
    truth_program(m_${name} sizeless.c sizeless.truth OPTIONS ${options_${name}}
        AFTER cp m_${name}.truth m_${name}.truth.unstripped COMMAND strip m_${name}.truth)
endforeach()

# More that misleads, by their numbers in hidden.c, stacks.c and compiled.c.
set(case_number 0)
foreach(case callee_pops over_data phantom landing ops_cfi ops_aligned dispatch tail_table two_doubts label_ret far_middle
    callee_push immediate far_cold swallowed trampoline thunked truncated huge shared_call falls_in
    behind_none ops_lea two_far cut_call kept_moved kept_vector to_syscall compensated
    saves saves_frame pops_loop)
    math(EXPR case_number "${case_number} + 1")
    set(options ${plain} -DTRUTH_QUIET -DTRUTH_CASE=${case_number})
    if(case STREQUAL immediate)
        list(APPEND options -fno-pie -no-pie)
    endif()
    truth_program(h_${case} hidden.c hidden.truth KNOWN "${known_${case}}" OPTIONS ${options})
endforeach()
# The same at fixed addresses, where no relocation names a pointer.
set(fixed_ops_cfi 5)
set(fixed_swallowed 15)
foreach(case ops_cfi swallowed)
    truth_program(h_${case}_f hidden.c hidden.truth
        OPTIONS ${plain} -fno-pie -no-pie -DTRUTH_QUIET -DTRUTH_CASE=${fixed_${case}})
endforeach()
set(case_number 0)
foreach(case sw_move sw_load raise entry)
    math(EXPR case_number "${case_number} + 1")
    truth_program(k_${case} stacks.c stacks.truth OPTIONS ${plain} -DTRUTH_CASE=${case_number})
endforeach()
# As compilers really compile it.
set(options ${bare} -w -DTRUTH_QUIET)
set(case_number 0)
foreach(case mask biased signed sparse goto nested drap big alloca variadic setjmp cold tailp bytes unreach inner shrink
    enum)
    math(EXPR case_number "${case_number} + 1")
    truth_program(e_${case}_O1 compiled.c compiled.truth OPTIONS -O1 ${options} -DTRUTH_CASE=${case_number})
    truth_program(e_${case}_O2 compiled.c compiled.truth OPTIONS -O2 ${options} -DTRUTH_CASE=${case_number})
endforeach()
foreach(level 1 g)
    truth_program(e_cmp_O${level} compiled.c compiled.truth
        OPTIONS -O${level} -fomit-frame-pointer ${options} -DTRUTH_CASE=19)
endforeach()
truth_program(e_forked compiled.c compiled.truth OPTIONS ${plain} ${options} -DTRUTH_CASE=21)
if(truth_clang)
    truth_program(e_swift compiled.c compiled.truth COMPILER ${clang_compiler} OPTIONS -O1 ${options} -DTRUTH_CASE=20)
endif()
