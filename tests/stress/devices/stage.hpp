#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tensorpool/device/simulated_backend.hpp>

#include "stress/devices/block.hpp"

namespace tensorpool::stress::devices {

/// Simulated devices with a few streams each, and the program's work for them. It orders its own
/// work as a correct program does, so any hazard is the fault of an allocator.
class Stage {
public:
    explicit Stage(const SimulationOptions& options);
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

    static constexpr std::size_t streams_per_device = 3;

    SimulatedBackend& backend() noexcept { return backend_; }
    int devices() const noexcept { return static_cast<int>(devices_.size()); }
    /// Returns a stream; number 0 is the default stream.
    StreamOf stream(int device, std::size_t number) const {
        return {device, devices_[static_cast<std::size_t>(device)].streams[number]};
    }
    /// Destroys the stream and creates another under its number.
    void replace_stream(int device, std::size_t number);

    /// Orders later work of `later` after all work submitted to `first` so far.
    void order(StreamOf first, StreamOf later);
    void wait_for(StreamOf stream);
    /// Orders the stream after the block's writer, or also after its readers.
    void order_for_read(Block& block, StreamOf on);
    void order_for_write(Block& block, StreamOf on);

    /// Submit kernels without ordering them.
    void give_write(Block& block, StreamOf on, std::uint64_t word);
    void give_read(const Block& block, StreamOf on, std::uint64_t word);
    /// Order the stream and submit a kernel.
    void write(Block& block, StreamOf on, std::uint64_t word);
    void read(Block& block, StreamOf on);

    /// Throws Violation if a call of the program failed, or if the device or a kernel found a
    /// fault.
    void expect_ok(DeviceStatus status, const char* what);
    void check();
    void found(const std::string& what) {
        if (found_.empty()) found_ = what;
    }

private:
    struct OfDevice {
        std::vector<StreamHandle> streams;
        std::vector<EventHandle> events;
        std::size_t next_event = 0;
    };

    SimulatedBackend backend_;
    std::vector<OfDevice> devices_;
    std::string found_;  // set by a kernel, which cannot throw
};

}  // namespace tensorpool::stress::devices
