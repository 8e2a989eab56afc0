# SPDX-License-Identifier: Apache-2.0
#
# Makes cpu-profilerd-fxt(5) from docs/trace-format.md, so that a terminal shows the same text: awk -v date=DATE
# -f markdown.awk trace-format.md. It knows the marks that page uses: headings, paragraphs, numbered lists, tables,
# and in a line code, strong and emphasised words, and links, of which the text is kept. A row of a table becomes an
# item by its first cell; the other cells stand below, each behind its column's title where there are several.

# A paragraph with its marks. Code is left alone otherwise.
function inline(text,    count, parts, i, part, out) {
    gsub(/\\/, "\\e", text)
    gsub(/–/, "\\(en", text)
    gsub(/ ·/, ";", text)
    count = split(text, parts, "`")
    for (i = 1; i <= count; i++) {
        part = parts[i]
        if (i % 2 == 0) {
            gsub(/-/, "\\-", part)
            out = out "\\fB" part "\\fR"
            continue
        }
        while (match(part, /\[[^]]*\]\([^)]*\)/)) {
            link = substr(part, RSTART, RLENGTH)
            sub(/^\[/, "", link)
            sub(/\]\(.*/, "", link)
            part = substr(part, 1, RSTART - 1) link substr(part, RSTART + RLENGTH)
        }
        while (match(part, /\*\*[^*]+\*\*/)) {
            part = substr(part, 1, RSTART - 1) "\\fB" substr(part, RSTART + 2, RLENGTH - 4) "\\fR" substr(part, RSTART + RLENGTH)
        }
        while (match(part, /\*[^* ][^*]*\*/)) {
            part = substr(part, 1, RSTART - 1) "\\fI" substr(part, RSTART + 1, RLENGTH - 2) "\\fR" substr(part, RSTART + RLENGTH)
        }
        out = out part
    }
    return (out ~ /^[.']/ ? "\\&" : "") out
}

function flush() {
    if (buffer != "") {
        print inline(buffer)
    }
    buffer = ""
}

function end_list() {
    flush()
    if (list != "") {
        print ".El"
    }
    list = ""
    column_count = 0
}

function add(text) {
    sub(/^ +/, "", text)
    buffer = buffer (buffer == "" ? "" : " ") text
}

function table_row(text,    cells, count, i) {
    sub(/^\| */, "", text)
    sub(/ *\|$/, "", text)
    count = split(text, cells, / *\| */)
    if (column_count == 0) {
        for (i = 1; i <= count; i++) {
            column[i] = cells[i]
        }
        column_count = count
        print ".Bl -tag -width Ds"
        list = "table"
        return
    }
    print ".It " item(cells[1])
    between = ""
    for (i = 2; i <= count; i++) {
        if (cells[i] != "" && cells[i] != "–") {
            print between (count > 2 ? inline(column[i]) ": " : "") inline(cells[i])
            between = ".br\n"
        }
    }
}

# The head of an item. What a macro would take for its own is quoted.
function item(text) {
    return "\"" inline(text) "\""
}

BEGIN {
    print ".\\\" Made by man/markdown.awk from docs/trace-format.md."
    print ".Dd " date "\n.Dt CPU-PROFILERD-FXT 5\n.Os cpu-profilerd\n.Sh NAME\n.Nm cpu-profilerd-fxt\n.Nd the file of a recording of cpu-profilerd"
    print ".Sh SYNOPSIS\n.Pa FILE.fxt , FILE.fxt.gz\n.Sh DESCRIPTION"
}

/^# / { next }

/^## / {
    end_list()
    print ".Sh " toupper(substr($0, 4))
    had_text = 0
    next
}

/^### / {
    end_list()
    print ".Ss " substr($0, 5)
    had_text = 0
    next
}

/^\|[-| ]+\|$/ { next }

/^\|/ {
    flush()
    table_row($0)
    had_text = 1
    next
}

/^[0-9]+\. / {
    flush()
    if (list == "") {
        print ".Bl -enum"
        list = "enum"
    }
    print ".It"
    sub(/^[0-9]+\. /, "")
    add($0)
    had_text = 1
    next
}

/^ / && list == "enum" {
    add($0)
    next
}

/^$/ {
    end_list()
    next
}

/^(```|- |>|<|#)/ {
    print "markdown.awk: line " FNR ": is not known: " $0 >"/dev/stderr"
    failed = 1
    exit 1
}

{
    if (buffer == "") {
        if (had_text) {
            print ".Pp"
        }
        had_text = 1
    }
    add($0)
}

END {
    if (failed) {
        exit 1
    }
    end_list()
    print ".Sh SEE ALSO\n.Xr profctl-dump 1 ,\n.Xr profctl-export 1 ,\n.Xr libprofctl 3 ,\n.Xr cpu-profilerd 8"
}
