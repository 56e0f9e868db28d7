// Copies over the fake driver, which is as strict as "API synchronization behavior" in the CUDA
// Driver API allows.

#include <tensorpool/device/cuda_backend.hpp>

#include <cstddef>
#include <memory>
#include <vector>

#include <tensorpool/device/device_memory.hpp>
#include <tensorpool/device/runtime.hpp>

#include "device/cuda/fake_driver.hpp"
#include "device/runtime/made_bytes.hpp"

namespace tensorpool::device::cuda {
namespace {

/// Two devices with runtimes.
class CudaRuntimeCopies : public FakeDriver {
protected:
    ~CudaRuntimeCopies() override { set_peers(true); }

    /// Copies from one device to the other, and returns whether pinned buffers were used.
    bool stages_copies() {
        DeviceMemory from(first_, 5000);
        DeviceMemory to(second_, 5000);
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

}  // namespace
}  // namespace tensorpool::device::cuda
