# SPDX-License-Identifier: Apache-2.0
#
# Makes the manual page of a verb, or of profctl itself, from what --help prints, which comes from the verb's own table,
# and a source that has the rest of the page: awk -v name=profctl-read -v summary=TEXT -f verb.awk HELP SOURCE.
# NAME and SYNOPSIS are made here, behind the source's .Dd. A list that begins with `.Bl @options` has an item for each
# option; one with `.Bl @words` has one for each word that --help lists (formats, verbs). Text below `.It --frequency`
# follows that item's own text; items without such text are not in the source. A name that --help does not have ends
# the program with status 1, and so does a list that is not printed exactly once.

function refuse(text) {
    print "verb.awk: " name ": " text >"/dev/stderr"
    failed = 1
    exit 1
}

# A text of --help as lines of a manual page. Words that it lists, or has in front of a colon, are values and stay as they
# are.
function sentence(text) {
    gsub(/\\/, "\\e", text)
    gsub(/--/, "\\-\\-", text)
    if (text ~ /^[a-z]+[ ,;]/ && text !~ /^[a-z]+, [a-z]+, /) {
        text = toupper(substr(text, 1, 1)) substr(text, 2)
    }
    return (text ~ /^[.']/ ? "\\&" : "") text (text ~ /[.:?]$/ ? "" : ".")
}

# One word of a command line, as the arguments of a macro.
function word(text,    more) {
    if (text == "|") {
        return text
    }
    if (text ~ /^-/) {
        return "Fl " substr(text, 2)
    }
    if (text ~ /\[,.*\]$/) {
        sub(/\[.*/, "", text)
        return "Ar " text " Ns Op , Ns Ar " text
    }
    more = sub(/\.\.\.$/, "", text)
    return "Ar " text (more ? " ..." : "")
}

function print_synopsis(usage,    count, words, i, line, part) {
    count = split(usage, words, " ")
    for (i = 1; i <= count; i++) {
        part = words[i]
        if (sub(/^\[/, "", part)) {
            line = ".Op"
            while (i < count && part !~ /\]$/) {
                line = line " " word(part)
                part = words[++i]
            }
            sub(/\]$/, "", part)
            print line " " word(part)
        } else {
            print "." word(part)
        }
    }
}

function print_head() {
    print ".Dt " toupper(name) " 1\n.Os cpu-profilerd\n.Sh NAME\n.Nm " name "\n.Nd " summary "\n.Sh SYNOPSIS"
    if (name == "profctl") {
        print ".Nm"
    } else {
        sub(/^[a-z]+ /, "", usage)
        print ".Nm \"profctl " substr(name, 9) "\""
    }
    print_synopsis(usage)
}

# ".It Fl F , -frequency Ar HZ" of "-F, --frequency HZ", and what --help says of it.
function print_option(i,    count, words, j, line) {
    if (title[i] != "") {
        print ".El\n.Pp\n" sentence(title[i]) "\n.Bl -tag -width Ds"
    }
    line = ".It"
    count = split(left[i], words, " ")
    for (j = 1; j <= count; j++) {
        if (sub(/,$/, "", words[j])) {
            line = line " " word(words[j]) " ,"
        } else {
            line = line " " (line ~ /,$/ ? substr(words[j], 2) : word(words[j]))
        }
    }
    print line "\n" sentence(text[i])
}

function print_word(i) {
    print (name == "profctl" ? ".It Xr profctl-" left[i] " 1" : ".It Cm " left[i]) "\n" sentence(text[i])
}

function print_list(kind,    i, key) {
    print ".Bl -tag -width " (kind == "@words" ? "\"perf-script\"" : "Ds")
    for (i = 1; i <= entry_count; i++) {
        if (kind_of[i] == kind) {
            if (kind == "@options") {
                print_option(i)
            } else {
                print_word(i)
            }
            printed[i]++
            printf "%s", more[long_name[i]]
            delete more[long_name[i]]
        }
    }
    for (key in more) {
        refuse("--help has no " key)
    }
    print ".El"
}

# ---- what --help prints

FNR == NR && FNR == 1 {
    usage = $0
    sub(/^usage: profctl /, "", usage)
    next
}

# An option, or a word that is explained, and its text behind two spaces or more.
FNR == NR && /^  ( *-|[a-z-]+  )/ && match(substr($0, 3), /[^ ]   */) {
    line = $0
    sub(/^ +/, "", line)
    match(line, /   */)
    entry_count++
    left[entry_count] = substr(line, 1, RSTART - 1)
    text[entry_count] = substr(line, RSTART + RLENGTH)
    kind_of[entry_count] = line ~ /^-/ ? "@options" : "@words"
    count = split(left[entry_count], words, / |, /)
    long_name[entry_count] = count > 1 && words[2] ~ /^--/ ? words[2] : words[1]
    title[entry_count] = kind_of[entry_count] == "@options" ? paragraph : ""
    paragraph = ""
    in_entry = 1
    next
}

FNR == NR && in_entry && /^        / {
    sub(/^ +/, "")
    text[entry_count] = text[entry_count] "\n" $0
    next
}

FNR == NR {
    in_entry = 0
    paragraph = $0 == "" ? "" : paragraph (paragraph == "" ? "" : "\n") $0
    next
}

# ---- the source

/^\.Dd / {
    print
    print_head()
    next
}

/^\.Bl @/ {
    list = $2
    key = ""
    next
}

list != "" && /^\.It / {
    key = $2
    more[key] = ""
    next
}

list != "" && /^\.El/ {
    print_list(list)
    list = ""
    next
}

list != "" {
    more[key] = more[key] $0 "\n"
    next
}

{ print }

END {
    for (i = 1; i <= entry_count && !failed; i++) {
        if (printed[i] != 1) {
            refuse("the page does not have " left[i] " exactly once")
        }
    }
    if (failed) {
        exit 1
    }
}
