#pragma once

#include <string>
#include <vector>

#include "support/run_program.hpp"

namespace tensorpool::command::run {

/// What `tensorpool run` with these words came to.
inline testing::ProgramResult ran(std::vector<std::string> words,
                                  const testing::Variables& variables = {}) {
    words.insert(words.begin(), "run");
    return testing::run_program(TENSORPOOL_PROGRAM, std::move(words), variables);
}

inline bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace tensorpool::command::run
