# SPDX-License-Identifier: Apache-2.0
#
# Makes libprofctl(3) from profctl.h, whose comments are the library's reference: awk -v date=DATE -f header.awk profctl.h.
# The first comment is the description; what stands in front of a declaration is that function's part. In a comment,
# indented lines are code, and rows that begin with an error (`  -EBADFD  text`) are a list.

# A line of a comment: names between backticks, and functions, stand out.
function inline(text,    count, parts, i, out) {
    gsub(/\\/, "\\e", text)
    count = split(text, parts, "`")
    for (i = 1; i <= count; i++) {
        if (i % 2 == 0) {
            gsub(/-/, "\\-", parts[i])
        }
        out = out (i % 2 == 0 ? "\\fI" parts[i] "\\fR" : parts[i])
    }
    return (out ~ /^[.']/ ? "\\&" : "") out
}

function end_block() {
    if (block == "code") {
        print ".Ed"
    } else if (block == "errors") {
        print ".El"
    }
    block = ""
}

# The lines of a comment as they are read.
function print_comment(lines, count,    i, line, row) {
    for (i = 1; i <= count; i++) {
        line = lines[i]
        if (line ~ /^    /) {
            if (block != "code") {
                end_block()
                print ".Bd -literal -offset indent"
                block = "code"
            }
            gsub(/\\/, "\\e", line)
            gsub(/-/, "\\-", line)
            print substr(line, 5)
        } else if (line ~ /^  -E[A-Z]/) {
            if (block != "errors") {
                end_block()
                print ".Bl -tag -width \"-ECONNREFUSED\""
                block = "errors"
            }
            row = substr(line, 3)
            line = ""
            if (match(row, /   */)) {
                line = substr(row, RSTART + RLENGTH)
                row = substr(row, 1, RSTART - 1)
            }
            print ".It Li \"" row "\""
            if (line != "") {
                print inline(line)
            }
        } else if (line == "") {
            if (block != "code" || lines[i + 1] !~ /^    /) {
                end_block()
                if (i < count && lines[i + 1] ~ /^[^ ]/) {
                    print ".Pp"
                }
            } else {
                print ""
            }
        } else {
            if (block != "") {
                end_block()
                print ".Pp"
            }
            print inline(line)
        }
    }
    end_block()
}

# "int profctl_stop(struct profctl *conn, struct profctl_fault *fault);"
function print_prototype(text,    open, before, arguments, count, parts, i, type) {
    open = index(text, "(")
    before = substr(text, 1, open - 1)
    arguments = substr(text, open + 1)
    sub(/\);.*/, "", arguments)
    match(before, /profctl_[a-z_]+$/)
    type = substr(before, 1, RSTART - 1)
    sub(/ $/, "", type)
    print ".Ft \"" type "\"\n.Fo " substr(before, RSTART)
    count = split(arguments, parts, /, */)
    for (i = 1; i <= count; i++) {
        print ".Fa \"" parts[i] "\""
    }
    print ".Fc"
}

/^\/\*/ && !/\*\/$/ {
    in_comment = 1
    comment_count = 0
    next
}

in_comment && /^ \*\// {
    in_comment = 0
    if (!head_count) {
        head_count = comment_count
        for (i = 1; i <= comment_count; i++) {
            head[i] = comment[i]
        }
    }
    next
}

in_comment {
    sub(/^ \* ?/, "")
    comment[++comment_count] = $0
    next
}

/^(int|struct profctl \*)/ && /profctl_[a-z_]+\(/ { declaration = $0 }

declaration != "" {
    if (declaration != $0) {
        line = $0
        sub(/^ +/, " ", line)
        declaration = declaration line
    }
    if (declaration ~ /;$/) {
        function_count++
        prototype[function_count] = declaration
        match(declaration, /profctl_[a-z_]+\(/)
        name[function_count] = substr(declaration, RSTART, RLENGTH - 1)
        comment_of[function_count] = comment_count
        for (i = 1; i <= comment_count; i++) {
            text[function_count, i] = comment[i]
        }
        declaration = ""
        comment_count = 0
    }
    next
}

/^struct [a-z_]+ \{/ { in_struct = 1 }

in_struct {
    structs = structs $0 "\n"
    in_struct = !/^\}/
    next
}

/^\/\* The most bytes/ { limit_text = substr($0, 4, length($0) - 6) }
/^#define PROFCTL_READ_BYTES_MAX/ { limit = $0 }

END {
    print ".\\\" Made by man/header.awk from profctl.h."
    print ".Dd " date "\n.Dt LIBPROFCTL 3\n.Os cpu-profilerd\n.Sh NAME"
    print ".Nm libprofctl" (function_count ? " ," : "")
    for (i = 1; i <= function_count; i++) {
        print ".Nm " name[i] (i < function_count ? " ," : "")
    }
    print ".Nd record CPU profiles with cpu-profilerd\n.Sh SYNOPSIS\n.In profctl.h"
    for (i = 1; i <= function_count; i++) {
        print_prototype(prototype[i])
    }
    print ".Sh DESCRIPTION"
    print_comment(head, head_count)
    print ".Sh FUNCTIONS"
    for (i = 1; i <= function_count; i++) {
        print ".Ss " name[i]
        for (j = 1; j <= comment_of[i]; j++) {
            part[j] = text[i, j]
        }
        print_comment(part, comment_of[i])
    }
    print ".Sh TYPES AND LIMITS\n.Bd -literal\n" structs ".Ed\n.Bl -tag -width Ds"
    sub(/^#define /, "", limit)
    print ".It Dv " limit "\n" inline(limit_text) "\n.El"
    print ".Sh SEE ALSO\n.Xr profctl 1 ,\n.Xr cpu-profilerd-fxt 5 ,\n.Xr cpu-profilerd-session.json 5 ,\n.Xr cpu-profilerd 8"
    if (function_count == 0 || head_count == 0 || limit_text == "" || structs == "") {
        print "header.awk: profctl.h is not laid out as this program knows it" >"/dev/stderr"
        exit 1
    }
}
