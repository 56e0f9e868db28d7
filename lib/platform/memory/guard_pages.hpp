#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorpool::platform {

/// Makes whole pages of committed memory inaccessible and drops their content, until
/// `remove_guard`. On Linux 6.13 and later it takes no mapping of its own (MADV_GUARD_INSTALL of
/// madvise(2)); it survives `decommit`, and `prefault` over such pages fails. Returns false if the
/// system refuses.
[[nodiscard]] bool install_guard(void* address, std::size_t bytes) noexcept;
/// Makes pages accessible again for which `install_guard` succeeded. They read as zeros or as
/// before. Returns false if the system refuses.
bool remove_guard(void* address, std::size_t bytes) noexcept;

/// Makes whole pages of committed memory inaccessible until `commit`, and keeps their content.
/// Returns false if the system refuses.
[[nodiscard]] bool deny_access(void* address, std::size_t bytes) noexcept;

/// Returns bits that other programs cannot predict.
std::uint64_t random_bits() noexcept;

}  // namespace tensorpool::platform
