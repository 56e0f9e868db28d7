#pragma once

/// @file
/// The runtimes of a program, one a device, and where they get their backends from.
///
/// Nothing is made before it is asked for, and nothing is destroyed at the end of the process, so
/// that static constructors and destructors may use all of it: worker threads of streams then end
/// with the process, and `reset_runtimes` is there for who wants them joined.
///
/// Fork: the child begins without runtimes and without current devices. What the parent had made is
/// forgotten there, not destroyed: handles from before the fork give nothing back, and using them
/// otherwise is as undefined as the driver's own behaviour. The child may make runtimes of its own.
/// For the CPU they work; CUDA allows none where the parent has used it.

#include <cstddef>
#include <memory>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/device.hpp>
#include <tensorpool/device/runtime.hpp>
#include <tensorpool/device/runtime_options.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

/// Devices of this type: 1 of the CPU's, as many as the driver has of CUDA's (0 without a driver),
/// and of the simulated ones as many as a backend that was set has. Throws std::bad_alloc.
TENSORPOOL_API int device_count(DeviceType type);

/// The runtime of a device, made by the first call for it, which may take as long as its driver
/// does. It stays until `reset_runtimes` or `set_backend`. Throws std::invalid_argument, naming
/// what there is, for a device that is not there, and DeviceError where it fails.
TENSORPOOL_API Runtime& get_runtime(Device device);
/// Of the calling thread's current device.
TENSORPOOL_API Runtime& runtime();

/// Puts a backend in, whose devices are from now on those of `type`; `backend->type()` may be
/// another, as in tests. nullptr: what there is without it: the CPU's and CUDA's own, and of
/// simulated devices none. Runtimes of this type go as by `reset_runtimes`: REQUIRES no other
/// thread uses them meanwhile. Memory, streams and events of theirs keep the backend that they had.
TENSORPOOL_API void set_backend(DeviceType type, std::shared_ptr<Backend> backend);

/// For runtimes of this type that are made from now on. Throws std::logic_error where there are
/// some already: options come before the first use, or after `reset_runtimes`.
TENSORPOOL_API void set_runtime_options(DeviceType type, const RuntimeOptions& options);
/// For the runtime of this device, whatever those of its type have. Throws std::logic_error where
/// it is there already.
TENSORPOOL_API void set_runtime_options(Device device, const RuntimeOptions& options);
TENSORPOOL_API RuntimeOptions get_runtime_options(DeviceType type);

/// Gives back what is free in all runtimes there are; bytes given back. Makes none.
TENSORPOOL_API std::size_t trim_runtimes() noexcept;

/// Destroys all runtimes, the CPU's last, with the objects of programs in them, and backends that
/// were not set; those start anew at the next use. Options and backends that were set stay. Threads
/// of streams have then ended, unless somebody still has a stream, an event or memory. REQUIRES no
/// other thread uses a runtime meanwhile.
TENSORPOOL_API void reset_runtimes();

}  // namespace tensorpool
