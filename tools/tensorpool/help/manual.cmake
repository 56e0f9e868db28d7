# The manual pages and the completion. The command generates them from the declarations with which
# it parses its own command line.
set(manual_folder ${CMAKE_CURRENT_BINARY_DIR}/manual)
set(manual_pages ${manual_folder}/tensorpool.1)
set(subcommands ${TENSORPOOL_SUBCOMMANDS})
list(TRANSFORM subcommands REPLACE ":.*" "")
list(REMOVE_ITEM subcommands manual)
foreach(subcommand IN LISTS subcommands)
  list(APPEND manual_pages ${manual_folder}/tensorpool-${subcommand}.1)
endforeach()
set(metrics_page ${manual_folder}/tensorpool-metrics.7)
set(bash_completion ${manual_folder}/tensorpool.bash)
add_custom_command(
  OUTPUT ${manual_pages} ${metrics_page} ${bash_completion}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${manual_folder}
  COMMAND tensorpool_command manual ${manual_folder}
  DEPENDS tensorpool_command
  COMMENT "Writing the manual of tensorpool" VERBATIM)
add_custom_target(tensorpool_manual ALL DEPENDS ${manual_pages} ${metrics_page} ${bash_completion})

if(TENSORPOOL_INSTALL)
  install(FILES ${manual_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${metrics_page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man7)
  # bash-completion looks here for a file named like the command.
  install(FILES ${bash_completion} RENAME tensorpool
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endif()
