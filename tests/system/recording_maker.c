/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes a recording that no daemon would write, to standard output. Standard input says what is in
 * it, a record a line; texts and build-ids are hexadecimal digits, so that they may be anything:
 *
 *   segment TEXT             the first line: the name of the provider
 *   string INDEX TEXT
 *   name PID TID TEXT        TID 0: of the process
 *   module PID ID TEXT BUILD_ID
 *   mmap PID ID START SIZE_BYTES
 *   segment_mmap PID ID START SIZE_BYTES VADDR
 *   sample TIME_NS PID ADDRESS
 *   stack TIME_NS PID TID CPU QUALITY USER KERNEL
 *                            USER and KERNEL: addresses, leaf first, with commas between them
 *   event TIME_NS PID TID CPU EVENT WEIGHT USER KERNEL
 *                            a stack of another event than the clock, whole
 *   partial TIME_NS PID TID ID USER
 *   completion ID USER       the user stack, its rest behind that of the partials
 *   drops CPU FIRST_NS LAST_NS COUNT
 *   data INDEX TEXT          INDEX: of a string that every segment knows
 *   named_data NAME TEXT     NAME: as it is
 *
 * "-" is an empty text, or no stack. A module's addresses begin with 0 where its mmap does, with
 * VADDR where its segment_mmap does.
 */
#include "fxt_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES  ((size_t)1 << 17)
#define WORDS_MAX   9
#define STACK_MAX   ((size_t)510)
#define BYTES_MAX   ((size_t)64 << 20)
#define COMPLETE    UINT64_C(1)
#define FLAGS_R_X   5
#define PROVIDER_ID 1

struct text {
    char bytes[LINE_BYTES / 2];
    size_t size_bytes;
};

static void refuse(const char *what)
{
    (void)fprintf(stderr, "recording_maker: %s\n", what);
    exit(EXIT_FAILURE);
}

static struct text text;     /* the last word of the line that is one, before its record is made */
static struct text build_id; /* of a module */

static void read_text(struct text *into, const char *word)
{
    into->size_bytes = strcmp(word, "-") == 0 ? 0 : strlen(word) / 2;
    for (size_t i = 0; i < into->size_bytes; i++) {
        const char digits[3] = {word[2 * i], word[2 * i + 1], '\0'};
        into->bytes[i] = (char)strtoul(digits, NULL, 16);
    }
    into->bytes[into->size_bytes] = '\0';
}

static uint64_t number(const char *word)
{
    return strtoull(word, NULL, 0);
}

static void write_module(struct fxt_writer *writer, char *const *words)
{
    read_text(&build_id, words[4]);
    const struct fxt_module module = {
        .pid = number(words[1]),
        .module_id = (uint16_t)number(words[2]),
        .name = text.bytes,
        .name_bytes = text.size_bytes,
        .build_id = (const uint8_t *)build_id.bytes,
        .build_id_bytes = (uint8_t)build_id.size_bytes,
    };
    fxt_write_module(writer, &module);
}

static void write_mmap(struct fxt_writer *writer, char *const *words)
{
    const struct fxt_mmap mmap = {
        .pid = number(words[1]),
        .module_id = (uint16_t)number(words[2]),
        .flags = FLAGS_R_X,
        .start = number(words[3]),
        .size_bytes = number(words[4]),
        .vaddr = words[5] == NULL ? 0 : number(words[5]),
    };
    fxt_write_mmap(writer, &mmap);
}

static void write_sample(struct fxt_writer *writer, char *const *words)
{
    const uint64_t address = number(words[3]);
    const struct fxt_sample sample = {
        .fields = FXT_SAMPLE_PID | FXT_SAMPLE_TID | FXT_SAMPLE_BOOT_TS | FXT_SAMPLE_USER_STACK |
                  FXT_SAMPLE_CPU | FXT_SAMPLE_QUALITY,
        .boot_ts_ns = number(words[1]),
        .pid = number(words[2]),
        .tid = number(words[2]),
        .cpu = 0,
        .quality = COMPLETE,
        .user_stack = &address,
        .user_count = 1,
    };
    fxt_write_sample(writer, &sample);
}

/* Reads the addresses of a stack. Returns how many there are. */
static size_t read_stack(char *word, uint64_t *stack)
{
    size_t count = 0;
    if (strcmp(word, "-") == 0) {
        return 0;
    }
    for (char *rest = word, *address = NULL; (address = strsep(&rest, ",")) != NULL;) {
        if (count == STACK_MAX) {
            refuse("a stack is too long");
        }
        stack[count++] = number(address);
    }
    return count;
}

static void write_stack(struct fxt_writer *writer, char *const *words)
{
    uint64_t user_stack[STACK_MAX];
    uint64_t kernel_stack[STACK_MAX];
    struct fxt_sample sample = {
        .fields = FXT_SAMPLE_PID | FXT_SAMPLE_TID | FXT_SAMPLE_BOOT_TS | FXT_SAMPLE_USER_STACK |
                  FXT_SAMPLE_CPU | FXT_SAMPLE_QUALITY,
        .boot_ts_ns = number(words[1]),
        .pid = number(words[2]),
        .tid = number(words[3]),
        .cpu = number(words[4]),
        .quality = number(words[5]),
        .user_stack = user_stack,
        .user_count = read_stack(words[6], user_stack),
        .kernel_stack = kernel_stack,
        .kernel_count = read_stack(words[7], kernel_stack),
    };
    sample.fields |= strcmp(words[7], "-") == 0 ? 0 : FXT_SAMPLE_KERNEL_STACK;
    fxt_write_sample(writer, &sample);
}

static void write_event(struct fxt_writer *writer, char *const *words)
{
    uint64_t user_stack[STACK_MAX];
    uint64_t kernel_stack[STACK_MAX];
    struct fxt_sample sample = {
        .fields = FXT_SAMPLE_PID | FXT_SAMPLE_TID | FXT_SAMPLE_BOOT_TS | FXT_SAMPLE_USER_STACK |
                  FXT_SAMPLE_CPU | FXT_SAMPLE_QUALITY | FXT_SAMPLE_EVENT | FXT_SAMPLE_WEIGHT,
        .boot_ts_ns = number(words[1]),
        .pid = number(words[2]),
        .tid = number(words[3]),
        .cpu = number(words[4]),
        .quality = COMPLETE,
        .event = number(words[5]),
        .weight = number(words[6]),
        .user_stack = user_stack,
        .user_count = read_stack(words[7], user_stack),
        .kernel_stack = kernel_stack,
        .kernel_count = read_stack(words[8], kernel_stack),
    };
    sample.fields |= strcmp(words[8], "-") == 0 ? 0 : FXT_SAMPLE_KERNEL_STACK;
    fxt_write_sample(writer, &sample);
}

static void write_partial(struct fxt_writer *writer, char *const *words)
{
    uint64_t stack[STACK_MAX];
    const struct fxt_sample sample = {
        .fields = FXT_SAMPLE_CONTINUATION | FXT_SAMPLE_PID | FXT_SAMPLE_TID | FXT_SAMPLE_BOOT_TS |
                  FXT_SAMPLE_USER_STACK,
        .boot_ts_ns = number(words[1]),
        .pid = number(words[2]),
        .tid = number(words[3]),
        .continuation = number(words[4]),
        .user_stack = stack,
        .user_count = read_stack(words[5], stack),
    };
    fxt_write_sample(writer, &sample);
}

static void write_completion(struct fxt_writer *writer, char *const *words)
{
    uint64_t stack[STACK_MAX];
    const struct fxt_sample sample = {
        .fields = FXT_SAMPLE_CONTINUATION_COMPLETION | FXT_SAMPLE_USER_STACK | FXT_SAMPLE_QUALITY,
        .continuation_completion = number(words[1]),
        .quality = COMPLETE,
        .user_stack = stack,
        .user_count = read_stack(words[2], stack),
    };
    fxt_write_sample(writer, &sample);
}

static void write_drops(struct fxt_writer *writer, char *const *words)
{
    fxt_write_drop_stats(writer, &(struct fxt_drop_stats){
                                     .cpu = number(words[1]),
                                     .first_ns = number(words[2]),
                                     .last_ns = number(words[3]),
                                     .record_count = (uint32_t)number(words[4]),
                                 });
}

static void write_line(struct fxt_writer *writer, char *const *words, size_t count)
{
    const struct {
        const char *kind;
        size_t count;
        size_t text; /* which word is one; 0: none */
    } kinds[] = {{"segment", 2, 1}, {"string", 3, 2},       {"name", 4, 3},
                 {"module", 5, 3},  {"mmap", 5, 0},         {"sample", 4, 0},
                 {"stack", 8, 0},   {"segment_mmap", 6, 0}, {"data", 3, 2},
                 {"partial", 6, 0}, {"completion", 3, 0},   {"drops", 5, 0},
                 {"event", 9, 0},   {"named_data", 3, 2}};
    size_t kind = 0;
    while (kind < sizeof kinds / sizeof *kinds && strcmp(words[0], kinds[kind].kind) != 0) {
        kind++;
    }
    if (kind == sizeof kinds / sizeof *kinds || count != kinds[kind].count) {
        refuse(words[0]);
    }
    if (kinds[kind].text > 0) {
        read_text(&text, words[kinds[kind].text]);
    }
    switch (kind) {
    case 0:
        fxt_write_segment_begin(writer, PROVIDER_ID, text.bytes);
        break;
    case 1:
        fxt_write_string(writer, (uint16_t)number(words[1]), text.bytes, text.size_bytes);
        break;
    case 2:
        fxt_write_name(writer, &(struct fxt_name){
                                   .pid = number(words[1]),
                                   .tid = number(words[2]),
                                   .name = {.text = text.bytes, .text_bytes = text.size_bytes}});
        break;
    case 3:
        write_module(writer, words);
        break;
    case 4:
    case 7:
        write_mmap(writer, words);
        break;
    case 5:
        write_sample(writer, words);
        break;
    case 6:
        write_stack(writer, words);
        break;
    case 9:
        write_partial(writer, words);
        break;
    case 10:
        write_completion(writer, words);
        break;
    case 11:
        write_drops(writer, words);
        break;
    case 12:
        write_event(writer, words);
        break;
    case 13:
        fxt_write_named_data(writer,
                             &(struct fxt_string){.text = words[1], .text_bytes = strlen(words[1])},
                             text.bytes, text.size_bytes);
        break;
    default:
        fxt_write_data(writer, (enum fxt_known_string)number(words[1]), text.bytes,
                       text.size_bytes);
        break;
    }
}

int main(void)
{
    static char line[LINE_BYTES];
    struct fxt_writer writer;
    void *bytes = malloc(BYTES_MAX);
    if (bytes == NULL) {
        refuse("there is not enough memory");
        return EXIT_FAILURE;
    }
    fxt_writer_init(&writer, bytes, BYTES_MAX);
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *words[WORDS_MAX] = {NULL};
        size_t count = 0;
        for (char *word = strtok(line, " \n"); word != NULL && count < WORDS_MAX;
             word = strtok(NULL, " \n")) {
            words[count++] = word;
        }
        if (count > 0) {
            write_line(&writer, words, count);
        }
        if (!fxt_writer_ok(&writer)) {
            refuse("a record does not fit, or breaks a limit of the format");
        }
    }
    bool is_written = fwrite(bytes, 1, writer.used_bytes, stdout) == writer.used_bytes;
    free(bytes);
    return is_written && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
