// Copies over the fake driver, which is as strict as "API synchronization behavior" in the CUDA
// Driver API allows.

#include <tensorpool/device/cuda_backend.hpp>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <tensorpool/device/device_allocation.hpp>
#include <tensorpool/device/device_stream.hpp>
#include <tensorpool/device/runtime.hpp>

#include "contracts/backend_contract.hpp"
#include "device/cuda/fake_driver.hpp"
#include "device/runtime/made_bytes.hpp"
#include "support/wait_until.hpp"

namespace tensorpool::device::cuda {
namespace {

using testing::Gate;

constexpr std::size_t kib = 1024;

class CudaCopies : public FakeDriver {
protected:
    void copy_one_byte() {
        char from = 1;
        char to = 0;
        EXPECT_EQ(backend_.copy(0, CopyKind::host_to_host, &to, &from, 1), DeviceStatus::ok);
        EXPECT_EQ(to, 1);
    }

    CudaBackend backend_{path};
};

TEST_F(CudaCopies, OfTwoThreadsWithoutAStreamDoNotWaitForEachOther) {
    Gate gate;
    ASSERT_EQ(gate.close(backend_, 0, nullptr), DeviceStatus::ok);
    const int before = held();
    const int at_once = before + 4;  // a stream and an event for each thread
    std::atomic<int> done{0};
    const auto copy = [&] {
        copy_one_byte();
        ++done;
    };
    std::thread one(copy);
    std::thread other(copy);
    testing::wait_until("both threads have made their objects",
                        [&] { return held() >= at_once || done == 2; });
    EXPECT_EQ(held(), at_once);
    EXPECT_EQ(done, 0);
    gate.open();
    one.join();
    other.join();
}

TEST_F(CudaCopies, WithoutAStreamLeaveNoStreamsOfThreadsThatEnded) {
    std::thread([&] { copy_one_byte(); }).join();
    const int after_the_first = held();
    for (int thread = 0; thread < 10; ++thread) std::thread([&] { copy_one_byte(); }).join();
    EXPECT_EQ(held(), after_the_first);
}

TEST_F(CudaCopies, WithoutAStreamLeakNothingIfTheyFail) {
    copy_one_byte();
    const int before = held();
    char byte = 0;
    for (const char* const call : {"cuEventRecord", "cuStreamWaitEvent", "cuMemcpyHtoDAsync"}) {
        fail_next(call, 999);
        EXPECT_EQ(backend_.copy(0, CopyKind::host_to_device, &byte, &byte, 1), DeviceStatus::failed)
            << call;
        EXPECT_EQ(held(), before) << call;
    }
    copy_one_byte();
    EXPECT_EQ(held(), before);
}

TEST_F(CudaCopies, LeakNoStreamIfTheirEventCannotBeMade) {
    DeviceMemoryInfo info;
    ASSERT_EQ(backend_.memory_info(0, info), DeviceStatus::ok);
    const int before = held();
    fail_next("cuEventCreate", 2);
    char byte = 0;
    EXPECT_EQ(backend_.copy(0, CopyKind::host_to_host, &byte, &byte, 1),
              DeviceStatus::out_of_memory);
    EXPECT_EQ(held(), before);
}

/// Two devices with runtimes.
class CudaRuntimeCopies : public FakeDriver {
protected:
    ~CudaRuntimeCopies() override { set_peers(true); }

    /// Copies from one device to the other, and returns whether pinned buffers were used.
    bool stages_copies() {
        DeviceAllocation from(first_, 5000);
        DeviceAllocation to(second_, 5000);
        from.set(0, made_bytes(5000));
        to.copy_from(from);
        EXPECT_EQ(content_of(to), made_bytes(5000));
        return second_.pinned_allocator().statistics().allocations != 0;
    }

    std::shared_ptr<CudaBackend> backend_ = std::make_shared<CudaBackend>(path);
    Runtime first_{backend_, {DeviceType::cuda, 0}};
    Runtime second_{backend_, {DeviceType::cuda, 1}};
};

TEST_F(CudaRuntimeCopies, BetweenPeersAreDirect) {
    EXPECT_FALSE(stages_copies());
}

TEST_F(CudaRuntimeCopies, AreStagedWherePeersAreNotAllowed) {
    set_peers(false);
    EXPECT_FALSE(backend_->can_access_peer(1, 0));
    EXPECT_EQ(backend_->enable_peer_access(1, 0), DeviceStatus::not_supported);
    EXPECT_TRUE(stages_copies());
}

TEST_F(CudaRuntimeCopies, AreStagedIfADeviceHasTooManyPeers) {
    fail_next("cuCtxEnablePeerAccess", 711);
    EXPECT_TRUE(stages_copies());
}

// The driver reads such memory when the copy is submitted, which may be before the work that
// writes it.
TEST_F(CudaRuntimeCopies, FromHostMemoryWaitForItsPendingWork) {
    const DeviceStream one(first_);
    const DeviceStream other(first_);
    DeviceAllocation from(first_, 5000, one, MemoryKind::host);
    DeviceAllocation to(first_, 5000, other);
    DeviceAllocation busy(first_, 16384 * kib, one);
    for (std::uint8_t byte = 1; byte <= 20; ++byte) {
        busy.fill(byte);
        from.fill(byte);
        to.copy_from(from);
        ASSERT_EQ(content_of(to), std::vector<std::byte>(5000, std::byte{byte}));
    }
}

}  // namespace
}  // namespace tensorpool::device::cuda
