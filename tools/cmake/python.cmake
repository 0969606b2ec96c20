# The Python package: the folder lib/python/ as build/python, with the extension _stave beside the .py files. It carries libstave inside, as the
# package that pip builds does. Without Python's headers it is left out, and said so.
#
# Debian's own python3 is preferred, since its packages bring the headers and what the tests need; another one: -DPython3_EXECUTABLE=PATH.
option(SV_WITH_PYTHON "build the Python package" ${SV_OPTIONAL})
if(NOT SV_WITH_PYTHON)
  return()
endif()

if(NOT Python3_EXECUTABLE AND EXISTS /usr/bin/python3)
  set(Python3_EXECUTABLE /usr/bin/python3)
endif()
find_package(Python3 3.11 QUIET COMPONENTS Interpreter Development.Module)
if(NOT Python3_Development.Module_FOUND)
  message(NOTICE "python: no headers of Python 3.11 or later (package python3-dev), the Python package is left out")
  return()
endif()
message(STATUS "python: ${Python3_VERSION}")

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lib/python/src/*.c)
add_library(stave_python MODULE ${sources} $<TARGET_OBJECTS:sv_sdk> $<TARGET_OBJECTS:sv_file> lib/sdk/standalone/compress_by_name.c)
target_link_libraries(stave_python PRIVATE sv_flags sv_core_small Threads::Threads ${CMAKE_DL_LIBS})
target_include_directories(stave_python SYSTEM PRIVATE ${Python3_INCLUDE_DIRS})
# Python's tables cast between functions and data, leave fields out and take literals as char *.
set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS
  "-Wno-pedantic;-Wno-missing-field-initializers;-Wno-write-strings")
target_link_options(stave_python PRIVATE -Wl,--gc-sections -Wl,--exclude-libs,ALL
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/lib/python/src/extension.map)
set_target_properties(stave_python PROPERTIES PREFIX "" OUTPUT_NAME _stave SUFFIX ".${Python3_SOABI}.so"
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/stave LINKER_LANGUAGE C
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/lib/python/src/extension.map)

# The .py files are links: what is edited is what runs.
file(GLOB modules CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lib/python/stave/*.py ${PROJECT_SOURCE_DIR}/lib/python/stave/*.pyi
  ${PROJECT_SOURCE_DIR}/lib/python/stave/py.typed)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/python/stave)
foreach(module ${modules})
  get_filename_component(name ${module} NAME)
  file(CREATE_LINK ${module} ${CMAKE_BINARY_DIR}/python/stave/${name} SYMBOLIC)
endforeach()
# stave.load() finds it there, as in a wheel.
file(CREATE_LINK ../../libstave-read.so ${CMAKE_BINARY_DIR}/python/stave/libstave-read.so SYMBOLIC)
file(WRITE ${CMAKE_BINARY_DIR}/python/interpreter "${Python3_EXECUTABLE}\n")
