# SPDX-License-Identifier: Apache-2.0
add_executable(lines_probe system/lines_probe.c)
target_link_libraries(lines_probe PRIVATE house client_lines_reader)
target_sees_inside(lines_probe client_lines_reader)
add_executable(go_names_probe system/go_names_probe.c)
target_link_libraries(go_names_probe PRIVATE house symbolize)
add_executable(names_probe system/names_probe.c)
target_link_libraries(names_probe PRIVATE house modules client_profile)
add_executable(naming_probe system/naming_probe.c)
target_link_libraries(naming_probe PRIVATE house client_naming config)
add_executable(packets_probe system/packets_probe.c)
target_link_libraries(packets_probe PRIVATE house client_packets)
add_executable(recording_maker system/recording_maker.c)
target_link_libraries(recording_maker PRIVATE house fxt)

add_executable(perf_source_probe system/perf_source_probe.c)
target_link_libraries(perf_source_probe PRIVATE house perf)
add_executable(perf_stacks_probe system/perf_stacks_probe.c)
target_link_libraries(perf_stacks_probe PRIVATE house perf symbolize)
add_executable(ring_recorder system/ring_recorder.c)
target_link_libraries(ring_recorder PRIVATE house perf)
target_include_directories(ring_recorder PRIVATE unit) # ring_recording.h
add_executable(small_buffer_probe system/small_buffer_probe.c)
target_link_libraries(small_buffer_probe PRIVATE house profctl_lib)
add_executable(cpu_gaps system/cpu_gaps.c)
target_link_libraries(cpu_gaps PRIVATE house common Threads::Threads)
add_executable(under_filter system/under_filter.c)
target_link_libraries(under_filter PRIVATE house pkg::seccomp)
# Preloaded into programs with and without sanitizers, so they have none themselves.
foreach(name failing_memory held_up live_memory old_kernel small_machine)
    add_library(${name} MODULE system/${name}.c)
    target_link_libraries(${name} PRIVATE workload ${CMAKE_DL_LIBS})
    set_target_properties(${name} PROPERTIES PREFIX "")
endforeach()
foreach(name taken_over taken_over_unfiltered)
    add_library(${name} MODULE system/taken_over.c)
    target_link_libraries(${name} PRIVATE workload)
    target_include_directories(${name} PRIVATE workloads) # fuse_program.h
    set_target_properties(${name} PROPERTIES PREFIX "")
endforeach()
target_compile_definitions(taken_over_unfiltered PRIVATE WITHOUT_FILTER)

# These tests record nothing, so a lone test may run beside them.
foreach(name profctl_usage completions report_terminal lines_oracle lines_hostile lines_paths lines_reader unnamed_functions annotate go_names names_oracle crowded_socket
    export_formats push view flamegraph diff_page)
    add_system_test(${name} ${CMAKE_CURRENT_SOURCE_DIR}/system/${name}.sh)
endforeach()

system_test(cpus)
system_test(processes)
system_test(compat_vdso)
system_test(namespaces)
system_test(kernel_mode)
system_test(odd_pointer)
system_test(container_files)
system_test(forged_overlay)
system_test(forged_identity)
system_test(forged_image)
system_test(other_rights)
system_test(subvolumes)
system_test(long_mounts)
system_test(started_by_hand)
system_test(small_machine)
system_test(worker_killed)
system_test(worker_refused)
system_test(sanitized)
system_test(valgrind)
system_test(restart)
system_test(sampler_api)
system_test(report_views)
system_test(top)
system_test(docs_commands)
system_test(diff)
system_test(merge)
system_test(json_schemas)
system_test(root_ends)
system_test(packets)
system_test(start_stop_read)
system_test(groups)
system_test(filters)
system_test(reader_dies)
system_test(installed)
system_test(record_output)
system_test(asked_names)
system_test(stuck_names)
system_test(java_names)
system_test(lines_remote)
system_test(no_stack_bytes)
system_test(no_chain_bytes)
system_test(command_lines)
system_test(not_dumpable)
system_test(hostile_text)
system_test(owners)
system_test(segments)
system_test(stitched)
system_test(names)
system_test(deep_stacks)
system_test(service_sandbox)
system_test(service_watchdog)
system_test(service_socket)
system_test(service_limits)

# In this order: those that run in pairs come first, while unit tests and checks take what they leave of the CPUs, and the one
# that needs hardly any CPU is beside the one that needs most.
hanging_test(returned_files) # every daemon that looks at its program opens files that hang
hanging_test(paused_filesystem) # every daemon that looks at its program opens a file that hangs
lab_test(through_service) # runs deep_stacks, hostile_elf and forged_library again
hanging_test(stuck_process) # hangs every reader of /proc/PID/maps
lab_test(service) # needs a share of a CPU
hanging_test(stuck_openers) # hangs every reader of /proc/PID/maps
lab_test(service_push) # needs a share of a CPU
lab_test(service_doctor) # needs a share of a CPU
hanging_test(unanswered_stat) # an older daemon that looks at its programs would hang
waiting_test(capabilities) # in a lab, and gives its programs a low priority
waiting_test(service_schedule) # in a lab
waiting_test(kept_tables) # weighs the daemon's memory, but for what it learnt of files
waiting_test(memory_limit) # limits the daemon's memory
waiting_test(service_signals) # times the daemon
working_test(jitdump) # runs four programs that spin, and nearly all must be named
working_test(jitreuse) # runs six programs that spin, and some must be named
working_test(hostile_elf) # runs a dozen programs that spin, and their files may kill every worker of its daemon
working_test(phase) # needs a CPU, for shares to 5 standard deviations
working_test(forged_library) # needs a quarter of a CPU
lone_test(table_shares) # fills the table of every daemon
lone_test(crowded_proc) # takes the readers of every daemon
lone_test(kernel_code) # its names are as good as the list of symbols is early
lone_test(off_cpu) # no wait may be lost of bursts
lone_test(wait_names) # the same
lone_test(switched_off) # takes every CPU
lone_test(hostile_waits) # takes most of the CPUs
lone_test(events) # no sample may be lost of bursts
lone_test(followers) # no sample may be lost of bursts
lone_test(kept_streams) # needs both CPUs, and weighs the daemon's memory
lone_test(failing_memory) # loses no tick, and needs a share of a CPU
lone_test(hostile_jitdump) # loses no tick beside fifteen programs that spin
lone_test(lost_exec) # has every daemon lose records
lone_test(starved) # takes every CPU, and loses no tick
lone_test(storms) # takes the machine's pids, and many short programs must be named
lone_test(slow_files) # takes the CPUs that the programs of its victim need
lone_test(hostile_names) # fills the room for names in every recording

counting_test(perf_source_counts) # counts every tick, as the kernel does
counting_test(known_split) # needs both CPUs, and counts every tick
counting_test(hostile_clients) # weighs the memory of the daemon, which keeps what it learnt of files of programs that start
counting_test(doctor) # changes sysctls
counting_test(planted_links) # changes a sysctl
counting_test(books) # counts idle ticks, and lowers a sysctl
counting_test(hostile_map) # takes both CPUs, and no tick of the machine may be lost
counting_test(hotplug) # takes a CPU offline

# One writes to /etc/subuid, the other mounts a file there.
foreach(name crowded_socket stuck_openers)
    set_property(TEST system.${name} APPEND PROPERTY RESOURCE_LOCK subuid)
endforeach()
# The longest begin first, on a fresh clone too, where ctest has no measurements.
foreach(name filters start_stop_read service_limits top docs_commands record_output)
    set_tests_properties(system.${name} PROPERTIES COST 50)
endforeach()
