# The Debian packages: stave for program, libraries and headers, with the shared libraries' packages found from the binaries, and python3-stave.
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
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_SUGGESTS "zlib1g-dev, libzstd-dev, pkg-config")
# Loaded by name for ClickHouse, PNG and PDF, and the viewer: dpkg-shlibdeps does not see them.
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_RECOMMENDS "libcurl4, libcairo2, fonts-dejavu-core, libmicrohttpd12")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL Unspecified) # not the component `server`
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME stave)
if(TARGET stave_python)
  list(APPEND CPACK_COMPONENTS_ALL python)
  math(EXPR next "${Python3_VERSION_MINOR} + 1")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-stave)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTHON_DESCRIPTION "Tracing of Python programs\n The package stave for Debian's python3. It loads the library of the package stave.")
  # The extension is for one version of Python, and of the library it needs what this build has.
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "stave (= ${PROJECT_VERSION}), python3 (>= 3.${Python3_VERSION_MINOR}), python3 (<< 3.${next})")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
endif()
include(CPack)
