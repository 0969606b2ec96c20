# Calls on files, by LD_PRELOAD. What it shares with lib/inject/locks is in lib/inject/preload.
sv_inject(io)
target_sources(stave_inject_io PRIVATE lib/inject/preload/preload.c lib/inject/preload/stacks.c lib/inject/preload/waits.c)
add_executable(io_play EXCLUDE_FROM_ALL tests/inject/io/io_play.c)
target_link_libraries(io_play PRIVATE sv_flags Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(io_play PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/inject)
add_dependencies(tests io_play)
