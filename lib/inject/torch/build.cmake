# PyTorch: no library, but a folder for PYTHONPATH. Its sitecustomize.py, which Python runs at its start, waits for the import of torch; the package stave does the rest.
configure_file(${PROJECT_SOURCE_DIR}/lib/inject/torch/sitecustomize.py ${CMAKE_BINARY_DIR}/stave-torch/sitecustomize.py COPYONLY)
install(FILES lib/inject/torch/sitecustomize.py DESTINATION ${CMAKE_INSTALL_LIBDIR}/stave/stave-torch)
