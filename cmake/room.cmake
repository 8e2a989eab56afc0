# SPDX-License-Identifier: Apache-2.0
#
# room(NAME SOURCE... [USES ROOM...] [INSIDE LIBRARY...] [CALLS ROOM...]): a folder as a library. Other rooms see what is
# in its folder include/, the door, and nothing else of it: an include of the rest does not compile. USES are the rooms
# whose headers the door includes, INSIDE those that only the room's own sources do. CALLS are rooms that it sees too,
# but that it does not bring along: the program does, or a test has a stand-in for them.
function(room name)
    cmake_parse_arguments(PARSE_ARGV 1 room "" "" "USES;INSIDE;CALLS")
    add_library(${name} STATIC ${room_UNPARSED_ARGUMENTS})
    target_include_directories(${name} PUBLIC include PRIVATE .)
    target_link_libraries(${name} PUBLIC house common ${room_USES} PRIVATE ${room_INSIDE})
    foreach(other ${room_CALLS})
        target_include_directories(${name} PUBLIC $<TARGET_PROPERTY:${other},INTERFACE_INCLUDE_DIRECTORIES>)
    endforeach()
endfunction()

# target_sees_inside(TARGET ROOM...): for tests of what is behind the doors.
function(target_sees_inside target)
    foreach(room ${ARGN})
        if(NOT ${room} MATCHES "::")
            target_include_directories(${target} PRIVATE $<TARGET_PROPERTY:${room},SOURCE_DIR>)
        endif()
    endforeach()
endfunction()
