#pragma once

/// @file
/// The memory of NVIDIA's cards, from their management library, NVML.

#include "inspect/model/estimate/estimation.hpp"

namespace tensorpool::command::model {

/// Stores the card with the most free memory in `memory.device`, or in `memory.why_no_device` why
/// there is none. NVML is loaded at the first call. It makes no CUDA context, which would itself
/// take memory of the card.
void find_card(AvailableMemory& memory);

}  // namespace tensorpool::command::model
