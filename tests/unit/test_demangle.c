/* SPDX-License-Identifier: Apache-2.0 */

/* Names as compilers write them, and ones that are made to do harm. */
#include "demangle.h"
#include "unit_test.h"

TEST(reads_what_compilers_write)
{
    static const struct {
        const char *name;
        const char *readable; /* NULL: it is what it is */
    } cases[] = {
        {"_ZN2v88internal7IsolateC1Ev", "v8::internal::Isolate::Isolate"},
        {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back"},
        {"_ZN1a1bEi.cold", "a::b"},
        {"_Z3fooi@plt", "foo@plt"},
        {"_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"},
        {"_ZN48_$LT$std..io..Stdin$u20$as$u20$std..io..Read$GT$4read17h0123456789abcdefE",
         "<std::io::Stdin as std::io::Read>::read"},
        {"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
        {"_RINvCs1234_7mycrate3fooNtB2_3BarE", "mycrate::foo::<mycrate::Bar>"},
        {"main", NULL},
        {"", NULL},
        {"_", NULL},
        {"_Z", NULL},
        {"_R", NULL},
        {"_ZN", NULL},
        {"__ZN1a1bEi", NULL},
        {"_start", NULL},
        {"_Zulu", NULL},
        {"JS:*hot /a.js:1", NULL},
        {"@plt", NULL},
        {"_Z@plt", NULL},
        {"read@plt", NULL},
    };
    struct demangler demangler = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char readable[DEMANGLED_BYTES_MAX] = "untouched";
        bool is_mangled = demangle_name(&demangler, cases[i].name, readable);
        if (is_mangled != (cases[i].readable != NULL)) {
            fail_msg("%s: %s", cases[i].name, readable);
        }
        assert_string_equal(readable, is_mangled ? cases[i].readable : "untouched");
    }
}

TEST(writes_valid_utf8_whatever_comes)
{
    struct demangler demangler = {0};
    char readable[DEMANGLED_BYTES_MAX];
    assert_true(demangle_name(&demangler,
                              "_ZN2\xc3\xa9"
                              "1\xa9"
                              "E",
                              readable));
    assert_string_equal(readable, "\xc3\xa9::\xef\xbf\xbd");
}

/* f<P<P<..>,P<..>>>: each parameter names the one before it twice. */
static void write_bomb(char *name, size_t room, int depth)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    int used = snprintf(name, room, "_Z1fI1PIiiE");
    for (int i = 0; i < depth; i++) {
        used += snprintf(name + used, room - (size_t)used, "S0_IS%c_S%c_E", digits[i + 1],
                         digits[i + 1]);
    }
    (void)snprintf(name + used, room - (size_t)used, "Evv");
}

TEST(gives_up_names_that_explode)
{
    struct demangler demangler = {0};
    char readable[DEMANGLED_BYTES_MAX] = "untouched";
    char name[1024];
    write_bomb(name, sizeof name, 3);
    assert_true(demangle_name(&demangler, name, readable));
    assert_int_equal(demangler.exploded_count, 0);
    write_bomb(name, sizeof name, 28);
    (void)snprintf(readable, sizeof readable, "untouched");
    for (unsigned i = 0; i < 100; i++) {
        assert_false(demangle_name(&demangler, name, readable));
    }
    assert_string_equal(readable, "untouched");
    assert_in_range(demangler.exploded_count, 1, 64);
    assert_false(demangle_name(&demangler, "_Z1fv", readable)); /* it has had its share */
}

TEST(survives_what_is_deep_or_long)
{
    static const char *const pieces[] = {"P", "N1a", "I", "F", "TB_", "R", "S_", "DpT_", "X", "L"};
    static const char *const heads[] = {"_Z1f", "_ZN", "_R", "_RINvC1a1b"};
    struct demangler demangler = {0};
    char name[8192];
    char readable[DEMANGLED_BYTES_MAX];
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        for (size_t j = 0; j < COUNT_OF(heads); j++) {
            for (size_t length = 16; length < sizeof name; length *= 2) {
                size_t used = (size_t)snprintf(name, sizeof name, "%s", heads[j]);
                while (used + strlen(pieces[i]) < length) {
                    used += (size_t)snprintf(name + used, sizeof name - used, "%s", pieces[i]);
                }
                (void)demangle_name(&demangler, name, readable);
            }
        }
    }
}
