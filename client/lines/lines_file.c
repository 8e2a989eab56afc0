/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libelf and libdw on one descriptor. A file that needs another (dwz) is not whole without it, and
 * must not be read: libdw would then look for the other one by name.
 */
#include "lines_file.h"

#include "cleanup.h"

#include <elfutils/libdwelf.h>

#include <string.h>
#include <sys/stat.h>

/* Debugging information of more than this, as it is once decompressed, is not read. */
#define SECTIONS_BYTES_MAX ((uint64_t)16 << 30)

struct lines_file *lines_file_free(struct lines_file *file)
{
    if (file != NULL) {
        (void)dwarf_end(file->dwarf);
        (void)elf_end(file->elf);
        (void)close_fd(file->fd);
        file->alternate = lines_file_free(file->alternate);
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

static bool is_of_texts(const char *name)
{
    return name != NULL && strstr(name, "_offsets") == NULL &&
           (strstr(name, "debug_str") != NULL || strstr(name, "debug_line_str") != NULL);
}

/* Whether the last text of each section of texts ends in it: libdw returns one that does not.
 * One that is still compressed is none that libdw has taken. */
static bool have_texts_ends(Elf *elf)
{
    size_t names = 0;
    if (elf_getshdrstrndx(elf, &names) != 0) {
        return false;
    }
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == NULL || header.sh_type == SHT_NOBITS ||
            (header.sh_flags & SHF_COMPRESSED) != 0 ||
            !is_of_texts(elf_strptr(elf, names, header.sh_name))) {
            continue;
        }
        const Elf_Data *data = elf_getdata(section, NULL);
        if (data != NULL && data->d_buf != NULL && data->d_size > 0 &&
            ((const char *)data->d_buf)[data->d_size - 1] != '\0') {
            return false;
        }
    }
    return true;
}

static int begin_elf(struct lines_file *file)
{
    struct stat status;
    GElf_Ehdr header;
    if (elf_version(EV_CURRENT) == EV_NONE || fstat(file->fd, &status) < 0 ||
        !S_ISREG(status.st_mode)) {
        return -EBADMSG;
    }
    file->elf = elf_begin(file->fd, ELF_C_READ_MMAP, NULL);
    return file->elf == NULL || elf_kind(file->elf) != ELF_K_ELF ||
                   gelf_getehdr(file->elf, &header) == NULL
               ? -EBADMSG
               : 0;
}

/* Opens the debugging information: -ENOENT where there is none, -EBADMSG where it is not sane. */
static int begin_dwarf(struct lines_file *file)
{
    Dwarf_CU *next = NULL;
    if (!has_sane_sections(file->elf)) {
        return -EBADMSG;
    }
    file->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
    bool is_sane = file->dwarf == NULL || have_texts_ends(file->elf);
    if (file->dwarf != NULL && is_sane &&
        dwarf_get_units(file->dwarf, NULL, &next, NULL, NULL, NULL, NULL) == 0) {
        return 0;
    }
    (void)dwarf_end(file->dwarf);
    file->dwarf = NULL;
    return is_sane ? -ENOENT : -EBADMSG;
}

/* Copies an identity that fits; else the answer has none. */
static uint32_t copy_id(uint8_t into[LINES_BUILD_ID_BYTES_MAX], const void *id, ssize_t id_bytes)
{
    if (id_bytes <= 0 || id_bytes > LINES_BUILD_ID_BYTES_MAX) {
        return 0;
    }
    memcpy(into, id, (size_t)id_bytes);
    return (uint32_t)id_bytes;
}

static void copy_text(char *into, size_t capacity_bytes, const char *text)
{
    size_t text_bytes = text == NULL ? 0 : strnlen(text, capacity_bytes);
    if (text_bytes < capacity_bytes) {
        memcpy(into, text == NULL ? "" : text, text_bytes);
        into[text_bytes] = '\0';
    }
}

/* A needed file that cannot be told makes this one unreadable. */
static void describe_alternate(struct lines_file *file, struct lines_about *about)
{
    const char *name = NULL;
    const void *id = NULL;
    ssize_t id_bytes = dwelf_dwarf_gnu_debugaltlink(file->dwarf, &name, &id);
    if (id_bytes > 0) {
        about->alternate_id_bytes = copy_id(about->alternate_id, id, id_bytes);
        copy_text(about->alternate, sizeof about->alternate, name);
    }
    if (id_bytes != 0 && about->alternate_id_bytes == 0) {
        about->state = -EBADMSG;
    }
}

struct lines_file *lines_file_begin(int fd, struct lines_about *ret_about)
{
    const void *id = NULL;
    GElf_Word checksum = 0;
    cleanup_(lines_file_freep) struct lines_file *file = calloc(1, sizeof *file);
    *ret_about = (struct lines_about){.state = -EBADMSG};
    if (file == NULL) {
        (void)close_fd(fd);
        return NULL;
    }
    file->fd = fd;
    if (begin_elf(file) < 0) {
        return NULL;
    }
    ssize_t id_bytes = dwelf_elf_gnu_build_id(file->elf, &id);
    ret_about->build_id_bytes = copy_id(ret_about->build_id, id, id_bytes);
    ret_about->state = begin_dwarf(file);
    if (file->dwarf != NULL) {
        describe_alternate(file, ret_about);
    }
    const char *link = dwelf_elf_gnu_debuglink(file->elf, &checksum);
    if (link != NULL && strchr(link, '/') == NULL) {
        copy_text(ret_about->link, sizeof ret_about->link, link);
    }
    return take_ptr(file);
}

void lines_file_share(struct lines_file *file, struct lines_file *alternate)
{
    if (file->dwarf == NULL || alternate->dwarf == NULL) {
        (void)lines_file_free(alternate);
        return;
    }
    dwarf_setalt(file->dwarf, alternate->dwarf);
    (void)lines_file_free(file->alternate);
    file->alternate = alternate;
}

bool lines_file_is_whole(const struct lines_file *file)
{
    const char *name = NULL;
    const void *id = NULL;
    return file->dwarf != NULL &&
           (file->alternate != NULL || dwelf_dwarf_gnu_debugaltlink(file->dwarf, &name, &id) == 0);
}
