# Unit tests, fuzz targets and benches: picked up from their folders like the rooms. Not part of `all`: a user who only
# builds the program does not wait for them. The targets are `tests` and `benches`.
add_custom_target(tests)
add_custom_target(benches)

# sv_test_program(<target> <folder in the binary directory> <sources…>)
function(sv_test_program target folder)
  add_executable(${target} EXCLUDE_FROM_ALL ${ARGN})
  target_link_libraries(${target} PRIVATE sv_cmd)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${folder})
endfunction()

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/*.c)
sv_test_program(unit tests tests/harness/test.c tests/harness/alloc.c tests/harness/gen_events.c ${sources})
target_compile_definitions(unit PRIVATE TEST_SRC="${PROJECT_SOURCE_DIR}")
target_link_options(unit PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc) # tests/harness/alloc.c
add_dependencies(tests unit)

# With libFuzzer in the fuzz preset; elsewhere a small driver replays the files given to it.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  sv_test_program(${name} tests/fuzz ${source})
  if(SV_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name} PRIVATE tests/harness/fuzz_main.c)
  endif()
  add_dependencies(tests ${name})
endforeach()

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.c)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  sv_test_program(bench_${name} bench ${source})
  set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name})
  add_dependencies(benches bench_${name})
endforeach()
