#pragma once

#include <functional>
#include <string>

#include "export/formats.hpp"

namespace tensorpool::command::export_::testing {

/// Returns what `write` wrote.
std::string written(const std::function<void(WrittenFile&)>& write);
/// The output of a program and its exit code; -1 if a signal ended it.
struct Printed {
    int code = -1;
    std::string text;
};
Printed printed_by(const std::string& command_line);

/// Runs check_snapshot.py on a snapshot and returns its output, or "" after adding its findings as
/// a test failure.
std::string checked_snapshot(const std::string& pickle);

}  // namespace tensorpool::command::export_::testing
