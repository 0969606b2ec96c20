# Waits for locks, by LD_PRELOAD. What it shares with lib/inject/io is in lib/inject/preload.
sv_inject(locks)
target_sources(stave_inject_locks PRIVATE lib/inject/preload/preload.c lib/inject/preload/stacks.c lib/inject/preload/waits.c)
add_executable(locks_play EXCLUDE_FROM_ALL tests/inject/locks/locks_play.c)
target_link_libraries(locks_play PRIVATE sv_flags Threads::Threads)
set_target_properties(locks_play PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/inject)
add_dependencies(tests locks_play)
