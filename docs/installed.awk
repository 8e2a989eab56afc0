# SPDX-License-Identifier: Apache-2.0
#
# Turns a page of the sources, `page` (its path from their root), into the one that is installed: all pages lie in one
# folder there, the configs in a folder below it. Links follow them; one to what is not installed becomes its text, with the
# file's path. What stands between the lines `<!-- the sources -->` and `<!-- all -->` is left out. `installed` has the paths of what is installed, separated by spaces.
BEGIN {
    count = split(installed, files, " ")
    for (i = 1; i <= count; i++) {
        is_installed[files[i]] = 1
    }
    folder = page
    if (!sub("/[^/]*$", "/", folder)) {
        folder = ""
    }
}

# The path from the root of the sources that a link of the page leads to.
function from_root(target) {
    target = folder target
    while (match(target, "[^/]+/\\.\\./")) {
        target = substr(target, 1, RSTART - 1) substr(target, RSTART + RLENGTH)
    }
    return target
}

function place_of(path) {
    return path == "bench/README.md" ? "bench.md" : path ~ "^docs/" ? substr(path, 6) : path
}

# "[TEXT](TARGET)", as it is in the installed page.
function new_link(link, end, text, target, mark, path) {
    end = index(link, "](")
    text = substr(link, 2, end - 2)
    target = substr(link, end + 2, length(link) - end - 2)
    if (target ~ "^[a-z]+:" || target ~ "^#") {
        return link
    }
    mark = match(target, "#") ? substr(target, RSTART) : ""
    path = from_root(substr(target, 1, length(target) - length(mark)))
    if (path in is_installed) {
        return "[" text "](" place_of(path) mark ")"
    }
    return text == path || text == "`" path "`" ? text " (in the sources)" : text " (" path " in the sources)"
}

/^<!-- the sources -->$/ { is_left_out = 1 }

/^<!-- all -->$/ {
    is_left_out = 0
    next
}

is_left_out { next }

{
    rest = $0
    line = ""
    while (match(rest, "\\[[^][]*\\]\\([^)]+\\)")) {
        link = substr(rest, RSTART, RLENGTH)
        line = line substr(rest, 1, RSTART - 1)
        rest = substr(rest, RSTART + RLENGTH)
        line = line new_link(link)
    }
    print line rest
}
