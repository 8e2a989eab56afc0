# SPDX-License-Identifier: Apache-2.0
#
# messages(NAME PROTO...): a library of what protoc-c makes of the schemas; each is the header <PROTO.pb-c.h>. It is not
# the house's code, so it has not its warnings.
find_program(PROTOC_C protoc-c REQUIRED)

function(messages name)
    set(sources "")
    foreach(schema ${ARGN})
        get_filename_component(base ${schema} NAME_WE)
        set(made ${CMAKE_CURRENT_BINARY_DIR}/messages/${base}.pb-c)
        add_custom_command(OUTPUT ${made}.c ${made}.h
            COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/messages
            COMMAND ${PROTOC_C} --c_out=${CMAKE_CURRENT_BINARY_DIR}/messages
                --proto_path=${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${schema}
            DEPENDS ${schema})
        list(APPEND sources ${made}.c ${made}.h)
    endforeach()
    add_library(${name} STATIC ${sources})
    target_include_directories(${name} SYSTEM PUBLIC ${CMAKE_CURRENT_BINARY_DIR}/messages)
    # clang judges what their initialisers become where they are used.
    target_compile_options(${name} INTERFACE $<$<C_COMPILER_ID:Clang>:-Wno-cast-qual>)
    target_link_libraries(${name} PUBLIC pkg::protobuf)
endfunction()
