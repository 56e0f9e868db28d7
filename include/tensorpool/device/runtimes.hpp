#pragma once

/// @file
/// The runtimes of a program, one for each device, and the backends that they use.
///
/// Nothing is made before it is requested, and nothing is destroyed at the end of the process, so
/// static constructors and destructors may use all of it. Worker threads of streams then end with
/// the process; call `reset_runtimes` to join them.
///
/// After a fork, the child begins without runtimes and without current devices. Those of the parent
/// are forgotten there, not destroyed: handles from before the fork free nothing, and any other use
/// of them is as undefined as the driver's own behaviour. The child may make runtimes of its own.
/// That works for the CPU; CUDA does not allow it if the parent has used CUDA.

#include <tensorpool/device/runtime.hpp>

namespace tensorpool {

/// Returns the number of devices of this type: 1 for the CPU, those of the driver for CUDA (0
/// without a driver), and for simulated devices those of the backend that was set. Throws
/// std::bad_alloc.
TENSORPOOL_API int device_count(DeviceType type);

/// Returns the runtime of a device. The first call for the device makes it, which may take as long
/// as the driver does. It exists until `reset_runtimes` or `set_backend`. Throws
/// std::invalid_argument, listing the devices, for a device that does not exist, and DeviceError if
/// the device fails.
TENSORPOOL_API Runtime& get_runtime(Device device);
/// Returns the runtime of the calling thread's current device, which is the CPU until the program
/// sets another one or requests a runtime of CUDA. Throws DeviceError if the device fails, and
/// std::bad_alloc.
TENSORPOOL_API Runtime& runtime();

/// Sets the backend whose devices are those of `type` from now on; `backend->type()` may differ, as
/// in tests.
///
/// nullptr restores the default: the CPU's and CUDA's own, and no simulated devices. Runtimes of
/// this type are destroyed as by `reset_runtimes`. REQUIRES: no other thread uses them. Their
/// memory, streams and events keep the previous backend.
TENSORPOOL_API void set_backend(DeviceType type, std::shared_ptr<Backend> backend);

/// Registers a type of devices under a name of its own, such as "npu", with the backend of all its
/// devices. Returns the type, which names its devices everywhere: in `get_runtime`, `parse_device`,
/// and, if `backend->type()` returns it from then on, in statistics and messages. It cannot be
/// removed; `set_backend` replaces its backend.
///
/// Handles on its memory are extension devices in DLPack. Throws std::invalid_argument if `backend`
/// is nullptr, the name is known already or is not 1 to 10 letters from a to z, digits and
/// underscores that begin with a letter, and std::length_error if there are `max_device_types`
/// types.
TENSORPOOL_API DeviceType register_device_type(std::string_view name,
                                               std::shared_ptr<Backend> backend);

/// Sets the options for runtimes of this type that are made from now on. Throws std::logic_error if
/// one exists: set options before the first use, or after `reset_runtimes`.
TENSORPOOL_API void set_runtime_options(DeviceType type, const RuntimeOptions& options);
/// Sets the options for the runtime of this device, which take precedence over those of its type.
/// Throws std::logic_error if it exists already.
TENSORPOOL_API void set_runtime_options(Device device, const RuntimeOptions& options);
/// Returns the options for runtimes of this type.
TENSORPOOL_API RuntimeOptions get_runtime_options(DeviceType type);

/// Gives back the free memory of all existing runtimes, and returns the number of bytes given back.
/// It makes no runtime.
TENSORPOOL_API std::size_t trim_runtimes() noexcept;

/// Destroys all runtimes, the CPU's last, with the program's objects in them, and the default
/// backends, which are made again at the next use.
///
/// Options and backends that were set stay. The threads of streams have ended afterwards, unless a
/// stream, an event or memory still exists. REQUIRES: no other thread uses a runtime.
TENSORPOOL_API void reset_runtimes();

}  // namespace tensorpool
