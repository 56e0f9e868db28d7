#pragma once

/// @file
/// Who can be asked to play a recording.

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "replay/contender.hpp"

namespace tensorpool::command::replay {

using Variables = std::vector<std::pair<std::string, std::string>>;

struct Contender {
    std::string name;
    Calls calls = Calls::malloc;
    std::string library;        ///< how the file's name begins that `malloc` must lie in; "": any
    bool preload = false;       ///< `library` has to be put under the process
    std::string package;        ///< Debian's, which brings the library
    Variables variables;        ///< of its environment
    bool never_decays = false;  ///< jemalloc has to say that it keeps what was freed
};

/// Those named, in that order. `pool:NAME=VALUE:…` is the pool with options of its own; `options`
/// are for those without. Throws CommandError for what is not known, which lists what is.
std::vector<Contender> contenders_of(std::span<const std::string> names,
                                     std::span<const std::string> options);

/// All there are, with commas between them: the floor first, then the pool.
std::string contender_names();
/// The names of options, with commas between them.
std::string option_names();

/// The variables of options written as NAME=VALUE. Throws CommandError for a name that is none.
Variables pool_variables(std::span<const std::string> options);

}  // namespace tensorpool::command::replay
