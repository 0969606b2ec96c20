# Flags of all our code, in one interface library: sv_flags. Nothing here reaches users of the installed library.

option(SV_WERROR "warnings are errors" ON)
option(SV_SANITIZE_TRAP "a finding of UBSan ends the program by SIGILL, without its runtime library" OFF)
option(SV_FUZZ "fuzz targets are libFuzzer programs (needs clang)" OFF)
option(SV_COUNT "the program counts the blocks that it runs: tests/harness/count.c" OFF)
set(SV_SANITIZE "" CACHE STRING "comma-separated sanitizers for everything, e.g. address,undefined")

# Assertions stay on in every build type, hence no NDEBUG anywhere.
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
set(CMAKE_C_FLAGS_DEBUG "-Og -g3")
set(CMAKE_C_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer") # lines are enough for findings
set(CMAKE_C_FLAGS_COUNT "-O1")
foreach(type RELEASE DEBUG SANITIZE COUNT)
  set(CMAKE_CXX_FLAGS_${type} "${CMAKE_C_FLAGS_${type}}")
endforeach()

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON) # core is linked into libstave.so, too
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(sv_flags INTERFACE)
target_include_directories(sv_flags INTERFACE
  ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/lib ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(sv_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
target_compile_options(sv_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wvla -Wformat=2 -Wundef
  -Wpointer-arith -Wcast-qual -Wwrite-strings
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition>
  $<$<C_COMPILER_ID:GNU>:-Wlogical-op -Wduplicated-cond>
  -fno-strict-aliasing -fno-common -fstack-protector-strong
  -ffunction-sections -fdata-sections # libstave.so keeps only what it uses
  # No path of the building machine in a binary.
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
target_compile_options(sv_flags INTERFACE $<$<CONFIG:Release>:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2>)
target_link_options(sv_flags INTERFACE -Wl,-z,relro,-z,now -Wl,--as-needed)

if(SV_SANITIZE)
  target_compile_options(sv_flags INTERFACE -fsanitize=${SV_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(sv_flags INTERFACE -fsanitize=${SV_SANITIZE})
  if(SV_SANITIZE_TRAP)
    target_compile_options(sv_flags INTERFACE -fsanitize-trap=undefined)
    target_link_options(sv_flags INTERFACE -fsanitize-trap=undefined)
  endif()
elseif(SV_WERROR) # instrumented code confuses the compiler's flow analysis: there warnings are no errors
  target_compile_options(sv_flags INTERFACE -Werror)
endif()
if(SV_COUNT)
  target_compile_options(sv_flags INTERFACE -fsanitize-coverage=trace-pc)
endif()
if(SV_FUZZ)
  target_compile_options(sv_flags INTERFACE -fsanitize=fuzzer-no-link -fno-sanitize-coverage=trace-cmp -O2)
  target_compile_definitions(sv_flags INTERFACE SV_FUZZ)
endif()

# sv_count(<program>): links what counts (SV_COUNT only), itself not counted. The C library's loops over memory count by their bytes.
function(sv_count program)
  add_library(sv_counter OBJECT tests/harness/count.c)
  target_compile_definitions(sv_counter PRIVATE _GNU_SOURCE)
  target_link_libraries(${program} PRIVATE sv_counter)
  foreach(name memcpy memmove memset memcmp memchr memmem strlen strnlen strcmp strncmp strchr strstr)
    target_link_options(${program} PRIVATE -Wl,--wrap=${name})
  endforeach()
endfunction()
