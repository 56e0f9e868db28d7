#pragma once

#include <tensorpool/device/simulated_kernel.hpp>

#include "device/call_errors.hpp"
#include "simulation/hazards/watch.hpp"
#include "simulation/simulated_memory.hpp"

namespace tensorpool::device {

/// Describes one access to memory: by work in a stream, or by the host.
struct Toucher {
    Operation operation;
    const VectorClock* clock = nullptr;  // everything ordered before the access
    int device = 0;
    enum class Kind : std::uint8_t {
        work,      // work in a stream
        captured,  // recorded but not run: only checks that the memory exists
        copy,      // a synchronous copy without a stream, done during the call
        host,      // an access by the host itself, which cannot reach private memory
    } kind = Kind::work;
    std::uint64_t capture = 0;         // capture whose graph does the work, or 0
    std::uint64_t captured_until = 0;  // number of that capture's last operation

    bool host() const noexcept { return kind == Kind::copy || kind == Kind::host; }
};

/// Checks each access to memory: that the memory exists, that the device can reach it, and that the
/// access is ordered after earlier ones. Records accesses in the shadow memory for later checks.
class AccessChecker {
public:
    using Reaches = std::function<bool(int device, int other)>;

    AccessChecker(Watch& watch, const SimulatedMemory& memory, Reaches reaches)
        : watch_(watch), memory_(memory), reaches_(std::move(reaches)) {}

    /// Like `touch`, but throws DeviceError if the access touches memory that does not exist.
    void check(const Toucher& by, const std::vector<MemoryRange>& reads,
               const std::vector<MemoryRange>& writes) {
        if (!touch(by, reads, writes)) refuse_touch();
    }
    [[noreturn]] static void refuse_touch() { refuse("it touches memory that is not there"); }
    /// Returns false if the access touches memory that does not exist. The caller must then not
    /// perform any of it.
    bool touch(const Toucher& by, const std::vector<MemoryRange>& reads,
               const std::vector<MemoryRange>& writes);

private:
    bool there(const Toucher& by, const MemoryRange& range);
    bool reached(const Toucher& by, const Allocation& allocation, std::uintptr_t address,
                 std::size_t bytes);
    void read(const Toucher& by, const MemoryRange& range);
    void write(const Toucher& by, const MemoryRange& range);
    bool usable(const Toucher& by, std::uintptr_t address, const Cell& cell);
    void order(const Toucher& by, std::uintptr_t address, const Cell& cell, const Operation& prior);

    Watch& watch_;
    const SimulatedMemory& memory_;
    Reaches reaches_;
};

}  // namespace tensorpool::device
