# What `make install` copies. Nothing installed knows the prefix: the pkg-config file and the CMake package find
# themselves, so one build serves every PREFIX.
include(CMakePackageConfigHelpers)

# A program that links libstave.a must link these too. Bare names: the users of the shared library need no -dev package.
get_property(link_names GLOBAL PROPERTY SV_LINK_NAMES)
list(APPEND link_names pthread m)
target_link_libraries(stave_static INTERFACE ${link_names})
set_target_properties(stave_static PROPERTIES EXPORT_NAME static)

install(DIRECTORY include/stave DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES ${CMAKE_BINARY_DIR}/libstave-file.a DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS stave_all stave stave_static stave_file stave_serving stave_serving_static stave_gpu stave_gpu_static stave_read EXPORT stave)

list(TRANSFORM link_names PREPEND "-l" OUTPUT_VARIABLE link_flags)
list(JOIN link_flags " " link_flags)
file(RELATIVE_PATH up /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
configure_file(tools/packaging/stave.pc.in stave.pc @ONLY)
configure_file(tools/packaging/stave-static.pc.in stave-static.pc @ONLY)
configure_file(tools/packaging/stave-serving.pc.in stave-serving.pc @ONLY)
configure_file(tools/packaging/stave-gpu.pc.in stave-gpu.pc @ONLY)
configure_file(tools/packaging/stave-read.pc.in stave-read.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/stave.pc ${CMAKE_BINARY_DIR}/stave-static.pc ${CMAKE_BINARY_DIR}/stave-serving.pc ${CMAKE_BINARY_DIR}/stave-gpu.pc ${CMAKE_BINARY_DIR}/stave-read.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/stave)
install(EXPORT stave NAMESPACE stave:: FILE staveConfig.cmake DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/staveConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/staveConfigVersion.cmake DESTINATION ${package_dir})

if(TARGET stave_program)
  install(TARGETS stave_program)
  # The program knows its own verbs and options: it writes its manual and its completion. Not under a sanitizer, whose
  # runtime need not be able to run during a build.
  if(NOT SV_SANITIZE)
    set(share ${CMAKE_BINARY_DIR}/share)
    set(others)
    foreach(other ${server_programs})
      list(APPEND others $<TARGET_FILE:${other}>)
    endforeach()
    add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/share.stamp
      COMMAND ${PROJECT_SOURCE_DIR}/tools/make-share $<TARGET_FILE:stave_program> ${share} ${others}
      COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/share.stamp
      DEPENDS stave_program ${server_programs} tools/make-share
      VERBATIM)
    add_custom_target(share ALL DEPENDS ${CMAKE_BINARY_DIR}/share.stamp)
    install(DIRECTORY ${share}/ DESTINATION ${CMAKE_INSTALL_DATAROOTDIR} OPTIONAL)
  endif()
endif()

# Queries for other engines over what `stave export` writes.
install(DIRECTORY share/sql DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/stave)
# Not enabled: see docs/deploy.md.
install(FILES share/systemd/stave-record.service DESTINATION lib/systemd/system)
install(FILES share/tsan.supp DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/stave)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
file(GLOB notes CONFIGURE_DEPENDS README.md CHANGELOG.md)
install(FILES ${notes} DESTINATION ${CMAKE_INSTALL_DOCDIR})

include(package)
