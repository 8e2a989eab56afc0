/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What becomes of a file that is written beside and renamed, whatever happens on the way.
 */
#include "output.h"
#include "unit_test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

static char folder[64];

static const char *in_folder(const char *name, char *into)
{
    (void)snprintf(into, 128, "%s/%s", folder, name);
    return into;
}

static int make_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/test_output-XXXXXX");
    return mkdtemp(folder) == NULL ? -1 : 0;
}

/* Counts the folder's files, and removes them and it. */
static size_t remove_folder(void)
{
    size_t count = 0;
    char path[128];
    DIR *listing = opendir(folder);
    assert_non_null(listing);
    for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        if (entry->d_name[0] != '.') {
            count++;
            assert_true(unlink(in_folder(entry->d_name, path)) == 0);
        }
    }
    assert_int_equal(closedir(listing), 0);
    assert_int_equal(rmdir(folder), 0);
    return count;
}

static void assert_content(const char *path, const char *expected)
{
    char text[64] = "";
    gzFile file = gzopen(path, "rb"); /* reads what is not compressed too */
    assert_non_null(file);
    assert_int_equal(gzread(file, text, sizeof text - 1), strlen(expected));
    assert_int_equal(gzclose(file), Z_OK);
    assert_string_equal(text, expected);
}

static char path[128]; /* of what a test writes */

static void make_file(const char *at, const char *text)
{
    FILE *file = fopen(at, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static mode_t mode_of(const char *at)
{
    struct stat status;
    assert_int_equal(lstat(at, &status), 0);
    return status.st_mode;
}

/* Opens a file of the folder, at `path` then, and writes to it. */
static struct output *begin(const char *name, const char *text)
{
    struct output *output = NULL;
    assert_int_equal(output_open(in_folder(name, path), &output, NULL), 0);
    assert_int_equal(output_write(output, text, strlen(text), NULL), 0);
    return output;
}

static void finish(struct output *output)
{
    assert_int_equal(output_finish(output, NULL), 0);
    (void)output_free(output);
}

TEST_WITH(names_a_file_only_when_it_is_whole, make_folder, NULL)
{
    struct output *output = begin("a", "hello");
    assert_int_equal(access(path, F_OK), -1);
    finish(output);
    assert_content(path, "hello");
    assert_int_equal(mode_of(path) & 0777, 0600);
    assert_int_equal(remove_folder(), 1);
}

TEST_WITH(leaves_the_old_file_when_it_is_given_up, make_folder, NULL)
{
    make_file(in_folder("a", path), "old");
    (void)output_free(begin("a", "new"));
    assert_content(path, "old");
    assert_int_equal(remove_folder(), 1);
}

TEST_WITH(leaves_what_it_replaces_as_old, make_folder, NULL)
{
    static const struct {
        const char *before;
        bool is_left;
    } cases[] = {{"first", true}, {"second", true}, {"", false}};
    char old[128];
    (void)in_folder("a.old", old);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        make_file(in_folder("a", path), cases[i].before);
        struct output *output = begin("a", "new");
        output_leave_old(output);
        assert_int_equal(output_finish(output, NULL), 0);
        assert_content(path, "new");
        if (cases[i].is_left) {
            assert_string_equal(output_old_path(output), old);
            assert_content(old, cases[i].before);
            char expected[512];
            (void)snprintf(expected, sizeof expected, "what %s was before is %s now%s\n", path, old,
                           i > 0 ? ", in place of an older one" : "");
            EXPECT_PRINTED(expected, output_print_old(file, output));
        } else {
            assert_null(output_old_path(output));
        }
        (void)output_free(output);
    }
    assert_content(old, "second");
    assert_int_equal(remove_folder(), 2);
}

TEST_WITH(loses_no_file_that_cannot_be_renamed, make_folder, NULL)
{
    char old[128];
    struct fault fault = {0};
    make_file(in_folder("a", path), "old");
    assert_int_equal(mkdir(in_folder("a.old", old), 0700), 0);
    struct output *output = begin("a", "new");
    output_leave_old(output);
    assert_int_equal(output_finish(output, &fault), -EISDIR);
    (void)output_free(output);
    assert_content(path, "new");
    assert_contains(fault.text, "that file is /tmp/test_output-");
    assert_int_equal(rmdir(old), 0);
    assert_int_equal(remove_folder(), 2);
}

/* As on a file system that exchanges no names, where no name begins with what is set here. */
static const char *unnamed_begin;

int renameat2(int old_fd, const char *old_path, int new_fd, const char *new_path,
              unsigned int flags)
{
    if (unnamed_begin != NULL) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_renameat2, old_fd, old_path, new_fd, new_path, flags);
}

int rename(const char *old_path, const char *new_path)
{
    if (unnamed_begin != NULL && strstr(old_path, unnamed_begin) != NULL) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_renameat2, AT_FDCWD, old_path, AT_FDCWD, new_path, 0);
}

TEST_WITH(keeps_the_file_where_names_cannot_be_exchanged, make_folder, NULL)
{
    static const struct {
        const char *unnamed;
        int expected;
        const char *content;
        const char *older; /* what a.old is before; NULL: it is not there */
        const char *old_content;
        const char *says;
    } cases[] = {
        {"no such name", 0, "new", NULL, "old", NULL},
        {"no such name", 0, "new", "older", "old", NULL},
        {"a.partial-", -EIO, "old", "older", "older", "a cannot be written: "},
        {"/a.", -EIO, "old", "older", "older", "a cannot be written: "},
        {"/a.", -EIO, NULL, NULL, "old", "a.old now"},
    };
    char old[128];
    (void)in_folder("a.old", old);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fault fault = {0};
        make_file(in_folder("a", path), "old");
        if (cases[i].older != NULL) {
            make_file(old, cases[i].older);
        }
        struct output *output = begin("a", "new");
        output_leave_old(output);
        unnamed_begin = cases[i].unnamed;
        assert_int_equal(output_finish(output, &fault), cases[i].expected);
        unnamed_begin = NULL;
        (void)output_free(output);
        if (cases[i].content != NULL) {
            assert_content(path, cases[i].content);
        }
        if (cases[i].old_content != NULL) {
            assert_content(old, cases[i].old_content);
        }
        if (cases[i].says != NULL) {
            assert_contains(fault.text, cases[i].says);
        }
        assert_int_equal(remove_folder(), cases[i].content == NULL ? 1 : 2);
        assert_int_equal(mkdir(folder, 0700), 0);
    }
    (void)remove_folder();
}

TEST_WITH(tells_whether_it_has_the_file_that_it_replaces, make_folder, NULL)
{
    struct output *output = NULL;
    uint64_t mark = 0;
    make_file(in_folder("a", path), "one");
    assert_int_equal(output_resume(path, "tag", &output, &mark, NULL), 0);
    assert_int_equal(output_copy(output, NULL), 0);
    assert_false(output_is_left(path, "tag"));
    assert_int_equal(output_write(output, "two", 3, NULL), 0);
    assert_int_equal(output_mark(output, 1, NULL), 0);
    assert_true(output_is_left(path, "tag"));
    assert_true(output_has_copy(output));
    make_file(path, "one!");
    assert_false(output_has_copy(output));
    make_file(path, "onetwo and more");
    assert_false(output_has_copy(output));
    assert_int_equal(unlink(path), 0);
    assert_true(output_has_copy(output));
    output_discard(output);
    (void)output_free(output);
    assert_int_equal(remove_folder(), 0);
}

TEST_WITH(begins_with_the_file_that_it_replaces, make_folder, NULL)
{
    static const char *const names[] = {"a", "a.gz"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        finish(begin(names[i], "one"));
        struct output *output = NULL;
        assert_int_equal(output_open(path, &output, NULL), 0);
        assert_int_equal(output_copy(output, NULL), 0);
        assert_int_equal(output_write(output, "two", 3, NULL), 0);
        finish(output);
        assert_content(path, "onetwo");
    }
    struct output *output = NULL;
    struct fault fault = {0};
    make_file(path, "plain");
    assert_int_equal(output_open(path, &output, NULL), 0);
    assert_int_equal(output_copy(output, &fault), -EINVAL);
    assert_contains(fault.text, "a.gz is not compressed");
    (void)output_free(output);
    assert_int_equal(remove_folder(), 2);
}

TEST_WITH(replaces_what_a_link_means_and_keeps_its_mode, make_folder, NULL)
{
    char target[128];
    make_file(in_folder("a", target), "");
    assert_int_equal(chmod(target, 0640), 0);
    assert_int_equal(symlink("a", in_folder("link", path)), 0);
    finish(begin("link", "new"));
    assert_content(target, "new");
    assert_true(S_ISLNK(mode_of(path)));
    assert_int_equal(mode_of(target) & 0777, 0640);
    assert_int_equal(remove_folder(), 2);
}

TEST_WITH(makes_the_file_that_a_link_means, make_folder, NULL)
{
    char target[128];
    char other[128];
    (void)in_folder("a", target);
    assert_int_equal(symlink("a", in_folder("second", other)), 0);
    assert_int_equal(symlink(other, in_folder("first", path)), 0);
    struct output *output = begin("first", "new");
    assert_memory_equal(output_temporary_name(output), target, strlen(target));
    finish(output);
    assert_content(target, "new");
    assert_true(S_ISLNK(mode_of(path)) && S_ISLNK(mode_of(other)));
    assert_int_equal(remove_folder(), 3);
}

TEST_WITH(goes_on_with_the_file_that_a_link_means, make_folder, NULL)
{
    struct output *output = NULL;
    uint64_t mark = 0;
    assert_int_equal(symlink("a", in_folder("link", path)), 0);
    assert_int_equal(output_resume(path, "tag", &output, &mark, NULL), 0);
    assert_int_equal(output_write(output, "hello", 5, NULL), 0);
    assert_int_equal(output_mark(output, 5, NULL), 0);
    (void)output_free(output);
    assert_true(output_is_left(path, "tag"));
    assert_int_equal(output_resume(path, "tag", &output, &mark, NULL), 0);
    assert_int_equal(mark, 5);
    finish(output);
    assert_true(S_ISLNK(mode_of(path)));
    assert_content(in_folder("a", path), "hello");
    assert_int_equal(remove_folder(), 2);
}

TEST_WITH(refuses_links_that_lead_nowhere, make_folder, NULL)
{
    static const struct {
        const char *target;
        int code;
        const char *said;
    } cases[] = {{"link", ELOOP, "Too many levels of symbolic links; name another file"},
                 {"missing/a", ENOENT, "missing/a cannot be written: No such file or directory"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct output *output = NULL;
        struct fault fault = {0};
        assert_int_equal(symlink(cases[i].target, in_folder("link", path)), 0);
        assert_int_equal(output_open(path, &output, &fault), -cases[i].code);
        assert_contains(fault.text, cases[i].said);
        assert_true(S_ISLNK(mode_of(path)));
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(remove_folder(), 0);
}

TEST_WITH(keeps_what_it_has_under_a_name_that_it_tells, make_folder, NULL)
{
    char kept[128];
    struct output *output = begin("a.gz", "hello");
    const char *name = output_keep(output);
    assert_non_null(name);
    (void)snprintf(kept, sizeof kept, "%s", name);
    (void)output_free(output);
    assert_int_equal(access(path, F_OK), -1);
    assert_content(kept, "hello");
    assert_int_equal(remove_folder(), 1);
}

TEST_WITH(keeps_no_empty_file, make_folder, NULL)
{
    struct output *output = NULL;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit nothing = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(output_open(in_folder("a.gz", path), &output, NULL), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &nothing), 0);
    int r = output_write(output, "hello", 5, NULL);
    const char *name = output_keep(output);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
    assert_int_equal(r, -EFBIG);
    assert_null(name);
    (void)output_free(output);
    assert_int_equal(remove_folder(), 0);
}

TEST_WITH(compresses, make_folder, NULL)
{
    struct output *output = begin("a.gz", "hello ");
    for (size_t i = 1; i < 5; i++) {
        assert_int_equal(output_write(output, "hello ", 6, NULL), 0);
    }
    assert_int_equal(output_finish(output, NULL), 0);
    assert_in_range(output_size_bytes(output), 18, 1000);
    (void)output_free(output);
    assert_content(path, "hello hello hello hello hello ");
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fgetc(file), 0x1f);
    assert_int_equal(fgetc(file), 0x8b);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(remove_folder(), 1);
}

TEST_WITH(tells_of_a_full_disk, make_folder, NULL)
{
    struct output *output = NULL;
    struct fault fault = {0};
    assert_int_equal(output_open("/dev/full", &output, NULL), 0);
    assert_int_equal(output_write(output, "hello", 5, &fault), -ENOSPC);
    assert_string_equal(fault.text, "/dev/full cannot be written: No space left on device; "
                                    "free some room, or name another file with -o");
    assert_null(output_keep(output));
    (void)output_free(output);
    /* And through a stream, which has a buffer. */
    assert_int_equal(output_open("/dev/full", &output, NULL), 0);
    assert_true(fputs("hello", output_stream(output)) >= 0);
    fault = (struct fault){0};
    assert_int_equal(output_finish(output, &fault), -ENOSPC);
    assert_contains(fault.text, "No space left on device");
    (void)output_free(output);
    assert_int_equal(access("/dev/full", F_OK), 0);
    assert_int_equal(remove_folder(), 0);
}

TEST_WITH(refuses_folders_and_missing_folders, make_folder, NULL)
{
    struct output *output = NULL;
    struct fault fault = {0};
    assert_int_equal(output_open(folder, &output, &fault), -EISDIR);
    assert_contains(fault.text, "is a directory");
    assert_int_equal(output_open(in_folder("missing/a", path), &output, &fault), -ENOENT);
    assert_contains(fault.text, "missing/a cannot be written");
    assert_null(output);
    assert_int_equal(remove_folder(), 0);
}

/* Opens, writes and marks as a reader does, then ends as one that is killed in the next write.
 * Returns how many bytes are marked. */
static uint64_t write_and_die(uint64_t expected_mark, const char *text, uint64_t mark,
                              const char *unmarked)
{
    struct output *output = NULL;
    uint64_t found = 99;
    assert_int_equal(output_resume(path, "tag", &output, &found, NULL), 0);
    assert_int_equal(found, expected_mark);
    assert_int_equal(output_write(output, text, strlen(text), NULL), 0);
    assert_int_equal(output_mark(output, mark, NULL), 0);
    uint64_t marked_bytes = output_size_bytes(output);
    char *name = strdup(output_temporary_name(output));
    (void)output_free(output); /* which cuts it */
    FILE *file = fopen(name, "a");
    assert_non_null(file);
    assert_true(fputs(unmarked, file) >= 0);
    assert_int_equal(fclose(file), 0);
    free(name);
    return marked_bytes;
}

TEST_WITH(goes_on_behind_the_last_mark, make_folder, NULL)
{
    static const char *const names[] = {"a", "a.gz"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct output *output = NULL;
        struct stat status;
        uint64_t mark = 0;
        (void)in_folder(names[i], path);
        (void)write_and_die(0, "one ", 7, "lost");
        uint64_t marked_bytes = write_and_die(7, "two ", 8, "lost as well");
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(output_resume(path, "tag", &output, &mark, NULL), 0);
        assert_int_equal(mark, 8);
        assert_int_equal(output_size_bytes(output), marked_bytes);
        assert_int_equal(stat(output_temporary_name(output), &status), 0);
        assert_int_equal(status.st_size, marked_bytes);
        assert_int_equal(output_write(output, "three", 5, NULL), 0);
        assert_int_equal(output_mark(output, 9, NULL), 0);
        assert_int_equal(output_write(output, " four", 5, NULL), 0);
        finish(output);
        assert_content(path, "one two three four");
    }
    assert_int_equal(remove_folder(), 2);
}

TEST_WITH(keeps_what_is_marked_and_removes_what_has_no_mark, make_folder, NULL)
{
    struct output *output = NULL;
    uint64_t mark = 0;
    (void)in_folder("a", path);
    assert_int_equal(output_resume(path, "tag", &output, &mark, NULL), 0);
    assert_int_equal(output_write(output, "one", 3, NULL), 0);
    (void)output_free(output);
    assert_int_equal(output_resume(path, "tag", &output, &mark, NULL), 0);
    assert_int_equal(mark, 0);
    assert_int_equal(output_write(output, "one", 3, NULL), 0);
    assert_int_equal(output_mark(output, 5, NULL), 0);
    assert_int_equal(output_write(output, "two", 3, NULL), 0);
    char *kept = strdup(output_temporary_name(output));
    (void)output_free(output);
    assert_contains(kept, "/a.partial-tag-5-3");
    assert_content(kept, "one");
    free(kept);
    assert_int_equal(remove_folder(), 1);
}

TEST_WITH(goes_on_with_nothing_that_another_has_put_there, make_folder, NULL)
{
    /* Shorter than its name says; a link; names that are not of this file or this tag. */
    static const struct {
        const char *name;
        bool is_link;
        int result;
    } cases[] = {
        {"a.partial-tag-5-4", false, -EEXIST}, {"a.partial-tag-5-0", true, -EEXIST},
        {"a.partial-tag-5-0", false, 0},       {"a.partial-tag-05-0", false, 0},
        {"a.partial-gat-5-0", false, 0},       {"b.partial-tag-5-0", false, 0},
        {"a.partial-tag-5-x", false, 0},       {"a.partial-tag--", false, 0},
        {"a.partial-XXXXXX", false, 0},
    };
    char other[128];
    char target[128];
    make_file(in_folder("target", target), "");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct output *output = NULL;
        struct fault fault = {0};
        uint64_t mark = 99;
        (void)in_folder(cases[i].name, other);
        if (cases[i].is_link) {
            assert_int_equal(symlink("target", other), 0);
        } else {
            make_file(other, "");
        }
        assert_int_equal(output_resume(in_folder("a", path), "tag", &output, &mark, &fault),
                         cases[i].result);
        bool is_taken = strcmp(cases[i].name, "a.partial-tag-5-0") == 0;
        assert_int_equal(mark, cases[i].result < 0 ? 99 : is_taken ? 5 : 0);
        (void)output_free(output);
        assert_int_equal(unlink(other), 0);
    }
    /* A pipe is not waited for. */
    struct output *output = NULL;
    struct fault fault = {0};
    uint64_t mark = 0;
    assert_int_equal(mkfifo(in_folder("a.partial-tag-5-0", other), 0600), 0);
    assert_int_equal(output_resume(in_folder("a", path), "tag", &output, &mark, &fault), -EEXIST);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(remove_folder(), 1);
}

/* Begins a file, which takes the place of another, and is ended by a signal or by itself. */
static void end_child(int signal_number, bool is_finished)
{
    struct fault fault = {0};
    struct output *output = begin("a", "new");
    output_remove_on_signals(output);
    output_leave_old(output);
    if (is_finished && output_finish(output, &fault) < 0) {
        _exit(EXIT_FAILURE);
    }
    (void)raise(signal_number);
    _exit(EXIT_SUCCESS);
}

TEST(removes_what_is_not_whole_when_a_signal_ends_it)
{
    static const struct {
        int number;
        bool is_ignored;
        bool is_finished;
        const char *content;
        size_t file_count;
    } cases[] = {
        {SIGINT, false, false, "old", 1}, {SIGTERM, false, false, "old", 1},
        {SIGHUP, false, false, "old", 1}, {SIGHUP, true, false, "old", 2},
        {SIGTERM, false, true, "new", 2},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int status = 0;
        assert_int_equal(make_folder(NULL), 0);
        make_file(in_folder("a", path), "old");
        (void)fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            (void)signal(cases[i].number, cases[i].is_ignored ? SIG_IGN : SIG_DFL);
            end_child(cases[i].number, cases[i].is_finished);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                         cases[i].is_ignored ? 0 : cases[i].number);
        assert_content(path, cases[i].content);
        assert_int_equal(remove_folder(), cases[i].file_count);
    }
}

TEST_WITH(follows_other_names_of_standard_output, make_folder, NULL)
{
    assert_string_equal(output_plain_path("/dev/stdout"), "-");
    assert_string_equal(output_plain_path("/dev/fd/1"), "-");
    assert_string_equal(output_plain_path("/dev/stdout/x"), "/dev/stdout/x");
    assert_string_equal(output_plain_path("a"), "a");
    assert_int_equal(remove_folder(), 0);
}
