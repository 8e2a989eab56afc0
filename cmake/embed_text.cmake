# SPDX-License-Identifier: Apache-2.0
#
# embed_text(TARGET FILE SYMBOL): compiles FILE into TARGET as `const char SYMBOL[]`, anew when it changes.
function(embed_text target file symbol)
    file(READ ${file} text)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "?" "\\?" text "${text}") # two of them may begin a trigraph
    string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
    set(generated ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.c)
    file(CONFIGURE OUTPUT ${generated} @ONLY CONTENT
        "extern const char ${symbol}[];\nconst char ${symbol}[] =\n    \"@text@\";\n")
    target_sources(${target} PRIVATE ${generated})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endfunction()
