# SPDX-License-Identifier: Apache-2.0
#
# `house` is what every target of ours links: the language level, the warnings, the hardening of a release
# and the sanitizers of a dev build. The libraries that we use are imported targets `pkg::NAME`.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

add_library(house INTERFACE)
target_compile_options(house INTERFACE
    -std=gnu17 -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wswitch-enum
    -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wformat=2 -Wcast-qual -Wundef
    -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=
    # What an initialiser leaves out is zero, and libseccomp's macros and tables of ours leave fields out.
    -Wno-missing-field-initializers
    # clang 14 does not take the cleanup attribute for a use of a variable.
    $<$<C_COMPILER_ID:Clang>:-Wno-unused-variable>)
target_compile_definitions(house INTERFACE _GNU_SOURCE CPU_PROFILERD_VERSION="${PROJECT_VERSION}")

if(CPU_PROFILERD_WERROR)
    target_compile_options(house INTERFACE -Werror)
endif()
if(CPU_PROFILERD_SANITIZE)
    target_compile_options(house INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all
        -fno-omit-frame-pointer)
    target_link_options(house INTERFACE -fsanitize=address,undefined)
endif()
if(CPU_PROFILERD_FUZZ)
    target_compile_options(house INTERFACE -fsanitize=fuzzer-no-link
        $<$<NOT:$<BOOL:${CPU_PROFILERD_FUZZ_COMPARE}>>:-fno-sanitize-coverage=trace-cmp>)
    target_compile_definitions(house INTERFACE CPU_PROFILERD_SMALL_TABLES)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(house INTERFACE -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
    target_link_options(house INTERFACE LINKER:-z,relro,-z,now)
endif()

include(CheckPIESupported)
check_pie_supported(LANGUAGES C)

# pkg_library(NAME MODULE): the pkg-config module as imported target pkg::NAME, or a clear failure.
function(pkg_library name module)
    pkg_check_modules(${name} REQUIRED IMPORTED_TARGET GLOBAL ${module})
    add_library(pkg::${name} ALIAS PkgConfig::${name})
endfunction()

pkg_library(cjson libcjson)
pkg_library(curl libcurl)
pkg_library(debuginfod libdebuginfod)
pkg_library(dw libdw)
pkg_library(elf libelf)
pkg_library(lzma liblzma)
pkg_library(ncurses ncursesw)
pkg_library(protobuf libprotobuf-c)
pkg_library(systemd libsystemd)
pkg_library(seccomp libseccomp)
pkg_library(zlib zlib)

# Zydis has no pkg-config module before 4.1, but a package of CMake's.
find_package(zydis REQUIRED)

# libiberty has no pkg-config module, and is a static library only.
find_library(IBERTY_LIBRARY iberty REQUIRED)
find_path(IBERTY_INCLUDE_DIR libiberty/demangle.h REQUIRED)
add_library(iberty STATIC IMPORTED GLOBAL)
set_target_properties(iberty PROPERTIES IMPORTED_LOCATION ${IBERTY_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${IBERTY_INCLUDE_DIR})
