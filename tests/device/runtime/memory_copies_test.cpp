#include "device/runtime/runtime_core.hpp"

#include <gtest/gtest.h>

#include <tensorpool/device/device_stream.hpp>
#include <tensorpool/device/runtimes.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/runtime/made_bytes.hpp"
#include "device/runtime/put_in_backend.hpp"

namespace tensorpool {
namespace {

/// Simulated devices without peer access.
class WithoutPeers final : public SimulatedBackend {
public:
    using SimulatedBackend::SimulatedBackend;
    bool can_access_peer(int, int) noexcept override { return false; }
};

class MemoryCopies : public testing::Test {
protected:
    ~MemoryCopies() override {
        EXPECT_EQ(peers_->hazard_count(), 0u) << peers_->hazard_report();
        EXPECT_EQ(strangers_->hazard_count(), 0u) << strangers_->hazard_report();
    }

    /// Returns memory whose bytes are set by pending work of its stream.
    static DeviceAllocation make(Runtime& runtime, std::size_t bytes, StreamHandle stream,
                                 MemoryKind kind = MemoryKind::device) {
        DeviceAllocation memory(runtime, bytes, stream, kind);
        memory.set(0, made_bytes(bytes));
        return memory;
    }
    static RuntimeOptions small_pieces() {
        RuntimeOptions options;
        options.staging_bytes = 1000;
        return options;
    }

    std::shared_ptr<SimulatedBackend> peers_ = std::make_shared<SimulatedBackend>(lazy_devices(2));
    std::shared_ptr<SimulatedBackend> strangers_ = std::make_shared<WithoutPeers>(lazy_devices(2));
    Runtime first_{peers_, {DeviceType::simulated, 0}};
    Runtime second_{peers_, {DeviceType::simulated, 1}};
    Runtime lonely_{strangers_, {DeviceType::simulated, 0}, small_pieces()};
    Runtime other_lonely_{strangers_, {DeviceType::simulated, 1}, small_pieces()};
    Runtime& cpu_ = get_runtime({DeviceType::cpu, 0});
};

TEST_F(MemoryCopies, OnOneStreamNeedNoEventAndDoNotWait) {
    const DeviceStream stream(first_);
    DeviceAllocation from = make(first_, 5000, stream);
    DeviceAllocation to(first_, 5000, stream);
    peers_->reset_calls();
    to.copy_from(from);
    EXPECT_EQ(peers_->calls().waits(), 0u);
    EXPECT_EQ(peers_->calls()[SimulatedCall::record_event], 0u);
    EXPECT_EQ(content_of(to), made_bytes(5000));
}

TEST_F(MemoryCopies, BetweenStreamsAreOrderedOnBothWithoutWaiting) {
    const DeviceStream one(first_);
    const DeviceStream other(first_);
    DeviceAllocation from = make(first_, 5000, one);
    DeviceAllocation to(first_, 5000, other);
    peers_->reset_calls();
    to.copy_from(from);
    from.fill(0);  // ordered after the copy, although on another stream
    from.reset();
    DeviceAllocation reused(first_, 5000, one);
    reused.fill(1);
    EXPECT_EQ(peers_->calls().waits(), 0u);
    EXPECT_EQ(content_of(to), made_bytes(5000));
}

TEST_F(MemoryCopies, BetweenPeersGoDirectlyWithoutWaiting) {
    const DeviceStream one(first_);
    const DeviceStream other(second_);
    DeviceAllocation from = make(first_, 5000, one);
    DeviceAllocation to(second_, 5000, other);
    peers_->reset_calls();
    to.copy_from(from);
    from.reset();
    EXPECT_EQ(peers_->calls()[SimulatedCall::copy_peer_async], 1u);
    EXPECT_EQ(peers_->calls().waits(), 0u);
    EXPECT_EQ(content_of(to), made_bytes(5000));
}

TEST_F(MemoryCopies, BetweenNonPeersGoThroughPinnedMemoryInPieces) {
    const DeviceStream one(lonely_);
    const DeviceStream other(other_lonely_);
    DeviceAllocation from = make(lonely_, 5500, one);
    DeviceAllocation to(other_lonely_, 5500, other);
    strangers_->reset_calls();
    to.copy_from(from);
    EXPECT_EQ(strangers_->calls()[SimulatedCall::copy_peer_async], 0u);
    EXPECT_EQ(strangers_->calls()[SimulatedCall::copy_async], 12u);  // six pieces, in and out
    EXPECT_TRUE(other.query());
    EXPECT_EQ(content_of(to), made_bytes(5500));
    const DeviceStatistics pinned = other_lonely_.pinned_allocator().statistics();
    EXPECT_EQ(pinned.in_use_bytes, 0u);
    EXPECT_EQ(pinned.allocations, 2u);
}

TEST_F(MemoryCopies, BetweenBackendsGoThroughPinnedMemoryToo) {
    DeviceAllocation from = make(first_, 5500, nullptr);
    DeviceAllocation to(lonely_, 5500);
    to.copy_from(from);
    EXPECT_EQ(content_of(to), made_bytes(5500));
}

TEST_F(MemoryCopies, OfOnePieceUseOneBuffer) {
    DeviceAllocation from = make(lonely_, 1000, nullptr);
    DeviceAllocation to(other_lonely_, 1000);
    to.copy_from(from);
    EXPECT_EQ(other_lonely_.pinned_allocator().statistics().allocations, 1u);
    EXPECT_EQ(content_of(to), made_bytes(1000));
}

TEST_F(MemoryCopies, GoBetweenAllKindsOfMemory) {
    struct End {
        Runtime& runtime;
        MemoryKind kind;
    };
    const std::vector<End> ends = {
        {first_, MemoryKind::device},  {first_, MemoryKind::pinned}, {first_, MemoryKind::host},
        {second_, MemoryKind::device}, {second_, MemoryKind::host},  {lonely_, MemoryKind::device},
        {lonely_, MemoryKind::pinned}, {cpu_, MemoryKind::device},   {cpu_, MemoryKind::pinned}};
    for (const End& source : ends) {
        for (const End& target : ends) {
            const DeviceStream one(source.runtime);
            const DeviceStream other(target.runtime);
            DeviceAllocation from = make(source.runtime, 3000, one, source.kind);
            DeviceAllocation to(target.runtime, 3000, other, target.kind);
            to.copy_from(from);
            from.fill(0);
            EXPECT_EQ(content_of(to), made_bytes(3000))
                << to_string(source.runtime.device()) << ' ' << to_string(source.kind) << " to "
                << to_string(target.runtime.device()) << ' ' << to_string(target.kind);
        }
    }
}

// The device reads such memory when the copy is submitted.
TEST_F(MemoryCopies, FromHostMemoryWaitForItsPendingWork) {
    const DeviceStream one(first_);
    const DeviceStream other(first_);
    DeviceAllocation from(first_, 5000, one, MemoryKind::host);
    for (const StreamHandle stream : {one.handle(), other.handle()}) {
        DeviceAllocation to(first_, 5000, stream);
        from.fill(7);
        to.copy_from(from);
        EXPECT_EQ(content_of(to), std::vector<std::byte>(5000, std::byte{7}));
        from.set(0, std::vector<std::byte>(5000));
    }
}

TEST_F(MemoryCopies, OfDifferentSizesAreRejected) {
    DeviceAllocation from(first_, 100);
    DeviceAllocation to(first_, 101);
    try {
        to.copy_from(from);
        ADD_FAILURE();
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(
            error.what(),
            "tensorpool: copy_from: the source has 100 bytes, expected the 101 of the destination");
    }
}

TEST_F(MemoryCopies, FreeTheirBuffersOnFailure) {
    DeviceAllocation from = make(lonely_, 5500, nullptr);
    DeviceAllocation to(other_lonely_, 5500);
    SimulationFaults faults;
    faults.failing = {{SimulatedCall::copy_async, 4, 1}};
    strangers_->set_faults(faults);
    EXPECT_THROW(to.copy_from(from), DeviceError);
    strangers_->set_faults({});
    EXPECT_EQ(other_lonely_.pinned_allocator().statistics().in_use_bytes, 0u);
    to.copy_from(from);
    EXPECT_EQ(content_of(to), made_bytes(5500));
}

TEST_F(MemoryCopies, FreeABufferWithoutAnEvent) {
    DeviceAllocation from = make(lonely_, 5500, nullptr);
    DeviceAllocation to(other_lonely_, 5500);
    SimulationFaults faults;
    faults.failing = {{SimulatedCall::create_event, 1, 1}};
    strangers_->set_faults(faults);
    EXPECT_THROW(to.copy_from(from), DeviceError);
    strangers_->set_faults({});
    EXPECT_EQ(other_lonely_.pinned_allocator().statistics().in_use_bytes, 0u);
}

}  // namespace
}  // namespace tensorpool
