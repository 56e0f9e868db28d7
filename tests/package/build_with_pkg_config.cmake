# Builds a program in C++ and one in C against the library in PREFIX with the flags that pkg-config
# prints, and runs both. KIND is static or shared, LIBRARIES the folder of the libraries in PREFIX.
set(ENV{PKG_CONFIG_PATH} ${PREFIX}/${LIBRARIES}/pkgconfig)
set(ENV{LD_LIBRARY_PATH} ${PREFIX}/${LIBRARIES})
set(static_option "")
if(KIND STREQUAL "static")
  set(static_option --static)
endif()
execute_process(COMMAND ${PKG_CONFIG} ${static_option} --cflags --libs tensorpool
  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
message("pkg-config ${static_option} --cflags --libs tensorpool: ${flags}")
separate_arguments(flags UNIX_COMMAND "${flags}")

file(MAKE_DIRECTORY ${FOLDER})
execute_process(COMMAND ${CXX_COMPILER} -std=c++20 ${CXX_SOURCE} -o ${FOLDER}/in_cxx ${flags}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${C_COMPILER} -std=c99 ${C_SOURCE} -o ${FOLDER}/in_c ${flags}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${FOLDER}/in_cxx COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${FOLDER}/in_c COMMAND_ERROR_IS_FATAL ANY)
