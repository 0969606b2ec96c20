# The Python package: the folder lib/python/ as build/python, with the extensions _stave and _serving beside the .py files. They load libstave.so.0: the
# one that the process has already, else the one beside it in the package, else the system's. So a C or C++ library of the same process and Python have
# one session. Without Python's headers it is left out, and said so.
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

# NAME FOLDER LIBRARIES…: the extension stave.NAME of these sources.
function(sv_python_extension target name folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lib/python/${folder}/*.c)
  add_library(${target} MODULE ${sources})
  target_link_libraries(${target} PRIVATE sv_flags ${ARGN} Threads::Threads ${CMAKE_DL_LIBS})
  target_compile_options(${target} PRIVATE -fno-plt) # an event makes six calls into libraries
  target_include_directories(${target} SYSTEM PRIVATE ${Python3_INCLUDE_DIRS})
  # Python's tables cast between functions and data, leave fields out and take literals as char *.
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS
    "-Wno-pedantic;-Wno-missing-field-initializers;-Wno-write-strings")
  target_link_options(${target} PRIVATE -Wl,--gc-sections -Wl,--exclude-libs,ALL
    -Wl,--version-script=${PROJECT_SOURCE_DIR}/lib/python/src/extension.map)
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${name} SUFFIX ".${Python3_SOABI}.so"
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/stave LINKER_LANGUAGE C
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/lib/python/src/extension.map)
  sv_run_path(${target} $ORIGIN)
  # Only in the Debian package, for Debian's Python: other interpreters use wheels.
  install(TARGETS ${target} LIBRARY DESTINATION lib/python3/dist-packages/stave COMPONENT python EXCLUDE_FROM_ALL)
endfunction()
sv_python_extension(stave_python _stave src stave stave_file)
sv_python_extension(stave_python_serving _serving src/serving stave_serving stave)

# The .py files are links: what is edited is what runs.
file(GLOB modules CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lib/python/stave/*.py ${PROJECT_SOURCE_DIR}/lib/python/stave/*.pyi
  ${PROJECT_SOURCE_DIR}/lib/python/stave/py.typed ${PROJECT_SOURCE_DIR}/lib/python/stave/compat/*.py
  ${PROJECT_SOURCE_DIR}/lib/python/stave/compat/*.pyi)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/python/stave/compat)
foreach(library libstave libstave-file libstave-read libstave-serving)
  set(name ${library}.so.${PROJECT_VERSION_MAJOR})
  file(CREATE_LINK ../../${name} ${CMAKE_BINARY_DIR}/python/stave/${name} SYMBOLIC)
endforeach()
foreach(module ${modules})
  file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/lib/python ${module})
  file(CREATE_LINK ${module} ${CMAKE_BINARY_DIR}/python/${name} SYMBOLIC)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/lib/python/stave DESTINATION lib/python3/dist-packages COMPONENT python EXCLUDE_FROM_ALL
  FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
file(WRITE ${CMAKE_BINARY_DIR}/python/interpreter "${Python3_EXECUTABLE}\n")
