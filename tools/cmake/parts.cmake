# A part is one or more folders of C files and becomes the static library sv_<part>; nobody keeps a list of files.
#
#   sv_part(<part> FOLDERS <folders…> [FILES <files…>] [LINKS <parts and libraries that it uses…>])

function(sv_part part)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FOLDERS;FILES;LINKS")
  sv_sources(sources ${arg_FOLDERS})
  add_library(sv_${part} STATIC ${sources} ${arg_FILES})
  target_link_libraries(sv_${part} PUBLIC sv_flags ${arg_LINKS})
endfunction()

# sv_sources(<variable> <folders…>): their C files, without the kernel programs, the words of subjects and the programs' main().
function(sv_sources variable)
  set(all)
  foreach(folder ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
    list(APPEND all ${sources})
  endforeach()
  list(FILTER all EXCLUDE REGEX "(/main\\.c|/subjects/[a-z]+/words\\.c|\\.bpf\\.c)$")
  set(${variable} ${all} PARENT_SCOPE)
endfunction()

# sv_run_path(<target> [folders…]): where something that is installed looks for libraries besides the system's folders, in the build tree and
# installed alike. Otherwise CMake ends the build tree's run path with a colon, to make place for the one that it writes when it installs; an
# empty element is the working directory, and a program that is started there loads what lies there.
function(sv_run_path target)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${ARGN}")
endfunction()
