# SPDX-License-Identifier: Apache-2.0
#
# What is judged: name, source, declaration, and how it is built.

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
    push_ret)
    math(EXPR leaf_number "${leaf_number} + 1")
    set(declaration asm_leaf.truth)
    if(leaf MATCHES "^(tail|push_ret)$")
        set(declaration asm_tail.truth)
    elseif(leaf MATCHES "^(stale|pic)$")
        set(declaration asm_${leaf}.truth)
    endif()
    truth_program(a_${leaf} asm_leaf.c ${declaration} OPTIONS ${plain} -DTRUTH_LEAF=${leaf_number})
    truth_program(a_${leaf}_st asm_leaf.c ${declaration} OPTIONS ${plain} -DTRUTH_LEAF=${leaf_number} -DTRUTH_STEP)
endforeach()
# main() keeps a frame pointer, and what it calls leaves that in rbp.
set(leaf_number 0)
foreach(leaf plain cfi pushes aligned frame inner)
    math(EXPR leaf_number "${leaf_number} + 1")
    truth_program(q_${leaf} asm_leaf.c asm_leaf.truth
        OPTIONS ${plain} -DTRUTH_LEAF=${leaf_number} -DTRUTH_QUIET -DTRUTH_MAIN_FP)
    truth_program(q_${leaf}_st asm_leaf.c asm_leaf.truth
        OPTIONS ${plain} -DTRUTH_LEAF=${leaf_number} -DTRUTH_QUIET -DTRUTH_MAIN_FP -DTRUTH_STEP)
endforeach()
