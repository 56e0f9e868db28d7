#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorpool::testing {

/// The bytes that the process may lock, as the C library's functions behind the interposer say.
extern std::size_t made_lock_limit;

}  // namespace tensorpool::testing
