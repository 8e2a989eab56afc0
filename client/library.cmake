# SPDX-License-Identifier: Apache-2.0
#
# libprofctl, twice: for others as a shared library that exports what profctl.h declares and nothing
# else; for profctl as a static one, so that profctl runs from wherever it is installed.
add_library(profctl_objects OBJECT libprofctl.c rpc.c)
target_include_directories(profctl_objects PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include)
target_link_libraries(profctl_objects PRIVATE common json)

add_library(profctl_lib STATIC connection.c)
target_link_libraries(profctl_lib PUBLIC profctl_objects PRIVATE common json)

add_library(profctl_shared SHARED $<TARGET_OBJECTS:profctl_objects>)
target_include_directories(profctl_shared PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include)
target_link_libraries(profctl_shared PRIVATE common json)
set_target_properties(profctl_shared PROPERTIES OUTPUT_NAME profctl VERSION ${PROJECT_VERSION}
    SOVERSION 0 LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/libprofctl.map)
target_link_options(profctl_shared PRIVATE
    LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/libprofctl.map)

# Folders below the prefix are found from where profctl.pc stands, whichever prefix that is.
set(PC_PREFIX ${CMAKE_INSTALL_PREFIX})
set(PC_INCLUDEDIR ${CMAKE_INSTALL_FULL_INCLUDEDIR})
set(PC_LIBDIR ${CMAKE_INSTALL_FULL_LIBDIR})
if(NOT IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR} AND NOT IS_ABSOLUTE ${CMAKE_INSTALL_INCLUDEDIR})
    file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
    string(REGEX REPLACE "/$" "" up ${up})
    set(PC_PREFIX "\${pcfiledir}/${up}")
    set(PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
    set(PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
configure_file(profctl.pc.in ${CMAKE_CURRENT_BINARY_DIR}/profctl.pc @ONLY)

install(TARGETS profctl_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/profctl.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/profctl.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
