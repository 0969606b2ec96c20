/* TracePacket: the payloads (messages, one per packet), with the names under which they are
 * reported. */
#ifndef SV_CORE_PERFETTO_PAYLOADS_H
#define SV_CORE_PERFETTO_PAYLOADS_H

/* clang-format off */
#define SV_PF_PAYLOADS(X)                                        \
    X(FTRACE_EVENTS, 1, "ftrace_events")                         \
    X(PROCESS_TREE, 2, "process_tree")                           \
    X(INODE_FILE_MAP, 4, "inode_file_map")                       \
    X(CHROME_EVENTS, 5, "chrome_events")                         \
    X(CLOCK_SNAPSHOT, 6, "clock_snapshot")                       \
    X(SYS_STATS, 7, "sys_stats")                                 \
    X(PROCESS_STATS, 9, "process_stats")                         \
    X(TRACK_EVENT, 11, "track_event")                            \
    X(TRACE_CONFIG, 33, "trace_config")                          \
    X(FTRACE_STATS, 34, "ftrace_stats")                          \
    X(TRACE_STATS, 35, "trace_stats")                            \
    X(SYNC_MARKER, 36, "synchronization_marker")                 \
    X(PROFILE_PACKET, 37, "profile_packet")                      \
    X(BATTERY, 38, "battery")                                    \
    X(ANDROID_LOG, 39, "android_log")                            \
    X(POWER_RAILS, 40, "power_rails")                            \
    X(PROCESS_DESCRIPTOR, 43, "process_descriptor")              \
    X(THREAD_DESCRIPTOR, 44, "thread_descriptor")                \
    X(SYSTEM_INFO, 45, "system_info")                            \
    X(TRIGGER, 46, "trigger")                                    \
    X(PACKAGES_LIST, 47, "packages_list")                        \
    X(CHROME_BENCHMARK_METADATA, 48, "chrome_benchmark_metadata") \
    X(METATRACE, 49, "perfetto_metatrace")                       \
    X(COMPRESSED, 50, "compressed_packets")                      \
    X(CHROME_METADATA, 51, "chrome_metadata")                    \
    X(GPU_COUNTER, 52, "gpu_counter_event")                      \
    X(GPU_STAGE, 53, "gpu_render_stage_event")                   \
    X(STREAMING_PROFILE, 54, "streaming_profile_packet")         \
    X(HEAP_GRAPH, 56, "heap_graph")                              \
    X(GRAPHICS_FRAME, 57, "graphics_frame_event")                \
    X(TRACK_DESCRIPTOR, 60, "track_descriptor")                  \
    X(MODULE_SYMBOLS, 61, "module_symbols")                      \
    X(VULKAN_MEMORY, 62, "vulkan_memory_event")                  \
    X(GPU_LOG, 63, "gpu_log")                                    \
    X(DEOBFUSCATION, 64, "deobfuscation_mapping")                \
    X(VULKAN_API, 65, "vulkan_api_event")                        \
    X(PERF_SAMPLE, 66, "perf_sample")                            \
    X(CPU_INFO, 67, "cpu_info")                                  \
    X(SMAPS, 68, "smaps_packet")                                 \
    X(SERVICE_EVENT, 69, "service_event")                        \
    X(INITIAL_DISPLAY_STATE, 70, "initial_display_state")        \
    X(GPU_MEM_TOTAL, 71, "gpu_mem_total_event")                  \
    X(EXTENSION_DESCRIPTOR, 72, "extension_descriptor")          \
    X(MEMORY_TRACKER, 73, "memory_tracker_snapshot")             \
    X(STREAMING_ALLOCATION, 74, "streaming_allocation")          \
    X(STREAMING_FREE, 75, "streaming_free")                      \
    X(FRAME_TIMELINE, 76, "frame_timeline_event")                \
    X(ENERGY_BREAKDOWN, 77, "android_energy_estimation_breakdown") \
    X(UI_STATE, 78, "ui_state")                                  \
    X(TRANSLATION_TABLE, 82, "translation_table")                \
    X(GAME_INTERVENTION, 83, "android_game_intervention_list")   \
    X(STATSD_ATOM, 84, "statsd_atom")                            \
    X(SYSTEM_PROPERTY, 86, "android_system_property")            \
    X(NETWORK_PACKET, 88, "network_packet")                      \
    X(TRACE_UUID, 89, "trace_uuid")                              \
    X(RANGE_OF_INTEREST, 90, "track_event_range_of_interest")    \
    X(ENTITY_STATE, 91, "entity_state_residency")                \
    X(NETWORK_BUNDLE, 92, "network_packet_bundle")               \
    X(SF_LAYERS, 93, "surfaceflinger_layers_snapshot")           \
    X(SF_TRANSACTIONS, 94, "surfaceflinger_transactions")        \
    X(ETW_EVENTS, 95, "etw_events")                              \
    X(SHELL_TRANSITION, 96, "shell_transition")                  \
    X(SHELL_HANDLERS, 97, "shell_handler_mappings")              \
    X(V8_JS_CODE, 99, "v8_js_code")                              \
    X(V8_INTERNAL_CODE, 100, "v8_internal_code")                 \
    X(V8_WASM_CODE, 101, "v8_wasm_code")                         \
    X(V8_REG_EXP_CODE, 102, "v8_reg_exp_code")                   \
    X(V8_CODE_MOVE, 103, "v8_code_move")                         \
    X(PROTOLOG_MESSAGE, 104, "protolog_message")                 \
    X(PROTOLOG_CONFIG, 105, "protolog_viewer_config")            \
    X(REMOTE_CLOCK_SYNC, 107, "remote_clock_sync")               \
    X(CHROME_TRIGGER, 109, "chrome_trigger")                     \
    X(PIXEL_MODEM, 110, "pixel_modem_events")                    \
    X(PIXEL_TOKENS, 111, "pixel_modem_token_database")           \
    X(WINSCOPE, 112, "winscope_extensions")                      \
    X(CLONE_TRIGGER, 113, "clone_snapshot_trigger")              \
    X(BLUETOOTH, 114, "bluetooth_trace_event")                   \
    X(KERNEL_WAKELOCK, 115, "kernel_wakelock_data")              \
    X(APP_WAKELOCK, 116, "app_wakelock_bundle")                  \
    X(KERNEL_TASK_STATE, 117, "generic_kernel_task_state_event") \
    X(KERNEL_CPU_FREQ, 118, "generic_kernel_cpu_freq_event")     \
    X(CPU_PER_UID, 119, "cpu_per_uid_data")                      \
    X(KERNEL_TASK_RENAME, 120, "generic_kernel_task_rename_event") \
    X(EVDEV, 121, "evdev_event")                                 \
    X(KERNEL_PROCESS_TREE, 122, "generic_kernel_process_tree")   \
    X(USER_LIST, 123, "user_list")                               \
    X(PROVENANCE, 124, "trace_provenance")                       \
    X(PROTOVMS, 125, "protovms")                                 \
    X(ATTRIBUTES, 126, "trace_attributes")                       \
    X(AFLAGS, 127, "android_aflags")                             \
    X(GPU_INFO, 128, "gpu_info")                                 \
    X(GPU_FREQUENCY, 129, "generic_gpu_frequency_event")         \
    X(INTERRUPT_INFO, 130, "interrupt_info")                     \
    X(ART_METADATA, 131, "art_process_metadata")                 \
    X(JOURNALD, 132, "journald_event")                           \
    X(ZSTD_COMPRESSED, 133, "zstd_compressed_packets")           \
    X(CONCURRENT_SESSION, 134, "concurrent_session_event")       \
    X(STACK_SAMPLE, 135, "stack_sample")                         \
    X(FOR_TESTING, 900, "for_testing")
/* clang-format on */

#define SV_PF_I_PAYLOAD_ENUM(name, id, text) SV_PF_PACKET_##name = id,
enum { SV_PF_PAYLOADS(SV_PF_I_PAYLOAD_ENUM) SV_PF_I_PAYLOAD_END };

#endif
