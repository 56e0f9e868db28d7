// A caller that declares the functions as PyTorch does, without the project's header for them.

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "device/runtime/put_in_backend.hpp"

struct CUstream_st;
using TorchStream = CUstream_st*;                                     // cudaStream_t
using TorchPool = std::pair<unsigned long long, unsigned long long>;  // MempoolId_t

extern "C" {
void* tensorpool_torch_malloc(std::size_t bytes, int device, TorchStream stream);
void tensorpool_torch_free(void* memory, std::size_t bytes, int device, TorchStream stream);
void tensorpool_torch_begin_allocate_to_pool(int device, TorchPool pool,
                                             std::function<bool(TorchStream)> takes_part);
void tensorpool_torch_end_allocate_to_pool(int device, TorchPool pool);
void tensorpool_torch_release_pool(int device, TorchPool pool);
}

namespace tensorpool {
namespace {

std::uint64_t captured_bytes() {
    return get_runtime({DeviceType::cuda, 0}).allocator().statistics().captured_bytes;
}

SimulationOptions with_capture() {
    SimulationOptions options = eager_devices(1);
    options.graph_capture = true;
    return options;
}

TEST(PluggablePools, ServeGraphsInTheOrderOfPyTorchsCalls) {
    const PutInBackend cuda(with_capture(), DeviceType::cuda);
    StreamHandle stream = nullptr;
    ASSERT_EQ(cuda->create_stream(0, &stream), DeviceStatus::ok);
    const auto torch_stream = reinterpret_cast<TorchStream>(stream);
    const TorchPool pool = {0, 1};
    void* const before = tensorpool_torch_malloc(4096, 0, torch_stream);
    tensorpool_torch_free(before, 4096, 0, torch_stream);

    unsigned asked = 0;
    tensorpool_torch_begin_allocate_to_pool(0, pool, [&](TorchStream of) {
        ++asked;
        return of == torch_stream;
    });
    void* const block = tensorpool_torch_malloc(4096, 0, torch_stream);
    EXPECT_NE(block, before);
    EXPECT_GT(asked, 0U);
    tensorpool_torch_free(block, 4096, 0, torch_stream);
    tensorpool_torch_end_allocate_to_pool(0, pool);
    EXPECT_GT(captured_bytes(), 0U);
    EXPECT_EQ(tensorpool_torch_malloc(4096, 0, torch_stream), before) << "outside of the graph";
    tensorpool_torch_free(before, 4096, 0, torch_stream);

    tensorpool_torch_release_pool(0, pool);
    constexpr std::size_t bytes = 4 << 20;  // needs more memory than is free
    tensorpool_torch_free(tensorpool_torch_malloc(bytes, 0, torch_stream), bytes, 0, torch_stream);
    EXPECT_EQ(captured_bytes(), 0U);
    EXPECT_EQ(cuda->hazard_report(), "");
}

}  // namespace
}  // namespace tensorpool
