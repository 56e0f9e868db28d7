# The subcommands in the order of the help, each with its folder if that has another name. `manual` is hidden.
# A folder defines `void add_<name>(CLI::App&, Settings&)`, with which the subcommand adds itself to the
# command line. Its help, its manual page and its completion follow from that.
set(TENSORPOOL_SUBCOMMANDS
  ls:stat
  top
  stat
  events:stat
  serve
  run
  record
  trim
  explain
  profile
  leaks
  holders
  replay
  inspect
  plan
  export
  doctor
  manual:help)

# tensorpool_write_subcommands(FILE SUBCOMMAND...): writes a source that adds these subcommands.
function(tensorpool_write_subcommands file)
  list(TRANSFORM ARGN REPLACE ":.*" "")
  list(TRANSFORM ARGN REPLACE "(.+)" "void add_\\1(CLI::App& app, Settings& settings)" OUTPUT_VARIABLE declarations)
  list(TRANSFORM ARGN REPLACE "(.+)" "add_\\1(app, settings)" OUTPUT_VARIABLE calls)
  list(JOIN declarations ";\n" declarations)
  list(JOIN calls ";\n    " calls)
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [[
// Generated from the list in tools/tensorpool/subcommands.cmake.

#include "command.hpp"

namespace tensorpool::command {

@declarations@;

void add_subcommands(CLI::App& app, Settings& settings) {
    @calls@;
}

}  // namespace tensorpool::command
]])
endfunction()
