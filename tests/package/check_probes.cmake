# The shared library has the probe points of otel_memory, with their numbers of arguments.
execute_process(COMMAND ${READELF} --notes --wide ${LIBRARY}
  OUTPUT_VARIABLE notes COMMAND_ERROR_IS_FATAL ANY)
function(expect_probe name count)
  string(REPEAT " [^ \n]+" ${count} arguments)
  if(NOT notes MATCHES "otel_memory\n +Name: ${name}\n[^\n]*\n +Arguments:${arguments} *\n")
    message(FATAL_ERROR
      "${LIBRARY} lacks otel_memory:${name} with ${count} arguments; its notes are:\n${notes}")
  endif()
endfunction()
expect_probe(alloc 3)
expect_probe(free 1)
expect_probe(mmap 2)
expect_probe(munmap 2)
