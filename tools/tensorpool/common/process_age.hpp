#pragma once

#include <cstdint>

namespace tensorpool::command {

/// Seconds since a process started; 0 where the system tells none.
double process_age(std::uint64_t process);

}  // namespace tensorpool::command
