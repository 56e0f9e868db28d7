#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tensorpool/device/simulated_backend.hpp>

#include "stress/devices/block.hpp"

namespace tensorpool::stress::devices {

/// Simulated devices with a few streams each, and the work that the program gives them. It orders
/// its own work as a correct program does: what is out of order then is an allocator's doing.
class Stage {
public:
    explicit Stage(const SimulationOptions& options);
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

    static constexpr std::size_t streams_per_device = 3;

    SimulatedBackend& backend() noexcept { return backend_; }
    int devices() const noexcept { return static_cast<int>(devices_.size()); }
    /// 0 is the default stream.
    StreamOf stream(int device, std::size_t number) const {
        return {device, devices_[static_cast<std::size_t>(device)].streams[number]};
    }
    /// Another one takes its place.
    void replace_stream(int device, std::size_t number);

    /// What is given to `later` from now on comes after what `first` was given so far.
    void order(StreamOf first, StreamOf later);
    void wait_for(StreamOf stream);
    /// Orders the stream after all who wrote to the block, or also after who read it.
    void order_for_read(Block& block, StreamOf on);
    void order_for_write(Block& block, StreamOf on);

    /// Kernels without an order of their own. The word is the block's from now on.
    void give_write(Block& block, StreamOf on, std::uint64_t word);
    void give_read(const Block& block, StreamOf on, std::uint64_t word);
    void write(Block& block, StreamOf on, std::uint64_t word);
    void read(Block& block, StreamOf on);

    /// Throws Violation where a call of the program's own was refused, or the device or a kernel
    /// found something.
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
    std::string found_;  // by a kernel, which cannot throw
};

}  // namespace tensorpool::stress::devices
