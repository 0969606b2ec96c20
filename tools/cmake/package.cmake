# The Debian package: one for program, library and headers, with the shared libraries' packages found from the binaries.
set(CPACK_PACKAGE_NAME stave)
set(CPACK_PACKAGE_VENDOR stave)
set(CPACK_PACKAGE_CONTACT "The Stave developers <stave@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGE_DESCRIPTION "Records, converts, merges, queries and draws traces of training and inference programs:
the program stave, the library libstave with its headers, manual pages and shell completion.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON) # and with it the ldconfig trigger
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# Only who links libstave.a needs them.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "zlib1g-dev, libzstd-dev, pkg-config")
set(CPACK_INSTALL_CMAKE_PROJECTS "${CMAKE_BINARY_DIR};stave;Unspecified;/") # not the component `server`
include(CPack)
