#pragma once

/// @file
/// A backend of simulated devices: real bytes, real order, a clock of their own, and a check of
/// every access. It tests code that works on streams, on any machine.

#include <memory>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/hazard.hpp>
#include <tensorpool/device/simulated_kernel.hpp>
#include <tensorpool/device/simulation_faults.hpp>
#include <tensorpool/device/simulation_options.hpp>

namespace tensorpool {

namespace device {
class ScheduleDriver;
class Simulation;
}  // namespace device

/// A backend of simulated devices.
///
/// Work runs on the threads that submit it or wait for it; the backend starts none. Any thread may
/// call any function. Functions of kernels run outside of the backend's lock and must not call it;
/// such a call returns failed.
///
/// Hazards (see hazard.hpp) are found by vector clocks: one for each stream, each event and the
/// host. All threads of the host count as one, so a wait by one thread counts for all.
class TENSORPOOL_API SimulatedBackend : public Backend {
public:
    /// Makes a backend. Throws std::invalid_argument for contradictory options, and std::bad_alloc
    /// if the address space is unavailable.
    explicit SimulatedBackend(const SimulationOptions& options = {});
    /// Drops the work that was submitted and is not done.
    ~SimulatedBackend() override;

    // What only a simulation has -----------------------------------------------------------------

    /// Submits a kernel to a stream. Returns invalid_argument if it touches memory that does not
    /// exist.
    DeviceStatus launch(int device, StreamHandle stream, const SimulatedKernel& kernel) noexcept;
    /// Runs the next piece of the stream's work that can run; returns false if there is none. It is
    /// for tests that control the progress of a stream themselves, with Schedule::lazy.
    bool step(int device, StreamHandle stream) noexcept;
    /// Declares that the host is about to read memory, so that conflicts with work on streams are
    /// found as hazards. It does not wait.
    void host_read(const void* address, std::size_t bytes,
                   const char* label = "host read") noexcept;
    /// Declares that the host is about to write memory, so that conflicts with work on streams are
    /// found as hazards. It does not wait.
    void host_write(void* address, std::size_t bytes, const char* label = "host write") noexcept;

    /// Returns the hazards found so far, the oldest first, at most as many as
    /// SimulationOptions::max_hazards.
    std::vector<Hazard> hazards() const;
    /// Returns the number of hazards found so far.
    std::uint64_t hazard_count() const noexcept;
    /// Forgets the hazards found so far.
    void clear_hazards() noexcept;
    /// Returns the stored hazards, one line each; "" if there are none.
    std::string hazard_report() const;

    /// Returns how often each function was called.
    SimulatedCalls calls() const noexcept;
    /// Sets all counts of calls to 0.
    void reset_calls() noexcept;

    /// Sets the faults from now on. Their counts of calls start at 1 again.
    void set_faults(const SimulationFaults& faults);
    /// Sets the memory of the device that other processes hold from now on. It may exceed the free
    /// memory, which is then 0.
    void set_other_process_bytes(int device, std::size_t bytes) noexcept;

    /// Returns the nanoseconds that passed for the host, by calls that submit work and by waits.
    /// Times are those of devices on which all streams run at once, for every schedule.
    std::uint64_t now_ns() const noexcept;
    /// Advances the clock by `ns` nanoseconds.
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
    DeviceStatus set_release_threshold(int device, std::size_t bytes) noexcept override;
    DeviceStatus trim_stream_ordered(int device, std::size_t& given_back) noexcept override;
    void* host_pointer(int device, void* memory) noexcept override;
    DeviceStatus advise_memory(int device, void* memory, std::size_t bytes, MemoryAdvice advice,
                               Processor processor) noexcept override;
    DeviceStatus prefetch_memory(int device, void* memory, std::size_t bytes, Processor processor,
                                 StreamHandle stream) noexcept override;
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
    DeviceStatus create_stream(int device, StreamHandle* stream,
                               int priority = 0) noexcept override;
    DeviceStatus destroy_stream(int device, StreamHandle stream) noexcept override;
    DeviceStatus synchronize_stream(int device, StreamHandle stream) noexcept override;
    DeviceStatus query_stream(int device, StreamHandle stream) noexcept override;
    DeviceStatus wait_event(int device, StreamHandle stream, EventHandle event) noexcept override;
    DeviceStatus launch_host_function(int device, StreamHandle stream,
                                      void (*function)(void* argument),
                                      void* argument) noexcept override;
    DeviceStatus create_event(int device, EventFlags flags, EventHandle* event) noexcept override;
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
    const std::atomic<unsigned>& captures_under_way() const noexcept override;
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
