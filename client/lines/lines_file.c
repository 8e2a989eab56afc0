/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Paths come from the recording, and names of further files from files, so they may lead to
 * anything: regular_file_open() opens none but regular files. Of each only the build-id is
 * believed. A file that needs another (dwz) is nothing without it: libdw would then look for one by
 * name.
 */
#include "lines_file.h"

#include "cleanup.h"
#include "regular_file.h"

#include <elfutils/libdwelf.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DEBUG_FOLDER "/usr/lib/debug"

/* Debugging information of more than this, as it is once decompressed, is not read. */
#define SECTIONS_BYTES_MAX ((uint64_t)16 << 30)

/* Where a search has got to. */
struct search {
    const char *module; /* borrowed, as the next */
    const struct lines_build_id *build_id;
    struct lines_remote *remote;
    bool is_alternate;
    struct lines_file *found; /* owned */
    bool has_broken;
};

static struct lines_file *find_alternate(const struct search *parent,
                                         const struct lines_file *file);

struct lines_file *lines_file_free(struct lines_file *file)
{
    if (file != NULL) {
        (void)dwarf_end(file->dwarf);
        (void)elf_end(file->elf);
        (void)close_fd(file->fd);
        file->alternate = lines_file_free(file->alternate);
        free(file->path);
        free(file);
    }
    return NULL;
}

void lines_file_freep(struct lines_file **file)
{
    *file = lines_file_free(*file);
}

/* Whether it is a sane amount that the sections take in memory. */
static bool has_sane_sections(Elf *elf)
{
    uint64_t sum_bytes = 0;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        GElf_Chdr compressed;
        if (gelf_getshdr(section, &header) == NULL || header.sh_type == SHT_NOBITS) {
            continue;
        }
        bool is_compressed =
            (header.sh_flags & SHF_COMPRESSED) != 0 && gelf_getchdr(section, &compressed) != NULL;
        uint64_t size_bytes = is_compressed ? compressed.ch_size : header.sh_size;
        if (size_bytes > SECTIONS_BYTES_MAX - sum_bytes) {
            return false;
        }
        sum_bytes += size_bytes;
    }
    return true;
}

static int begin_elf(int fd, struct lines_file **ret)
{
    struct stat status;
    cleanup_(lines_file_freep) struct lines_file *file = calloc(1, sizeof *file);
    if (file == NULL) {
        (void)close_fd(fd);
        return -ENOMEM;
    }
    file->fd = fd;
    if (elf_version(EV_CURRENT) == EV_NONE || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
        return -EBADMSG;
    }
    file->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    GElf_Ehdr header;
    if (file->elf == NULL || elf_kind(file->elf) != ELF_K_ELF ||
        gelf_getehdr(file->elf, &header) == NULL) {
        return -EBADMSG;
    }
    *ret = take_ptr(file);
    return 0;
}

/* Opens the debugging information: -ENOENT where there is none. */
static int begin_dwarf(struct lines_file *file)
{
    Dwarf_CU *next = NULL;
    if (!has_sane_sections(file->elf)) {
        return -EBADMSG;
    }
    file->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
    if (file->dwarf == NULL ||
        dwarf_get_units(file->dwarf, NULL, &next, NULL, NULL, NULL, NULL) != 0) {
        return -ENOENT;
    }
    return 0;
}

int lines_file_open(int fd, struct lines_file **ret)
{
    cleanup_(lines_file_freep) struct lines_file *file = NULL;
    int r = begin_elf(fd, &file);
    if (r == 0) {
        r = begin_dwarf(file);
    }
    if (r == 0) {
        const char *name = NULL;
        const void *id = NULL;
        r = dwelf_dwarf_gnu_debugaltlink(file->dwarf, &name, &id) == 0 ? 0 : -ENOENT;
    }
    if (r == 0) {
        *ret = take_ptr(file);
    }
    return r;
}

static bool is_wanted(Elf *elf, const struct lines_build_id *build_id)
{
    const void *id = NULL;
    ssize_t id_bytes = dwelf_elf_gnu_build_id(elf, &id);
    return id_bytes > 0 && (size_t)id_bytes == build_id->size_bytes &&
           memcmp(id, build_id->bytes, build_id->size_bytes) == 0;
}

/* The file that holds what several share, if this one needs it. False: it does, and is lost. */
static bool add_alternate(const struct search *search, struct lines_file *file)
{
    const char *name = NULL;
    const void *id = NULL;
    ssize_t id_bytes = dwelf_dwarf_gnu_debugaltlink(file->dwarf, &name, &id);
    if (id_bytes == 0) {
        return true;
    }
    if (id_bytes < 0 || search->is_alternate) {
        return false;
    }
    file->alternate = find_alternate(search, file);
    if (file->alternate != NULL) {
        dwarf_setalt(file->dwarf, file->alternate->dwarf);
    }
    return file->alternate != NULL;
}

/* Takes the file if it is the one; else `*ret_link` (free()) names another where it tells one. */
static int try_descriptor(struct search *search, int fd, const char *path, char **ret_link)
{
    cleanup_(lines_file_freep) struct lines_file *file = NULL;
    int r = begin_elf(fd, &file);
    if (r < 0 || !is_wanted(file->elf, search->build_id)) {
        return r == -ENOMEM ? r : 0;
    }
    file->path = strdup(path);
    if (file->path == NULL) {
        return -ENOMEM;
    }
    r = begin_dwarf(file);
    if (r == 0 && add_alternate(search, file)) {
        search->found = take_ptr(file);
        return 0;
    }
    search->has_broken |= r != -ENOENT;
    GElf_Word checksum = 0;
    const char *link = ret_link == NULL ? NULL : dwelf_elf_gnu_debuglink(file->elf, &checksum);
    if (link != NULL && link[0] != '\0' && strchr(link, '/') == NULL) {
        *ret_link = strdup(link);
    }
    return 0;
}

static int try_path(struct search *search, const char *path, char **ret_link)
{
    if (search->found != NULL) {
        return 0;
    }
    int fd = regular_file_open(path);
    return fd < 0 ? 0 : try_descriptor(search, fd, path, ret_link);
}

__attribute__((format(printf, 2, 3))) static int try_format(struct search *search,
                                                            const char *format, ...)
{
    cleanup_(freep) char *path = NULL;
    va_list args;
    va_start(args, format);
    int path_bytes = vasprintf(&path, format, args);
    va_end(args);
    if (path_bytes < 0) {
        path = NULL;
        return -ENOMEM;
    }
    return try_path(search, path, NULL);
}

/* Where distributions keep them: named by the build-id, its first byte a folder. */
static int try_debug_folder(struct search *search)
{
    char hex[2 * LINES_BUILD_ID_BYTES_MAX + 1] = "";
    for (size_t i = 0; i < search->build_id->size_bytes; i++) {
        (void)sprintf(hex + 2 * i, "%02x", search->build_id->bytes[i]);
    }
    return try_format(search, DEBUG_FOLDER "/.build-id/%.2s/%s.debug", hex, hex + 2);
}

static int try_module(struct search *search)
{
    cleanup_(freep) char *link = NULL;
    if (search->module[0] != '/') {
        return try_debug_folder(search);
    }
    int r = try_path(search, search->module, &link);
    if (r == 0) {
        r = try_debug_folder(search);
    }
    if (r < 0 || search->found != NULL || link == NULL) {
        return r;
    }
    int folder_bytes = (int)(strrchr(search->module, '/') - search->module);
    const char *folder = search->module;
    r = try_format(search, "%.*s/%s", folder_bytes, folder, link);
    if (r == 0) {
        r = try_format(search, "%.*s/.debug/%s", folder_bytes, folder, link);
    }
    if (r == 0) {
        r = try_format(search, DEBUG_FOLDER "%.*s/%s", folder_bytes, folder, link);
    }
    return r;
}

static int try_remote(struct search *search)
{
    cleanup_(freep) char *path = NULL;
    int fd = -1;
    if (search->remote == NULL || search->found != NULL ||
        lines_remote_find(search->remote, search->build_id->bytes, search->build_id->size_bytes,
                          &fd, &path) < 0) {
        return 0;
    }
    return try_descriptor(search, fd, path, NULL);
}

static struct lines_file *find_alternate(const struct search *parent, const struct lines_file *file)
{
    const char *name = NULL;
    const void *id = NULL;
    struct lines_build_id build_id = {0};
    ssize_t id_bytes = dwelf_dwarf_gnu_debugaltlink(file->dwarf, &name, &id);
    if (id_bytes <= 0 || (size_t)id_bytes > sizeof build_id.bytes) {
        return NULL;
    }
    /* A name that is not absolute starts from the file's own folder. */
    cleanup_(freep) char *path = NULL;
    int folder_bytes = name[0] == '/' ? 0 : (int)(strrchr(file->path, '/') - file->path + 1);
    if (asprintf(&path, "%.*s%s", folder_bytes, file->path, name) < 0) {
        path = NULL;
        return NULL;
    }
    memcpy(build_id.bytes, id, (size_t)id_bytes);
    build_id.size_bytes = (size_t)id_bytes;
    struct search search = {
        .module = path,
        .build_id = &build_id,
        .remote = parent->remote,
        .is_alternate = true,
    };
    if (try_module(&search) == 0) {
        (void)try_remote(&search);
    }
    return search.found;
}

int lines_file_find(const char *module, const struct lines_build_id *build_id,
                    struct lines_remote *remote, struct lines_file **ret)
{
    struct search search = {.module = module, .build_id = build_id, .remote = remote};
    int r = try_module(&search);
    if (r == 0) {
        r = try_remote(&search);
    }
    if (search.found == NULL) {
        return r < 0 ? r : search.has_broken ? -EBADMSG : -ENOENT;
    }
    *ret = search.found;
    return 0;
}
