# SPDX-License-Identifier: Apache-2.0
#
# embed_page(TARGET FOLDER SYMBOL SCRIPT...): compiles FOLDER/page.html into TARGET as `const char SYMBOL[]`, with
# FOLDER/page.css for @style@ and the scripts of FOLDER, one behind the other, for @script@. Their hashes, as a
# Content-Security-Policy has them, are @style_hash@ and @script_hash@.

# Sets `result` to the SHA-256 of a text in base64: three hexadecimal digits are two letters, and the last is padding.
function(base64_sha256 text result)
    set(letters ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
    string(SHA256 digits "${text}")
    string(APPEND digits 00)
    set(hash "")
    foreach(at RANGE 0 63 3)
        string(SUBSTRING ${digits} ${at} 3 three)
        math(EXPR first "0x${three} >> 6")
        math(EXPR second "0x${three} & 63")
        string(SUBSTRING ${letters} ${first} 1 first)
        string(SUBSTRING ${letters} ${second} 1 second)
        string(APPEND hash ${first}${second})
    endforeach()
    string(REGEX REPLACE ".$" "=" hash ${hash})
    set(${result} ${hash} PARENT_SCOPE)
endfunction()

function(embed_page target folder symbol)
    set(folder ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
    file(READ ${folder}/page.html page)
    file(READ ${folder}/page.css style)
    set(script "")
    foreach(name ${ARGN})
        file(READ ${folder}/${name} text)
        string(APPEND script "${text}")
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/${name})
    endforeach()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/page.html ${folder}/page.css)
    base64_sha256("${style}" style_hash)
    base64_sha256("${script}" script_hash)
    foreach(name style_hash script_hash style script)
        string(REPLACE "@${name}@" "${${name}}" page "${page}")
    endforeach()
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.html "${page}")
    embed_text(${target} ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.html ${symbol})
endfunction()
