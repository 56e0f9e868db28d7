// The child of a fork. CUDA cannot be used in it, so it must leave its parent's memory alone.

#include <tensorpool/device/device_allocation.hpp>
#include <tensorpool/device/runtimes.hpp>

#include "stress/cuda/content.hpp"
#include "support/child_process.hpp"

namespace tensorpool::stress::cuda {
namespace {

TEST_F(OnCard, ChildOfAForkLeavesTheMemoryOfItsParentAlone) {
    set_backend(DeviceType::cuda, shared_backend());
    {
        Content content(backend());
        DeviceAllocation memory = get_runtime({DeviceType::cuda, card}).allocate(mib);
        content.fill(memory.data(), mib, 1, nullptr);
        EXPECT_TRUE(testing::holds_in_child([&] {
            memory.reset();
            reset_runtimes();
            return device_count(DeviceType::cuda) == 0;
        }));
        content.expect(memory.data(), mib, 1, nullptr);
        content.compare();
    }
    set_backend(DeviceType::cuda, nullptr);
}

}  // namespace
}  // namespace tensorpool::stress::cuda
