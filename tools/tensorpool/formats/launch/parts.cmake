# The paths of the files that `tensorpool run` preloads, relative to the folder of the command, in
# the build folder and in an installed tree, so that either may be moved.
set(python_folder lib/python3/dist-packages)
if(DEFINED TENSORPOOL_PYTHON_FOLDER)
  set(python_folder ${TENSORPOOL_PYTHON_FOLDER})
endif()
function(path_from_program to variable)
  set(path ${to})
  if(NOT IS_ABSOLUTE "${to}" AND NOT IS_ABSOLUTE "${CMAKE_INSTALL_BINDIR}")
    file(RELATIVE_PATH path /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${to})
  elseif(NOT IS_ABSOLUTE "${to}")
    set(path ${CMAKE_INSTALL_PREFIX}/${to})
  endif()
  set(${variable} "${path}" PARENT_SCOPE)
endfunction()
path_from_program("${CMAKE_INSTALL_LIBDIR}" run_libraries)
path_from_program("${python_folder}" run_python)
path_from_program("${CMAKE_INSTALL_DATADIR}/tensorpool" run_data)
file(RELATIVE_PATH run_folder_in_build ${PROJECT_BINARY_DIR} ${CMAKE_CURRENT_BINARY_DIR})

set_property(SOURCE formats/launch/parts.cpp APPEND PROPERTY COMPILE_DEFINITIONS
  TENSORPOOL_RUN_FOLDER_IN_BUILD="${run_folder_in_build}" TENSORPOOL_RUN_LIBRARIES="${run_libraries}"
  TENSORPOOL_RUN_PYTHON="${run_python}" TENSORPOOL_RUN_DATA="${run_data}")
if(BUILD_SHARED_LIBS)
  set_property(SOURCE formats/launch/parts.cpp APPEND PROPERTY COMPILE_DEFINITIONS TENSORPOOL_RUN_SHARED)
endif()

if(TARGET tensorpool_python)
  configure_file(formats/launch/sitecustomize.py ${PROJECT_BINARY_DIR}/python_site/sitecustomize.py COPYONLY)
  if(TENSORPOOL_INSTALL)
    install(FILES formats/launch/sitecustomize.py DESTINATION ${CMAKE_INSTALL_DATADIR}/tensorpool/python_site)
  endif()
endif()
