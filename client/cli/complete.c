/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Completions, from the table of a verb's options: their names, and the words, processes, users,
 * units or files that may be their values, as `argument` calls these. What the shell already has of
 * the word chooses among them. Only what is one word and can be printed is offered; what this user
 * may not see is not there. The shells' own scripts (completions/) know nothing but how to ask.
 */
#include "complete.h"

#include "text_out.h"
#include "unit_glob.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMM_BYTES       64
#define PATH_BYTES       ((size_t)4096)
#define CGROUP_DEPTH_MAX 8U
#define UNITS_MAX        4096U

/* The word at the cursor: what is offered begins with it, and `before` stands in front of that. */
struct completion {
    FILE *file;
    const char *before; /* of "--pid=7,12" it is "--pid=7,"; it has `before_bytes` */
    size_t before_bytes;
    const char *begun; /* borrowed: what the user has typed of the value */
};

/* Whether a value is one word of what shells pass on as it is. A name with other characters would
 * have to be quoted as the shell at hand does, and may be another user's. */
static bool is_word(const char *value)
{
    for (; *value != '\0'; value++) {
        if (!isalnum((unsigned char)*value) && strchr("-_./:@%+,=\\", *value) == NULL) {
            return false;
        }
    }
    return true;
}

static void offer(const struct completion *completion, const char *value, const char *text)
{
    if (!is_word(value) || strncmp(value, completion->begun, strlen(completion->begun)) != 0) {
        return;
    }
    (void)fprintf(completion->file, "%.*s%s", (int)completion->before_bytes, completion->before,
                  value);
    if (text != NULL) {
        (void)fputc('\t', completion->file);
        text_print_bytes(completion->file, text, strcspn(text, "\n"));
    }
    (void)fputc('\n', completion->file);
}

static bool is_number(const char *text)
{
    return text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
}

/* Reads a task's name; "" when it has ended. */
static void read_comm(int folder_fd, const char *task, char into[COMM_BYTES])
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/comm", task);
    int fd = openat(folder_fd, path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? 0 : read(fd, into, COMM_BYTES - 1);
    into[bytes < 0 ? 0 : bytes] = '\0';
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* Offers the numbers in a folder of /proc, which are processes, or threads of one. */
static void offer_tasks(const struct completion *completion, const char *path, bool has_threads)
{
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char comm[COMM_BYTES];
        char threads[PATH_BYTES];
        if (!is_number(entry->d_name)) {
            continue;
        }
        if (has_threads) {
            (void)snprintf(threads, sizeof threads, "%s/%s/task", path, entry->d_name);
            offer_tasks(completion, threads, false);
            continue;
        }
        read_comm(dirfd(folder), entry->d_name, comm);
        offer(completion, entry->d_name, comm);
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

static void offer_users(const struct completion *completion)
{
    setpwent();
    for (const struct passwd *user; (user = getpwent()) != NULL;) {
        offer(completion, user->pw_name, NULL);
    }
    endpwent();
}

/* Where control groups are: of version 2, or of that beside version 1. */
static const char *cgroup_root(void)
{
    return access("/sys/fs/cgroup/cgroup.procs", F_OK) == 0 ? "/sys/fs/cgroup"
                                                            : "/sys/fs/cgroup/unified";
}

/* Offers the units below a control group; `left` is how many more are looked at. */
static void offer_units(const struct completion *completion, const char *path, unsigned depth,
                        unsigned *left)
{
    DIR *folder = depth > CGROUP_DEPTH_MAX ? NULL : opendir(path);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char below[PATH_BYTES];
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || *left == 0) {
            continue;
        }
        (*left)--;
        if (unit_glob_is_unit(entry->d_name)) {
            offer(completion, entry->d_name, NULL);
        }
        if ((size_t)snprintf(below, sizeof below, "%s/%s", path, entry->d_name) < sizeof below) {
            offer_units(completion, below, depth + 1, left);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

/* Offers the control groups in the folder that the word has so far: "/system.slice/". */
static void offer_cgroups(const struct completion *completion)
{
    char path[PATH_BYTES];
    const char *slash = strrchr(completion->begun, '/');
    if (slash == NULL) {
        offer(completion, "/", NULL);
        return;
    }
    size_t bytes = (size_t)(slash - completion->begun) + 1;
    (void)snprintf(path, sizeof path, "%s/%.*s", cgroup_root(), (int)bytes, completion->begun);
    struct completion below = {
        completion->file, completion->before_bytes > 0 ? completion->before : completion->begun,
        completion->before_bytes + bytes, completion->begun + bytes};
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            offer(&below, entry->d_name, NULL);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

static bool is_argument(const struct verb_option *option, const char *name)
{
    return strncmp(option->argument, name, strlen(name)) == 0;
}

/* What may be the value of an option. */
static void offer_values(struct completion completion, const struct verb_option *option)
{
    const char *comma = strrchr(completion.begun, ',');
    unsigned units_left = UNITS_MAX;
    if (option->choice != NULL) {
        for (size_t i = 0; option->choice(i) != NULL; i++) {
            offer(&completion, option->choice(i), NULL);
        }
        return;
    }
    if (option->letter == 'G') {
        offer_cgroups(&completion);
        return;
    }
    if (is_argument(option, "FILE") || is_argument(option, "PATH")) {
        (void)fputs(":files\n", completion.file);
        return;
    }
    if (comma != NULL) {
        if (completion.before_bytes == 0) {
            completion.before = completion.begun;
        }
        completion.before_bytes += (size_t)(comma - completion.begun) + 1;
        completion.begun = comma + 1;
    }
    if (is_argument(option, "PID") || is_argument(option, "TID")) {
        offer_tasks(&completion, "/proc", is_argument(option, "TID"));
    } else if (is_argument(option, "USER")) {
        offer_users(&completion);
    } else if (option->letter == 'U') {
        offer_units(&completion, cgroup_root(), 0, &units_left);
    }
}

/* The option that a word names, as "-p", "--pid" or "--pid=7"; NULL: none that takes a value. */
static const struct verb_option *find_valued(const struct command_line *line, const char *word)
{
    for (const struct verb_option *option = line->options; option->help != NULL; option++) {
        bool is_letter = word[0] == '-' && option->letter != '\0' && word[1] == option->letter &&
                         word[2] == '\0';
        bool is_name = strncmp(word, "--", 2) == 0 && option->name != NULL &&
                       strlen(option->name) == strcspn(word + 2, "=") &&
                       strncmp(word + 2, option->name, strlen(option->name)) == 0;
        if ((is_letter || is_name) && option->argument != NULL) {
            return option;
        }
    }
    return NULL;
}

static void offer_option(const struct completion *completion, char letter, const char *name,
                         const char *help)
{
    char word[COMM_BYTES];
    if (name != NULL) {
        (void)snprintf(word, sizeof word, "--%s", name);
    } else {
        (void)snprintf(word, sizeof word, "-%c", letter);
    }
    offer(completion, word, help);
}

static void offer_options(const struct completion *completion, const struct command_line *line)
{
    for (const struct verb_option *option = line->options; option->help != NULL; option++) {
        if (option->letter != '\0' || option->name != NULL) {
            offer_option(completion, (char)option->letter, option->name, option->help);
        }
    }
    offer_option(completion, 'h', "help", "list the options");
}

void complete_print(FILE *file, const struct command_line *line, size_t count, char **words)
{
    struct completion completion = {file, "", 0, count > 0 ? words[count - 1] : ""};
    for (size_t i = 0; i + 1 < count; i++) {
        if (strcmp(words[i], "--") == 0) {
            (void)fputs(line->has_command && i + 2 == count ? ":commands\n" : ":files\n", file);
            return;
        }
    }
    const struct verb_option *option = count > 1 ? find_valued(line, words[count - 2]) : NULL;
    const char *equals = strchr(completion.begun, '=');
    if (option == NULL && completion.begun[0] == '-' && equals != NULL) {
        completion.before = completion.begun;
        completion.before_bytes = (size_t)(equals - completion.begun) + 1;
        completion.begun = equals + 1;
        option = find_valued(line, completion.before);
        if (option != NULL) {
            offer_values(completion, option);
        }
    } else if (option != NULL) {
        offer_values(completion, option);
    } else if (completion.begun[0] == '-' || (line->operand == NULL && !line->has_command)) {
        offer_options(&completion, line);
    } else if (line->operand != NULL) {
        (void)fputs(":files\n", file);
    }
}
