#pragma once

/// @file
/// Devices that are not there: real bytes, real order, a clock of their own, and an eye on every
/// access. For tests of code that works on streams, on any machine.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/hazard.hpp>
#include <tensorpool/device/simulated_calls.hpp>
#include <tensorpool/device/simulated_kernel.hpp>
#include <tensorpool/device/simulation_faults.hpp>
#include <tensorpool/device/simulation_options.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

namespace device {
class ScheduleDriver;
class Simulation;
}  // namespace device

/// A backend of simulated devices.
///
/// Work runs on the threads that give it or wait for it: it starts none. Any thread may call
/// anything; functions of kernels run outside of its lock and may not call it, which is refused as
/// failed.
///
/// Hazards (see hazard.hpp) are found by vector clocks: one of each stream, each event and the
/// host. All threads of the host count as one: what one waited for, all did.
class TENSORPOOL_API SimulatedBackend : public Backend {
public:
    /// Throws std::invalid_argument for options that contradict each other, std::bad_alloc where
    /// there is not so much address space.
    explicit SimulatedBackend(const SimulationOptions& options = {});
    /// What was given to streams and is not done stays undone.
    ~SimulatedBackend() override;

    // What only a simulation has -----------------------------------------------------------------

    /// Gives a kernel to a stream. invalid_argument where it touches memory that is not there.
    DeviceStatus launch(int device, StreamHandle stream, const SimulatedKernel& kernel) noexcept;
    /// Does the next work of the stream that can be done; false where there is none. For tests that
    /// decide themselves how far a stream got, with Schedule::lazy.
    bool step(int device, StreamHandle stream) noexcept;
    /// The host is about to read, or to write, memory that work on streams touches: says whether it
    /// may. For checks only; nothing is waited for.
    void host_read(const void* address, std::size_t bytes,
                   const char* label = "host read") noexcept;
    void host_write(void* address, std::size_t bytes, const char* label = "host write") noexcept;

    /// What was found so far, the oldest first, as many as are kept; and how many there were.
    std::vector<Hazard> hazards() const;
    std::uint64_t hazard_count() const noexcept;
    void clear_hazards() noexcept;
    /// All that are kept, a line each; "" without any.
    std::string hazard_report() const;

    SimulatedCalls calls() const noexcept;
    void reset_calls() noexcept;

    /// Counts of calls start again.
    void set_faults(const SimulationFaults& faults);
    /// From now on; may exceed what is free, which is 0 then.
    void set_other_process_bytes(int device, std::size_t bytes) noexcept;

    /// Nanoseconds that passed for the host: with each call that gives work, and by waiting. Times
    /// are those of devices on which all streams run at once, whatever the schedule.
    std::uint64_t now_ns() const noexcept;
    /// Lets time pass.
    void advance_ns(std::uint64_t ns) noexcept;

    // Backend ------------------------------------------------------------------------------------

    DeviceType type() const noexcept override;
    int device_count() noexcept override;
    std::string device_name(int device) override;
    DeviceAbilities abilities(int device) noexcept override;
    DeviceStatus memory_info(int device, DeviceMemoryInfo& info) noexcept override;
    DeviceStatus settle_memory(int device) noexcept override;
    DeviceStatus synchronize_device(int device) noexcept override;
    DeviceStatus allocate(int device, std::size_t bytes, StorageKind kind,
                          void** memory) noexcept override;
    DeviceStatus deallocate(int device, void* memory, std::size_t bytes,
                            StorageKind kind) noexcept override;
    DeviceStatus allocate_async(int device, std::size_t bytes, StreamHandle stream,
                                void** memory) noexcept override;
    DeviceStatus deallocate_async(int device, void* memory, std::size_t bytes,
                                  StreamHandle stream) noexcept override;
    void* host_pointer(int device, void* memory) noexcept override;
    DeviceStatus reserve_addresses(int device, std::size_t bytes, void** address) noexcept override;
    DeviceStatus release_addresses(int device, void* address, std::size_t bytes) noexcept override;
    DeviceStatus create_memory(int device, std::size_t bytes,
                               MemoryHandle* memory) noexcept override;
    DeviceStatus destroy_memory(int device, MemoryHandle memory) noexcept override;
    DeviceStatus map_memory(int device, void* address, std::size_t bytes,
                            MemoryHandle memory) noexcept override;
    DeviceStatus unmap_memory(int device, void* address, std::size_t bytes) noexcept override;
    DeviceStatus allocate_pinned(int device, std::size_t bytes, void** memory) noexcept override;
    DeviceStatus deallocate_pinned(int device, void* memory, std::size_t bytes) noexcept override;
    DeviceStatus register_pinned(int device, void* memory, std::size_t bytes) noexcept override;
    DeviceStatus unregister_pinned(int device, void* memory) noexcept override;
    DeviceStatus create_stream(int device, StreamHandle* stream) noexcept override;
    DeviceStatus destroy_stream(int device, StreamHandle stream) noexcept override;
    DeviceStatus synchronize_stream(int device, StreamHandle stream) noexcept override;
    DeviceStatus query_stream(int device, StreamHandle stream) noexcept override;
    DeviceStatus wait_event(int device, StreamHandle stream, EventHandle event) noexcept override;
    DeviceStatus launch_host_function(int device, StreamHandle stream,
                                      void (*function)(void* argument),
                                      void* argument) noexcept override;
    DeviceStatus create_event(int device, EventTiming timing, EventHandle* event) noexcept override;
    DeviceStatus destroy_event(int device, EventHandle event) noexcept override;
    DeviceStatus record_event(int device, EventHandle event, StreamHandle stream) noexcept override;
    DeviceStatus query_event(int device, EventHandle event) noexcept override;
    DeviceStatus synchronize_event(int device, EventHandle event) noexcept override;
    DeviceStatus elapsed_ms(int device, EventHandle from, EventHandle to,
                            float* ms) noexcept override;
    DeviceStatus copy(int device, CopyKind kind, void* to, const void* from,
                      std::size_t bytes) noexcept override;
    DeviceStatus copy_async(int device, CopyKind kind, void* to, const void* from,
                            std::size_t bytes, StreamHandle stream) noexcept override;
    DeviceStatus fill(int device, void* memory, std::uint8_t byte,
                      std::size_t bytes) noexcept override;
    DeviceStatus fill_async(int device, void* memory, std::uint8_t byte, std::size_t bytes,
                            StreamHandle stream) noexcept override;
    bool can_access_peer(int device, int peer) noexcept override;
    DeviceStatus enable_peer_access(int device, int peer) noexcept override;
    DeviceStatus copy_peer_async(int to_device, void* to, int from_device, const void* from,
                                 std::size_t bytes, StreamHandle stream) noexcept override;
    DeviceStatus begin_capture(int device, StreamHandle stream) noexcept override;
    DeviceStatus end_capture(int device, StreamHandle stream, GraphHandle* graph) noexcept override;
    DeviceStatus capture_state(int device, StreamHandle stream,
                               CaptureState& state) noexcept override;
    DeviceStatus launch_graph(int device, GraphHandle graph, StreamHandle stream) noexcept override;
    DeviceStatus destroy_graph(int device, GraphHandle graph) noexcept override;
    void note_block(const BlockNote& note) noexcept override;
    std::string last_error() override;

private:
    friend class device::ScheduleDriver;
    SimulatedBackend(const SimulationOptions& options, device::ScheduleDriver& driver);

    std::unique_ptr<device::Simulation> simulation_;
};

}  // namespace tensorpool
