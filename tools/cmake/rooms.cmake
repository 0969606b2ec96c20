# A room is a folder of C files and becomes the static library sv_<room>; nobody keeps a list of files.
#
#   sv_room(<room> [what it stands on…])
#
# A room without sources yet is an interface library, so that the rooms above it need not know.

function(sv_room room)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${room}/*.c)
  list(FILTER sources EXCLUDE REGEX "(/cmd/main\\.c|\\.bpf\\.c)$")
  if(sources)
    add_library(sv_${room} STATIC ${sources})
    target_link_libraries(sv_${room} PUBLIC sv_flags ${ARGN})
  else()
    add_library(sv_${room} INTERFACE)
    target_link_libraries(sv_${room} INTERFACE sv_flags ${ARGN})
  endif()
endfunction()

# sv_room_objects(<variable> <rooms…>): the object files of those rooms that have any.
function(sv_room_objects variable)
  set(objects)
  foreach(room ${ARGN})
    get_target_property(type sv_${room} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      list(APPEND objects $<TARGET_OBJECTS:sv_${room}>)
    endif()
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()

# sv_run_path(<target> [folders…]): where something that is installed looks for libraries besides the system's folders, in the build tree and
# installed alike. Otherwise CMake ends the build tree's run path with a colon, to make place for the one that it writes when it installs; an
# empty element is the working directory, and whoever starts the program there loads what lies there.
function(sv_run_path target)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${ARGN}")
endfunction()
