#pragma once

#include "model/estimate/estimation.hpp"

namespace tensorpool::command::model {

/// This machine's and its container's memory, and that of its first CUDA device, where there is
/// one: by the driver, which may take a while to start.
MemoryThere look_at_memory();

}  // namespace tensorpool::command::model
