#pragma once

/// What a test tells the fake driver, by functions that it finds in the library.

namespace fake_cuda {

inline constexpr int first_devices = 2;

/// "fake_cuda_set_device_count": 8 at most. Before a backend is made.
using SetDeviceCount = void (*)(int count);
/// "fake_cuda_set_init_result": what cuInit comes to.
using SetInitResult = void (*)(unsigned result);
/// "fake_cuda_fail_next": what the next call of a function, by its name without a version, comes
/// to.
using FailNext = void (*)(const char* function, unsigned result);
/// "fake_cuda_lose_device": what all calls in the device's context come to from now on; 0 ends it.
using LoseDevice = void (*)(int device, unsigned result);
/// "fake_cuda_held": objects that are not given back: contexts, streams and events that were made,
/// graphs, ranges of memory, reservations, mappings and physical memory.
using Held = int (*)();

}  // namespace fake_cuda
