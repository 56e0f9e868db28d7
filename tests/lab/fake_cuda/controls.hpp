#pragma once

/// Functions by which a test controls the fake driver. It finds them in the library by name.

struct CUevent_st;

namespace fake_cuda {

inline constexpr int first_devices = 2;

/// "fake_cuda_set_device_count": at most 8. Call it before a backend is created.
using SetDeviceCount = void (*)(int count);
/// "fake_cuda_set_init_result": the result that cuInit returns.
using SetInitResult = void (*)(unsigned result);
/// "fake_cuda_set_peers": whether devices can access the memory of each other, initially yes.
using SetPeers = void (*)(bool peers);
/// "fake_cuda_set_rdma": whether devices report that memory can be accessed by RDMA, and whether
/// the creation of such memory is refused nevertheless; initially true and false.
using SetRdma = void (*)(bool reported, bool refused);
/// "fake_cuda_fail_next": the result of the next call of a function, named without its version.
using FailNext = void (*)(const char* function, unsigned result);
/// "fake_cuda_lose_device": the result of all later calls in the device's context; 0 resets it.
using LoseDevice = void (*)(int device, unsigned result);
/// "fake_cuda_calls": how often a function was called, named without its version; for "" all calls.
using Calls = unsigned long long (*)(const char* function);
/// "fake_cuda_violation": the first use of a stream that had been destroyed, as text; "" for none.
/// A real driver may crash there.
using Violation = const char* (*)();
/// "fake_cuda_held": the number of objects not released: contexts, streams, events, graphs, ranges
/// of memory, reservations, mappings and physical memory.
using Held = int (*)();
/// "fake_cuda_event_flags": the flags with which an event was created.
using EventFlags = unsigned (*)(CUevent_st* event);

}  // namespace fake_cuda
