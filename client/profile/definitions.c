/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the tables that loading has filled. They are in the order of their segments and processes.
 */
#include "definitions.h"

#include "place_mapping.h"
#include "tables.h"

size_t defined_name_count(const struct profile *profile)
{
    return profile->tables->names.count;
}

void defined_name_at(const struct profile *profile, size_t number, struct defined_name *ret)
{
    const struct name *name = &profile->tables->names.names[number];
    bool is_process = name->tid == NAMES_PROCESS;
    *ret = (struct defined_name){
        .since_ns = name->since_ns,
        .pid = name->pid,
        .tid = is_process ? name->pid : name->tid,
        .text = name->item,
        .is_process = is_process,
    };
}

size_t defined_mapping_count(const struct profile *profile)
{
    return profile->tables->mappings.mapping_count;
}

void defined_mapping_at(const struct profile *profile, size_t number, struct defined_mapping *ret)
{
    const struct mapping *mapping = &profile->tables->mappings.mappings[number];
    *ret = (struct defined_mapping){
        .time_ns = mapping->time_ns,
        .pid = mapping->pid,
        .start = mapping->start,
        .last = mapping->last,
        .address = mapping->vaddr,
        .module = mapping->module,
    };
}

bool defined_function_find(const struct profile *profile, const struct profile_sample *sample,
                           const struct stack_place *place, struct defined_function *ret)
{
    const struct mapping *mapping = place_mapping(profile, sample, place);
    if (mapping == NULL) {
        return false;
    }
    uint64_t address = place_instruction(place) - mapping->start + mapping->vaddr;
    const struct symbol_entry *symbol =
        symbols_find(&profile->tables->symbols, mapping->symbols, address);
    if (symbol == NULL) {
        return false;
    }
    *ret = (struct defined_function){
        .start = symbol->start - mapping->vaddr + mapping->start,
        .size_bytes = symbol->size_bytes,
        .name = symbol->name,
    };
    return true;
}

size_t defined_symbol_count(const struct profile *profile)
{
    return profile->tables->symbols.count;
}

uint32_t defined_symbols(const struct profile *profile, uint32_t segment, uint32_t module)
{
    const struct profile_module *named = &profile->modules[module];
    return symbols_find_module(&profile->tables->symbols, segment,
                               profile_text(profile, named->build_id),
                               profile_text(profile, named->name));
}

uint32_t defined_symbol_find(const struct profile *profile, uint32_t symbols, uint64_t address)
{
    const struct symbol_entry *symbol =
        symbols == INTERN_NONE ? NULL : symbols_find(&profile->tables->symbols, symbols, address);
    return symbol == NULL ? INTERN_NONE : symbol->name;
}
