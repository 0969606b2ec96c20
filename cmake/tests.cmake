# Unit tests, fuzz targets and benches: picked up from their folders like the rooms.

file(GLOB unit_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/*.c)
add_executable(unit tests/harness/test.c tests/harness/alloc.c ${unit_sources})
target_link_libraries(unit PRIVATE sv_cmd)
target_compile_definitions(unit PRIVATE TEST_SRC="${PROJECT_SOURCE_DIR}")
target_link_options(unit PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc) # tests/harness/alloc.c
set_target_properties(unit PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)

# With libFuzzer in the fuzz preset; elsewhere a small driver replays the files given to it.
file(GLOB fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
foreach(source ${fuzz_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE sv_cmd)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/fuzz)
  if(SV_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name} PRIVATE tests/harness/fuzz_main.c)
  endif()
endforeach()

file(GLOB bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.c)
foreach(source ${bench_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(bench_${name} ${source})
  target_link_libraries(bench_${name} PRIVATE sv_cmd)
  set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
endforeach()
