#pragma once

#include <tensorpool/device/caching_options.hpp>

namespace tensorpool::device {

/// The device's index. Throws std::invalid_argument that names the allocator, the figure, what was
/// found and what was expected.
int validated(Backend& backend, int device, const CachingOptions& options);

}  // namespace tensorpool::device
