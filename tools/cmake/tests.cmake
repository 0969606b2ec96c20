# Unit tests, fuzz targets and benches: picked up from their folders like the parts. Not part of `all`: a user who only
# builds the program does not wait for them. The targets are `tests` and `benches`.
add_custom_target(tests)
add_custom_target(benches)
add_custom_target(stress_programs) # what tests/stress/*.sh run; part of tests
add_custom_target(system_programs) # and tests/system/*.sh
add_custom_target(fuzz_targets)    # what tools/fuzz runs; part of tests
add_dependencies(tests stress_programs system_programs)

# sv_test_program(<target> <folder in the binary directory> <sources…>)
function(sv_test_program target folder)
  add_executable(${target} EXCLUDE_FROM_ALL ${ARGN})
  target_link_libraries(${target} PRIVATE sv_cmd)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${folder})
endfunction()

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/*.c)
sv_test_program(unit tests tests/harness/test.c tests/harness/alloc.c tests/harness/script_clock.c tests/harness/gen_events.c tests/harness/canon.c tests/harness/shape_check.c tests/harness/images.c ${sources} $<TARGET_OBJECTS:sv_file> $<TARGET_OBJECTS:sv_trace_writer>)
target_link_libraries(unit PRIVATE sv_server sv_serving sv_dep_grpc)
target_compile_definitions(unit PRIVATE TEST_SRC="${PROJECT_SOURCE_DIR}")
target_link_options(unit PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=fdopendir,--wrap=clock_gettime) # tests/harness/{alloc,script_clock}.c
add_dependencies(tests unit)

# With libFuzzer in the fuzz preset; elsewhere a small driver replays the files given to it.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
find_program(SV_LLD ld.lld)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  sv_test_program(${name} tests/fuzz ${source} tests/harness/shape_check.c tests/harness/images.c tests/harness/gen_events.c)
  target_link_libraries(${name} PRIVATE sv_server)
  if(SV_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    if(SV_LLD) # libFuzzer looks at the counters of all code after each input: only of what can be reached
      target_link_options(${name} PRIVATE -fuse-ld=lld -Wl,--gc-sections)
    endif()
    # The checks and mutators of the target are not what is covered.
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -fno-sanitize=fuzzer-no-link)
  else()
    target_sources(${name} PRIVATE tests/harness/fuzz_main.c)
  endif()
  add_dependencies(fuzz_targets ${name})
endforeach()
add_dependencies(tests fuzz_targets)

# sv_sdk_program(<target> <folder in the binary directory> <sources…>): links libstave.so, as users do.
function(sv_sdk_program target folder)
  add_executable(${target} EXCLUDE_FROM_ALL ${ARGN})
  target_link_libraries(${target} PRIVATE sv_flags stave_gpu stave Threads::Threads m)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${folder})
endfunction()

# sv_sdk_programs(<prefix of the targets> <folder> <target that needs them> <sources…>): one program per source, named like it.
function(sv_sdk_programs prefix folder needed_by)
  foreach(source ${ARGN})
    get_filename_component(name ${source} NAME_WE)
    sv_sdk_program(${prefix}_${name} ${folder} ${source})
    set_target_properties(${prefix}_${name} PROPERTIES OUTPUT_NAME ${name})
    if(name MATCHES "^(serving|continuous)")
      target_link_libraries(${prefix}_${name} PRIVATE stave_serving)
    elseif(name MATCHES "^trace_writer")
      target_link_libraries(${prefix}_${name} PRIVATE stave_file)
    endif()
    if(name MATCHES "^perfetto") # stave/file.h is in the archive
      set_target_properties(${prefix}_${name} PROPERTIES LINK_LIBRARIES "sv_flags;stave_static;Threads::Threads;m")
    endif()
    add_dependencies(${needed_by} ${prefix}_${name})
  endforeach()
endfunction()

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/stress/*.c ${PROJECT_SOURCE_DIR}/tests/stress/*.cpp)
sv_sdk_programs(stress tests/stress stress_programs ${sources})

# A collector uses the parts themselves, as commands do.
add_executable(stress_collector EXCLUDE_FROM_ALL tests/stress/collector/collector.c)
target_link_libraries(stress_collector PRIVATE sv_sdk)
set_target_properties(stress_collector PROPERTIES OUTPUT_NAME collector
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/stress)
add_dependencies(stress_programs stress_collector)

add_library(stress_plugin MODULE EXCLUDE_FROM_ALL tests/stress/plugin/plugin.c)
target_link_libraries(stress_plugin PRIVATE sv_flags stave)
set_target_properties(stress_plugin PROPERTIES PREFIX "" OUTPUT_NAME plugin
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/stress)
# The library linked statically; with the plugin, which brings the shared one, two copies in one process.
add_executable(stress_life_static EXCLUDE_FROM_ALL tests/stress/life.c)
target_link_libraries(stress_life_static PRIVATE sv_flags stave_static Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(stress_life_static PROPERTIES OUTPUT_NAME life_static
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/stress)
add_dependencies(stress_programs stress_plugin stress_life_static stave_functions) # functions.sh links the last one
# Hosts and plugins with copies of the library, in every combination: hostile_host.sh.
foreach(copy so a none)
  add_executable(stress_copies_${copy} EXCLUDE_FROM_ALL tests/stress/copies/copies.c)
  target_link_libraries(stress_copies_${copy} PRIVATE sv_flags Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(stress_copies_${copy} PROPERTIES OUTPUT_NAME copies_${copy} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/stress)
  add_dependencies(stress_programs stress_copies_${copy})
endforeach()
target_link_libraries(stress_copies_so PRIVATE stave)
target_link_libraries(stress_copies_a PRIVATE stave_static)
foreach(copy so a)
  target_compile_definitions(stress_copies_${copy} PRIVATE COPIES_HOST)
endforeach()
foreach(copy a b)
  add_library(stress_plugin_${copy} MODULE EXCLUDE_FROM_ALL tests/stress/plugin/plugin.c)
  target_link_libraries(stress_plugin_${copy} PRIVATE sv_flags stave_static Threads::Threads)
  set_target_properties(stress_plugin_${copy} PROPERTIES PREFIX "" OUTPUT_NAME plugin_${copy} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/stress)
  add_dependencies(stress_programs stress_plugin_${copy})
endforeach()

# Workloads for the tests of the recorder: plain programs, without the library.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/system/*.c)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(system_${name} EXCLUDE_FROM_ALL ${source})
  if(name MATCHES "^stacks") # unwound without them
    target_compile_options(system_${name} PRIVATE -O2 -g -fomit-frame-pointer)
  else() # stacks are walked by frame pointers
    target_compile_options(system_${name} PRIVATE -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer)
  endif()
  target_link_libraries(system_${name} PRIVATE sv_flags Threads::Threads)
  set_target_properties(system_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/system)
  add_dependencies(system_programs system_${name})
endforeach()

# An NVML for machines without NVIDIA; found by LD_LIBRARY_PATH.
add_library(fake_nvml MODULE EXCLUDE_FROM_ALL tests/system/fake/fake_nvml.c)
target_link_libraries(fake_nvml PRIVATE sv_flags)
set_target_properties(fake_nvml PROPERTIES PREFIX "" OUTPUT_NAME libnvidia-ml SUFFIX .so.1
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/fake)
add_dependencies(system_programs fake_nvml)

# Loaded by a Python program.
add_library(system_gil MODULE EXCLUDE_FROM_ALL tests/system/turns/gil.c)
target_link_libraries(system_gil PRIVATE sv_flags)
set_target_properties(system_gil PROPERTIES PREFIX "" OUTPUT_NAME gil LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/system)
add_dependencies(system_programs system_gil)

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c ${PROJECT_SOURCE_DIR}/examples/*.cpp)
sv_sdk_programs(example examples tests ${sources})

# What the suites unit, fuzz, golden and cli run: `make test` runs them again under ASan, where a build costs a minute.
add_custom_target(input_tests)
add_dependencies(input_tests stave_program unit fuzz_targets stress_lossy stress_numbers stress_gpu_feed stress_epochs stress_paced
  example_layers example_training example_continuous_batching)

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.c)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  if(name MATCHES "^(sdk|serving)")
    sv_sdk_program(bench_${name} bench ${source})
  else()
    sv_test_program(bench_${name} bench ${source})
  endif()
  set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name})
  if(name MATCHES "^serving")
    target_link_libraries(bench_${name} PRIVATE stave_serving)
  endif()
  add_dependencies(benches bench_${name})
endforeach()
