#pragma once

#include <cstdint>
#include <string>

#include <tensorpool/statistics_reader.hpp>

#include "platform/files/observed_file.hpp"

namespace tensorpool::trace {

/// Throws an AttachError that names the process; 0: one without a known number.
[[noreturn]] void fail_to_attach(std::uint64_t process, AttachFailure failure,
                                 const std::string& what);

/// The control of a process, which is to be asked for `what`, such as "to record". Throws
/// AttachError where there is none, or where it cannot be looked for.
platform::ObservedFile find_control(std::uint64_t process, const char* what);

}  // namespace tensorpool::trace
