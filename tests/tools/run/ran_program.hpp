#pragma once

#include <string>
#include <vector>

#include "support/run_program.hpp"

namespace tensorpool::command::run {

/// Runs `tensorpool run` with these arguments.
inline testing::ProgramResult ran(std::vector<std::string> arguments,
                                  const testing::Variables& variables = {}) {
    arguments.insert(arguments.begin(), "run");
    return testing::run_program(TENSORPOOL_PROGRAM, std::move(arguments), variables);
}

inline bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace tensorpool::command::run
